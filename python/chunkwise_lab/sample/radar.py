"""`radar`: the weather radar tiles that paper 001 compresses.

A tile is a file of 12 variables, 1501x2001 short integers each, one chunk each:
reflectivity fields and hail products.  Most of a tile is empty sky, so deflate 1
shrinks it 14 to 23 times (Table 5).  Another seed is another tile; 1, 2 and 4 have about
as much sky as the paper's tile1, tile2 and tile4.
"""

from __future__ import annotations

import numpy as np

from chunkwise_lab.sample.noise import bell, element_hash, smooth
from chunkwise_lab.sample.spec import Region, Sample, Values

_NOTHING_SEEN = -9990
# How strong a storm must be to be seen, by seed: the stronger, the emptier is the tile.
_LEAST = {1: 0.72, 2: 0.63, 4: 0.76}


def _values(region: Region) -> Values:
    storms = smooth(region, (150, 150), 0)
    storms += 0.5 * smooth(region, (50, 50), 1)
    storms += 0.25 * smooth(region, (15, 15), 2)
    storms += 0.02 * bell(element_hash(region, 3))
    storms -= _LEAST.get(region.seed, 0.68)
    # In tenths, with a resolution of one half, as radars have it.
    return np.where(storms > 0.0, np.rint(120.0 * storms) * 5.0, _NOTHING_SEEN)


RADAR = Sample(
    name="radar",
    summary="a radar tile of 12 variables, mostly empty sky",
    stands_for="paper 001, NetCDF-4 Performance Report (section 4.2, Table 5)",
    datasets=(*(f"/reflectivity_{number}" for number in range(1, 10)), "/SHI", "/POSH", "/MEHS"),
    dtype="<i2",
    shape=(1501, 2001),
    chunk=(1501, 2001),
    filters="deflate:1",
    values=_values,
    fill=_NOTHING_SEEN,
)
