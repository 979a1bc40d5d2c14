"""What is wrong with a dataset for what a program read or wrote, and which line helps?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from chunkwise.diagnosis.reads import Reads
from chunkwise.errors import ChunkwiseError
from chunkwise.files.contained import contained
from chunkwise.grammar import format_shape, format_size
from chunkwise.inspection import inspect
from chunkwise.inspection.facts import FileFacts
from chunkwise.model import worth
from chunkwise.model.cost import Stored
from chunkwise.model.readers import LIBHDF5_1, LIBHDF5_2, UNCACHED, Reader
from chunkwise.model.traffic import Pattern
from chunkwise.names import printable
from chunkwise.remedy.fix import Fix
from chunkwise.remedy.records import Copy
from chunkwise.remedy.spelling import spelled
from chunkwise.running.trace import Trace, TracedDataset, patterns, totals, under_run
from chunkwise.words import counted, format_seconds

# With more patterns, the first few hold most of the reads.
MOST_PATTERNS = 4
# Looking takes a second; what takes less than a tenth of the time is not worth it.
_MOST_LOOKED_AT = 3
_SHARE = 0.1


@dataclass(frozen=True)
class RunFinding:
    """What `chunkwise inspect` says of it; of writes, what their cache does to it."""

    operation: str  # Of what, as `TracedDataset` has them
    file: str
    dataset: str
    code: str  # As `chunkwise.inspection.finding.Finding` has them
    summary: str
    line: str  # To paste; empty if nothing can be pasted
    # The same for a program in C or Fortran that can be changed: the language, and its lines.
    in_program: tuple[tuple[str, str], ...] = ()
    gain: str = ""  # What a cache saves in this run; empty if that is not known

    def is_of(self, one: TracedDataset) -> bool:
        """Whether it was found of these calls."""
        return (self.operation, self.file, self.dataset) == _names(one)


def first(trace: Trace) -> RunFinding | None:
    """Find what is wrong with the calls that took the most time of which anything is."""
    *_, seconds = totals(trace.datasets)
    slow = [one for one in trace.datasets[:_MOST_LOOKED_AT] if one.seconds >= _SHARE * seconds]
    return next((found for one in slow if (found := worst(one)) is not None), None)


def worst(one: TracedDataset) -> RunFinding | None:
    """Find what matters most."""
    if one.operation == "write":
        return _of_writes(one)
    access = tuple(patterns(one))[:MOST_PATTERNS]
    if not access or not one.shape:
        return None
    # What HDF5 would have taken for calls that chunkwise carried out, a sample tells.
    look = partial(
        inspect,
        one.file,
        one.dataset,
        access=access,
        readers=_reader(one),
        sample=bool(one.by_chunkwise),
        metadata=False,
    )
    try:
        facts: FileFacts = contained(look, printable(one.file))
    except (ChunkwiseError, OSError):
        return None
    for finding in facts.findings:
        if finding.path != one.dataset:
            continue
        # A program that nobody can change takes a file in other chunks as it is.
        remedies = sorted(finding.remedies, key=lambda one: not isinstance(one, Copy))
        fixes = [fix for fix in spelled(remedies) if not fix.writing]
        line = fixes[0].text if fixes else ""
        lines = _in_program(fixes)
        gain = _gain(one, under_run(one, 1)) if lines else ""
        return RunFinding(*_names(one), finding.code, finding.summary, line, lines, gain)
    return None


def _reader(one: TracedDataset) -> tuple[Reader] | None:
    """Return the program's own HDF5 with the cache that it has; None if that is not known."""
    if not one.cache_nbytes or not one.hdf5:
        return None
    known = LIBHDF5_1 if one.hdf5.startswith("1.") else LIBHDF5_2
    title = f"this program's HDF5 {one.hdf5}"
    return (replace(known, title=title, cache_nbytes=one.cache_nbytes, nslots=one.cache_nslots),)


def _in_program(fixes: Iterable[Fix]) -> tuple[tuple[str, str], ...]:
    return tuple((fix.tool, fix.text) for fix in fixes if fix.tool in ("C", "Fortran"))


def _gain(one: TracedDataset, then_s: float | None) -> str:
    """Say what is left of the seconds of this run if each chunk is decoded as often as it must."""
    if then_s is None or then_s * worth.MEASURED > one.seconds:
        return ""
    now, then = map(format_seconds, (one.seconds, then_s))
    return f"With this cache, these {one.operation}s take about {then} in place of {now}."


def _of_writes(one: TracedDataset) -> RunFinding | None:
    """Find chunks that HDF5 had to decode again, to write the next part of them."""
    blocks = [run.block for run in one.runs if run.block and run.times > 1]
    if not one.chunk or one.loaded < one.chunks or not blocks:
        return None
    block = max(blocks, key=blocks.count)
    stored = Stored(one.shape, one.chunk, one.item_nbytes, True)
    needed = stored.walk(block).chunks_to_cache()
    # What is written in part is read back.
    readers, pattern = _reader(one) or (UNCACHED,), Pattern("", block)
    reads = Reads(one.file, one.dataset, stored, "none", (pattern,), readers)
    cache = reads.cache
    lines = spelled(reads.with_cache(cache, "C"))
    decoding = sum(decoded.seconds for decoded in one.filters)
    keeps = "" if cache is None else f" A cache of {format_size(cache.nbytes)} suits these writes."
    return RunFinding(
        *_names(one),
        "writes-exceed-cache",
        f"A write of {format_shape(block)} fills a part of {counted(needed, 'chunk')} "
        f"({format_size(needed * stored.chunk_nbytes)}), which HDF5's chunk cache did not keep "
        f"until the next one: it decoded {one.loaded:,} chunks again, of a dataset that has "
        f"{one.chunks:,}.{keeps}",
        lines[0].text if lines else "",
        _in_program(lines[1:]),
        _gain(one, one.seconds - decoding) if lines else "",
    )


def _names(one: TracedDataset) -> tuple[str, str, str]:
    return one.operation, one.file, one.dataset
