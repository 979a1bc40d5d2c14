"""Do a dataset's filters save more than they cost, and can they be decoded here?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import h5py

from chunkwise.grammar import Filter, Pipeline, format_size
from chunkwise.inspection.doctor import diagnose, means_of
from chunkwise.inspection.facts import DatasetFacts, Encoding
from chunkwise.inspection.finding import Finding, Severity
from chunkwise.inspection.findings.chunks import offered_chunks
from chunkwise.inspection.findings.subject import (
    COMPRESSED,
    NETCDF4,
    OCCAM,
    DatasetCheck,
    Subject,
    by_cost,
)
from chunkwise.model.readability import program
from chunkwise.model.readers import CHUNKWISE
from chunkwise.remedy.records import Chunks, Copy, encoded_anew, natively, under_filters
from chunkwise.remedy.tools import names
from chunkwise.verdicts import FileVerdict
from chunkwise.words import counted, format_seconds

# Paper 004 counts its own 7% as not worth the decoding.
WEAK_SAVING: Final = 0.10
# Below this, nothing that filters do can be felt.
SMALLEST_NBYTES: Final = 1 << 20
# The least that shuffle must save to be worth rewriting a file.
SHUFFLE_SAVING: Final = 0.10
# Data that takes less than this share of its bytes takes almost nothing, shuffled or not.
MOOT_SHARE: Final = 0.05
# From here on, compression matters to those who pay for the disk.
LARGE_NBYTES: Final = 16 << 20
# An uncompressed dataset must shrink to this: then more is saved than is left.
UNCOMPRESSED_SHARE: Final = 0.5

# Compressors that look for repeated bytes, as deflate does on which the sample was tried.
_DEFLATE_LIKE: Final = frozenset({"deflate", "lzf", "lz4", "zstd"})
# Filters after which bytes are no longer elements, or that sort bits themselves.
_REARRANGING: Final = frozenset({"shuffle", "bitshuffle", "nbit", "scaleoffset", "szip", "blosc"})


def weak_compression(subject: Subject) -> Iterator[Finding]:
    """Compression that saves less than 10% of the chunks stored."""
    facts = subject.facts
    pipeline = subject.pipeline
    names = [str(one) for one in pipeline.filters if one.compresses]
    if not names or facts.chunks is None or not facts.stored_nbytes:
        return
    # Absent chunks take no space in any case; edge chunks would be stored whole.
    raw_nbytes = facts.chunks.allocated * facts.chunks.nbytes
    saving = 1 - facts.stored_nbytes / raw_nbytes
    if raw_nbytes < SMALLEST_NBYTES or saving >= WEAK_SAVING:
        return
    evidence: dict[str, int | float | str] = {
        "filters": facts.filters,
        "raw_nbytes": raw_nbytes,
        "stored_nbytes": facts.stored_nbytes,
        "ratio": raw_nbytes / facts.stored_nbytes,
    }
    sizes = f"{format_size(raw_nbytes)} take {format_size(facts.stored_nbytes)}"
    won = f"saves {saving:.0%}" if saving > 0 else "saves nothing"
    summary = f"{'+'.join(names)} {won} ({sizes})"
    decode_s = _decode_s(facts, raw_nbytes)
    if decode_s is None:
        summary += ", and every read must decode it."
    else:
        summary += f", and decoding it all takes about {format_seconds(decode_s)} of one core."
        evidence["decode_s"] = decode_s
    better = _without_compression(pipeline)
    other = _other_order(facts, pipeline)
    if other is not None:
        better, share = other
        word = "without" if "shuffle" in _names(pipeline) else "with"
        summary += f" {word.capitalize()} shuffle before it, a sample shrinks by {1 - share:.0%}."
        evidence[f"sample_saving_{word}_shuffle"] = 1 - share
    yield Finding(
        code="weak-compression",
        severity=by_cost(nbytes=raw_nbytes, seconds=decode_s, times=2.0),
        path=subject.path,
        summary=summary,
        evidence=evidence,
        source=f"{COMPRESSED}, section 'Compression in HDF5' (ratio 1.076)",
        remedies=other_filters(subject, better),
        waste_nbytes=raw_nbytes,
        is_offer="shuffle" in _names(better),
    )


def shuffle_missing(subject: Subject) -> Iterator[Finding]:
    """Compression without shuffle, if a sample is at least 10% smaller with it."""
    facts = subject.facts
    better = _with_shuffle(subject.pipeline)
    tried = _encodings(facts)
    if better is None or tried is None or _is_moot(facts, tried):
        return
    plain, shuffled = tried
    if not _is_smaller(shuffled, plain):
        return
    saving = 1 - shuffled.nbytes / plain.nbytes
    saved_nbytes = int(saving * (facts.stored_nbytes or 0))
    yield Finding(
        code="shuffle-missing",
        severity=by_cost(nbytes=saved_nbytes, times=1 / (1 - saving)),
        path=subject.path,
        summary=(
            f"{facts.filters} has no shuffle before it. A sample compressed with "
            f"{plain.filters} is {saving:.0%} smaller with shuffle "
            f"({format_size(shuffled.nbytes)} instead of {format_size(plain.nbytes)}); for "
            f"the whole dataset that is about {format_size(saved_nbytes)}."
        ),
        evidence=_sample_evidence(facts, plain, shuffled) | {"saved_nbytes": saved_nbytes},
        source=f"{OCCAM}, section 5.8.3, and a sample of the data",
        remedies=other_filters(subject, better),
        waste_nbytes=saved_nbytes,
        # Space for time: small reads, and small integers, are decoded more slowly with it.
        is_offer=True,
    )


def shuffle_useless(subject: Subject) -> Iterator[Finding]:
    """Shuffle before compression, if a sample is as small without it."""
    facts = subject.facts
    pipeline = subject.pipeline
    tried = _encodings(facts)
    if "shuffle" not in _names(pipeline) or not _DEFLATE_LIKE.intersection(_names(pipeline)):
        return
    if tried is None or _is_moot(facts, tried):
        return
    plain, shuffled = tried
    if plain.nbytes > shuffled.nbytes:
        return
    lost_nbytes = int(max(0.0, 1 - plain.nbytes / shuffled.nbytes) * (facts.stored_nbytes or 0))
    loss = f"; the whole dataset loses about {format_size(lost_nbytes)}" if lost_nbytes else ""
    yield Finding(
        code="shuffle-useless",
        severity="note",
        path=subject.path,
        summary=(
            "Shuffle takes time at each read and write and gains nothing here: a sample "
            f"compressed with {plain.filters} takes {format_size(plain.nbytes)} without it "
            f"and {format_size(shuffled.nbytes)} with it{loss}."
        ),
        evidence=_sample_evidence(facts, plain, shuffled) | {"saved_nbytes": lost_nbytes},
        source=f"{OCCAM}, section 5.8.3 (14 s slower, no smaller), and a sample of the data",
        remedies=other_filters(subject, _without_shuffle(pipeline)),
        waste_nbytes=lost_nbytes,
    )


def uncompressed(subject: Subject) -> Iterator[Finding]:
    """Much data without compression, of which a sample shrinks to under half."""
    facts = subject.facts
    pipeline = subject.pipeline
    stored_nbytes = facts.stored_nbytes or 0
    encodings = facts.sample.encodings if facts.sample else ()
    # Filters other than checksums and shuffles may compress: a lossy filter, a private one.
    idle = all(one.name in ("fletcher32", "shuffle") for one in pipeline.filters)
    if not idle or not encodings or stored_nbytes < LARGE_NBYTES:
        return
    best = min(encodings, key=_share)
    if _share(best) >= UNCOMPRESSED_SHARE:
        return
    saved_nbytes = int((1 - _share(best)) * stored_nbytes)
    checksum = tuple(one for one in pipeline.filters if one.name == "fletcher32")
    better = Pipeline(Pipeline.parse(best.filters).filters + checksum)
    chunks = None if facts.chunks else offered_chunks(subject)
    need = " in chunks" if chunks else ""
    yield Finding(
        code="uncompressed",
        severity="note",
        path=subject.path,
        summary=(
            f"{format_size(stored_nbytes)} are stored without compression; with {best.filters}"
            f"{need} a sample shrinks to {_share(best):.0%}, which would save about "
            f"{format_size(saved_nbytes)}. From memory, or from a disk that is faster than "
            "deflate, it is then read more slowly."
        ),
        evidence={
            "stored_nbytes": stored_nbytes,
            "filters": str(better),
            "sample_raw_nbytes": best.raw_nbytes,
            "sample_encoded_nbytes": best.nbytes,
            "saved_nbytes": saved_nbytes,
        },
        source=f"{NETCDF4}, section 4.2 (Table 5, Figure 9), and a sample of the data",
        remedies=other_filters(subject, better, chunks),
        waste_nbytes=saved_nbytes,
        # Space for time, of which only the user knows what it is worth.
        is_offer=True,
    )


def filters_left_out(subject: Subject) -> Iterator[Finding]:
    """Chunks stored without a filter, which libhdf5 may spoil when it stores them again."""
    # It keeps the old filter mask of a chunk that is stored again at the same length.
    facts = subject.facts
    pipeline = subject.pipeline
    # A checksum makes chunks longer, so that their masks are stored.
    others = {one.name for one in pipeline.filters} - {"fletcher32"}
    if facts.chunks is None or not facts.chunks.masked or not others:
        return
    masked, allocated = facts.chunks.masked, facts.chunks.allocated
    keeps_length = all(
        one.name in ("shuffle", "fletcher32") or (one.name == "bitshuffle" and not one.compresses)
        for one in pipeline.filters
    )
    when = "These filters never change it" if keeps_length else "That is rare with these filters"
    yield Finding(
        code="filters-left-out",
        severity="warning" if keeps_length else "note",
        path=subject.path,
        summary=(
            f"{masked:,} of {counted(allocated, 'chunk')} were stored without all or some of the "
            f"filters {facts.filters}, which their filter masks say. They are read right. But "
            "where a program changes such a chunk in place, libhdf5 keeps the old mask if the "
            f"length stays the same, and wrong values are read from then on. {when}. Copy the "
            "file before any program changes it."
        ),
        evidence={"filters": facts.filters, "chunks": allocated, "chunks_masked": masked},
        source="H5D__chunk_flush_entry in libhdf5's H5Dchunk.c; H5Dget_chunk_info",
        remedies=encoded_anew(subject.file, subject.path, facts.filters),
        # Chunks without filters are read faster.
        is_offer=not subject.stated and not keeps_length,
    )


def filter_unavailable(subject: Subject) -> Iterator[Finding]:
    """A filter of stored chunks that a reader does not have."""
    facts = subject.facts
    # If nothing is stored, there is nothing to decode, and reads give fill values.
    if not facts.stored_nbytes:
        return
    ours = () if facts.variable_length else natively(subject.file, subject.path, facts.filters)
    if ours and {reader.name for reader in subject.readers} == {CHUNKWISE}:
        return
    for filter_id in dict.fromkeys(facts.unavailable_filters):
        found = diagnose(filter_id)
        means = means_of({found.hdf5plugin}, natively=bool(ours))
        by_libhdf5 = subject.names_readers and any(
            program(reader.name).reads_filter(found.name or "") != "yes"
            for reader in subject.readers
        )
        library = f"HDF5 {h5py.version.hdf5_version}"
        if means and not by_libhdf5:
            severity: Severity = "note"
            summary = (
                f"{library} by itself lacks the filter {found.title} that it was written with; "
                f"{found.reason}. It is read here by {' and by '.join(means)}; h5py, netCDF4 and "
                "h5dump cannot read it without the filter's plugin."
            )
        else:
            severity = "error"
            where = "by libhdf5 alone" if means else "here"
            summary = (
                f"It cannot be read {where}: {library} lacks the filter {found.title} that it was "
                f"written with; {found.reason}. {found.searched}"
            ).rstrip()
        yield Finding(
            code="filter-unavailable",
            severity=severity,
            path=subject.path,
            summary=summary,
            evidence={
                "filter_id": filter_id,
                "filter_name": found.name or "unknown",
                "hdf5plugin": found.hdf5plugin,
                "chunkwise": "reads it" if ours else "lacks it",
                "plugin_folders": "; ".join(map(str, found.folders)) or "none",
                "plugins_allowed": str(found.loading).lower(),
            },
            source="H5Zfilter_avail, H5PLget",
            remedies=(*found.remedies, *ours),
            waste_nbytes=facts.stored_nbytes if severity == "error" else 0,
            verdict=FileVerdict.SOUND if means else FileVerdict.UNJUDGED,
        )


CHECKS: Final[tuple[DatasetCheck, ...]] = (
    filter_unavailable,
    weak_compression,
    shuffle_missing,
    shuffle_useless,
    uncompressed,
    filters_left_out,
)


def _names(pipeline: Pipeline) -> list[str]:
    return [one.name for one in pipeline.filters]


def _with_shuffle(pipeline: Pipeline) -> Pipeline | None:
    """Put shuffle before the first compressor; None if it is there or has no place."""
    names = _names(pipeline)
    first = next((i for i, name in enumerate(names) if name in _DEFLATE_LIKE), None)
    if first is None or _REARRANGING.intersection(names[:first]):
        return None
    filters = pipeline.filters
    return Pipeline((*filters[:first], Filter("shuffle"), *filters[first:]))


def _without_shuffle(pipeline: Pipeline) -> Pipeline:
    return Pipeline(tuple(one for one in pipeline.filters if one.name != "shuffle"))


def _other_order(facts: DatasetFacts, pipeline: Pipeline) -> tuple[Pipeline, float] | None:
    """Return the pipeline with or without shuffle, if that alone makes compression pay."""
    tried = _encodings(facts)
    if tried is None:
        return None
    plain, shuffled = tried
    added = _with_shuffle(pipeline)
    if added is not None and _is_smaller(shuffled, plain):
        return added, _share(shuffled)
    has_both = "shuffle" in _names(pipeline) and _DEFLATE_LIKE.intersection(_names(pipeline))
    if has_both and _is_smaller(plain, shuffled):
        return _without_shuffle(pipeline), _share(plain)
    return None


def _without_compression(pipeline: Pipeline) -> Pipeline:
    """Leave out what compresses, and what only serves compression."""
    return Pipeline(
        tuple(
            one
            for one in pipeline.filters
            if not one.compresses and one.name not in ("shuffle", "bitshuffle")
        )
    )


def _encodings(facts: DatasetFacts) -> tuple[Encoding, Encoding] | None:
    """Return the sample's sizes without and with shuffle; None if not both were tried."""
    tried = facts.sample.encodings if facts.sample else ()
    shuffled = [one for one in tried if "shuffle" in names(one.filters)]
    plain = [one for one in tried if one not in shuffled]
    return (plain[0], shuffled[0]) if plain and shuffled else None


def _share(encoding: Encoding) -> float:
    return encoding.nbytes / encoding.raw_nbytes


def _is_smaller(one: Encoding, other: Encoding) -> bool:
    return one.nbytes <= other.nbytes * (1 - SHUFFLE_SAVING)


def _is_moot(facts: DatasetFacts, tried: tuple[Encoding, Encoding]) -> bool:
    """Whether shuffle makes no noticeable difference."""
    if (facts.logical_nbytes or 0) < SMALLEST_NBYTES:
        return True
    return max(map(_share, tried)) < MOOT_SHARE


def _sample_evidence(
    facts: DatasetFacts, plain: Encoding, shuffled: Encoding
) -> dict[str, int | float | str]:
    return {
        "filters": facts.filters,
        "sample_raw_nbytes": plain.raw_nbytes,
        "sample_plain_nbytes": plain.nbytes,
        "sample_shuffled_nbytes": shuffled.nbytes,
    }


def _decode_s(facts: DatasetFacts, raw_nbytes: int) -> float | None:
    """Scale the sample's time to all stored chunks."""
    if facts.sample is None:
        return None
    return facts.sample.read_s / facts.sample.raw_nbytes * raw_nbytes


def other_filters(
    subject: Subject, filters: Pipeline, new_chunks: Chunks | None = None
) -> tuple[Copy, ...]:
    """Store a dataset under other filters; `new_chunks` if it has none yet."""
    return under_filters(subject.file, subject.path, str(filters), subject.present, new_chunks)
