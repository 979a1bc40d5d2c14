"""Virtual datasets made at random, with sources of every kind."""

import math
from pathlib import Path
from typing import Any, TypeAlias

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

Space: TypeAlias = Any
TYPES = ["<i4", "<i8", ">i2", "<f4", "<f8"]


def select(space: Space, axes: list[tuple[int, int, int, int]], operation: int = 0) -> Space:
    """Select a hyperslab: start, stride, count and block of each dimension."""
    start, stride, count, block = (tuple(values) for values in zip(*axes, strict=True))
    space.select_hyperslab(start, count, stride, block, op=operation or h5s.SELECT_SET)
    return space


def random_axis(rng: np.random.Generator, length: int) -> tuple[int, int, int, int]:
    """A dimension's selection of so many elements, with some room before and between."""
    divisors = [n for n in range(1, length + 1) if length % n == 0]
    block = int(rng.choice(divisors))
    return int(rng.integers(0, 3)), block + int(rng.integers(0, 3)), length // block, block


def end_of(axis: tuple[int, int, int, int]) -> int:
    start, stride, count, block = axis
    return start + (count - 1) * stride + block


def source_axes(rng: np.random.Generator, lengths: list[int]) -> list[tuple[int, int, int, int]]:
    """A selection of as many elements: of the same shape but for dimensions of 1, or another."""
    kind = rng.integers(0, 8)
    if kind == 0:
        lengths = [math.prod(lengths)]
    elif kind == 1:
        lengths = [math.prod(lengths[:-1]), lengths[-1]]
    else:
        lengths = [n for n in lengths if n > 1 or rng.integers(0, 2)]
        for _ in range(int(rng.integers(0, 2))):
            lengths.insert(int(rng.integers(0, len(lengths) + 1)), 1)
    return [random_axis(rng, n) for n in lengths or [1]]


def write_source(rng: np.random.Generator, group: h5py.Group, name: str, shape: Any) -> None:
    dtype = np.dtype("<i4" if rng.integers(0, 2) else str(rng.choice(TYPES)))
    values = rng.integers(-100, 100, shape).astype(dtype)
    options: dict[str, Any] = {}
    if rng.integers(0, 3):
        options["chunks"] = tuple(int(rng.integers(1, n + 1)) for n in shape)
        options["compression"] = "gzip" if rng.integers(0, 2) else None
    if rng.integers(0, 4) == 0 and "chunks" in options:
        made = group.create_dataset(name, shape, dtype, fillvalue=7, **options)
        made[: max(shape[0] // 2, 1)] = values[: max(shape[0] // 2, 1)]
    else:
        group.create_dataset(name, data=values, **options)


def make_random(folder: Path, seed: int) -> Path:
    """A file with a virtual dataset ``v``, and its sources."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_fill_value(np.array(int(rng.integers(-5, 5)), "i4"))
    mappings, extent = [], [1] * rank
    for number in range(int(rng.integers(1, 6))):
        lengths = [int(rng.integers(1, 5)) for _ in range(rank)]
        shift = [int(rng.integers(0, 6)) for _ in range(rank)]
        here = [
            (start + by, stride, count, block)
            for by, (start, stride, count, block) in zip(
                shift, (random_axis(rng, n) for n in lengths), strict=True
            )
        ]
        extent = [max(size, end_of(axis)) for size, axis in zip(extent, here, strict=True)]
        mappings.append((number, here, source_axes(rng, lengths)))
    path = folder / "virtual.h5"
    with h5py.File(path, "w") as file:
        for number, here, there in mappings:
            shape = tuple(end_of(axis) + int(rng.integers(0, 2)) for axis in there)
            name = f"x{number}"
            where = int(rng.integers(0, 8))
            source = "." if where == 0 else f"source-{number}.h5"
            if where == 0:
                write_source(rng, file, name, shape)
            elif where > 1:
                # Of the others there is none; what an earlier example left must not be found.
                with h5py.File(folder / source, "w") as other:
                    if where > 2:
                        write_source(rng, other, name, shape)
            else:
                (folder / source).unlink(missing_ok=True)
            dcpl.set_virtual(
                select(h5s.create_simple(tuple(extent)), here),
                source.encode(),
                name.encode(),
                select(h5s.create_simple(shape), there),
            )
        space = h5s.create_simple(tuple(extent))
        h5d.create(file.id, b"v", h5t.NATIVE_INT32, space, dcpl)
    return path
