"""Which remedies are there, what does each need, and for whom is it?

They are data, and a closed set: checks make them, and what compares, joins or leaves out remedies
looks at these records.  `spelling` has the lines of each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from chunkwise.grammar import Pipeline
from chunkwise.grammar.parameters import carried
from chunkwise.model.layout import AS_IT_IS, DatasetLayout, FileLayout, Layout
from chunkwise.remedy.fix import Tool
from chunkwise.remedy.tools import NATIVE_FILTERS, absolute, can_encode, decodes_natively, names

Chunks: TypeAlias = tuple[int, ...]
# As chunks that a copy has: none.
CONTIGUOUS: Final[Chunks] = ()


@dataclass(frozen=True, slots=True)
class SetCache:
    """Open a dataset with another chunk cache."""

    file: str
    path: str
    nbytes: int
    nslots: int
    filters: str = "none"  # Those of the dataset
    program: Tool = "h5py"  # Whose lines come first; C's are for a program that writes
    own_slots: bool = False  # Whether the library gives this many slots by itself


@dataclass(frozen=True, slots=True)
class ReadOnce:
    """Read a dataset as a whole, which decodes each chunk once, and index the array."""

    file: str
    path: str


@dataclass(frozen=True, slots=True)
class OpenNatively:
    """Read through chunkwise, which has a cache of its own and decodes on all processors."""

    file: str
    path: str


@dataclass(frozen=True, slots=True)
class Present:
    """How a dataset is stored, as far as that is known and a remedy needs it."""

    filters: str = "none"
    chunks: Chunks | None = None  # None if it has none, or nobody knows
    shape: Chunks | None = None
    itemsize: int | None = None


@dataclass(frozen=True, slots=True)
class Anew:
    """What one dataset has in a copy of its file."""

    path: str
    chunks: Chunks | None  # None keeps what it has
    filters: str | None  # None keeps what it has
    now: Present

    @property
    def layout(self) -> DatasetLayout:
        """The same, without what is known of the present."""
        return DatasetLayout(absolute(self.path), self.chunks, self.filters)

    @property
    def is_ours(self) -> bool:
        """Whether chunkwise repack can decode and encode it here."""
        needed = names(self.now.filters) | names(self.filters or "none")
        return self.chunks == CONTIGUOUS or all(map(can_encode, needed))


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy a file, and store in the copy what is named here as it says."""

    file: str
    datasets: tuple[Anew, ...] = ()
    rest: FileLayout = AS_IT_IS  # What concerns the file as a whole
    # Pipelines in the file that a tool has to copy too.  Tools that change a dataset may lose
    # those whose filters they lack.
    pipelines: frozenset[str] = frozenset()
    # Whether all of it has to be done, and nothing else: nccopy gives filters to all variables.
    exact: bool = False
    # Whether only chunkwise repack does it: libhdf5 may leave filters out again.
    by_us: bool = False

    @property
    def layout(self) -> FileLayout:
        """What the copy has in place of what the file has."""
        return replace(self.rest, datasets=tuple(one.layout for one in self.datasets))

    @property
    def rechunks(self) -> bool:
        """Whether it gives a dataset other chunks: of several such, only one can be followed."""
        return not self.exact and any(one.chunks is not None for one in self.datasets)

    @property
    def ours(self) -> FileLayout | None:
        """What chunkwise repack makes of it; None if it cannot write the first dataset."""
        able = tuple(one for one in self.datasets if one.is_ours)
        return replace(self, datasets=able).layout if able[:1] == self.datasets[:1] else None


@dataclass(frozen=True, slots=True)
class Create:
    """Create a dataset as the first one of a copy, in the program that writes it."""

    copy: Copy
    by_xarray: bool = False  # Whether xarray creates it


@dataclass(frozen=True, slots=True)
class GatherMetadata:
    """Write a file's metadata in blocks of this size."""

    nbytes: int


@dataclass(frozen=True, slots=True)
class ReadPaged:
    """Read the copy of a file by pages."""

    file: str
    buffer_nbytes: int


@dataclass(frozen=True, slots=True)
class FollowWriter:
    """Read a file along with its writer (SWMR)."""

    file: str


@dataclass(frozen=True, slots=True)
class ClearCopy:
    """Copy a file whose writer was killed, so that the copy opens; the file itself stays."""

    file: str


@dataclass(frozen=True, slots=True)
class Examine:
    """Say what of a file is damaged, element by element, and perhaps save what is left."""

    file: str
    salvage: bool = False


@dataclass(frozen=True, slots=True)
class InspectOthers:
    """Inspect other files, or folders."""

    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemoveLink:
    """Remove a link that leads nowhere."""

    file: str
    path: str


@dataclass(frozen=True, slots=True)
class PutBeside:
    """Copy a missing file to this place."""

    place: str


@dataclass(frozen=True, slots=True)
class LookFor:
    """Say to HDF5 where to look for a file: where a search finds it, or beside its user."""

    variable: str
    file: str | None  # None if it lies beside the file that leads to it


@dataclass(frozen=True, slots=True)
class BringFilter:
    """Get a filter that libhdf5 lacks."""

    # ``allow``: plugins are forbidden; ``install``: hdf5plugin has it; ``again``: hdf5plugin is
    # broken; ``tools``: programs of the same shell; ``netcdf``: netCDF-C has it; ``rebuild``:
    # h5py's wheel has it; ``package``: a package has it; ``import``: a module registers it.
    how: Literal["allow", "install", "again", "tools", "netcdf", "rebuild", "package", "import"]
    name: str = "hdf5plugin"  # The package or module


Remedy: TypeAlias = (
    SetCache | ReadOnce | OpenNatively | Copy | Create | GatherMetadata | ReadPaged
    | FollowWriter | ClearCopy | Examine | InspectOthers | RemoveLink | PutBeside | LookFor
    | BringFilter
)  # fmt: skip


def in_chunks(file: str, path: str, chunks: Chunks, now: Present) -> tuple[Copy, ...]:
    """Store a dataset in other chunks, under its filters; nothing if they forbid it."""
    own = Pipeline.parse(now.filters)
    pipeline = carried(own, math.prod(chunks))
    if isinstance(pipeline, str):
        return ()
    filters = None if pipeline == own else str(pipeline)
    return (Copy(file, (Anew(path, chunks, filters, now),)),)


def under_filters(
    file: str, path: str, filters: str, now: Present, chunks: Chunks | None = None
) -> tuple[Copy, ...]:
    """Store a dataset under other filters, and perhaps in other chunks."""
    return (Copy(file, (Anew(path, chunks, filters, now),)),)


def in_layout(
    file: str, path: str, layout: Layout, now: Present, pipelines: Iterable[str]
) -> tuple[Copy, ...]:
    """Store a dataset in another layout, in a file of such pipelines, if its own allow that."""
    if layout.chunks is None:
        found: tuple[Copy, ...] = (Copy(file, (Anew(path, CONTIGUOUS, None, now),)),)
    elif layout.filters == now.filters:
        found = in_chunks(file, path, layout.chunks, now)
    else:
        # Chunks are stated also if they stay: nccopy chooses others for small variables.
        found = under_filters(file, path, layout.filters, now, layout.chunks)
    return tuple(replace(one, pipelines=frozenset(pipelines)) for one in found)


def encoded_anew(file: str, path: str, filters: str) -> tuple[Copy, ...]:
    """Apply the filters of a dataset to the chunks that lack them."""
    if not names(filters) <= NATIVE_FILTERS or not all(map(can_encode, names(filters))):
        return ()
    return (Copy(file, (Anew(path, None, filters, Present()),), by_us=True),)


def natively(file: str, path: str, filters: str) -> tuple[OpenNatively, ...]:
    """Read through chunkwise, if it decodes the filters itself."""
    return (OpenNatively(file, path),) if decodes_natively(filters) else ()
