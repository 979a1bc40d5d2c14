"""What may a check look at and name as its source, and how severe is what it finds?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from chunkwise.files.answers import Answer
from chunkwise.grammar import Pipeline
from chunkwise.inspection.facts import DatasetFacts, FileFacts, ObjectFacts
from chunkwise.inspection.finding import Finding, Severity
from chunkwise.model.cost import Stored
from chunkwise.model.nominal import DECODED_NBYTES_PER_S
from chunkwise.model.purpose import Purpose, purpose
from chunkwise.model.readers import LIBRARIES, Reader
from chunkwise.model.traffic import Pattern
from chunkwise.remedy.records import Present

# A reader waits, or pays for the disk.
WARNING_S: Final = 2.0
WARNING_NBYTES: Final = 100_000_000
# Share of what is read or stored without the fault; a smaller one is not noticed.
WARNING_SHARE: Final = 0.1
# This many times as much is a warning from fewer bytes on; below that, a file is a toy.
MANY_TIMES: Final = 10.0
NO_TOY_NBYTES: Final = 32 << 20
# A way of reading that some never use has to make minutes of seconds.
RARE_TIMES: Final = 100.0
RARE_S: Final = 60.0
# Bytes fetched in vain are faster than those decoded.
FETCHED_NBYTES_PER_S: Final = 2 << 30
# A read of its own: more than on a flash disk, less than on one that turns.
PIECE_S: Final = 2e-4


def by_cost(
    *,
    nbytes: int = 0,
    seconds: float | None = None,  # Of waiting; None takes what the bytes take
    times: float = math.inf,
    rare: bool = False,
    filtered: bool = True,  # Whether the bytes are decoded, or just fetched
) -> Severity:
    """Judge what something costs."""
    if seconds is None:
        seconds = nbytes / (DECODED_NBYTES_PER_S if filtered else FETCHED_NBYTES_PER_S)
    if rare:
        return "warning" if times >= RARE_TIMES and seconds >= RARE_S else "note"
    noticed = seconds >= WARNING_S or nbytes >= WARNING_NBYTES
    if noticed and times >= 1 + WARNING_SHARE:
        return "warning"
    return "warning" if nbytes >= NO_TOY_NBYTES and times >= MANY_TIMES else "note"


# How findings name the papers that they rest on.
OCCAM: Final = "'Profiling Write Performance of HDF5' (HPCx TR0601)"
NETCDF4: Final = "'NetCDF-4 Performance Report' (2008)"
COMPRESSED: Final = "'Improving I/O Performance When Working with HDF5 Compressed Datasets'"


@dataclass(frozen=True, slots=True)
class Subject:
    """One dataset, and who is to read it."""

    file: str  # The file's path as given
    path: str  # The dataset's path in it
    facts: DatasetFacts  # How it is stored
    readers: tuple[Reader, ...]  # The readers that it must serve well
    # The patterns that it is read by, as somebody stated them; none where nobody did.
    stated: tuple[Pattern, ...] = ()
    measured: Answer | None = None  # What was measured to be best for these

    @property
    def names_readers(self) -> bool:
        """Whether someone in particular is to read it; all libraries stand for nobody."""
        return not set(LIBRARIES) <= set(self.readers)

    @property
    def purpose(self) -> Purpose:
        """The ways of reading that fit it."""
        facts = self.facts
        if facts.purpose is not None:
            return facts.purpose
        chunks = None if facts.chunks is None else facts.chunks.shape
        return purpose(facts.shape or (), chunks, facts.itemsize)

    @property
    def present(self) -> Present:
        """How it is stored, as remedies take it."""
        facts = self.facts
        chunks = None if facts.chunks is None else facts.chunks.shape
        return Present(facts.filters, chunks, facts.shape, facts.itemsize)

    def in_chunks(self, chunks: tuple[int, ...] | None) -> Stored:
        """How it would be stored in other chunks, as the cost model takes it."""
        facts = self.facts
        assert facts.shape is not None
        return Stored.of(facts.shape, chunks, facts.itemsize, filtered=facts.filters != "none")

    @property
    def pipeline(self) -> Pipeline:
        """Its filters."""
        return _parsed(self.facts.filters)


# The thousand datasets of a file share a few pipelines.
_parsed = lru_cache(maxsize=256)(Pipeline.parse)

DatasetCheck = Callable[[Subject], Iterator[Finding]]
ObjectCheck = Callable[[str, ObjectFacts], Iterator[Finding]]
FileCheck = Callable[[FileFacts], Iterator[Finding]]
