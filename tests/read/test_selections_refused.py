"""What does not fit is refused by name; what the engine leaves alone is read all the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import ChunkwiseError, SelectionError
from tests.support.reading import LEFT_TO_LIBHDF5, same

SHAPE = (4, 5, 6)
RECORD = np.dtype([("x", "i4"), ("y", "f8")])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("refused") / "refused.h5"
    whole = np.arange(120, dtype="f4").reshape(SHAPE)
    with h5py.File(path, "w") as f:
        f.create_dataset("chunked", data=whole, chunks=(2, 2, 4), compression=1)
        f.create_dataset("contiguous", data=whole)
        f.create_dataset("zfp", data=whole, chunks=(2, 2, 4), **LEFT_TO_LIBHDF5)
        f.create_dataset("text", data=whole.astype("S5").astype(object), chunks=(2, 2, 4))
        f.create_dataset("record", data=np.zeros(7, RECORD))
        f["record"][...] = [(i, i / 2) for i in range(7)]
        f["scalar"] = 7
        f["null"] = h5py.Empty("f4")
    return path


Ask = Callable[[chunkwise.Dataset], Any]


def slab(*parts: Any) -> Ask:
    return lambda d: d.read(chunkwise.hyperslab(*parts))


REFUSED: dict[str, tuple[Ask, str]] = {
    "out of range": (lambda d: d[4, 0, 0], "index 4 is out of range for dimension 0"),
    "out of range below": (lambda d: d[0, -6], "index -6 is out of range for dimension 1"),
    "too many indices": (lambda d: d[0, 0, 0, 0], "4 indices for a dataset of 3"),
    "beyond the end": (slab((2, 0, 0), (3, 1, 1)), "ends at 5 in dimension 0"),
    "beyond by stride": (slab((0, 0, 0), (1, 1, 3), (1, 1, 3)), "ends at 7 in dimension 2"),
    "overlapping": (slab((0,) * 3, (1, 2, 1), (1,) * 3, (1, 2, 1)), "blocks would overlap"),
    "overflowing": (slab((1, 0, 0), (2, 1, 1), (2**63, 1, 1)), "dimension|64 bits"),
    "wrong rank": (slab(0, 1), "1 dimension, the dataset has 3"),
    "list beyond the end": (lambda d: d[[0, 4]], "index 4 is out of range for dimension 0 of"),
    "list below the start": (lambda d: d[:, [1, -6]], "index -6 is out of range for dimension 1"),
    "integer beside a list": (lambda d: d[[0], 5], "index 5 is out of range for dimension 1"),
    "no integers": (lambda d: d[[0.5, 1]], "indices are integers, not float64"),
    "two dimensions": (lambda d: d[[[0, 1], [1, 2]]], "has one dimension, not 2"),
    "ragged": (lambda d: d[[[0, 1], [1]]], "inhomogeneous|integer dtypes"),
    "too large": (lambda d: d[np.array([2**63], "u8")], "9223372036854775808 is out of range"),
    "mask too short": (lambda d: d[:, np.ones(4, bool)], r"mask of shape \(4,\) for .* \(5,\)"),
    "mask of a wrong shape": (
        lambda d: d[np.ones((4, 6), bool)],
        r"mask of shape \(4, 6\) for dimensions of shape \(4, 5\)",
    ),
    "mask beyond the rank": (lambda d: d[0, np.ones(SHAPE, bool)], "4 indices for a dataset of 3"),
    "too many lists": (lambda d: d[[0], [0], [0], [0]], "4 indices for a dataset of 3"),
    "two Ellipses": (lambda d: d[..., [0], ...], "only one Ellipsis"),
    "step zero": (lambda d: d[[0], ::0], "zero"),
    "unpaired": (lambda d: d.vindex[[0, 1], [0, 1, 2]], r"\(2,\), \(3,\) cannot be paired"),
    "two Ellipses in pairs": (lambda d: d.vindex[..., [0, 1], ..., [0, 1]], "only one Ellipsis"),
    "integer between nothing": (
        lambda d: d.vindex[[], 99, []],
        "index 99 is out of range for dim.* 1",
    ),
    "too many pairs": (lambda d: d.vindex[[[0]], 0, 0, [[0]]], "4 indices for a dataset of 3"),
    "slice between": (lambda d: d.vindex[[0], :, [0]], "no slice in between"),
    "pair out of range": (lambda d: d.vindex[[0], [5]], "index 5 is out of range for dimension 1"),
    "integer in a pair": (lambda d: d.vindex[[0], 5, [0]], "index 5 is out of range for dim.* 1"),
    "no index": (lambda d: d.vindex["x"], "vindex takes arrays of integers"),
    "point out of range": (
        lambda d: d.read(chunkwise.points([(0, 0, 6)])),
        "index 6 is out of range for dimension 2",
    ),
    "points of another rank": (
        lambda d: d.read(chunkwise.points([(0, 0)])),
        "has 2 dimensions, the dataset has 3",
    ),
    "out of another shape": (
        lambda d: d.read(chunkwise.points([(0, 0, 0)]), out=np.zeros(2, d.dtype)),
        "shape",
    ),
}


@pytest.mark.parametrize("name", ["chunked", "contiguous", "zfp", "text"])
@pytest.mark.parametrize(("ask", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_fit_is_refused(path: Path, name: str, ask: Ask, message: str) -> None:
    with h5py.File(path) as f:
        with pytest.raises(SelectionError, match=message) as error:
            ask(chunkwise.wrap(f[name]))
        assert f"refused.h5: dataset /{name}: " in str(error.value)


def test_a_selection_is_not_converted(path: Path) -> None:
    with chunkwise.open(path) as f:
        for name, view in (
            ("chunked", f["chunked"].astype("f8")),
            ("record", f["record"].fields("x")),
        ):
            with pytest.raises(SelectionError, match=f"/{name}: astype and fields take an index"):
                view[chunkwise.hyperslab((0,) * f[name].ndim, (1,) * f[name].ndim)]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (((-1, 0), (1, 1)), "must not be negative"),
        (((0, 0), (1,)), "count has 1"),
        (((0, 0.5), (1, 1)), "integer"),
        (((0, 2**70), (1, 1)), "64 bits|63 bits"),
    ],
)
def test_no_dataset_has_such_a_hyperslab(parts: Any, message: str) -> None:
    with pytest.raises(ChunkwiseError, match=message):
        chunkwise.hyperslab(*parts)


def test_points_are_rows_of_integers() -> None:
    some: list[Any] = [[1, 2], [[0.5]], [[]], 3]
    for wrong in some:
        with pytest.raises(SelectionError, match="points: "):
            chunkwise.points(wrong)


MASK = np.random.default_rng(0).random(SHAPE) < 0.4
READ: dict[str, tuple[Ask, Callable[[Any], Any]]] = {
    "backwards": (lambda d: d[::-1, 4:1:-2], lambda w: w[::-1, 4:1:-2]),
    "unsorted": (lambda d: d[:, [4, 0, 0, -2]], lambda w: w[:, [4, 0, 0, -2]]),
    "lists": (lambda d: d[[3, 0], :, [5, 5, 1]], lambda w: w[np.ix_([3, 0], range(5), [5, 5, 1])]),
    "mask": (lambda d: d[MASK], lambda w: w[MASK]),
    "mask of two": (lambda d: d[MASK[:, :, 0], 3], lambda w: w[MASK[:, :, 0], 3]),
    "pairs": (lambda d: d.vindex[[[3], [0]], 1, [5, 1]], lambda w: w[[[3], [0]], 1, [5, 1]]),
    "one element": (lambda d: d.vindex[3, 1, 5], lambda w: w[3, 1, 5]),
    "points": (lambda d: d.read(chunkwise.points([(3, 1, 5)] * 2)), lambda w: w[[3, 3], 1, 5]),
    "nothing": (lambda d: d[[], ::-1, [2]], lambda w: w[:0, ::-1, [2]]),
}


@pytest.mark.parametrize("name", ["chunked", "contiguous", "zfp", "text"])
@pytest.mark.parametrize(("ask", "model"), READ.values(), ids=READ.keys())
def test_whoever_reads_reads_the_same(
    path: Path, name: str, ask: Ask, model: Callable[[Any], Any]
) -> None:
    with h5py.File(path) as f:
        assert same(ask(chunkwise.wrap(f[name])), model(f[name][...]))


def test_what_h5py_alone_understands(path: Path) -> None:
    with h5py.File(path) as f:
        record, scalar, null = (chunkwise.wrap(f[name]) for name in ("record", "scalar", "null"))
        assert same(record["x"], f["record"]["x"])
        assert same(record["x", 3:5], f["record"]["x", 3:5])
        assert same(record["y", [1, 4]], f["record"]["y", [1, 4]])
        assert same(record[[4, 1]], f["record"][...][[4, 1]])
        blocks = h5py.MultiBlockSlice(start=1, count=2, stride=2, block=1)
        assert same(chunkwise.wrap(f["chunked"])[blocks], f["chunked"][blocks])
        for index in (None, 1.5, "x", (None, [1])):
            with pytest.raises((TypeError, ValueError)):
                chunkwise.wrap(f["chunked"])[index]
        for d in (scalar, null):
            with pytest.raises((TypeError, ValueError)):
                d[[0]]
            with pytest.raises(SelectionError, match="with dimensions only"):
                d.vindex[[0]]
