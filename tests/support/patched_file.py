"""A file with a dataset of each type and layout, and ways of reading them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p

from tests.support.reading import LEFT_TO_LIBHDF5

SHAPE, CHUNK = (12, 9, 10), (5, 4, 3)
COLOUR = h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 200}, basetype="u1")
PAIR = np.dtype([("x", "<f8"), ("n", ">i4"), ("name", "S6"), ("pair", "<f4", (2,))])


def cells(dtype: Any) -> Any:
    """Elements of all bit patterns; numbers that differ where a name is all there is."""
    rng = np.random.default_rng(1)
    dtype = np.dtype(dtype)
    size = int(np.prod(SHAPE))
    if dtype.kind == "b" or dtype.metadata:
        return rng.integers(0, 2, SHAPE).astype(dtype)
    if dtype.kind == "S":
        return np.array([b"ab%d" % n for n in range(size)], dtype).reshape(SHAPE)
    return np.frombuffer(rng.bytes(size * dtype.itemsize), dtype, size).reshape(SHAPE)


TYPES: dict[str, Any] = {
    "f4": "<f4",
    "f8": "<f8",
    "f4be": ">f4",
    "f8be": ">f8",
    "f2": "<f2",
    "i1": "i1",
    "i2be": ">i2",
    "i4": "<i4",
    "i8": "<i8",
    "u4": "<u4",
    "u8be": ">u8",
    "u8": "<u8",
    "bool": "?",
    "enum": COLOUR,
    "c8": "<c8",
    "c16be": ">c16",
    "S6": "S6",
    "utf8": h5py.string_dtype("utf-8", 6),
    "pair": PAIR,
    "opaque": "V5",
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("patched")
    path = folder / "all.h5"
    with h5py.File(path, "w", track_order=True) as f:
        for name, dtype in TYPES.items():
            f.create_dataset(name, SHAPE, dtype, cells(dtype), chunks=CHUNK, compression=1)
        numbers = np.arange(np.prod(SHAPE), dtype="i4").reshape(SHAPE)
        f["contiguous"] = numbers
        f.create_dataset("zfp", data=numbers, chunks=CHUNK, **LEFT_TO_LIBHDF5)
        filled = f.create_dataset("filled", SHAPE, "f4", chunks=CHUNK, fillvalue=7.5)
        filled[3:5] = 1
        never = h5p.create(h5p.DATASET_CREATE)  # h5py has `fill_time=` from 3.12 on
        never.set_fill_time(h5d.FILL_TIME_NEVER)
        unfilled = f.create_dataset("unfilled", SHAPE, "f4", chunks=CHUNK, dcpl=never)
        unfilled[3:5] = 1
        f.create_dataset("array", (12,), np.dtype(("<i2", (3, 2))), chunks=(5,))[...] = np.arange(
            72
        ).reshape(12, 3, 2)
        f["scalar"], f["null"] = 3.5, h5py.Empty("f4")
        f["scalar_pair"] = np.zeros((), PAIR)
        f.create_dataset("none", (0, 4), "f8", chunks=(2, 2), maxshape=(None, 4))
        f["strings"] = ["a", "bc", "ü"] * 4
        ragged = f.create_dataset("ragged", (12,), h5py.vlen_dtype("i4"))
        ragged[2] = [1, 2, 3]
        f["references"] = np.array([f["f4"].ref, f["f8"].ref] * 6, h5py.ref_dtype)
        f["region"] = f["contiguous"].regionref[2:5, 1, ::3]
        compact = h5p.create(h5p.DATASET_CREATE)
        compact.set_layout(h5d.COMPACT)
        f.create_dataset("compact", data=numbers[0], dcpl=compact)
        f.create_dataset("external", SHAPE, "i4", external=[(folder / "raw", 0, 2**20)])[...] = (
            numbers
        )
        layout = h5py.VirtualLayout(SHAPE, "i4")
        layout[:6] = h5py.VirtualSource(f["contiguous"])[:6]
        f.create_virtual_dataset("virtual", layout, fillvalue=-3)
        f.create_dataset("by_soft_link", data=numbers.astype("f4"))
        f["soft"] = h5py.SoftLink("/by_soft_link")
    with h5py.File(folder / "outer.h5", "w") as f:
        f["there"] = h5py.ExternalLink("all.h5", "/i4")
    return path


def item(name: str, index: Any, wanted: Any, f: h5py.File) -> Any:
    return f[name][index] if wanted is None else f[name].astype(wanted)[index]


def of(name: str, read: Callable[..., Any], *rest: Any) -> Any:
    *arguments, f = rest
    return read(f[name], *arguments)


def into(dataset: Any, shape: Any, dtype: Any, source: Any = None, target: Any = None) -> Any:
    dest = np.full(shape, 1, dtype)
    dataset.read_direct(dest, source, target)
    return dest
