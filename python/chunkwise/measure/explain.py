"""Why did it take so long, in one sentence, and which line or command helps?

Everything is derived from this run.  The measured times say which pattern is
slow; the shapes and the cache in force say how often its chunks are decoded; and
the remedy follows from which of the two is out of proportion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from chunkwise.grammar import format_shape, format_size
from chunkwise.measure.cause import Cause, copied, faster, pipelines, total, verified
from chunkwise.measure.results import Advice, Cell, Results
from chunkwise.measure.target import Target
from chunkwise.measure.variants import Variant, stored, suitable_chunks
from chunkwise.model import worth
from chunkwise.model.chunk_cache import FEWEST_SLOTS
from chunkwise.model.cost import Stored, decodes_in_no_order, walk_cost
from chunkwise.model.geometry import Walk, line_axis, plane
from chunkwise.model.held import Cache, holding
from chunkwise.model.readers import CHUNKWISE, DEFAULT_W0, Reader, reader
from chunkwise.patterns import Access, defaults
from chunkwise.remedy.commands import copy_name
from chunkwise.remedy.records import OpenNatively, ReadOnce, Remedy, larger_cache
from chunkwise.remedy.spelling import in_c, in_short
from chunkwise.trials.environment import available_memory_nbytes
from chunkwise.trials.formats import is_netcdf3
from chunkwise.trials.readers import COMPILED, WITH_LIBRARY_CACHE
from chunkwise.words import LAYOUTS, counted, format_ratio, format_seconds

# A read that needs so many chunks, and decodes so many times what it asks for, is
# not helped by a cache: already the first one is slow.
MANY_CHUNKS = 8
MUCH_DECODED = 16
# A shorter read is only call overhead.
CALL_S = 2e-4
# Call overhead that sums up to less is not worth a word.
NOTICED_S = 1.0


def explain(results: Results) -> Advice | None:
    """Find the run's worst pattern, its cause and its remedy.

    Returns
    -------
    Advice or None
        None if no reader that uses libhdf5 gave figures: there is nothing to
        explain.
    """
    # What storage, another library or its properties add is no matter of chunks: of those,
    # the first value is what is explained.
    reads = [cell for cell in results.cells if cell.operation == "read"]
    if not reads:
        return None
    cells = tuple(cell for cell in reads if _setting(cell) == _setting(reads[0]))
    alike = replace(results, cells=cells)
    # About the data as the file has it, if that was measured.
    variants = alike.variants
    main = next((v for v in variants if v == stored(results.file)), variants[0])
    if is_netcdf3(main.format):
        return None  # without chunks there is nothing to be explained by them
    cells = tuple(cell for cell in alike.cells if cell.variant == main)
    target = replace(
        alike.target, chunks=main.chunks and cells[0].trial.chunks, filters=main.filters
    )
    cause = _explain(replace(alike, cells=cells, target=target))
    if cause is None:
        return None
    return _advice(verified(cause, alike, main))


def _advice(cause: Cause) -> Advice:
    """Say what helps in the words of the advice."""
    remedies = cause.remedies
    lines = [text for text in map(in_short, remedies) if text is not None]
    # The lines that follow a command are for its output alone.
    of_c = in_c(remedies[0]) if len(remedies) == 1 else None
    return Advice(cause.why, "\n".join(lines) or None, cause.effect, of_c)


def _setting(cell: Cell) -> tuple[str, ...]:
    """Return the values of the axes that the explanation is not about."""
    about = {"access", "chunk", "filter", "reader", "threads", "cache", "nslots", "w0"}
    return tuple(text for name, text in cell.point.items() if name not in about)


def _explain(results: Results) -> Cause | None:
    cells = [c for c in results.cells if c.reader in WITH_LIBRARY_CACHE and c.total_s]
    if not cells:
        return _unfinished(results)
    worst = max(cells, key=total)
    alike = [c for c in cells if _reader(c) == _reader(worst)]
    best = min(alike, key=total)
    # If all patterns decode chunks again and again, the best one is no measure.
    alone = (
        _decodes(results.target, best) >= worth.NOTICED
        and _decodes(results.target, worst) >= worth.NOTICED
    )
    if alone or total(worst) >= worth.NOTICED * total(best):
        reason = _slow_pattern(results, worst, best, alike)
        if reason is not None:
            return reason
    cured = _cured(results, worst)
    if cured is not None:
        return _beside(_other_cache(results.target, worst, cured), results, worst)
    return _no_slow_pattern(results, worst)


def _reader(cell: Cell) -> tuple[str, int | None, int | None, float | None]:
    """Return who reads, and with which cache."""
    trial = cell.trial
    return cell.reader, trial.cache_nbytes, trial.cache_nslots, trial.cache_w0


def _unfinished(results: Results) -> Cause | None:
    """Explain a run in which not one read through libhdf5 came back in time."""
    target = results.target
    for cell in results.cells:
        late = cell.problem is not None and cell.problem.status == "timeout"
        if not late or cell.reader not in WITH_LIBRARY_CACHE or target.chunks is None:
            continue
        if _goes_through_many(target, cell, _walk(target, cell)):
            return _layout(results, cell)
    return None


def _walk(target: Target, cell: Cell) -> Walk:
    """Return the walk in the order of its dimensions; of others, what one read is like."""
    return _stored_as(target).walk(cell.access.block, cell.access.order)


def _stored_as(target: Target) -> Stored:
    """Say how the dataset is stored, as the cost model takes it."""
    assert target.chunks is not None
    return Stored(target.shape, target.chunks, target.itemsize, target.filters != "none")


def _in_force(cell: Cell) -> Reader:
    """Return the chunk cache that was in force; without slots it holds nothing."""
    measured = cell.succeeded[0]
    nslots, nbytes = measured.actual_cache_nslots, measured.actual_cache_nbytes or 0
    w0 = cell.trial.cache_w0
    return Reader(cell.reader, cell.reader, nbytes, nslots, DEFAULT_W0 if w0 is None else w0)


def _goes_through_many(target: Target, cell: Cell, walk: Walk) -> bool:
    """Whether already one single read is out of proportion."""
    if cell.access.has_unions:
        return False  # the box around a union may touch far more chunks
    asked = cell.access.elements * target.itemsize
    decoded = walk.chunks_per_operation * target.chunk_nbytes
    return walk.chunks_per_operation >= MANY_CHUNKS and decoded >= MUCH_DECODED * asked


def _piecemeal(target: Target, cell: Cell) -> bool:
    """Whether libhdf5 reads just the elements it needs, as from contiguous storage.

    It does so from a chunk that is neither filtered nor fits its cache.
    """
    return _stored_as(target).is_read_in_pieces(_in_force(cell))


def _decodes(target: Target, cell: Cell) -> float:
    """Return how often the walk decodes each chunk; 1 if there is nothing to decode."""
    return 1.0 if target.chunks is None else _decodes_with(target, cell, _in_force(cell))


def _decodes_with(target: Target, cell: Cell, cache: Reader) -> float:
    stored, block = _stored_as(target), cell.access.block
    if cell.access.is_ordered:
        return walk_cost(stored, block, cache, order=cell.access.order).decodes
    return decodes_in_no_order(stored, block, cache, cell.total_operations or 0)


def _slow_pattern(
    results: Results, worst: Cell, best: Cell, alike: Sequence[Cell]
) -> Cause | None:
    """Explain a pattern that takes much longer than the best of those measured alike."""
    target = results.target
    if _decodes(target, worst) >= worth.NOTICED:
        return _decoded_again(results, worst)
    each = worst.spread(lambda m: m.mean_s)
    call = worst.spread(lambda m: m.median_s)
    # If a few reads decode and many others do not, the mean is no call's cost.
    if each and call and call.median <= CALL_S and each.median <= 2 * call.median:
        largest = max(alike, key=lambda cell: math.prod(cell.access.block))
        return _calls(results, worst, largest, call.median)
    if target.chunks is None or _piecemeal(target, worst):
        cause = _scattered(results, worst, best)
        offer = _instead if target.chunks is None else _beside
        return offer(cause, results, worst)
    return None


def _decoded_again(results: Results, worst: Cell) -> Cause:
    """Explain a walk that decodes each chunk again and again."""
    target, walk = results.target, _walk(results.target, worst)
    decodes = _decodes(target, worst)
    if not worst.access.is_ordered:
        return _instead(_in_no_order(results, worst, walk, decodes), results, worst)
    held = _chunks_to_hold(target, walk, decodes)
    if held is None and _cured(results, worst) is None:
        return _instead(_layout(results, worst), results, worst)
    return _beside(_cache(results, worst, walk, decodes, held), results, worst)


def _amplification(target: Target, cell: Cell) -> float | None:
    """Return how many times what all reads ask for is decoded, with the cache in force.

    None if shapes do not tell: the box around a union may touch far more chunks.
    """
    if target.chunks is None or _piecemeal(target, cell):
        return 1.0
    if cell.access.has_unions:
        return None
    walk, operations = _walk(target, cell), cell.total_operations or 1
    touched = min(operations * walk.chunks_per_operation, walk.chunk_count)
    asked = operations * cell.access.elements * target.itemsize
    return _decodes(target, cell) * touched * target.chunk_nbytes / max(asked, 1)


def _keeps(target: Target, cell: Cell) -> bool:
    """Whether chunkwise's own cache holds the chunks that a walk comes back to.

    Where it loses the same chunks, it is no remedy.
    """
    if target.chunks is None:
        return True
    return _decodes_with(target, cell, reader(CHUNKWISE)) < worth.NOTICED


def _chunks_to_hold(target: Target, walk: Walk, decodes: float) -> int | None:
    """Return how many chunks a larger cache should hold; None if no such cache would do.

    The one that leaves the fewest decodes, and of equals the smallest.
    """
    affordable = [
        held
        for held in {*walk.footprints(), walk.chunks_to_cache()}
        if holding(held, target.chunk_nbytes).is_moderate
        and decodes >= worth.NOTICED * walk.decodes_per_chunk(held)
    ]
    return min(affordable, key=lambda held: (walk.decodes_per_chunk(held), held), default=None)


def _instead(cause: Cause, results: Results, worst: Cell) -> Cause:
    """Offer chunkwise in the place of a copy of the file, if it was measured to gain much."""
    said = _measured(results, worst)
    if said is None:
        untried = not cause.remedies and cause.effect and not _fastest(results, worst)[0]
        if untried and _keeps(results.target, worst):
            effect = f"{cause.effect}; chunkwise was not measured here"
            return replace(cause, remedies=_open(results.target), effect=effect)
        return cause
    much = _fastest(results, worst)[0] >= worth.MUCH or not cause.remedies
    if much and _keeps(results.target, worst):
        return replace(cause, remedies=_open(results.target), effect=said)
    return _beside(cause, results, worst)


def _beside(cause: Cause, results: Results, worst: Cell) -> Cause:
    """Add to a remedy what chunkwise was measured to gain without it."""
    said = _measured(results, worst)
    if said is None:
        return cause
    said = f"by chunkwise.open, {said}"
    return replace(cause, effect=f"{cause.effect}; {said}" if cause.effect else said)


def _measured(results: Results, worst: Cell) -> str | None:
    """Say how much faster chunkwise reads a pattern; None if it is not much."""
    gain, cell = _fastest(results, worst)
    if cell is None or gain < worth.NOTICED:
        return None
    said = faster(worst, cell)
    first, first_here = (c.spread(lambda m: m.first_s) for c in (worst, cell))
    if first and first_here and first_here.median:
        said += f", the first one {format_ratio(first.median / first_here.median)}"
        said += " (measured)" * (worst.extrapolated or cell.extrapolated)
    return said


def _fastest(results: Results, base: Cell) -> tuple[float, Cell | None]:
    """Return how much faster than one cell the fastest of chunkwise's is, and that one.

    Only where both are called from the same language; 0 if that was not measured.
    """
    gains = [
        (total(base) / cell.total_s, cell)
        for cell in results.cells
        if cell.reader not in WITH_LIBRARY_CACHE
        and cell.total_s
        and cell.access == base.access
        and (cell.reader in COMPILED) == (base.reader in COMPILED)
    ]
    return max(gains, key=lambda found: found[0], default=(0.0, None))


def _open(target: Target) -> tuple[OpenNatively]:
    return (OpenNatively(target.file, target.dataset),)


def _cache_for(target: Target, cache: Cache, worst: Cell, *, own_slots: bool = False) -> Remedy:
    """Give the dataset a cache, in the language of a reader."""
    names = (worst.reader,)
    return larger_cache(target.file, target.dataset, cache, readers=names, own_slots=own_slots)


def _cured(results: Results, worst: Cell) -> Cell | None:
    """Return the smallest cache measured to make a pattern much faster, if one was."""
    cells = [
        cell
        for cell in results.cells
        if (cell.reader, cell.access) == (worst.reader, worst.access)
        and cell.total_s
        and total(worst) >= worth.MUCH * cell.total_s
    ]
    return min(cells, key=_cache_nbytes, default=None)


def _cache_nbytes(cell: Cell) -> int:
    """Return the chunk cache that was in force; without slots it holds nothing."""
    cache = _in_force(cell)
    return 0 if cache.nslots == 0 else cache.cache_nbytes


def _with_measured_cache(why: str, target: Target, worst: Cell, cured: Cell) -> Cause:
    """Advise the cache that was measured to help."""
    nbytes = _cache_nbytes(cured)
    nslots = cured.succeeded[0].actual_cache_nslots or FEWEST_SLOTS
    remedy = _cache_for(target, Cache(nbytes, nslots), worst, own_slots=True)
    effect = (
        f"measured with a chunk cache of {_named_cache(target, cured)}: all reads of "
        f"'{worst.access.name}' {format_ratio(total(worst) / total(cured))} as fast"
    )
    return Cause(why, (remedy,), effect)


def _other_cache(target: Target, worst: Cell, cured: Cell) -> Cause:
    """Another cache was measured to help, though shapes alone do not tell why."""
    why = (
        f"The chunk cache decides: '{worst.access.name}' takes "
        f"{format_seconds(total(worst))} with {_named_cache(target, worst)}, and "
        f"{format_seconds(total(cured))} with {_named_cache(target, cured)}."
    )
    return _with_measured_cache(why, target, worst, cured)


def _cache(results: Results, worst: Cell, walk: Walk, decodes: float, needed: int | None) -> Cause:
    """A cache that holds what the walk comes back to spares it the decodes."""
    target = results.target
    chunk = format_size(target.chunk_nbytes)
    cache = format_size(_cache_nbytes(worst))
    if worst.cache_nbytes is not None and _cache_nbytes(worst) != target.cache_nbytes:
        cache += f", as asked for; by default {format_size(target.cache_nbytes)}"
    times = f"{decodes:,.0f} times"
    if target.chunk_nbytes > _cache_nbytes(worst):
        held = f"A chunk ({chunk}) does not fit into the chunk cache ({cache})"
    else:
        between = walk.chunks_to_cache()
        held = (
            f"Between two reads of a chunk ({chunk}) this walk needs {counted(between, 'chunk')}, "
            f"more than the chunk cache ({cache}) holds"
        )
    verb = "fetches" if target.filters == "none" else "decodes"
    why = f"{held}, so that reading '{worst.access.name}' {verb} each chunk about {times}."
    cured = _cured(results, worst)
    if cured is not None:
        return _with_measured_cache(why, target, worst, cured)
    assert needed is not None
    after = walk.decodes_per_chunk(needed)
    left = "once" if after < 1.05 else f"{format_ratio(after)}"
    return Cause(
        why,
        (_cache_for(target, holding(needed, target.chunk_nbytes), worst),),
        f"{format_ratio(decodes / after)} fewer decodes: each chunk {left} instead of {times} "
        "(computed, not measured)",
    )


def _in_no_order(results: Results, worst: Cell, walk: Walk, decodes: float) -> Cause:
    """Reads that touch chunks in random order need all of them cached, or smaller chunks."""
    target = results.target
    chunks, verb = walk.chunk_count, "fetch" if target.filters == "none" else "decode"
    touched = min((worst.total_operations or 0) * walk.chunks_per_operation, chunks)
    why = (
        f"The {counted(worst.total_operations or 0, 'read')} of '{worst.access.name}' come to "
        "chunks in no "
        f"order, and the chunk cache ({format_size(_cache_nbytes(worst))}) holds "
        f"{_cache_nbytes(worst) // target.chunk_nbytes:,} of {chunks:,} "
        f"({format_size(target.chunk_nbytes)} each): they {verb} about {decodes * touched:,.0f} "
        f"chunks, each about {decodes:,.0f} times."
    )
    needed = holding(chunks, target.chunk_nbytes)
    if needed.is_moderate:
        effect = "each chunk once (computed, not measured)"
        return Cause(why, (_cache_for(target, needed, worst),), effect)
    return Cause(why, effect="smaller chunks, or reads sorted by place, would need fewer")


def _named_cache(target: Target, cell: Cell) -> str:
    default = " (the default)" if _cache_nbytes(cell) == target.cache_nbytes else ""
    return format_size(_cache_nbytes(cell)) + default


def _layout(results: Results, worst: Cell) -> Cause:
    """Only other chunks make a single read cheap."""
    target, block = results.target, worst.access.block
    stored = _stored_as(target)
    before = walk_cost(stored, block)
    why = (
        f"One read of '{worst.access.name}' asks for {format_size(before.selected_nbytes)} and "
        f"goes through {counted(before.chunks, 'chunk')} of {format_shape(stored.chunks)}, "
        f"{format_size(before.decoded_nbytes)} in all: {format_ratio(before.amplification)} what "
        "it asks for."
    )
    chunks = suitable_chunks(results.target, _stated(results))
    remedies = _repack(target, chunks, worst)
    if not remedies:
        return Cause(
            why,
            effect="no copy is offered: its filters cannot be written here "
            f"({', '.join(pipelines(target))})",
        )
    then = replace(stored, chunks=chunks)
    after = walk_cost(then, block)
    if after.decoded_nbytes >= before.decoded_nbytes:
        return Cause(why)
    across = plane(target.shape, line_axis(target.shape, block))
    plane_before, plane_after = walk_cost(stored, across), walk_cost(then, across)
    return Cause(
        why,
        remedies,
        f"such a read then needs {format_size(after.decoded_nbytes)} instead of "
        f"{format_size(before.decoded_nbytes)}, and one of {format_shape(across)} "
        f"{format_size(plane_after.decoded_nbytes)} instead of "
        f"{format_size(plane_before.decoded_nbytes)} (computed, not measured)",
    )


def _stated(results: Results) -> list[Access]:
    """Return the patterns of a run; none if all are bench's own."""
    target, accesses = results.target, [cell.access for cell in results.cells]
    usual = {one.block for one in defaults(target.shape, target.itemsize)} | {target.shape}
    return [] if usual.issuperset(one.block for one in accesses) else accesses


def _repack(target: Target, chunks: tuple[int, ...], worst: Cell) -> tuple[Remedy, ...]:
    """Copy the file, and open the copy with a cache if no default one would do.

    Needed is a cache for the chunks of one read, of the slow pattern and of a plane across it,
    as far as a reader should be told to give so much.
    Nothing if no command can be trusted with every dataset of the file.
    """
    copies = copied(target, Variant(chunks, target.filters))
    if not copies:
        return ()
    stored = Stored(target.shape, chunks, target.itemsize)
    across = plane(target.shape, line_axis(target.shape, worst.access.block))
    each = (walk_cost(stored, block).decoded_nbytes for block in (worst.access.block, across))
    needed = max((nbytes for nbytes in each if nbytes <= worth.LARGEST_CACHE_NBYTES), default=0)
    if needed <= target.cache_nbytes:
        return copies
    cache = holding(-(-needed // stored.chunk_nbytes), stored.chunk_nbytes)
    copy = copy_name(copies[0])
    return *copies, larger_cache(copy, target.dataset, cache)


def _stored(target: Target) -> str:
    """Name the layout of a dataset without chunks, and who reads it."""
    said = LAYOUTS[target.layout]
    if target.layout == "contiguous":
        return said
    return f"{said}, and libhdf5 reads it, through chunkwise as well"


def _scattered(results: Results, worst: Cell, best: Cell) -> Cause:
    """Without filters or a cache, what is not adjacent is fetched piece by piece."""
    target = results.target
    stored = "not compressed, its chunks not cached"
    if target.chunks is None:
        stored = _stored(target)
    why = (
        f"The dataset is {stored}, and one read of '{worst.access.name}' "
        f"({format_shape(worst.access.block)}) gathers pieces from all over it: the same data "
        f"takes {format_ratio(total(worst) / total(best))} as long as by '{best.access.name}'."
    )
    cured = _cured(results, worst)
    if cured is not None:
        return _with_measured_cache(why, target, worst, cured)
    if target.chunks is not None:
        walk = _walk(target, worst)
        cache = holding(walk.chunks_to_cache(), target.chunk_nbytes)
        if cache.is_moderate:
            effect = "each chunk is then fetched once, as a whole (computed, not measured)"
            return Cause(why, (_cache_for(target, cache, worst),), effect)
    elif target.layout != "contiguous":
        return Cause(why)
    chunks = suitable_chunks(results.target, _stated(results))
    return Cause(
        why,
        _repack(target, chunks, worst),
        f"each read then fetches whole chunks of {format_shape(chunks)} (computed, not measured)",
    )


def _calls(results: Results, worst: Cell, largest: Cell, each_s: float) -> Cause:
    """Small reads are made of calls."""
    target = results.target
    asked = worst.access.elements * target.itemsize
    once = "" if target.chunks is None else "No chunk is decoded twice; "
    why = (
        f"{once}{'one' if once else 'One'} read of '{worst.access.name}' asks for "
        f"{format_size(asked)} only, and each of the {worst.total_operations or 0:,} calls "
        f"costs {format_seconds(each_s)} by itself."
    )
    if total(worst) < NOTICED_S:
        return _with_gain(Cause(why), results, worst)
    effect = (
        f"measured: all of the data in {format_seconds(total(largest))} by "
        f"'{largest.access.name}', instead of {format_seconds(total(worst))}"
    )
    if target.nbytes > available_memory_nbytes() // 4:
        return Cause(why, effect=f"read larger blocks; {effect}")
    return Cause(why, (ReadOnce(target.file, target.dataset),), effect)


def _no_slow_pattern(results: Results, worst: Cell) -> Cause:
    """No pattern stands out: what is left is decoding, or copying."""
    target = results.target
    walk = None if target.chunks is None else _walk(target, worst)
    amplification = _amplification(target, worst)
    if walk is not None and target.stored_nbytes and (amplification or 0) >= worth.NOTICED:
        if _decodes(target, worst) >= worth.NOTICED:
            return _decoded_again(results, worst)
        return _instead(_layout(results, worst), results, worst)
    if target.layout == "contiguous":
        why = "The dataset is contiguous and not compressed: reading it is copying it."
    elif walk is None:
        why = f"The dataset is {_stored(target)}."
    elif not target.stored_nbytes:
        why = "No chunk was ever written: reading is filling memory with the fill value."
    elif not _piecemeal(target, worst) and _goes_through_many(target, worst, walk):
        why = (
            f"One read of '{worst.access.name}' goes through {walk.chunks_per_operation:,} "
            f"chunks of {format_shape(target.chunks or ())}, many times what it asks for: the "
            f"first is slow, and the chunk cache ({format_size(_cache_nbytes(worst))}) holds "
            "them for the next."
        )
    elif amplification is None:
        why = "No pattern is much slower than the others: what is left is reading chunks."
    elif target.filters == "none":
        why = "The chunks suit these patterns and are not compressed: reading is copying."
    else:
        why = (
            f"The chunks suit these patterns; what is left is decoding {target.filters}, "
            "which libhdf5 does in one thread, one chunk after the other."
        )
    return _with_gain(Cause(why), results, worst)


def _with_gain(cause: Cause, results: Results, worst: Cell) -> Cause:
    """Say chunkwise's gain at the slowest pattern, or that there is none."""
    gain, cell = _fastest(results, worst)
    if cell is None:
        return cause
    measured = faster(worst, cell)
    if gain < 1 / worth.MEASURED:
        effect = f"nothing needs a change; chunkwise is slower here ({measured})"
    elif gain < worth.MEASURED:
        effect = f"nothing needs a change; chunkwise makes little difference ({measured})"
    elif _keeps(results.target, worst):
        return replace(cause, remedies=_open(results.target), effect=measured)
    else:
        effect = f"by chunkwise.open, {measured}"
    return replace(cause, effect=effect)
