"""Why did it take so long, in one sentence, and which line or command helps?

Everything is derived from this run.  The measured times say which pattern is
slow; the shapes and the cache in force say how often its chunks are decoded; and
the remedy follows from which of the two is out of proportion.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeAlias

from chunkwise.diagnosis.reads import Cause, Reads, cause, decodes
from chunkwise.grammar import format_shape, format_size
from chunkwise.measure.results import Advice, Cell, Results
from chunkwise.measure.target import Target
from chunkwise.measure.variants import Variant, stored, suitable_chunks
from chunkwise.measure.verdict import Word, verdict
from chunkwise.memory import free_nbytes
from chunkwise.model import worth
from chunkwise.model.chunk_cache import FEWEST_SLOTS
from chunkwise.model.cost import Stored, walk_cost
from chunkwise.model.geometry import line_axis, plane
from chunkwise.model.held import Cache
from chunkwise.model.layout import Layout
from chunkwise.model.readers import DEFAULT_W0, Reader
from chunkwise.model.traffic import Pattern
from chunkwise.patterns import Access, as_pattern, defaults
from chunkwise.remedy import records
from chunkwise.remedy.commands import commands, copy_name
from chunkwise.remedy.fix import Tool
from chunkwise.remedy.spelling import in_c, in_short
from chunkwise.trials.formats import is_netcdf3
from chunkwise.trials.readers import COMPILED, WITH_LIBRARY_CACHE
from chunkwise.words import LAYOUTS, counted, format_ratio, format_seconds

_Remedies: TypeAlias = tuple[records.Remedy, ...]


@dataclass(frozen=True)
class Reason:
    """What makes a pattern slow."""

    why: str  # In one sentence
    # What helps: one of them, or a copy and the cache that it is to be opened with.
    remedies: _Remedies = ()
    effect: str | None = None  # What they change, and whether that was measured or computed


def verified(reason: Reason, results: Results, main: Variant) -> Reason:
    """Offer measured chunks or filters in place of computed ones, if there are any."""
    others = [variant for variant in results.variants if variant != main]
    worst = max(
        (c for c in results.cells if c.variant == main and c.reader in WITH_LIBRARY_CACHE),
        key=total,
        default=None,
    )
    if worst is None or not others:
        return reason
    rivals = [
        cell
        for cell in results.cells
        if cell.variant in others
        and (cell.access, cell.reader, cell.cache_nbytes)
        == (worst.access, worst.reader, worst.cache_nbytes)
        and cell.total_s
    ]
    best = min(rivals, key=total, default=None)
    if best is None or best.variant is None or not is_faster(best, worst, worth.NOTICED):
        return reason
    target, variant = results.file, best.variant
    effect = f"{faster(worst, best)}, stored as {variant}"
    copies = copied(target, variant)
    if not copies:
        return replace(reason, effect=f"{reason.effect}; {effect}" if reason.effect else effect)
    return replace(reason, remedies=copies, effect=effect)


def faster(slow: Cell, fast: Cell) -> str:
    """Say how much faster all reads are, and whether all of them were done."""
    ratio = format_ratio(total(slow) / total(fast))
    estimated = slow.extrapolated or fast.extrapolated
    how = "estimated from a part of the reads" if estimated else "measured"
    return f"{how}: all reads of '{slow.access.name}' {'~' * estimated}{ratio} as fast"


def is_faster(fast: Cell, slow: Cell, least: float) -> bool:
    """Whether the judge of repeats is sure that it is more than so many times as fast."""
    return judged(slow, fast, least) == "faster"


def judged(base: Cell, other: Cell, threshold: float) -> Word:
    """Ask the judge of repeats whether the other one is faster or slower."""
    return verdict(base.worked_s, other.worked_s, threshold).word


def total(cell: Cell) -> float:
    """Return the seconds of a cell; 0 without any."""
    return cell.total_s or 0.0


def copied(target: Target, variant: Variant) -> tuple[records.Copy, ...]:
    """Store a dataset as a variant, in a copy that loses nothing else of the file."""
    now = records.Present(target.filters, shape=target.shape)
    layout = Layout(variant.chunks, variant.filters)
    found = records.in_layout(target.file, target.dataset, layout, now, pipelines(target))
    return tuple(one for one in found if any(commands(one)))


def pipelines(target: Target) -> list[str]:
    """Name the pipelines that a copy of the file has to deal with."""
    return sorted({target.filters, *target.file_filters} - {"none"})


# A read that needs this many chunks, and decodes this many times what it asks for, is
# not helped by a cache: already the first one is slow.
MANY_CHUNKS = 8
MUCH_DECODED = 16
# A shorter read is only call overhead.
CALL_S = 2e-4
# Call overhead that sums up to less is not worth a word.
NOTICED_S = 1.0


def explain(results: Results) -> Advice | None:
    """Find the run's worst pattern, its cause and its remedy."""
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
    found = _explain(replace(alike, cells=cells, target=target))
    if found is None:
        return None
    cause = verified(found, alike, main)
    lines = [text for text in map(in_short, cause.remedies) if text is not None]
    # The lines that follow a command are for its output alone.
    of_c = in_c(cause.remedies[0]) if len(cause.remedies) == 1 else None
    return Advice(cause.why, "\n".join(lines) or None, cause.effect, of_c)


def _setting(cell: Cell) -> tuple[str, ...]:
    """Return the values of the axes that the explanation is not about."""
    about = {"access", "chunk", "filter", "reader", "threads", "cache", "nslots", "w0"}
    return tuple(text for name, text in cell.point.items() if name not in about)


def _explain(results: Results) -> Reason | None:
    cells = [c for c in results.cells if c.reader in WITH_LIBRARY_CACHE and c.total_s]
    if not cells:
        return _unfinished(results)
    slow = Slow(results, max(cells, key=total))
    if slow.target.stored_nbytes and slow.cause not in (Cause.HELD, Cause.PIECES):
        return _decoded_again(slow)
    alike = [cell for cell in cells if _reader(cell) == _reader(slow.cell)]
    best = min(alike, key=total)
    if is_faster(best, slow.cell, worth.NOTICED):
        each = slow.cell.spread(lambda m: m.mean_s)
        call = slow.cell.spread(lambda m: m.median_s)
        # If a few reads decode and many others do not, the mean is no call's cost.
        if each and call and call.median <= CALL_S and each.median <= 2 * call.median:
            largest = max(alike, key=lambda cell: math.prod(cell.access.block))
            return _calls(slow, largest, call.median)
        if slow.target.chunks is None:
            return _instead(_scattered(slow, best), slow)
        if slow.cause is Cause.PIECES:
            return _beside(_scattered(slow, best), slow)
    if slow.cured is not None:
        why = (
            f"The chunk cache decides: '{slow.name}' takes {format_seconds(total(slow.cell))} "
            f"with {_named_cache(slow.target, slow.cell)}, and "
            f"{format_seconds(total(slow.cured))} with {_named_cache(slow.target, slow.cured)}."
        )
        # Shapes alone do not show why.
        return _beside(_held(slow, why), slow)
    return _no_slow_pattern(slow)


def _reader(cell: Cell) -> tuple[str, int | None, int | None, float | None]:
    """Return who reads, and with which cache."""
    trial = cell.trial
    return cell.reader, trial.cache_nbytes, trial.cache_nslots, trial.cache_w0


def _unfinished(results: Results) -> Reason | None:
    """Explain a run in which not one read through libhdf5 came back in time."""
    for cell in results.cells:
        slow = Slow(results, cell)
        late = cell.problem is not None and cell.problem.status == "timeout"
        if late and cell.reader in WITH_LIBRARY_CACHE and slow.goes_through_many:
            return _layout(slow)
    return None


def _in_force(cell: Cell) -> Reader:
    """Return the chunk cache that was in force; without slots it holds nothing."""
    measured, w0 = cell.succeeded[0], cell.trial.cache_w0
    nslots, nbytes = measured.actual_cache_nslots, measured.actual_cache_nbytes or 0
    held = 0 if nslots == 0 else nbytes
    return Reader(cell.reader, cell.reader, held, nslots, DEFAULT_W0 if w0 is None else w0)


class Slow:
    """The slowest pattern of a run, and what shapes and the cache in force say of it."""

    def __init__(self, results: Results, cell: Cell) -> None:
        self.results, self.cell, self.target = results, cell, results.target
        self.name, self.block = cell.access.name, cell.access.block
        target, filtered = self.target, self.target.filters != "none"
        self.stored = Stored.of(target.shape, target.chunks, target.itemsize, filtered=filtered)
        # In the order of its dimensions; of others, what one read is like.
        self.walk = self.stored.walk(self.block, cell.access.order)
        self.pattern = as_pattern(cell.access, self.target.shape)

    @cached_property
    def cache(self) -> Reader:
        """Who read, with the cache in force."""
        return _in_force(self.cell)

    @cached_property
    def cause(self) -> Cause:
        """Why that cache loses chunks, if it does."""
        return cause(self.stored, self.pattern, self.cache)

    @cached_property
    def reads(self) -> Reads:
        """What is read, and what would help."""
        file, path, filters = self.target.file, self.target.dataset, self.target.filters
        return Reads(file, path, self.stored, filters, (self.pattern,), (self.cache,))

    @cached_property
    def decodes(self) -> float:
        """How often the reads decode each chunk; 1 if there is nothing to decode."""
        return decodes(self.stored, self.pattern, self.cache)

    @cached_property
    def decodes_then(self) -> float:
        """The same with the cache that suits them."""
        suited = self.reads.cache
        if suited is None:
            return self.decodes
        then = replace(self.cache, cache_nbytes=suited.nbytes, nslots=suited.nslots)
        return decodes(self.stored, self.pattern, then)

    @property
    def goes_through_many(self) -> bool:
        """Whether already one single read is out of proportion."""
        if self.target.chunks is None or self.cell.access.has_unions:
            return False  # the box around a union may touch far more chunks
        selected = self.cell.access.elements * self.target.itemsize
        decoded = self.walk.chunks_per_operation * self.target.chunk_nbytes
        many = self.walk.chunks_per_operation >= MANY_CHUNKS
        return many and decoded >= MUCH_DECODED * selected

    @property
    def amplification(self) -> float | None:
        """How many times what all reads select is decoded, with the cache in force."""
        if self.cause is Cause.PIECES:
            return 1.0
        if self.cell.access.has_unions:
            return None
        operations = self.cell.total_operations or 1
        touched = min(operations * self.walk.chunks_per_operation, self.walk.chunk_count)
        selected = operations * self.cell.access.elements * self.target.itemsize
        return self.decodes * touched * self.target.chunk_nbytes / max(selected, 1)

    @cached_property
    def cured(self) -> Cell | None:
        """The smallest cache measured to make the pattern much faster, if one was."""
        cells = [
            cell
            for cell in self.results.cells
            if (cell.reader, cell.access) == (self.cell.reader, self.cell.access)
            and cell.total_s
            and is_faster(cell, self.cell, worth.MUCH)
        ]
        return min(cells, key=lambda cell: _in_force(cell).cache_nbytes, default=None)

    @cached_property
    def fastest(self) -> Cell | None:
        """The fastest of chunkwise's."""
        cells = [
            cell
            for cell in self.results.cells
            if cell.reader not in WITH_LIBRARY_CACHE
            and cell.total_s
            and cell.access == self.cell.access
            and (cell.reader in COMPILED) == (self.cell.reader in COMPILED)
        ]
        return min(cells, key=total, default=None)

    def gains(self, least: float) -> bool:
        """Whether chunkwise was measured to be more than so many times as fast."""
        return self.fastest is not None and is_faster(self.fastest, self.cell, least)

    def with_cache(self, cache: Cache | None) -> tuple[records.SetCache, ...]:
        """Give the dataset a cache, in the language of the reader."""
        program: Tool = "netCDF4" if self.cell.reader == "netcdf4" else "h5py"
        return self.reads.with_cache(cache, program)


# --- what makes it slow -----------------------------------------------------------------


def _decoded_again(slow: Slow) -> Reason:
    """Explain a walk that decodes each chunk again and again."""
    if slow.cause is Cause.NO_ORDER:
        return _instead(_in_no_order(slow), slow)
    if slow.cured is None and slow.decodes < worth.NOTICED * slow.decodes_then:
        return _instead(_layout(slow), slow)
    return _beside(_cache(slow), slow)


def _held(slow: Slow, why: str, effect: str = "") -> Reason:
    """Advise the cache that was measured to help, or else the one that suits the pattern."""
    target, cured = slow.target, slow.cured
    if cured is not None:
        nslots = cured.succeeded[0].actual_cache_nslots or FEWEST_SLOTS
        cache = Cache(_in_force(cured).cache_nbytes, nslots)
        effect = (
            f"measured with a chunk cache of {_named_cache(target, cured)}: all reads of "
            f"'{slow.name}' {format_ratio(total(slow.cell) / total(cured))} as fast"
        )
        measured = tuple(replace(one, own_slots=True) for one in slow.with_cache(cache))
        return Reason(why, measured, effect)
    return Reason(why, slow.with_cache(slow.reads.cache), f"{effect} (computed, not measured)")


def _cache(slow: Slow) -> Reason:
    """A cache that holds what the walk comes back to spares it the decodes."""
    target, walk, nbytes = slow.target, slow.walk, slow.cache.cache_nbytes
    chunk, cache = format_size(target.chunk_nbytes), format_size(nbytes)
    if slow.cell.cache_nbytes is not None and nbytes != target.cache_nbytes:
        cache += f", as asked for; by default {format_size(target.cache_nbytes)}"
    times = f"{slow.decodes:,.0f} times"
    if slow.cause is Cause.CHUNK:
        held = f"A chunk ({chunk}) does not fit into the chunk cache ({cache})"
    elif slow.cause is Cause.SLOTS:
        held = (
            f"The {counted(walk.chunks_per_operation, 'chunk')} of a read fit into the chunk "
            f"cache ({cache}), but have to share its {counted(slow.cache.nslots or 0, 'slot')}"
        )
    else:
        held = (
            f"Between two reads of a chunk ({chunk}) this walk needs "
            f"{counted(walk.chunks_to_cache(), 'chunk')}, more than the chunk cache ({cache}) "
            "holds"
        )
    verb = "fetches" if target.filters == "none" else "decodes"
    why = f"{held}, so that reading '{slow.name}' {verb} each chunk about {times}."
    after = slow.decodes_then
    fewer = format_ratio(slow.decodes / after)
    effect = f"{fewer} fewer decodes: each chunk {_often(after)} instead of {times}"
    return _held(slow, why, effect)


def _often(decodes: float) -> str:
    return "once" if decodes < 1.05 else format_ratio(decodes)


def _in_no_order(slow: Slow) -> Reason:
    """Reads that touch chunks in random order need all of them cached, or smaller chunks."""
    target, walk, nbytes = slow.target, slow.walk, slow.cache.cache_nbytes
    reads, chunks = slow.cell.total_operations or 0, walk.chunk_count
    verb = "fetch" if target.filters == "none" else "decode"
    touched = min(reads * walk.chunks_per_operation, chunks)
    why = (
        f"The {counted(reads, 'read')} of '{slow.name}' come to chunks in no "
        f"order, and the chunk cache ({format_size(nbytes)}) holds "
        f"{nbytes // target.chunk_nbytes:,} of {chunks:,} "
        f"({format_size(target.chunk_nbytes)} each): they {verb} about "
        f"{slow.decodes * touched:,.0f} chunks, each about {slow.decodes:,.0f} times."
    )
    if slow.cured is not None or slow.reads.cache is not None:
        return _held(slow, why, f"each chunk {_often(slow.decodes_then)}")
    return Reason(why, effect="smaller chunks, or reads sorted by place, would need fewer")


def _named_cache(target: Target, cell: Cell) -> str:
    nbytes = _in_force(cell).cache_nbytes
    return format_size(nbytes) + (" (the default)" if nbytes == target.cache_nbytes else "")


def _layout(slow: Slow) -> Reason:
    """Only other chunks make a single read cheap."""
    target, block, now = slow.target, slow.block, slow.stored
    before = walk_cost(now, block)
    why = (
        f"One read of '{slow.name}' asks for {format_size(before.selected_nbytes)} and "
        f"goes through {counted(before.chunks, 'chunk')} of {format_shape(now.chunks)}, "
        f"{format_size(before.decoded_nbytes)} in all: {format_ratio(before.amplification)} what "
        "it asks for."
    )
    then = replace(now, chunks=suitable_chunks(target, _stated(slow.results)))
    remedies = _repack(slow, then.chunks)
    if not remedies:
        filters = ", ".join(pipelines(target))
        return Reason(
            why, effect=f"no copy is offered: its filters cannot be written here ({filters})"
        )
    after = walk_cost(then, block)
    if after.decoded_nbytes >= before.decoded_nbytes:
        return Reason(why)
    across = plane(target.shape, line_axis(target.shape, block))
    plane_before, plane_after = walk_cost(now, across), walk_cost(then, across)
    return Reason(
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


def _repack(slow: Slow, chunks: tuple[int, ...]) -> _Remedies:
    """Copy the file, and open the copy with a cache if no default one would do."""
    target, block = slow.target, slow.block
    copies = copied(target, Variant(chunks, target.filters))
    if not copies:
        return ()
    then = Stored(target.shape, chunks, target.itemsize)
    across = plane(target.shape, line_axis(target.shape, block))
    default = Reader("", "", target.cache_nbytes, target.cache_nslots, target.cache_w0)
    patterns = tuple(Pattern("", one) for one in (block, across))
    name, dataset = copy_name(copies[0]), target.dataset
    reads = Reads(name, dataset, then, target.filters, patterns, (default,))
    return *copies, *reads.with_cache(reads.cache)


def _unchunked(target: Target) -> str:
    """Name the layout of a dataset without chunks, and who reads it."""
    said = LAYOUTS[target.layout]
    if target.layout == "contiguous":
        return said
    return f"{said}, and libhdf5 reads it, through chunkwise as well"


def _scattered(slow: Slow, best: Cell) -> Reason:
    """Without filters or a cache, what is not adjacent is fetched piece by piece."""
    target = slow.target
    how = "not compressed, its chunks not cached"
    if target.chunks is None:
        how = _unchunked(target)
    why = (
        f"The dataset is {how}, and one read of '{slow.name}' "
        f"({format_shape(slow.block)}) gathers pieces from all over it: the same data "
        f"takes {format_ratio(total(slow.cell) / total(best))} as long as by "
        f"'{best.access.name}'."
    )
    if slow.cured is not None:
        return _held(slow, why)
    if target.chunks is not None:
        if slow.reads.cache is not None:
            return _held(slow, why, "each chunk is then fetched once, as a whole")
    elif target.layout != "contiguous":
        return Reason(why)
    chunks = suitable_chunks(target, _stated(slow.results))
    return Reason(
        why,
        _repack(slow, chunks),
        f"each read then fetches whole chunks of {format_shape(chunks)} (computed, not measured)",
    )


def _calls(slow: Slow, largest: Cell, each_s: float) -> Reason:
    """Small reads are made of calls."""
    target = slow.target
    once = "" if target.chunks is None else "No chunk is decoded twice; "
    why = (
        f"{once}{'one' if once else 'One'} read of '{slow.name}' asks for "
        f"{format_size(slow.cell.access.elements * target.itemsize)} only, and each of the "
        f"{slow.cell.total_operations or 0:,} calls costs {format_seconds(each_s)} by itself."
    )
    if total(slow.cell) < NOTICED_S:
        return _with_gain(Reason(why), slow)
    effect = (
        f"measured: all of the data in {format_seconds(total(largest))} by "
        f"'{largest.access.name}', instead of {format_seconds(total(slow.cell))}"
    )
    if target.nbytes > free_nbytes() // 4:
        return Reason(why, effect=f"read larger blocks; {effect}")
    return Reason(why, (records.ReadOnce(target.file, target.dataset),), effect)


def _no_slow_pattern(slow: Slow) -> Reason:
    """No pattern stands out: what is left is decoding, or copying."""
    target, amplification = slow.target, slow.amplification
    if target.stored_nbytes and (amplification or 0) >= worth.NOTICED:
        return _instead(_layout(slow), slow)
    if target.layout == "contiguous":
        why = "The dataset is contiguous and not compressed: reading it is copying it."
    elif target.chunks is None:
        why = f"The dataset is {_unchunked(target)}."
    elif not target.stored_nbytes:
        why = "No chunk was ever written: reading is filling memory with the fill value."
    elif slow.cause is not Cause.PIECES and slow.goes_through_many:
        why = (
            f"One read of '{slow.name}' goes through {slow.walk.chunks_per_operation:,} "
            f"chunks of {format_shape(target.chunks)}, many times what it asks for: the "
            f"first is slow, and the chunk cache ({format_size(slow.cache.cache_nbytes)}) holds "
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
    return _with_gain(Reason(why), slow)


# --- what chunkwise was measured to gain ------------------------------------------------


def _instead(reason: Reason, slow: Slow) -> Reason:
    """Offer chunkwise in the place of a copy of the file, if it was measured to gain much."""
    natively = slow.reads.natively
    if slow.gains(worth.NOTICED):
        if natively and (slow.gains(worth.MUCH) or not reason.remedies):
            return replace(reason, remedies=natively, effect=_measured(slow))
        return _beside(reason, slow)
    if slow.fastest is None and not reason.remedies and reason.effect and natively:
        effect = f"{reason.effect}; chunkwise was not measured here"
        return replace(reason, remedies=natively, effect=effect)
    return reason


def _beside(reason: Reason, slow: Slow) -> Reason:
    """Add to a remedy what chunkwise was measured to gain without it."""
    if not slow.gains(worth.NOTICED):
        return reason
    said = f"by chunkwise.open, {_measured(slow)}"
    return replace(reason, effect=f"{reason.effect}; {said}" if reason.effect else said)


def _measured(slow: Slow) -> str:
    """Say how much faster chunkwise reads the pattern; it was measured."""
    cell = slow.fastest
    assert cell is not None
    said = faster(slow.cell, cell)
    first, first_here = (c.spread(lambda m: m.first_s) for c in (slow.cell, cell))
    if first and first_here and first_here.median:
        said += f", the first one {format_ratio(first.median / first_here.median)}"
        said += " (measured)" * (slow.cell.extrapolated or cell.extrapolated)
    return said


# What is said of chunkwise where the judge does not find it faster.
_LITTLE: Final = {
    "slower": "chunkwise is slower here",
    "same": "chunkwise makes little difference",
    "cannot tell": "whether chunkwise is faster cannot be told from so few or unlike repeats",
}


def _with_gain(reason: Reason, slow: Slow) -> Reason:
    """Say chunkwise's gain at the slowest pattern, or that there is none."""
    cell = slow.fastest
    if cell is None:
        return reason
    measured, word = faster(slow.cell, cell), judged(slow.cell, cell, worth.MEASURED)
    if word != "faster":
        effect = f"nothing needs a change; {_LITTLE[word]} ({measured})"
    elif slow.reads.natively:
        return replace(reason, remedies=slow.reads.natively, effect=measured)
    else:
        effect = f"by chunkwise.open, {measured}"
    return replace(reason, effect=effect)
