"""Do a dataset's chunks suit the patterns that a user states?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from chunkwise.grammar import format_shape, format_size
from chunkwise.inspection.finding import Finding
from chunkwise.inspection.findings.chunks import SMALL_DATASET_NBYTES, offered_chunks, other_chunks
from chunkwise.inspection.findings.subject import DatasetCheck, Subject, by_cost
from chunkwise.inspection.promise import promised_s
from chunkwise.model import worth
from chunkwise.model.chunk_shape import reason, smallest
from chunkwise.model.cost import Stored
from chunkwise.model.nominal import STORED_LOAD_S, memory_load_s, nominal_s
from chunkwise.model.readers import CHUNKWISE, LIBRARIES, Reader, this_process
from chunkwise.model.traffic import Pattern, traffic
from chunkwise.names import printable
from chunkwise.words import format_ratio, format_seconds, format_speed


def access_mismatch(subject: Subject) -> Iterator[Finding]:
    """Find datasets that other chunks would serve much better."""
    facts = subject.facts
    if not subject.stated or not facts.shape or not facts.stored_nbytes:
        return
    if (facts.logical_nbytes or 0) < SMALL_DATASET_NBYTES:
        return
    reader = smallest(subject.readers if subject.names_readers else LIBRARIES)
    here = reader if subject.names_readers else this_process()
    offered = offered_chunks(subject)
    before = None if facts.chunks is None else facts.chunks.shape
    known = subject.measured
    if offered == before or (known is not None and known.chunks == before):
        return
    filtered = facts.filters != "none"
    layouts = (subject.in_chunks(before), subject.in_chunks(offered))
    loads_s = (memory_load_s(filtered=filtered), STORED_LOAD_S)
    (saved_s, times), (_, times_here) = (
        min(
            (_gain(subject, *layouts, one, load_s) for load_s in loads_s),
            key=lambda gain: gain[1],
        )
        for one in (reader, here)
    )
    by, each = "by the model of a nominal machine", ""
    # Whether readers with a smaller cache than the library here gain alone.
    for_others = False
    if known is not None and known.chunks == offered:
        times = times_here = known.times
        by = "as chunkwise advise measured"
    else:
        promised, promised_here = (
            _promises(subject, before, offered, one) for one in (reader, here)
        )
        least, least_here = times, times_here
        if promised and promised_here:
            times, times_here = (_times(subject, one) for one in (promised, promised_here))
            least, least_here = min(least, times), min(least_here, times_here)
        if least < worth.MODELLED:
            return
        for_others = known is None and least_here < worth.MODELLED
        if not for_others:
            # `fix` promises the same, and measures it.
            reader, times, promised = here, times_here, promised_here
        if promised:
            by, each = "by the model", _each(subject, promised, reader)
    whom = ""
    if for_others:
        whom = (
            f" to {reader.title}, whose chunk cache has {format_size(reader.cache_nbytes)}, and "
            f"{format_speed(times_here)} as fast to {here.title}"
        )
    now, then = (_loaded_nbytes(subject, one) for one in layouts)
    reads = max(one.reads for one in subject.stated)
    names = " and ".join(f"'{one.name}'" for one in subject.stated)
    if before is None:
        described = "It is stored in one piece"
    else:
        described = f"In chunks of {format_shape(before)}, " + reason(
            facts.shape, facts.itemsize, before, subject.stated
        )
    yield Finding(
        code="access-mismatch",
        severity="note"
        if for_others
        else by_cost(
            nbytes=reads * max(0, now - then),
            seconds=None if before is not None else reads * saved_s,
            times=times,
            filtered=filtered,
        ),
        path=subject.path,
        summary=(
            f"{described}. Chunks of {format_shape(offered)} serve {names} about "
            f"{format_ratio(times)} as fast{whom}, {by}: "
            f"{reason(facts.shape, facts.itemsize, offered, subject.stated)}."
            f"{each}"
        ),
        evidence={
            "patterns": "; ".join(one.name for one in subject.stated),
            "offered_chunks": format_shape(offered),
            "loaded_nbytes": now,
            "offered_loaded_nbytes": then,
            "times": times,
            "reader": reader.name,
            **({"cache_nbytes": reader.cache_nbytes} if for_others else {}),
        },
        source="the patterns of --access, and the model of docs/advise.md",
        remedies=other_chunks(subject, offered),
        waste_nbytes=reads * max(0, now - then),
        # What helps others, and not this reader, is for the user to decide; and of elements with
        # gaps between them the model says too much (docs/complaints.md, xarray#2504).
        is_offer=(for_others and times_here * worth.HARMLESS < 1)
        or (known is None and any(map(_has_gaps, subject.stated))),
    )


def _has_gaps(pattern: Pattern) -> bool:
    """Whether a read leaves out elements between those that it takes."""
    return any(
        count > 1 and stride > block
        for slabs in pattern.selections or ()
        for _, strides, counts, blocks in slabs
        for stride, count, block in zip(strides, counts, blocks, strict=True)
    )


def _promises(
    subject: Subject, before: tuple[int, ...] | None, after: tuple[int, ...], reader: Reader
) -> list[tuple[float, float]] | None:
    """Return the seconds of each pattern before and after, where a sample shows them."""
    facts, found = subject.facts, []
    if facts.sample is None or reader.name == CHUNKWISE:
        return None
    for one in subject.stated:
        if one.writes:
            return None
        now_s, then_s = (
            promised_s(facts, one, chunk=chunk, filters=facts.filters, reader=reader)
            for chunk in (before, after)
        )
        if not now_s or not then_s:
            return None
        found.append((now_s, then_s))
    return found


def _times(subject: Subject, promised: list[tuple[float, float]]) -> float:
    """Return how many times as fast all patterns are, each as often as its weight says."""
    pairs = list(zip((one.weight for one in subject.stated), promised, strict=True))
    return sum(w * now_s for w, (now_s, _) in pairs) / sum(w * then_s for w, (_, then_s) in pairs)


def _each(subject: Subject, promised: list[tuple[float, float]], reader: Reader) -> str:
    """Say what each pattern takes before and after."""
    with_cache = ""
    if reader != this_process():
        with_cache = f" with a chunk cache of {format_size(reader.cache_nbytes)}"
    said = [
        f"{printable(one.name)} {format_seconds(now_s / one.reads)} -> "
        f"{format_seconds(then_s / one.reads)}"
        for one, (now_s, then_s) in zip(subject.stated, promised, strict=True)
    ]
    what = "One read" if all(one.of_one_read for one in subject.stated) else "Each"
    return f" {what} by h5py{with_cache}, from memory: {', '.join(said)}."


def _gain(
    subject: Subject, before: Stored, after: Stored, reader: Reader, load_s: float
) -> tuple[float, float]:
    """Return the seconds that other chunks save, and how many times as fast they are read."""
    now_s, then_s = (
        nominal_s(one, subject.stated, reader, load_s=load_s) for one in (before, after)
    )
    return now_s - then_s, now_s / then_s


def _loaded_nbytes(subject: Subject, stored: Stored) -> int:
    """Bytes of chunks that one read of each pattern loads, each as often as its weight says."""
    if not stored.chunked:
        return 0
    reader = smallest(subject.readers if subject.names_readers else LIBRARIES)
    loads = (one.weight * traffic(stored, one, reader).loads for one in subject.stated)
    return round(sum(loads) * stored.chunk_nbytes)


CHECKS: Final[tuple[DatasetCheck, ...]] = (access_mismatch,)
