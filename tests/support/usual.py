"""Files of eight usual kinds, stored as people store them, with what people read of them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from chunkwise.patterns import Access

Shape = tuple[int, ...]
FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"compression": "gzip", "compression_opts": 1},
    {"compression": "gzip", "compression_opts": 4, "shuffle": True},
    {"compression": "lzf"},
)


@dataclass(frozen=True)
class Usual:
    """What is read of a dataset."""

    kind: str
    path: str
    reads: tuple[Access, ...]


def _values(rng: np.random.Generator, shape: Shape, dtype: str) -> Any:
    """Data like measured data: neighbours are alike."""
    count = math.prod(shape)
    walk = np.cumsum(rng.integers(-20, 21, count))
    noise = rng.normal(0, 3, count) if rng.integers(2) else 0
    return (walk + noise).astype(dtype).reshape(shape)


def _one_of(rng: np.random.Generator, *found: Any) -> Any:
    return found[int(rng.integers(len(found)))]


def _chunks(rng: np.random.Generator, *found: Any) -> dict[str, Any]:
    """Chunks and filters; data without chunks has no filters."""
    chunks = _one_of(rng, *found)
    return {} if chunks is None else {"chunks": chunks, **_one_of(rng, *FILTERS)}


def _scale(file: h5py.File, dataset: h5py.Dataset, axis: int, name: str, units: str) -> None:
    file[name] = np.arange(dataset.shape[axis], dtype="f8")
    file[name].attrs["units"] = units
    file[name].make_scale(name)
    dataset.dims[axis].attach_scale(file[name])


def _maps(rng: np.random.Generator, file: h5py.File) -> Usual:
    t, y, x = int(rng.integers(30, 120)), int(rng.integers(60, 181)), int(rng.integers(90, 360))
    several = min(t, int(rng.integers(2, 30)))
    how = _chunks(rng, (1, y, x), (1, y, x), (several, y, x), (1, -(-y // 2), -(-x // 2)), None)
    made = file.create_dataset("t", data=_values(rng, (t, y, x), "f4"), **how)
    if rng.integers(2):
        _scale(file, made, 0, "time", "days since 2000-01-01")
        _scale(file, made, 1, "lat", "degrees_north")
        _scale(file, made, 2, "lon", "degrees_east")
    return Usual("maps", "/t", (Access("maps", (1, y, x)),))


def _series(rng: np.random.Generator, file: h5py.File) -> Usual:
    t, n = int(rng.integers(2000, 20_000)), int(rng.integers(20, 120))
    side = min(n, int(rng.integers(1, 12)))
    if rng.integers(2):
        how = _chunks(rng, (1, t), (side, t), (side, -(-t // 2)))
        file.create_dataset("s", data=_values(rng, (n, t), "f4"), **how)
        return Usual("series", "/s", (Access("series", (1, t)),))
    how = _chunks(rng, (t, 1), (t, side), (-(-t // 2), side))
    file.create_dataset("s", data=_values(rng, (t, n), "f4"), **how)
    return Usual("series", "/s", (Access("series", (t, 1)),))


def _frames(rng: np.random.Generator, file: h5py.File) -> Usual:
    n, y, x = int(rng.integers(8, 30)), int(rng.integers(128, 515)), int(rng.integers(128, 515))
    how = _chunks(rng, (1, y, x), (1, y, x), (min(n, 4), y, x), (1, -(-y // 4), x))
    group = file.create_group("entry/data")
    group.attrs["NX_class"] = _one_of(rng, "NXdata", "NXdetector", "")
    data = rng.poisson(2, (n, y, x)).astype("u2")
    group.create_dataset("data", data=data, **how)
    order = Access("frames", (1, y, x))
    return Usual("frames", "/entry/data/data", (order, Access("any", (1, y, x), seed=1, limit=n)))


def _images(rng: np.random.Generator, file: h5py.File) -> Usual:
    n, side = int(rng.integers(40, 200)), int(rng.integers(32, 97))
    shape = _one_of(rng, (n, 3, side, side), (n, side, side, 3))
    batch = min(n, int(rng.integers(2, 65)))
    how = _chunks(rng, (1, *shape[1:]), (batch, *shape[1:]), (batch, *shape[1:]), None)
    made = file.create_dataset("images", data=rng.integers(0, 60, shape, "u1"), **how)
    if rng.integers(2):
        made.attrs["CLASS"] = np.bytes_("IMAGE")
    one = Access("any", (1, *shape[1:]), seed=2, limit=n)
    return Usual("images", "/images", (one, Access("batches", (batch, *shape[1:]))))


def _table(rng: np.random.Generator, file: h5py.File) -> Usual:
    kind = np.dtype([("id", "i8"), ("a", "f4"), ("b", "f4")])
    n = int(rng.integers(100_000, 400_000))
    data = np.zeros(n, kind)
    data["id"], data["a"] = np.arange(n), rng.normal(size=n)
    how = _chunks(rng, (100,), (1000,), (10_000,), (65_536,), None)
    file.create_dataset("rows", data=data, maxshape=(None,) if how else None, **how)
    return Usual("table", "/rows", (Access("slices", (5000,)), Access("all", (n,))))


def _csr(rng: np.random.Generator, file: h5py.File) -> Usual:
    cells = int(rng.integers(500, 3000))
    lengths = rng.integers(100, 900, cells)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    total = int(indptr[-1])
    group = file.create_group("X")
    how = _chunks(rng, (1000,), (min(total, 8192),), (min(total, 100_000),), None)
    group.create_dataset("data", data=rng.poisson(3, total).astype("f4"), **how)
    group.create_dataset("indices", data=rng.integers(0, 20_000, total, "i4"), **how)
    group.create_dataset("indptr", data=indptr)
    rows = sorted(int(row) for row in rng.choice(cells, 200, replace=False))
    rng.shuffle(rows)
    slabs = tuple(((int(indptr[r]),), (1,), (1,), (int(lengths[r]),)) for r in rows)
    drawn = Access("rows", (int(lengths[rows[0]]),), slabs=slabs)
    return Usual("csr", "/X/data", (drawn, Access("all", (total,))))


def _swath(rng: np.random.Generator, file: h5py.File) -> Usual:
    lines, pixels, bands = int(rng.integers(300, 900)), int(rng.integers(60, 200)), 9
    several = int(rng.integers(4, 40))
    how = _chunks(rng, (1, pixels, bands), (several, pixels, bands), (several, pixels, 1), None)
    file.create_dataset("radiance", data=_values(rng, (lines, pixels, bands), "i2"), **how)
    return Usual("swath", "/radiance", (Access("lines", (several, pixels, bands)),))


def _model(rng: np.random.Generator, file: h5py.File) -> Usual:
    t, z, y, x = int(rng.integers(8, 40)), 12, int(rng.integers(30, 80)), int(rng.integers(30, 90))
    shape = (t, z, y, x)
    how = _chunks(rng, (1, z, y, x), (1, 1, y, x), (1, z, -(-y // 2), -(-x // 2)), (t, 2, 8, 8))
    made = file.create_dataset(
        "u", data=_values(rng, shape, "f4"), maxshape=(None, z, y, x), **how
    )
    if rng.integers(2):
        for axis, (name, units) in enumerate(
            (("time", "hours since 2000-01-01"), ("lev", "hPa"), ("y", "m"), ("x", "m"))
        ):
            _scale(file, made, axis, name, units)
    reads: tuple[Access, ...] = (Access("steps", (1, z, y, x)), Access("levels", (1, 1, y, x)))
    if how["chunks"][0] > 1:
        reads = (Access("columns", (t, z, 1, 1)),)
    return Usual("model", "/u", reads)


KINDS: tuple[Callable[[np.random.Generator, h5py.File], Usual], ...] = (
    _maps, _series, _frames, _images, _table, _csr, _swath, _model,
)  # fmt: skip


def make(path: Path, number: int) -> Usual:
    """Make the file of this number, of each kind in turn."""
    with h5py.File(path, "w") as file:
        return KINDS[number % len(KINDS)](np.random.default_rng(number), file)
