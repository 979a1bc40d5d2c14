"""Files whose layouts may need mending: random shapes, chunks, filters and data."""

import math
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from hypothesis import strategies as st

MOST_NBYTES = 12 << 20

FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"compression": "gzip", "compression_opts": 1},
    {"compression": "gzip", "compression_opts": 4, "shuffle": True},
    {"compression": "lzf"},
    {"shuffle": True, "compression": "lzf", "fletcher32": True},
    {"fletcher32": True},
)


def values(kind: str, shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    """Make data that compresses well, badly, or only with shuffle."""
    rng = np.random.default_rng(seed)
    count = math.prod(shape)
    if kind == "noise":
        raw = rng.bytes(count * np.dtype(dtype).itemsize)
        made = np.frombuffer(raw, dtype)
        made = np.nan_to_num(made) if made.dtype.kind == "f" else made
    elif kind == "walk":
        made = np.cumsum(rng.integers(-50, 51, count)).astype(dtype)
    elif kind == "few":
        made = rng.integers(0, 4, count).astype(dtype)
    else:
        made = np.zeros(count, dtype)
    return made.reshape(shape)


@st.composite
def datasets(draw: st.DrawFn) -> dict[str, Any]:
    rank = draw(st.integers(1, 4))
    longest = {1: 3_000_000, 2: 3000, 3: 250, 4: 60}[rank]
    shape = tuple(draw(st.integers(1, longest)) for _ in range(rank))
    dtype = draw(st.sampled_from(["<f4", "<f8", "<i2", "u1", ">i4"]))
    itemsize = np.dtype(dtype).itemsize
    while math.prod(shape) * itemsize > MOST_NBYTES:
        shape = (max(1, shape[0] // 2), *shape[1:]) if shape[0] > 1 else shape[::-1]
    made: dict[str, Any] = {"shape": shape, "dtype": dtype, **draw(st.sampled_from(FILTERS))}
    if len(made) > 2 or draw(st.integers(0, 3)):
        chunk = [
            draw(st.sampled_from(sorted({1, min(n, 7), max(1, n // 3), max(1, n * 2 // 3), n})))
            for n in shape
        ]
        # Hundreds of thousands of chunks take minutes to write, by anybody.
        for axis, n in sorted(enumerate(shape), key=lambda pair: -pair[1]):
            grid = math.prod(-(-n // c) for n, c in zip(shape, chunk, strict=True))
            if grid > 20_000:
                chunk[axis] = max(chunk[axis], n // 50 or 1)
        grid = math.prod(-(-n // c) for n, c in zip(shape, chunk, strict=True))
        made["chunks"] = tuple(chunk) if grid <= 20_000 else shape
        if draw(st.booleans()):
            made["maxshape"] = (None, *shape[1:])
    made["kind"] = draw(st.sampled_from(["noise", "walk", "few", "zeros"]))
    made["seed"] = draw(st.integers(0, 99))
    return made


def make(path: Path, told: list[dict[str, Any]]) -> None:
    with h5py.File(path, "w") as file:
        file.attrs["title"] = "kept"
        for i, one in enumerate(told):
            options = dict(one)
            kind, seed = options.pop("kind"), options.pop("seed")
            data = values(kind, options.pop("shape"), options.pop("dtype"), seed)
            made = file.create_dataset(f"group {i}/data {i} [a]*", data=data, **options)
            made.attrs["units"] = "K"


# What is read of them; nothing stated more often than anything else.
ACCESSES: tuple[tuple[str, ...], ...] = (
    (), (), ("line:0",), ("row", "line:0"), ("plane:0 weight 9", "line:0"), ("random:99",),
)  # fmt: skip
