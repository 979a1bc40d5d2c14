"""Are lists, masks, points and fields written as h5py does it, and refused where it refuses?"""

import functools
import random
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import SelectionError
from tests.support.versions import H5PY

ENUM = h5py.enum_dtype({"A": 1, "B": 2}, basetype="i2")
TYPES: list[Any] = ["i4", ">i2", "f8", "?", "S5", "c8", ENUM, [("a", "<i4"), ("b", ">f8", (2,))]]


def entry(rng: random.Random, size: int) -> Any:
    """One of what may stand between the brackets, right or wrong."""
    low, high = sorted(rng.choices(range(-size, size + 1), k=2))
    count = rng.randint(0, size)
    drawn = sorted(rng.sample(range(size), count)) if rng.random() < 0.9 else [size, 0]
    return rng.choice(
        [
            slice(None),
            slice(low, high),
            slice(low, high, rng.randint(1, 3)),
            slice(None, None, -1) if rng.random() < 0.2 else slice(0, size),
            rng.randint(-size, size - 1),
            np.int64(rng.randint(0, size)),
            drawn,
            drawn,
            np.array(drawn, "i4"),
            np.array(drawn, "u8"),
            [place - size for place in drawn],
            np.array(drawn[::-1], int),
            drawn + drawn[-1:],
            [rng.random() < 0.5 for _ in range(size)],
            np.array([rng.random() < 0.5 for _ in range(size + (rng.random() < 0.1))]),
            Ellipsis,
        ]
    )


def index(rng: random.Random, shape: tuple[int, ...]) -> Any:
    if rng.random() < 0.2:
        mask = np.array([rng.random() < 0.4 for _ in range(int(np.prod(shape)))])
        return mask.reshape(shape)
    made = tuple(entry(rng, size) for size in shape[: rng.randint(1, len(shape))])
    return made[0] if len(made) == 1 and rng.random() < 0.5 else made


def values(rng: random.Random, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Of the shape, or of another one."""
    if rng.random() < 0.2:
        shape = ()
    elif rng.random() < 0.2:
        shape = rng.choice(
            [(1, *shape), shape[1:], (*shape, 1), shape[::-1], (int(np.prod(shape)),)]
        )
    drawn = np.array([rng.randint(0, 2) for _ in range(int(np.prod(shape)))]).reshape(shape)
    if dtype.fields is None:
        made = drawn.astype(dtype)
        return rng.choice([made, made, drawn, made[()]])
    made = np.zeros(shape, dtype)
    made["a"] = drawn
    made["b"] = drawn[..., None]
    return made


def said(write: Any) -> str:
    try:
        write()
    except (TypeError, ValueError, IndexError, OSError) as error:
        return "too old" if "Boolean indexing array has" in str(error) else "refused"
    return "written"


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.slow
def test_assignments_are_those_of_h5py(tmp_path: Path, dtype: Any) -> None:
    written = natively = 0
    for seed in range(60):
        rng = random.Random(f"{seed} {dtype}")
        shape = tuple(rng.randint(1, 7) for _ in range(rng.randint(1, 3)))
        chunks = tuple(rng.randint(1, size) for size in shape)
        path = tmp_path / f"{seed}.h5"
        with h5py.File(path, "w") as file:
            made = [
                file.create_dataset(
                    name, shape, dtype, chunks=chunks, maxshape=(None,) * len(shape), compression=1
                )
                for name in ("ours", "theirs")
            ]
            ours, theirs = chunkwise.wrap(made[0]), made[1]
            for _ in range(8):
                at = index(rng, shape)
                names: tuple[str, ...] = ()
                if theirs.dtype.fields and rng.random() < 0.5:
                    names = rng.choice([("a",), ("b",), ("a", "b"), ("c",)])
                try:
                    got = np.zeros(shape)[at].shape
                except (IndexError, ValueError):
                    got = ()
                value = values(rng, got, theirs.dtype)
                if names == ("a",) and rng.random() < 0.7:
                    value = value["a"]
                if names:
                    at = (*names, *(at if isinstance(at, tuple) else (at,)))
                answers = [
                    said(functools.partial(d.__setitem__, at, value)) for d in (ours, theirs)
                ]
                if H5PY < (3, 16) and answers[1] == "too old":
                    # It takes a mask of one dimension for one of all.
                    theirs[...] = ours[...]
                    continue
                assert answers[0] == answers[1], (at, np.shape(value), answers)
                written += answers[0] == "written"
                np.testing.assert_array_equal(ours[...], theirs[...], err_msg=repr((at, value)))
            natively += ours.explain_write()["committed_chunks"]
        with h5py.File(path) as file:
            np.testing.assert_array_equal(file["ours"][...], file["theirs"][...])
    assert written > 100
    assert natively > 50


def test_lists_masks_points_and_fields_are_encoded_here(tmp_path: Path) -> None:
    """None of them goes through libhdf5: what is written waits in memory."""
    with chunkwise.open(tmp_path / "x.h5", "w") as file:
        d = file.create_dataset("x", (9, 8), "i4", chunks=(4, 4), filters="deflate:1")
        model = np.zeros((9, 8), "i4")
        d[[1, 5]], model[[1, 5]] = np.ones((2, 8), "i4"), 1
        d[3, [0, 7]], model[3, [0, 7]] = [5, 6], [5, 6]
        mask = np.eye(9, 8, dtype=bool)
        d[mask], model[mask] = 7, 7
        d.write(chunkwise.points([(8, 0), (0, 7), (-1, -1)]), [1, 2, 3])
        model[[8, 0, 8], [0, 7, 7]] = [1, 2, 3]
        with pytest.raises(SelectionError):
            d.write(chunkwise.points([(9, 0)]), [1])
        record = file.create_dataset(
            "r", (9,), [("a", "i4"), ("b", "f8")], chunks=(4,), filters="deflate:1"
        )
        record["a"] = np.arange(9)
        record["b", 2:4] = [1.5, 2.5]
        record["a", [0, 8]] = [-1, -8]
        assert d.explain_write()["committed_chunks"] == 0
        assert record.explain_write()["committed_chunks"] == 0
        assert (d.explain_write()["dirty_chunks"], record.explain_write()["dirty_chunks"]) == (
            6,
            3,
        )
    with h5py.File(tmp_path / "x.h5") as got:
        np.testing.assert_array_equal(got["x"][...], model)
        np.testing.assert_array_equal(got["r"]["a"], [-1, 1, 2, 3, 4, 5, 6, 7, -8])
        np.testing.assert_array_equal(got["r"]["b"], [0, 0, 1.5, 2.5, 0, 0, 0, 0, 0])


def test_fields_keep_what_the_file_holds(tmp_path: Path) -> None:
    """Others of the same element, those beyond what was written, and fill values."""
    path = tmp_path / "x.h5"
    kind = np.dtype([("a", "i4"), ("b", "S3"), ("c", "f4", (2,))])
    fill = np.array((7, b"fil", (1, 2)), kind)
    model: Any = np.full(10, fill)
    with h5py.File(path, "w") as made:
        made.create_dataset("x", (10,), kind, chunks=(4,), maxshape=(None,), fillvalue=fill,
                            compression=1)[2:5] = np.zeros(3, kind)  # fmt: skip
        model[2:5] = np.zeros(3, kind)
    with chunkwise.open(path, "r+") as file:
        d: Any = file["x"]
        d["b", 3:9] = b"xyz"
        model["b"][3:9] = b"xyz"
        d["a", 0] = 1
        model["a"][0] = 1
        np.testing.assert_array_equal(d[...], model)
        d.resize((12,))
        model = np.append(model, np.full(2, fill))
        d["b", 11:] = b"end"
        model["b"][11] = b"end"
    with h5py.File(path) as got:
        np.testing.assert_array_equal(got["x"][...], model)
