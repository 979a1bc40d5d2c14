"""`cris`: the satellite array that paper 004 reads in 345 s or 0.37 s.

Imaginary part of long-wave radiances of the Cross-track Infrared Sounder: 60
scans of 30 fields of regard, 9 fields of view, 717 channels.  After calibration
it is little more than noise about zero, so deflate 6 saves only 7%
(ratio 1.076, Figures 4 and 5).
"""

from __future__ import annotations

import numpy as np

from chunkwise_lab.sample.noise import bell, element_hash, smooth, wave
from chunkwise_lab.sample.spec import Region, Sample, Values


def _values(region: Region) -> Values:
    channel = region.axis(3).astype(np.float64)
    values = bell(element_hash(region, 0))
    values *= 0.1 * (1.5 + wave(channel, 717.0))  # noisier in some channels
    values += 0.1 * smooth(region, (20, 5, None, 40), 1)  # what calibration left
    return values


CRIS = Sample(
    name="cris",
    summary="satellite radiances, almost incompressible",
    stands_for="paper 004, Improving I/O Performance When Working with HDF5 Compressed Datasets",
    datasets=("/All_Data/CrIS-SDR_All/ES_ImaginaryLW",),
    dtype=">f4",
    shape=(60, 30, 9, 717),
    chunk=(4, 30, 9, 717),
    filters="deflate:6",
    values=_values,
    fill=-999.3,
    unlimited=True,
)
