"""Which objective does the user want, and which filters may be chosen for whom?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast

from chunkwise.errors import UsageError
from chunkwise.grammar import Pipeline
from chunkwise.grammar.parameters import carried
from chunkwise.model.layout import Layout
from chunkwise.model.readability import program
from chunkwise.model.readers import CHUNKWISE, Reader, reader, this_process
from chunkwise.model.search import OBJECTIVES, Objective
from chunkwise.remedy.tools import H5REPACK_FILTERS, can_encode, names
from chunkwise.words import offered

# Filters that every build of libhdf5, and all programs built on it, can read.
_UNIVERSAL: Final = ("shuffle+deflate:1", "shuffle+deflate:4", "deflate:1", "none")
_SMALLEST: Final = ("shuffle+deflate:9",)
# With these plugins; the last ones are tried if there is time.
_PLUGINS: Final = ("bitshuffle:lz4", "shuffle+zstd:1", "shuffle+lz4", "shuffle+zstd:9")
# Zarr's readers read HDF5 by references that kerchunk makes.
_ALSO_CALLED: Final = {"zarr": "kerchunk"}
# Growth that the balanced objective allows a file; less if no pattern is stated.
_GROWTH: Final = 0.10
_STATED_GROWTH: Final = 0.50


@dataclass(frozen=True)
class Goal:
    """What the advice aims at, and for whom, checked."""

    objective: Objective  # What the choice minimizes
    reader: Reader  # For whom: whose cache
    reader_name: str  # As `bench` calls it
    title: str  # The reader, in words
    # Who must read the result: one of `readability.PROGRAM_NAMES`; None for any libhdf5.
    program: str | None = None

    @property
    def readers(self) -> tuple[Reader, ...] | None:
        """The readers whose caches decide about chunks; None for everyone, as for inspect."""
        return None if self.reader is this_process() else (self.reader,)

    @property
    def is_usual(self) -> bool:
        """Whether it aims at what `inspect` aims at."""
        return self.objective == "balanced" and self.program is None

    def most_nbytes(self, compressed_nbytes: float, *, stated: bool) -> int | None:
        """Return the most bytes that the dataset may take; None for any number."""
        if self.objective == "balanced" and compressed_nbytes:
            return round(compressed_nbytes * (1 + growth(stated=stated)))
        return None


def growth(*, stated: bool) -> float:
    """Return by how much compressed data may grow with the balanced objective."""
    return _STATED_GROWTH if stated else _GROWTH


def read(objective: str, reader_name: str | None) -> Goal:
    """Check the objective and the reader."""
    reader_name = _ALSO_CALLED.get(reader_name or "", reader_name)
    if objective not in OBJECTIVES:
        raise UsageError(f"no objective is called '{objective}'{offered(objective, OBJECTIVES)}")
    who = this_process() if reader_name is None else reader(reader_name)
    named = CHUNKWISE if reader_name == CHUNKWISE else "libhdf5"
    return Goal(cast("Objective", objective), who, named, who.title, reader_name)


def pipelines(goal: Goal, present: Layout | None, itemsize: int) -> list[str]:
    """List the filters that may be chosen, the most wanted first; the present ones among them."""
    # Others than those of every libhdf5 only for chunkwise, or if the dataset has them already.
    found = [present.filters] if present is not None and present.chunks is not None else []
    if found and not isinstance(same := carried(Pipeline.parse(found[0])), str):
        found.append(str(same))
    wanted = [*_UNIVERSAL]
    if goal.objective == "size":
        wanted[:0] = _SMALLEST
    if plugins_may_be_used(goal, present):
        wanted += _PLUGINS
    if itemsize == 1:
        # There is nothing to shuffle.
        wanted = [_without_shuffle(text) for text in wanted]
    checked = present is not None and "fletcher32" in names(present.filters)
    for text in wanted:
        # The checksum of the dataset stays.
        filters = text
        if checked:
            filters = "fletcher32" if text == "none" else f"{text}+fletcher32"
        if all(map(can_encode, names(filters))) and _is_read_by(filters, goal.program):
            found.append(str(Pipeline.parse(filters)))
    return list(dict.fromkeys(found))


def barred(present: Layout) -> frozenset[str]:
    """Return pipelines that stay where they are, but are given to no other chunks."""
    # They would round values again, or have parameters that belong to the chunks.
    own = Pipeline.parse(present.filters)
    return frozenset() if carried(own) == own else frozenset((present.filters,))


def plugins_may_be_used(goal: Goal, present: Layout | None) -> bool:
    """Whether filters that come as plugins may be chosen."""
    if goal.reader_name == CHUNKWISE:
        return True
    return present is not None and not names(present.filters) <= {*H5REPACK_FILTERS, "lzf"}


def _is_read_by(filters: str, name: str | None) -> bool:
    """Whether a program reads filters without more ado."""
    if name is None or name == CHUNKWISE:
        return True
    who = program(name)
    return all(who.reads_filter(one) == "yes" for one in names(filters))


def _without_shuffle(filters: str) -> str:
    kept = (one for one in Pipeline.parse(filters).filters if one.name != "shuffle")
    return str(Pipeline(tuple(kept)))
