"""Which bytes of a file belong to a dataset, which to others, and which to its metadata?"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import h5py
import numpy as np
import numpy.typing as npt

from chunkwise import _native, system
from chunkwise.inspection.format import free_nbytes
from chunkwise.names import HDF5_ERRORS
from chunkwise.viewing.source import listing

BINS: Final = 512
# A reader of metadata fetches parts of the file that are worth a request: 10 ms, 1 GB/s.
_COST: Final = (10_000_000, 1_000_000_000, 1 << 30, 1)
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Spans:
    """Bytes of a file: where each run begins and ends."""

    starts: Numbers
    ends: Numbers

    @classmethod
    def of(cls, dataset: h5py.Dataset) -> Spans:
        """Find the bytes of a dataset's data; none of what lies elsewhere, or cannot be listed."""
        try:
            if dataset.chunks is not None:
                _, addresses, nbytes = listing(dataset).columns()
            else:
                offset = dataset.id.get_offset()
                found = [] if offset is None else [offset]
                addresses = np.array(found, np.uint64)
                nbytes = np.array([dataset.id.get_storage_size()] * len(found), np.uint64)
        except HDF5_ERRORS:
            addresses = nbytes = np.empty(0, np.uint64)
        starts = addresses.astype(np.float64)
        return cls(starts, starts + nbytes.astype(np.float64))

    def shares(self, file_nbytes: int) -> Numbers:
        """Return which part of each of `BINS` equal parts of the file they fill."""
        edges = np.linspace(0, max(1, file_nbytes), BINS + 1)
        order = np.argsort(self.starts)
        starts, ends = self.starts[order], self.ends[order]
        # Bytes that lie before a place: they grow within runs, and not between them.
        places = np.column_stack([starts, ends]).ravel()
        before = np.column_stack([np.zeros(len(starts)), ends - starts]).ravel().cumsum()
        if not places.size:
            return np.zeros(BINS)
        found: Numbers = np.diff(np.interp(edges, places, before, left=0.0)) / np.diff(edges)
        return np.clip(found, 0.0, 1.0)


@dataclass
class _Noted:
    """A local file, whose metadata is read in parts that are noted."""

    descriptor: int
    size: int
    cost: tuple[int, int, int, int] = _COST
    parts: set[tuple[int, int]] = field(default_factory=set)

    def read_ranges(self, ranges: Sequence[tuple[int, int]], /) -> list[bytes]:
        self.parts.update(ranges)
        return [system.pread(self.descriptor, nbytes, at) for at, nbytes in ranges]

    read_metadata = read_ranges

    def expect_metadata(self, ranges: Sequence[tuple[int, int]], /) -> None:
        pass

    def interrupt(self) -> None:
        pass


@dataclass(frozen=True)
class Rest:
    """What a file holds beside the data of its datasets."""

    metadata: Spans  # Parts of the file in which all of it lies, of 16 KiB each
    metadata_nbytes: int
    free_nbytes: int  # What the file keeps track of
    # Space that nothing leads to, and values of variable length
    unaccounted_nbytes: int

    @classmethod
    def of(cls, path: str, file: h5py.File) -> Rest | None:
        """Read the metadata of a local file, which is open; None where only libhdf5 can."""
        with Path(path).open("rb") as stream:
            noted = _Noted(stream.fileno(), os.fstat(stream.fileno()).st_size)
            metadata = _native.Metadata.of_storage(_native.Storage(noted))
            found = None if metadata is None else metadata.account()
        if found is None:
            return None
        starts, nbytes = np.array(sorted(noted.parts), np.float64).reshape(-1, 2).T
        free = free_nbytes(file)
        # As `inspect` has it.
        lost = max(0, found["unaccounted_nbytes"] - free)
        return cls(Spans(starts, starts + nbytes), found["nbytes"], free, lost)

    def shares(self, file_nbytes: int, data: Numbers) -> Numbers:
        """Return how much of each equal part of the file is metadata, beside `data`."""
        most = np.minimum(self.metadata.shares(file_nbytes), 1.0 - data)
        known = self.metadata_nbytes * BINS / max(1, file_nbytes)
        found: Numbers = most * min(1.0, known / max(most.sum(), 1e-300))
        return found


def all_spans(datasets: Iterable[h5py.Dataset]) -> Spans:
    """Find the bytes of the data of many datasets."""
    found = [Spans.of(one) for one in datasets]
    empty = np.empty(0)
    return Spans(
        np.concatenate([empty, *(one.starts for one in found)]),
        np.concatenate([empty, *(one.ends for one in found)]),
    )
