"""Does Dask read chunk by chunk what would be faster in larger blocks?

A task costs Dask as much as decoding a few megabytes.  With larger "preferred chunks", xarray
would wrongly say of smaller blocks that they divide the stored chunks.
"""

from __future__ import annotations

import itertools
import math
import sys
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

# Chunks of fewer bytes are tiny, and so many reads of them are too many.
_TINY_NBYTES: Final = 1 << 20
_MANY: Final = 1_000

_reads = itertools.count(1)
_warned = False  # A process says it once


@dataclass(frozen=True, slots=True)
class Blocks:
    """A variable whose stored chunks are tiny blocks."""

    dimensions: tuple[Hashable, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]

    @classmethod
    def of(
        cls,
        dimensions: Sequence[Hashable],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        chunks: tuple[int, ...] | None,
    ) -> Blocks | None:
        """Return None if no chunk is tiny, or all are one."""
        if not chunks or math.prod(chunks) * dtype.itemsize >= _TINY_NBYTES:
            return None
        if all(size <= chunk for size, chunk in zip(shape, chunks, strict=True)):
            return None
        return cls(tuple(dimensions), shape, dtype, chunks)

    def count(self, read: Any) -> None:
        """Count a read of one whole chunk; warn when many tasks of Dask have read one each."""
        global _warned
        # Parts of larger blocks have other shapes: a series of them is no reason to warn.
        if _warned or np.shape(read) != self.chunks or next(_reads) % _MANY or not _in_a_task():
            return
        larger = self.larger()
        if any(
            larger[name] > size for name, size in zip(self.dimensions, self.chunks, strict=True)
        ):
            _warned = True
            nbytes = math.prod(self.chunks) * self.dtype.itemsize
            warnings.warn(
                f"{_MANY:,} tasks of Dask have read a chunk each, here one of {nbytes:,} bytes; "
                f"larger blocks are faster: open with chunks={larger!r}",
                stacklevel=2,
            )

    def larger(self) -> dict[Hashable, int]:
        """Give blocks of whole chunks of the size that Dask is set to."""
        from dask.array.core import normalize_chunks

        found = normalize_chunks("auto", self.shape, dtype=self.dtype, previous_chunks=self.chunks)
        return {name: max(each) for name, each in zip(self.dimensions, found, strict=True)}


def _in_a_task() -> bool:
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in {"dask", "distributed"}:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
