"""What is wrong with a dataset for a program's reads, and which line helps?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from chunkwise.errors import ChunkwiseError
from chunkwise.files.contained import contained
from chunkwise.inspecting import inspect
from chunkwise.inspecting.facts import FileFacts
from chunkwise.names import printable
from chunkwise.running.trace import TracedDataset, patterns

# With more patterns, the first few hold most of the reads.
MOST_PATTERNS = 4


@dataclass(frozen=True)
class Found:
    """What `chunkwise inspect` says of it.

    Attributes
    ----------
    code, summary
        As `chunkwise.inspecting.finding.Finding` has them.
    line
        To paste; empty if nothing can be pasted.
    """

    code: str
    summary: str
    line: str


def worst(one: TracedDataset) -> Found | None:
    """Find what matters most.

    Parameters
    ----------
    one
        What a program read.  Its file is looked at by a process of its own.

    Returns
    -------
    Found or None
        None if nothing is wrong, and where the file cannot be looked at any more.
    """
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
        return Found(finding.code, finding.summary, fixes[0].text if fixes else "")
    return None
