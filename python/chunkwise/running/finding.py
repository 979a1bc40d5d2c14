"""What is wrong with a dataset for what a program read or wrote, and which line helps?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from chunkwise.errors import ChunkwiseError
from chunkwise.files.contained import contained
from chunkwise.grammar import format_shape, format_size
from chunkwise.inspection import inspect
from chunkwise.inspection.facts import FileFacts
from chunkwise.model.cost import Stored
from chunkwise.model.held import holding
from chunkwise.names import printable
from chunkwise.remedy.records import larger_cache
from chunkwise.remedy.spelling import in_short
from chunkwise.running.trace import Trace, TracedDataset, patterns, totals
from chunkwise.words import counted

# With more patterns, the first few hold most of the reads.
MOST_PATTERNS = 4
# Looking takes a second; what takes less than a tenth of the time is not worth it.
_MOST_LOOKED_AT = 3
_SHARE = 0.1


@dataclass(frozen=True)
class Found:
    """What `chunkwise inspect` says of it; of writes, what their cache does to it."""

    operation: str  # Of what, as `TracedDataset` has them
    file: str
    dataset: str
    code: str  # As `chunkwise.inspection.finding.Finding` has them
    summary: str
    line: str  # To paste; empty if nothing can be pasted

    def is_of(self, one: TracedDataset) -> bool:
        """Whether it was found of these calls."""
        return (self.operation, self.file, self.dataset) == _names(one)


def first(trace: Trace) -> Found | None:
    """Find what is wrong with the calls that took the most time of which anything is."""
    *_, seconds = totals(trace.datasets)
    slow = [one for one in trace.datasets[:_MOST_LOOKED_AT] if one.seconds >= _SHARE * seconds]
    return next((found for one in slow if (found := worst(one)) is not None), None)


def worst(one: TracedDataset) -> Found | None:
    """Find what matters most."""
    if one.operation == "write":
        return _of_writes(one)
    access = tuple(patterns(one))[:MOST_PATTERNS]
    if not access or not one.shape:
        return None
    look = partial(inspect, one.file, one.dataset, access=access, sample=False)
    try:
        facts: FileFacts = contained(look, printable(one.file))
    except (ChunkwiseError, OSError):
        return None
    for finding in facts.findings:
        if finding.path != one.dataset:
            continue
        fixes = [fix for fix in finding.fixes if not fix.writing]
        # A program that nobody can change takes a file in other chunks as it is.
        fixes.sort(key=lambda fix: not fix.repacks)
        return Found(*_names(one), finding.code, finding.summary, fixes[0].text if fixes else "")
    return None


def _of_writes(one: TracedDataset) -> Found | None:
    """Find chunks that HDF5 had to decode again, to write the next part of them."""
    blocks = [run.block for run in one.runs if run.block and run.times > 1]
    if not one.chunk or one.loaded < one.chunks or not blocks:
        return None
    block = max(blocks, key=blocks.count)
    stored = Stored(one.shape, one.chunk, one.item_nbytes, True)
    needed = stored.walk(block).chunks_to_cache()
    cache = holding(needed, stored.chunk_nbytes, unit=1)
    larger = larger_cache(one.file, one.dataset, cache, writing=True)
    size = format_size(cache.nbytes)
    return Found(
        *_names(one),
        "writes-exceed-cache",
        f"A write of {format_shape(block)} fills a part of {counted(needed, 'chunk')} "
        f"({size}), which HDF5's chunk cache did not keep until the next one: it "
        f"decoded {one.loaded:,} chunks again, of a dataset that has {one.chunks:,}. A cache of "
        f"{size} keeps them.",
        in_short(larger) or "",
    )


def _names(one: TracedDataset) -> tuple[str, str, str]:
    return one.operation, one.file, one.dataset
