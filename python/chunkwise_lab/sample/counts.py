"""`counts`: a table of small counts, most of them 0.

No paper has it: it stands for single-cell tables (cells by genes) and photon
counts of detectors.  Each count is Poisson with a rate that depends on its row
(how much was measured of a cell) and column (a few genes are abundant).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chunkwise_lab.sample.noise import Floats, element_hash, uniform
from chunkwise_lab.sample.spec import Region, Sample, Values

_SQUARINGS = 20
_NEGLIGIBLE = 2.0**-40


def _along(region: Region, axis: int, stream: int) -> Floats:
    """Uniform numbers that depend on one axis of two only."""
    only = [0, 0], [1, 1]
    only[0][axis], only[1][axis] = region.start[axis], region.count[axis]
    box = replace(region, start=tuple(only[0]), count=tuple(only[1]))
    return uniform(element_hash(box, stream))


def _rate(region: Region) -> Floats:
    """Expected count per element: from 0 to 6.4."""
    seen = 0.4 + 1.6 * _along(region, 0, 0)
    rank = _along(region, 1, 1)
    rank *= rank
    rate: Floats = seen * (0.2 * rank * rank / (1.0625 - rank))
    return rate


def _values(region: Region) -> Values:
    rate: Floats = np.broadcast_to(_rate(region), region.count).ravel()
    # exp(-rate) as (1 - rate/n)**n: multiplication rounds alike on every machine.
    chance: Floats = 1.0 - rate / 2.0**_SQUARINGS
    for _ in range(_SQUARINGS):
        chance *= chance
    draw: Floats = uniform(element_hash(region, 2)).ravel()
    counts = np.zeros(draw.size, dtype=np.uint32)
    # Search each draw in the distribution's sum; few are left after a few counts.
    left = np.flatnonzero(draw >= chance)
    draw, rate, chance = draw[left] - chance[left], rate[left], chance[left]
    count = 0
    while left.size:
        count += 1
        counts[left] = count
        chance *= rate / count
        more = (draw >= chance) & (chance > _NEGLIGIBLE)
        left, draw, rate, chance = (
            left[more],
            draw[more] - chance[more],
            rate[more],
            chance[more],
        )
    return counts.reshape(region.count)


COUNTS = Sample(
    name="counts",
    summary="a table of small counts, most of them 0",
    stands_for="no paper: single-cell tables and photon counts of detectors",
    datasets=("/counts",),
    dtype="<u4",
    shape=(10000, 2000),
    chunk=(250, 1000),
    filters="shuffle+deflate:4",
    values=_values,
    attributes={"units": "1"},
)
