"""How much faster is a patched program's reading than h5py's would be?

h5py repeats some of the reads that the engine has done, after it: the first of them, the second,
the fourth, the eighth.  It has then found the bytes in memory.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import wraps
from typing import Any

import h5py

from chunkwise.routing.reading import counts

# Repeated reads take no more of a program's time than this part, or than so many seconds.
_SHARE = 0.1
_LEAST_S = 1.0
# A larger array is not read twice.
_MOST_NBYTES = 256 << 20


@dataclass
class Timing:
    """The reads that both did, and what they took."""

    reads: int = 0
    engine_s: float = 0.0
    h5py_s: float = 0.0
    begun: float = 0.0

    def wants(self, found: Any) -> bool:
        """Whether the read that gave this is repeated."""
        number = counts.engine
        if number & (number - 1) or getattr(found, "nbytes", 0) > _MOST_NBYTES:
            return False
        return self.h5py_s < max(_LEAST_S, _SHARE * (time.perf_counter() - self.begun))


def timed() -> Timing:
    """Time the reads of h5py's datasets from now on; h5py is patched."""
    timing = Timing(begun=time.perf_counter())
    patched = h5py.Dataset.__getitem__
    original = patched.__wrapped__

    @wraps(patched)
    def __getitem__(self: h5py.Dataset, args: Any, new_dtype: Any = None) -> Any:  # noqa: N807
        before, begun = counts.engine, time.perf_counter()
        found = patched(self, args, new_dtype)
        ended = time.perf_counter()
        if counts.engine > before and timing.wants(found):
            original(self, args, new_dtype)
            timing.h5py_s += time.perf_counter() - ended
            timing.engine_s += ended - begun
            timing.reads += 1
        return found

    h5py.Dataset.__getitem__ = __getitem__
    return timing
