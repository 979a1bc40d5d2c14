"""Who copies the data of a repack: this process, ranks of MPI, or workers of Dask?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import h5py
from h5py import h5d

from chunkwise import _native
from chunkwise.newfile.claim import Claim
from chunkwise.newfile.index import FileIndex
from chunkwise.proof.compare import Sharing
from chunkwise.repacking.creation import CreatedFile, create
from chunkwise.repacking.options import Options
from chunkwise.repacking.plan import Step
from chunkwise.repacking.records import DatasetResult

# Called with bytes done, stored bytes read and written.
Tell = Callable[[int, int, int], None]


@dataclass(frozen=True)
class Copied:
    """The result of copying a dataset; see `_native.CopyResult`."""

    decodes: int
    chunks_written: int
    chunks_replayed: int
    stored_nbytes_written: int
    tuning: str | None
    lost_chunks: list[tuple[list[int], str]]
    through_libhdf5: str | None
    elapsed_s: float


class Executor:
    """Work by this process alone; classes derived from it share some with others."""

    def create(self, claim: Claim, source: h5py.File, options: Options) -> FileIndex | CreatedFile:
        """Create the target."""
        return create(claim, source, options)

    def note_to(self, journal: int, identity: bytes) -> None:
        """Append what others note to a journal; its descriptor stays the caller's."""

    def begin(self, claim: Claim, source: h5py.File) -> None:
        """Let others open the source, and the partial file that now exists."""

    # Of a large dataset, while the target is open -------------------------------------

    def shares(self, made: h5d.DatasetID, nbytes: int, *, raw: bool) -> bool:
        """Whether others copy parts of a dataset of `nbytes` bytes into this one."""
        del made, nbytes, raw
        return False

    def copy(
        self,
        path: str,
        made: h5d.DatasetID,
        nbytes: int,
        tell: Tell,
        how: dict[str, Any],  # More arguments of `_native.copy_data`
    ) -> Copied | _native.CopyResult:
        """Copy such a dataset, together with others."""
        raise NotImplementedError

    # Of some datasets, after the target is closed -------------------------------------

    def takes(self, step: Step) -> bool:
        """Whether others write the data of a dataset into the target, complete but for that."""
        del step
        return False

    def write(self, claim: Claim, source: h5py.File, steps: Sequence[Step]) -> list[DatasetResult]:
        """Let them write these data into the closed partial file."""
        del claim, source, steps
        return []

    def sharing(
        self, claim: Claim, memory_nbytes: int, tell: Callable[[int], None]
    ) -> Sharing | None:
        """Return what lets others compare the result with the source, too."""
        del claim, memory_nbytes, tell
        return None
