"""Does a reader's default chunk cache hold the chunks that the reader needs again?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

import h5py

from chunkwise.diagnosis.reads import Cause, Reads, cause, may_lose
from chunkwise.grammar import format_shape, format_size
from chunkwise.inspection.facts import ChunkFacts, DatasetFacts, Survival
from chunkwise.inspection.finding import SEVERITIES, Finding, Severity
from chunkwise.inspection.findings.chunks import offered_chunks, other_chunks
from chunkwise.inspection.findings.subject import COMPRESSED, DatasetCheck, Subject, by_cost
from chunkwise.inspection.patterns import Block, decoding_speed, stored_as, survival, walked
from chunkwise.model import worth
from chunkwise.model.chunk_shape import shrunk
from chunkwise.model.cost import decodes_by_size
from chunkwise.model.purpose import in_words
from chunkwise.model.readers import NETCDF_C, Reader, this_process
from chunkwise.model.traffic import Pattern
from chunkwise.remedy.fix import Tool
from chunkwise.remedy.records import Copy, ReadOnce, Remedy
from chunkwise.words import counted, format_seconds, joined

# About a second of inflating: what is decoded in vain must take so long to be noticed.
NOTICED_NBYTES: Final = 256 << 20
# Without filters chunks are only fetched, about this many times as fast.
FETCHING_SPEED: Final = 8
# The most that may be kept in memory as a whole without asking.
READ_ONCE_NBYTES: Final = 1 << 30
# More ways of reading are not named.
_MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class _Walk:
    """One way of reading, part after part, and what it does to the cache of some readers."""

    pattern: Pattern
    fits: bool  # Whether somebody stated it, or the dataset is made for it
    decodes: float = 1.0  # The most of each chunk
    affected: tuple[Reader, ...] = ()
    severity: Severity = "note"

    @property
    def block(self) -> Block:
        """What one read takes."""
        return self.pattern.block


def chunk_exceeds_cache(subject: Subject) -> Iterator[Finding]:
    """Find filtered chunks that a reader's cache can never hold."""
    facts, chunks = subject.facts, _chunks(subject)
    walk = next((one for one in _walks(subject) if one.fits), None) if chunks else None
    if chunks is None or walk is None:
        return
    small, block = _affected(subject, walk, Cause.CHUNK), walk.block
    if not small:
        return
    lost = survival(facts, walk.pattern, small[0], decoding_speed(facts))
    if not _is_noticed(facts, lost.decodes):
        return
    limit = min(each.cache_nbytes for each in small)
    smaller = shrunk(chunks.shape, facts.itemsize, limit)
    yield Finding(
        code="chunk-exceeds-cache",
        severity=_severity(facts, lost.decodes),
        path=subject.path,
        summary=(
            f"A chunk ({format_shape(chunks.shape)}, {format_size(chunks.nbytes)}) "
            f"does not fit the default chunk cache of {_named(small)}: reading "
            f"{_in_words(subject, block)} decodes each chunk {_times(lost.decodes)}"
            f"{_seconds(facts, lost, None if subject.stated else block)}."
            f"{_here(subject, chunks.nbytes)}"
        ),
        evidence={
            "chunk_nbytes": chunks.nbytes,
            "cache_nbytes": limit,
            **_evidence(facts, block, lost),
        },
        source=f"{COMPRESSED}, 'Adjust Chunk Cache Size' (Table 5) and 'Change the Chunk Size'",
        remedies=(*_reading(subject, walk, small), *other_chunks(subject, smaller)),
        waste_nbytes=_waste(facts, lost.decodes),
    )


def reads_exceed_cache(subject: Subject) -> Iterator[Finding]:
    """Find walks that read too many other chunks between two reads of a chunk."""
    facts, chunks = subject.facts, _chunks(subject)
    if chunks is None:
        return
    stored = stored_as(facts)
    found = [_judged(subject, one) for one in _walks(subject)]
    found = [one for one in found if one.affected and _is_noticed(facts, one.decodes)]
    worst = max(
        found,
        key=lambda each: (SEVERITIES.index(each.severity), each.fits, each.decodes),
        default=None,
    )
    if worst is None:
        return
    block, affected_readers = worst.block, worst.affected
    reader = min(affected_readers, key=lambda each: each.cache_nbytes)
    lost = survival(facts, worst.pattern, reader, decoding_speed(facts))
    needed = stored.walk(block).chunks_to_cache()
    verb = "fetches" if facts.filters == "none" else "decodes"
    # What no cache helps is no reason for one.
    others = [
        one for one in found if one is not worst and _reads(subject, [one], one.affected).cache
    ]
    also = [_in_words(subject, one.block) for one in others[:_MOST_NAMED]]
    yield Finding(
        code="reads-exceed-cache",
        severity=worst.severity,
        path=subject.path,
        summary=(
            f"{'Reading' if worst.fits else 'If you read'} {_in_words(subject, block)}, one after "
            f"the other, {'comes' if worst.fits else 'that comes'} back to each chunk "
            f"after {needed:,} of them ({format_size(needed * chunks.nbytes)}), more than "
            f"the default chunk cache of {_named(affected_readers)} holds: it {verb} each chunk "
            f"{_times(lost.decodes)}{_seconds(facts, lost, None if subject.stated else block)}."
            + (f" The same holds for {joined(also)}." if also else "")
        ),
        evidence={
            "pattern": worst.pattern.name,
            "chunks_to_cache": needed,
            "chunks_to_cache_nbytes": needed * chunks.nbytes,
            "cache_nbytes": max(each.cache_nbytes for each in affected_readers),
            **_evidence(facts, block, lost),
        },
        source=f"{COMPRESSED}, 'Adjust Chunk Cache Size'; H5Pset_chunk_cache",
        remedies=(
            *_reading(subject, worst, affected_readers, others),
            *_other_chunks(subject, block, affected_readers),
        ),
        waste_nbytes=_waste(facts, lost.decodes),
        block=block,
        is_offer=not subject.stated,
    )


def slot_collision(subject: Subject) -> Iterator[Finding]:
    """Find reads whose chunks fit a cache, but not its hash table."""
    facts, chunks = subject.facts, _chunks(subject)
    if chunks is None:
        return
    found = [
        (survival(facts, one.pattern, reader, decoding_speed(facts)), one, reader)
        for one in _walks(subject)
        for reader in _affected(subject, one, Cause.SLOTS)
    ]
    found = [each for each in found if _is_noticed(facts, each[0].decodes)]
    worst = max(found, key=lambda each: (each[1].fits, each[0].decodes), default=None)
    if worst is None:
        return
    kept, walk, reader = worst
    name, block = walk.pattern.name, walk.block
    touched = stored_as(facts).walk(block).chunks_per_operation
    reads = _reads(subject, [walk], [reader])
    verb = "fetched" if facts.filters == "none" else "decoded"
    yield Finding(
        code="slot-collision",
        severity=_severity(facts, kept.decodes) if walk.fits else "note",
        path=subject.path,
        summary=(
            f"{'The' if walk.fits else f'If you read {_in_words(subject, block)}: the'} "
            f"{touched:,} chunks of one read of {format_shape(block)} ({name}) fit the chunk "
            f"cache of {reader.title} by their bytes, but {kept.collisions:,} of them have "
            f"to share its {counted(reader.nslots or 0, 'slot')} and drop each other: read after "
            "read, each "
            f"chunk is {verb} {_times(kept.decodes)} on average."
        ),
        evidence={
            "reader": reader.name,
            "nslots": reader.nslots or 0,
            "pattern": name,
            "chunks": touched,
            "collisions": kept.collisions,
            **_evidence(facts, block, kept),
        },
        source=f"{COMPRESSED}, 'Chunk Caching in HDF5'; H5Pset_cache",
        remedies=(
            *reads.with_cache(reads.cache, _program([reader])),
            *_other_chunks(subject, block, [reader]),
        ),
        waste_nbytes=_waste(facts, kept.decodes),
        is_offer=not walk.fits,
    )


CHECKS: Final[tuple[DatasetCheck, ...]] = (chunk_exceeds_cache, reads_exceed_cache, slot_collision)


# --- what is looked at -----------------------------------------------------------------


def _chunks(subject: Subject) -> ChunkFacts | None:
    """Return the facts about the chunks, if there is data in any that a reader may lose."""
    facts, chunks = subject.facts, subject.facts.chunks
    if not chunks or not chunks.allocated or facts.variable_length:
        return None
    stored = stored_as(facts)
    return chunks if any(may_lose(stored, each) for each in subject.readers) else None


def _walks(subject: Subject) -> Iterator[_Walk]:
    """Give the patterns that come back to chunks: not everything at once, nor by chunks."""
    if subject.stated:
        for one in walked(subject.facts, subject.stated):
            if one.order is None and not one.scattered and not one.writes:
                yield _Walk(one, fits=True)
        return
    uses = subject.purpose.uses
    guesses = {one.block: one for one in walked(subject.facts) if one.name not in ("all", "chunk")}
    for use in uses:
        yield _Walk(guesses.pop(use.block, Pattern(use.name, use.block)), fits=True)
    yield from (_Walk(one, fits=False) for one in guesses.values())


def _affected(subject: Subject, walk: _Walk, why: Cause) -> tuple[Reader, ...]:
    """Return the readers whose cache loses the chunks of a walk for this cause."""
    stored = stored_as(subject.facts)
    return tuple(each for each in subject.readers if cause(stored, walk.pattern, each) is why)


def _severity(facts: DatasetFacts, decodes: float) -> Severity:
    """Judge chunks that are decoded so often, each once being what it must be."""
    return by_cost(nbytes=_waste(facts, decodes), times=decodes, filtered=facts.filters != "none")


def _judged(subject: Subject, walk: _Walk) -> _Walk:
    """Judge a walk by how often readers decode each chunk whose cache holds one, and not all."""
    affected, stored = _affected(subject, walk, Cause.WALK), stored_as(subject.facts)
    decodes = max((decodes_by_size(stored, walk.block, each) for each in affected), default=1.0)
    here = this_process().cache_nbytes
    concerned = len(subject.readers) == 1 or any(each.cache_nbytes >= here for each in affected)
    severity = _severity(subject.facts, decodes) if walk.fits and concerned else "note"
    return replace(walk, decodes=decodes, affected=affected, severity=severity)


def _waste(facts: DatasetFacts, decodes: float) -> int:
    """Bytes that reading the whole dataset decodes more than once."""
    assert facts.chunks is not None
    return int((decodes - 1) * facts.chunks.allocated * facts.chunks.nbytes)


def _is_noticed(facts: DatasetFacts, decodes: float) -> bool:
    noticed = NOTICED_NBYTES * (FETCHING_SPEED if facts.filters == "none" else 1)
    return _waste(facts, decodes) >= noticed


def _evidence(facts: DatasetFacts, block: Block, lost: Survival) -> dict[str, int | float | str]:
    once_s = _once_s(facts)
    return {
        "block": format_shape(block),
        "decodes_per_chunk": lost.decodes,
        **({} if lost.total_s is None else {"predicted_s": lost.total_s}),
        **({} if once_s is None else {"decoded_once_s": once_s}),
    }


def _once_s(facts: DatasetFacts) -> float | None:
    """Seconds of decoding everything once."""
    assert facts.chunks is not None
    speed = decoding_speed(facts)
    return facts.chunks.allocated * facts.chunks.nbytes / speed if speed else None


# --- remedies --------------------------------------------------------------------------


def _reads(subject: Subject, walks: Iterable[_Walk], affected: Iterable[Reader]) -> Reads:
    """Give walks and those who need a line for them, and this process, if it is a reader."""
    here, facts = this_process(), subject.facts
    same = (each for each in subject.readers if each.cache_nbytes == here.cache_nbytes)
    patterns = tuple(one.pattern for one in walks)
    return Reads(
        subject.file, subject.path, stored_as(facts), facts.filters, patterns, (*affected, *same)
    )


def _reading(
    subject: Subject, walk: _Walk, affected: Sequence[Reader], others: Sequence[_Walk] = ()
) -> Iterator[Remedy]:
    """Read the file as it is: with a larger cache, by chunkwise, or all at once."""
    reads = _reads(subject, [walk], affected)
    if reads.cache is not None:
        cache = _reads(subject, [walk, *others], affected).cache
        yield from reads.with_cache(cache, _program(affected))
    yield from reads.natively
    if (subject.facts.logical_nbytes or 0) <= READ_ONCE_NBYTES:
        yield ReadOnce(subject.file, subject.path)


def _program(affected: Iterable[Reader]) -> Tool:
    """Return the program whose lines are for those who need them."""
    return "netCDF4" if {each.name for each in affected} == {NETCDF_C.name} else "h5py"


def _other_chunks(subject: Subject, block: Block, affected: Sequence[Reader]) -> tuple[Copy, ...]:
    """Offer other chunks, if a reader decodes those much less often, and no fitting walk loses."""
    offered = offered_chunks(subject)
    stored = stored_as(subject.facts)
    other = replace(stored, chunks=offered)
    largest = max(affected, key=lambda each: each.cache_nbytes)
    before, after = (decodes_by_size(each, block, largest) for each in (stored, other))
    if after * worth.NOTICED > before:
        return ()
    fitting = [walk for walk in _walks(subject) if walk.fits]
    for walk, reader in product(fitting, subject.readers):
        before, after = (decodes_by_size(each, walk.block, reader) for each in (stored, other))
        if after >= worth.NOTICED and after > before * worth.HARMLESS:
            return ()
    return other_chunks(subject, offered)


# --- words -----------------------------------------------------------------------------


def _named(readers: Sequence[Reader]) -> str:
    """Name readers with their caches; this process only if nobody else is concerned."""
    others = [each for each in readers if each.name != "this process"] or readers
    return joined([f"{each.title} ({format_size(each.cache_nbytes)})" for each in others])


def _in_words(subject: Subject, block: Block) -> str:
    """Say what is read, as a scientist would."""
    shape = subject.facts.shape or ()
    axes = [d for d, n in enumerate(shape) if n > 1]
    spelled = format_shape(block)
    if len(axes) < 2:
        return f"small pieces (such as {counted(block[axes[0]], 'value')})" if axes else spelled
    use = None if subject.stated else subject.purpose.named(block)
    name = in_words(shape, block) if use is None else use.name
    if name == "blocks":
        return spelled
    return f"{'row by row' if name == 'rows' else name} ({spelled})"


def _here(subject: Subject, needed_nbytes: int) -> str:
    """Say that the library at hand is not concerned, if it is not."""
    here = this_process()
    if subject.stated:
        return ""
    judged = any(each.cache_nbytes == here.cache_nbytes for each in subject.readers)
    if not judged or needed_nbytes > here.cache_nbytes:
        return ""
    return f" (Not HDF5 {h5py.version.hdf5_version}, which is used here.)"


def _times(decodes: float) -> str:
    return f"{decodes:,.0f} times" if decodes >= 10 else f"{decodes:.1f} times"


def _seconds(facts: DatasetFacts, lost: Survival, block: Block | None = None) -> str:
    """Say how long that takes, of everything or of one read of a block, and once would take."""
    once_s = _once_s(facts)
    if lost.total_s is None or once_s is None:
        return ""
    reads, each = 1, ""
    if block is not None:
        reads, each = stored_as(facts).walk(block).operations, " for each read"
    now, then = (format_seconds(seconds / reads) for seconds in (lost.total_s, once_s))
    return f", which takes about {now}{each} instead of {then}"
