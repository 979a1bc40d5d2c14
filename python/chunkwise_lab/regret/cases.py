"""On which data, for which patterns and readers is advice tried?"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np

from chunkwise.grammar import format_shape

Shape = tuple[int, ...]
DEFLATE: Final[dict[str, Any]] = {"compression": "gzip", "compression_opts": 4, "shuffle": True}
PLAIN: Final[dict[str, Any]] = {}


@dataclass(frozen=True)
class Case:
    """One dataset, and what is read of it."""

    name: str  # In tables
    shape: Shape  # Of the dataset; `data` is a name of `DATA`
    dtype: str
    data: str
    chunks: Shape | None  # How it is stored, as h5py takes it
    filters: dict[str, Any]
    access: tuple[str, ...]  # The patterns
    reader: str | None = None  # For whom: a name of ``--for``; None for the libhdf5 here

    def values(self) -> Any:
        """Generate its data."""
        return DATA[self.data](self.shape).astype(self.dtype)

    def write(self, path: Path) -> None:
        """Write its file."""
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=self.values(), chunks=self.chunks, **self.filters)


def _smooth(shape: Shape) -> Any:
    """A field that changes slowly along every dimension, rounded as measurements are."""
    field = np.zeros(shape)
    for axis, extent in enumerate(shape):
        along = np.sin(np.linspace(0, 9 + axis, extent))
        field = field + along.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return (20 * field + np.random.default_rng(0).normal(0, 0.3, shape)).round(1)


def _noise(shape: Shape) -> Any:
    return np.random.default_rng(1).normal(size=shape)


def _counts(shape: Shape) -> Any:
    """What a detector counts: small numbers, most of them 0."""
    return np.random.default_rng(2).poisson(0.4, shape)


def _walks(shape: Shape) -> Any:
    """Series that go on where they were."""
    return np.random.default_rng(3).integers(-3, 4, shape).cumsum(axis=0)


DATA: Final = {"smooth": _smooth, "noise": _noise, "counts": _counts, "walks": _walks}

_MAPS: Final = (400, 120, 180)
_MANY_MAPS: Final = (240, 300, 280)
_SECTIONS: Final = (2_000, 90, 80)
_CUBE: Final = (64, 512, 512)
_IMAGES: Final = (120, 300, 260)
_TABLE: Final = (40_000, 200)
_BLOCK: Final = (40, 60, 60, 60)
_LINE: Final = (9_000_000,)


def cases() -> Iterator[Case]:
    """Give all cases: 20 mixes of data and patterns, for libhdf5 and for chunkwise."""
    for reader in (None, "chunkwise"):
        who = reader or "libhdf5"
        for name, shape, dtype, data, chunks, filters, access in _mixes():
            yield Case(f"{name}, {who}", shape, dtype, data, chunks, filters, access, reader)


def drawn(seed: int, number: int = 40) -> Iterator[Case]:
    """Draw cases: 24 to 90 MB in two to four dimensions, and one to three patterns."""
    rng = random.Random(seed)
    found = 0
    while found < number:
        dtype = rng.choice(("u1", "i2", "f4", "f4", "f8"))
        itemsize = np.dtype(dtype).itemsize
        logs = [rng.uniform(1, 4) for _ in range(rng.choice((2, 3, 3, 3, 4)))]
        scale = math.log(rng.uniform(24e6, 90e6) / itemsize) / sum(logs)
        shape = tuple(max(8, round(math.exp(one * scale))) for one in logs)
        blocks = [
            tuple(n if (axis == one) is line else 1 for axis, n in enumerate(shape))
            for one in range(len(shape))
            for line in (True, False)
        ]
        blocks.append(tuple(max(1, n // rng.choice((2, 4, 8, 16, 32))) for n in shape))
        blocks.append(tuple(rng.choice((1, max(1, n // 8), n)) for n in shape))
        able = [b for b in dict.fromkeys(blocks) if itemsize < math.prod(b) * itemsize <= 8e6]
        wanted = rng.choice((1, 2, 2, 2, 3))
        if max(shape) > 200_000 or len(able) < wanted:
            continue
        texts = tuple(map(format_shape, rng.sample(able, wanted)))
        name = f"{format_shape(shape)} {dtype}: {', '.join(texts)}"
        data = "counts" if dtype == "u1" else "smooth"
        yield Case(name, shape, dtype, data, None, DEFLATE, texts)
        found += 1


def _mixes() -> Iterator[
    tuple[str, Shape, str, str, Shape | None, dict[str, Any], tuple[str, ...]]
]:
    maps, series = "map=1x120x180", "series=400x1x1"
    yield "maps", _MAPS, "f4", "smooth", (400, 4, 4), DEFLATE, (maps,)
    yield "series", _MAPS, "f4", "smooth", (1, 120, 180), DEFLATE, (series,)
    yield "maps and series", _MANY_MAPS, "f4", "smooth", (1, 300, 280), DEFLATE, (
        "1x300x280", "240x1x1")  # fmt: skip
    yield "maps thrice", _MAPS, "f4", "walks", (1, 120, 180), DEFLATE, (f"{maps} weight 3", series)
    yield "sections and maps", _SECTIONS, "f4", "smooth", (1, 90, 80), DEFLATE, (
        "2000x1x80", "1x90x80")  # fmt: skip
    yield "random boxes", _MAPS, "i2", "walks", (50, 30, 30), DEFLATE, ("random:500:10x20x20",)
    yield "points", _MAPS, "f4", "smooth", (1, 120, 180), DEFLATE, ("random:2000",)
    yield "noise, both", _MAPS, "f4", "noise", (1, 120, 180), DEFLATE, (maps, series)
    yield "plain, both", _MAPS, "f4", "noise", None, PLAIN, (maps, series)
    yield "frames", _IMAGES, "u2", "counts", (1, 300, 260), DEFLATE, ("frame=1x300x260",)
    yield "regions", _CUBE, "f4", "smooth", (1, 512, 512), DEFLATE, ("64x16x16",)
    yield "frames and pixels", _IMAGES, "u2", "counts", (1, 300, 260), DEFLATE, (
        "frame=1x300x260", "pixel=120x1x1")  # fmt: skip
    yield "rows", _TABLE, "f4", "smooth", (40_000, 1), DEFLATE, ("random:2000:1x200",)
    yield "columns", _TABLE, "f4", "smooth", (100, 200), DEFLATE, ("column=40000x1",)
    yield "rows and columns", _TABLE, "f4", "smooth", (1, 200), DEFLATE, (
        "random:2000:1x200", "column=40000x1")  # fmt: skip
    yield "levels", _BLOCK, "f4", "smooth", (40, 60, 10, 10), DEFLATE, ("level=1x1x60x60",)
    yield "profiles", _BLOCK, "f4", "smooth", (1, 1, 60, 60), DEFLATE, ("profile=1x60x1x1",)
    yield "levels and profiles", _BLOCK, "f4", "smooth", (1, 60, 60, 60), DEFLATE, (
        "random:400:1x1x60x60", "random:2000:1x60x1x1")  # fmt: skip
    yield "pieces", _LINE, "i4", "walks", (3_000_000,), DEFLATE, ("random:1000:1000",)
    yield "everything", _MAPS, "f4", "smooth", (1, 10, 10), DEFLATE, ("all",)
