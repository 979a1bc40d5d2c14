"""Which samples are there, and how is each generated?"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from chunkwise.errors import UsageError
from chunkwise.words import offered
from chunkwise_lab.sample.noise import Floats, bell, element_hash, smooth, uniform, wave
from chunkwise_lab.sample.spec import Region, Sample, Values


def _counting(region: Region) -> Values:
    """`counting`: the integers 0, 1, 2, ..., so that a wrong read shows at once."""
    # Beyond 2**31 elements the count starts again at 0.
    return region.linear_index() & np.uint64(2**31 - 1)


COUNTING = Sample(
    name="counting",
    summary="the integers 0, 1, 2, ...",
    stands_for="paper 003, HDF5 Performance Testing with Complex Hyperslabs",
    datasets=("/counting",),
    dtype="<i4",
    shape=(10000, 3000),
    chunk=(50, 50),
    filters="deflate:5",
    values=_counting,
    any_rank=True,
)


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


def _counts(region: Region) -> Values:
    """`counts`: small counts, Poisson with a rate that depends on row and column."""
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
        left, draw = left[more], draw[more] - chance[more]
        rate, chance = rate[more], chance[more]
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
    values=_counts,
    attributes={"units": "1"},
)


def _cris(region: Region) -> Values:
    """`cris`: after calibration little more than noise about zero."""
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
    values=_cris,
    fill=-999.3,
    unlimited=True,
)


def _cube(region: Region) -> Values:
    """`cube`: a year of daily temperature maps, rounded to 0.01 K."""
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
    values=_cube,
    attributes={"units": "K", "long_name": "2 metre temperature"},
)


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


def _occam(region: Region) -> Values:
    """`occam`: temperature of an ocean model, with land."""
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
    return np.round(_occam(region) * 1024.0) / 1024.0


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
    values=_occam,
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


_NOTHING_SEEN = -9990
# How strong a storm must be to be seen, by seed: the stronger, the emptier is the tile.
_LEAST = {1: 0.72, 2: 0.63, 4: 0.76}


def _radar(region: Region) -> Values:
    """`radar`: fields of storms in a mostly empty sky."""
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
    values=_radar,
    fill=_NOTHING_SEEN,
)


SAMPLES: Final[dict[str, Sample]] = {
    sample.name: sample
    for sample in (CRIS, OCCAM, OCCAM_ARCHIVE, OCCAM_SMOOTH, RADAR, CUBE, COUNTING, COUNTS)
}


def find(name: str) -> Sample:
    """Return the sample of that name."""
    if name not in SAMPLES:
        raise UsageError(f"no sample is called {name!r}{offered(name, SAMPLES)}")
    return SAMPLES[name]
