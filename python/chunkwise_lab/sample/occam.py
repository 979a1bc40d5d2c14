"""`occam`, `occam-archive`, `occam-smooth`: the ocean model's output that paper 000 writes.

Its arrays have 360x144x66, 1440x576x66 or 4320x1728x66 points (longitude,
latitude, depth) at 1, 1/4 and 1/12 of a degree, in Fortran's order.  In a file the
last dimension is the fastest, so here they are 66x144x360 and so on.  The
model's own files hold only the sea, and deflate 1 halves them: so it does with the
sea of `occam-archive`, and with `occam` and its land.  The data of the paper's test
program, which only stands in for it, is smooth (`occam-smooth`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chunkwise_lab.sample.noise import Floats, bell, element_hash, smooth
from chunkwise_lab.sample.spec import Region, Sample, Values


def _zonal_mean(region: Region) -> Floats:
    """Temperature in Celsius by depth and latitude: warm at the top and the equator."""
    levels, rows, _ = region.shape
    height = 1.0 - region.axis(0) / levels
    latitude = region.axis(1) / rows * 2.0 - 1.0
    values: Floats = 2.0 + 26.0 * height * height * (1.0 - latitude * latitude)
    return values


def _sea_floor(region: Region) -> Floats:
    """Level at which the sea ends: 0 or less on land.  The same for every seed and resolution."""
    levels, rows, columns = region.shape
    continents = smooth(
        region, (None, max(rows / 7, 1.0), max(columns / 12, 1.0)), 0, seeded=False
    )
    coasts = smooth(region, (None, max(rows / 20, 1.0), max(columns / 40, 1.0)), 1, seeded=False)
    return levels * (1.25 * (continents + 0.5 * coasts + 0.43))


def _values(region: Region) -> Values:
    levels, rows, columns = region.shape
    height = 1.0 - region.axis(0) / levels
    values = bell(element_hash(region, 2))
    values *= 0.05
    values += _zonal_mean(region)
    eddies = smooth(region, (30, max(rows / 30, 1.0), max(columns / 60, 1.0)), 3)
    values += 1.5 * height * eddies
    # Land and sea floor hold 0, which is what compresses.
    return np.where(region.axis(0) < _sea_floor(region), values, 0.0)


def _archived(region: Region) -> Values:
    """Temperature in steps of 1/1024 degree: no more digits of a model's output matter."""
    return np.round(_values(region) * 1024.0) / 1024.0


_RESOLUTIONS = {"1": (66, 144, 360), "1/4": (66, 576, 1440), "1/12": (66, 1728, 4320)}
_PAPER = "paper 000, Profiling Write Performance of HDF5 (section 4, Table 1)"
_ATTRIBUTES = {"units": "degC", "long_name": "potential temperature"}

OCCAM = Sample(
    name="occam",
    summary="ocean temperature with land and noise",
    stands_for=_PAPER,
    datasets=("/temperature",),
    dtype="<f4",
    shape=_RESOLUTIONS["1"],
    chunk=(11, 8, 360),
    filters="deflate:1",
    values=_values,
    attributes=_ATTRIBUTES,
    resolutions=_RESOLUTIONS,
)

OCCAM_ARCHIVE = replace(
    OCCAM,
    name="occam-archive",
    summary="ocean temperature whose sea alone shrinks by half",
    values=_archived,
)

OCCAM_SMOOTH = replace(
    OCCAM,
    name="occam-smooth",
    summary="ocean temperature without noise, highly compressible",
    values=_zonal_mean,
)
