"""How long does one call take that reads a row of a matrix?"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from chunkwise_lab.peers.task import Sample, Task

CALLS = 5_000


def by_index(reader: str, file: str, dataset: str) -> Task:
    """``d[i]``, row after row; what can be cached is, before the clock runs."""
    import h5py

    import chunkwise

    # A cache in which libhdf5 keeps the chunk decoded, as chunkwise does.
    with h5py.File(file, rdcc_nbytes=256 << 20) as opened:
        found: Any = opened[dataset]
        dataset_read = chunkwise.wrap(found) if reader == "chunkwise" else found
        count = found.shape[0]
        expected = [dataset_read[i] for i in range(count)]

        def measure() -> Sample:
            numbers = [i % count for i in range(CALLS)]
            begun = time.perf_counter()
            for i in numbers:
                row = dataset_read[i]
            elapsed = time.perf_counter() - begun
            return Sample(elapsed / CALLS, np.array([*expected[:100], row]))

        yield measure


def by_preadv(file: str, dataset: str) -> Task:
    """A new array, and the system's copy of as many bytes: nothing in Python is cheaper."""
    import h5py

    with h5py.File(file) as opened:
        nbytes = opened[dataset].shape[-1] * opened[dataset].dtype.itemsize
    descriptor = os.open(file, os.O_RDONLY)
    count = max(1, os.fstat(descriptor).st_size // nbytes - 1)

    def measure() -> Sample:
        numbers = [i % count * nbytes for i in range(CALLS)]
        begun = time.perf_counter()
        for at in numbers:
            row: Any = np.empty(nbytes, np.uint8)
            os.preadv(descriptor, [row], at)
        return Sample((time.perf_counter() - begun) / CALLS)

    yield measure
    os.close(descriptor)
