"""Where does a sample's randomness come from?

From a hash of each element's index (SplitMix64's finaliser; Steele, Lea and Flood, "Fast
splittable pseudorandom number generators", 2014), so that any box can be made alone.  Only exact
integer arithmetic and the five operations that IEEE 754 rounds correctly are used: no sin or exp,
whose last bits differ between machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from chunkwise_lab.sample.spec import Region

_GOLDEN: Final = 0x9E3779B97F4A7C15
_FIRST: Final = 0xBF58476D1CE4E5B9
_SECOND: Final = 0x94D049BB133111EB
_MASK: Final = 2**64 - 1

Hashes = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]


def _mix(state: Hashes) -> Hashes:
    """Scramble 64-bit numbers, in place."""
    state ^= state >> np.uint64(30)
    state *= np.uint64(_FIRST)
    state ^= state >> np.uint64(27)
    state *= np.uint64(_SECOND)
    state ^= state >> np.uint64(31)
    return state


def _key(region: Region, stream: int, *, seeded: bool) -> np.uint64:
    """Combine what distinguishes one field of random numbers from another."""
    state = np.zeros(1, dtype=np.uint64)
    for word in (region.seed if seeded else 0, region.variable, stream):
        state += np.uint64((word + 1) * _GOLDEN & _MASK)
        _mix(state)
    return np.uint64(state[0])


def element_hash(region: Region, stream: int) -> Hashes:
    """Return 64 random bits for every element of the box."""
    state = region.linear_index()
    state *= np.uint64(_GOLDEN)
    state += _key(region, stream, seeded=True)
    return _mix(state)


def uniform(hashes: Hashes) -> Floats:
    """Turn random bits into numbers from 0 (included) to 1 (excluded)."""
    values = (hashes >> np.uint64(11)).astype(np.float64)
    values *= 2.0**-53
    return values


def bell(hashes: Hashes) -> Floats:
    """Turn random bits into nearly normal numbers of mean 0 and deviation 1."""
    low = np.uint64(0xFFFF)
    total = hashes & low
    total += (hashes >> np.uint64(16)) & low
    total += (hashes >> np.uint64(32)) & low
    total += hashes >> np.uint64(48)
    values = total.astype(np.float64)
    values -= 2 * 65535.0
    values /= 37837.22  # 65536 / sqrt(3)
    return values


def smooth(
    region: Region, spacing: Sequence[float | None], stream: int, *, seeded: bool = True
) -> Floats:
    """Return a field without steps: random values on a lattice, interpolated between."""
    rank = len(spacing)
    state = np.full((1,) * rank, _key(region, stream, seeded=seeded), dtype=np.uint64)
    below: list[npt.NDArray[np.int64] | None] = []
    weights: list[Floats | None] = []
    for axis, step in enumerate(spacing):
        if step is None:
            below.append(None)
            weights.append(None)
            continue
        position = region.axis(axis) / np.float64(step)
        cell = np.floor(position)
        fraction = position - cell
        lattice = np.arange(cell.flat[0], cell.flat[-1] + 2).astype(np.uint64)
        shape = [-1 if other == axis else 1 for other in range(rank)]
        state = _mix(state + (lattice * np.uint64(_GOLDEN)).reshape(shape))
        below.append((cell - cell.flat[0]).astype(np.int64).ravel())
        weights.append(fraction * fraction * (3.0 - 2.0 * fraction))
    values = uniform(state) * 2.0 - 1.0
    for axis in range(rank):
        lower, weight = below[axis], weights[axis]
        if lower is None or weight is None:
            continue
        start = np.take(values, lower, axis=axis)
        values = np.take(values, lower + 1, axis=axis)
        values -= start
        values *= weight
        values += start
    return values


def wave(position: Floats, period: float) -> Floats:
    """Return a smooth oscillation between -1 and 1, made of parabolas."""
    phase = position / period
    phase = (phase - np.floor(phase)) * 2.0 - 1.0
    values: Floats = 4.0 * phase * (1.0 - np.abs(phase))
    return values
