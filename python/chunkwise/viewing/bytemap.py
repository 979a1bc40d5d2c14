"""Which bytes of a file belong to a dataset, which to others, and which to none?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import h5py
import numpy as np
import numpy.typing as npt

from chunkwise.names import HDF5_ERRORS
from chunkwise.viewing.source import listing

BINS: Final = 512
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
        """Tell which part of each of `BINS` equal parts of the file they fill."""
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


def all_spans(datasets: Iterable[h5py.Dataset]) -> Spans:
    """Find the bytes of the data of many datasets."""
    found = [Spans.of(one) for one in datasets]
    empty = np.empty(0)
    return Spans(
        np.concatenate([empty, *(one.starts for one in found)]),
        np.concatenate([empty, *(one.ends for one in found)]),
    )
