"""What may a check look at, and name as its source?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from chunkwise.files.answers import Answer
from chunkwise.grammar import Pipeline
from chunkwise.inspection.facts import DatasetFacts, FileFacts, ObjectFacts
from chunkwise.inspection.finding import Unspelled
from chunkwise.model.purpose import Purpose, purpose
from chunkwise.model.readers import LIBRARIES, Reader
from chunkwise.model.traffic import Pattern
from chunkwise.remedy.records import Present

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

    @property
    def pipeline(self) -> Pipeline:
        """Its filters."""
        return _parsed(self.facts.filters)


# The thousand datasets of a file share a few pipelines.
_parsed = lru_cache(maxsize=256)(Pipeline.parse)

DatasetCheck = Callable[[Subject], Iterator[Unspelled]]
ObjectCheck = Callable[[str, ObjectFacts], Iterator[Unspelled]]
FileCheck = Callable[[FileFacts], Iterator[Unspelled]]
