"""How long would the whole walk take, if only its first operations were done?

Multiplying by the count is wrong in both directions: the first read of a walk
pays for decoding chunks that the next ones may find in a cache.  So
operations are sorted by their chunks (`geometry.Census`), each kind's
mean is measured, and the whole is the sum over all kinds.  The measured means show
what the cache does; nothing is assumed about it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from chunkwise.model.geometry import Walk


def total_seconds(
    latencies_s: Sequence[float],
    operations: int,
    elapsed_s: float,
    total_operations: int,
    walk: Walk | None,
) -> float:
    """Estimate the seconds of all `total_operations` reads from the first ones."""
    if operations >= total_operations:
        return elapsed_s
    if walk is None or len(latencies_s) < operations:
        return elapsed_s * total_operations / operations
    latencies = np.asarray(latencies_s, dtype=np.float64)
    fresh, same = walk.kinds(len(latencies))
    census = walk.census()
    fresh_s = _mean(latencies[fresh], 0.0)
    back_s = _mean(latencies[~fresh & ~same], fresh_s)
    same_s = _mean(latencies[same & ~fresh], back_s)
    return fresh_s * census.fresh + back_s * census.back + same_s * census.same


def put_off_scale(
    operations: int,
    total_operations: int,
    written_nbytes: int,
    cache_nbytes: int | None,  # The chunk cache; None if nobody knows it
    chunk_nbytes: int,
) -> float:
    """Say how many times as much the flush has to do when all is written.

    A library puts off what its chunk cache holds, and no more: once that is full, writing
    goes on while the rest of the flush stays the same.
    """
    whole = total_operations / max(1, operations)
    if not chunk_nbytes:
        return 1.0
    if cache_nbytes is None:
        return whole
    # A chunk larger than the cache is written at once, but for what describes it.
    held = max(cache_nbytes, chunk_nbytes)
    return max(1.0, min(whole, held / max(1, written_nbytes)))


def _mean(values: npt.NDArray[np.float64], otherwise: float) -> float:
    return float(values.mean()) if values.size else otherwise
