"""`cube`: a year of daily temperature maps, as a climate archive stores them.

No paper has it: it stands for the files that most readers of gridded data own,
with one map a chunk, so that a map is quick to read and a time series slow.
Noise, and rounding to 0.01 K, give shuffle + deflate 4 a ratio of 2.2.
"""

from __future__ import annotations

import numpy as np

from chunkwise_lab.sample.noise import bell, element_hash, smooth, wave
from chunkwise_lab.sample.spec import Region, Sample, Values


def _values(region: Region) -> Values:
    day = region.axis(0).astype(np.float64)
    latitude = region.axis(1) / region.shape[1] * 2.0 - 1.0
    values = bell(element_hash(region, 0))
    values *= 0.5
    values += 288.0 - 45.0 * latitude * latitude + 12.0 * latitude * wave(day, 365.0)
    values += 6.0 * smooth(region, (6, 60, 60), 1)  # weather
    values += smooth(region, (2, 12, 12), 2)
    values *= 100.0
    return np.rint(values, out=values) / 100.0


CUBE = Sample(
    name="cube",
    summary="a year of daily temperature maps",
    stands_for="no paper: gridded climate data, as most archives store it",
    datasets=("/t2m",),
    dtype="<f4",
    shape=(365, 600, 600),
    chunk=(1, 600, 600),
    filters="shuffle+deflate:4",
    values=_values,
    attributes={"units": "K", "long_name": "2 metre temperature"},
)
