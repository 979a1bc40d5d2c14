"""Does h5py give the same when it is patched: values, types, flags and exceptions?"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from tests.support.patched import assert_same_outcome, bound_always, engine_reads, left_to_h5py
from tests.support.patched_file import SHAPE, TYPES, into, item, of, path
from tests.support.versions import H5PY

__all__ = ["bound_always", "path"]
pytestmark = pytest.mark.usefixtures("bound_always")

ALL = [
    *TYPES,
    *("contiguous", "zfp", "filled", "unfilled", "array", "scalar", "scalar_pair", "null"),
    *("none", "strings", "ragged", "compact", "external", "virtual", "soft"),
]
INDEXES: dict[str, Any] = {
    "()": (),
    "...": ...,
    "row": 3,
    "last": np.int64(-1),
    "element": (1, 2, 3),
    "element and ...": (1, ..., 2, 3),
    "box": np.s_[2:7, 1:, ::3],
    "numpy bounds": np.s_[np.int8(2) : np.uint64(9), 1],
    "empty": np.s_[4:4],
    "backwards bounds": np.s_[8:2],
    "beyond": np.s_[5:500],
    "list": np.s_[[1, 4, 5]],
    "list beyond 64 bits": np.s_[[2**70]],
    "lists of large and small": np.s_[0, [2, 2**64]],
    "inner list": np.s_[2, [0, 3, 8]],
    "list behind ...": np.s_[..., [0, 7]],
    "numpy list": np.s_[:, np.array([2, 5], "u2"), 1],
    "one mask": np.arange(12) % 3 == 0,
    "inner mask": np.s_[2:4, np.arange(9) > 4],
    "full mask": np.arange(np.prod(SHAPE)).reshape(SHAPE) % 7 == 0,
    "full mask in a tuple": (np.arange(np.prod(SHAPE)).reshape(SHAPE) % 7 == 0,),
    # What h5py refuses, or gives; `tests/attack/patched.py` has more of these.
    "out of range": 12,
    "unsorted list": np.s_[[5, 1]],
    "two lists": np.s_[[1, 2], [1, 2]],
    "empty list": np.s_[[]],
    "mask of fewer dimensions": np.arange(108).reshape(12, 9) % 7 == 0,
    "empty slice beside a list": np.s_[[1, 2], 5:2],
    "huge": 2**70,
    "names": ("x", "n"),
    "name and box": ("name", slice(2, 5), 1),
    "unknown name": "nothing",
}
READS: dict[str, Callable[[Any], Any]] = {
    "array": np.asarray,
    "array as f8": lambda d: np.asarray(d, dtype="f8"),
    "array as nothing": lambda d: d.__array__("nothing"),
    "array without copy": lambda d: d.__array__(copy=False),
    "array of a view": lambda d: np.asarray(d.astype("f8")),
    "iteration": list,
    "iteration of chunks": lambda d: [d[box] for box in d.iter_chunks()],
    "str": lambda d: d.asstr()[2:4],
    "fields": lambda d: d.fields(["name", "x"])[2:5, 1],
    "array of fields": lambda d: np.asarray(d.fields("pair")),
    "field of an element": lambda d: d.fields("n")[1, 2, 3],
    "len": len,
    "selection": lambda d: d[h5py._hl.selections.select(d.shape, np.s_[2:4], d)],
    "blocks": lambda d: d[h5py.MultiBlockSlice(1, 2, 5, 2)],
    "members": lambda d: 3 in d[...],
    "sum": lambda d: np.sum(d),
    "properties": lambda d: (repr(d), d.fillvalue, d.chunks, d.id.valid, bool(d)),
}

if H5PY < (3, 12):  # which knows no `copy`
    del READS["array without copy"]
OF_A_VIEW = "array of a view"
if H5PY < (3, 9):
    del READS[OF_A_VIEW]  # NumPy takes it for a sequence, or for an object


@pytest.mark.parametrize("name", ALL)
@pytest.mark.slow
def test_reads_are_those_of_h5py(path: Path, name: str) -> None:
    for label, index in INDEXES.items():
        assert_same_outcome(path, partial(item, name, index, None), label)
    for label, read in READS.items():
        assert_same_outcome(path, partial(of, name, read), label)


def test_references_and_external_links(path: Path) -> None:
    assert_same_outcome(path, lambda f: f["contiguous"][f["region"][()]])
    assert_same_outcome(path, lambda f: f[f["references"][0]][2:4, 1])
    assert_same_outcome(path, lambda f: [f[r].name for r in f["references"]])
    assert_same_outcome(path.with_name("outer.h5"), lambda f: f["there"][2:5, 1])


class Celsius(h5py.Dataset):  # type: ignore[misc]
    """As libraries make their own of h5py's classes."""

    def __getitem__(self, args: Any, new_dtype: Any = None) -> Any:
        return super().__getitem__(args, new_dtype) - 1


def test_subclasses_and_datasets_made_of_identifiers(path: Path) -> None:
    assert_same_outcome(path, lambda f: Celsius(f["i4"].id)[2:4, 1])
    assert_same_outcome(path, lambda f: h5py.Dataset(f["i4"].id)[2:4, 1])
    chunkwise.patch_h5py()
    with h5py.File(path) as f:
        before = engine_reads()
        assert type(f["i4"]) is h5py.Dataset
        assert f["i4"] == f["i4"]
        assert hash(f["i4"]) == hash(f["i4"])
        assert Celsius(f["i4"].id)[0, 0, 0] == f["i4"][0, 0, 0] - 1
        assert engine_reads() == before + 2


SERVED: dict[str, Callable[[Any], Any]] = {
    "item": lambda d: d[2:5],
    "element": lambda d: d[1, 2, 3],
    "array": np.asarray,
    "array as f8": lambda d: np.asarray(d, "f8"),
    "view": lambda d: d.astype("f8")[1:3],
    "array of a view": lambda d: np.asarray(d.astype(">i4")),
    "read_direct": lambda d: into(d, SHAPE, "i4"),
    "read_direct, converted": lambda d: into(d, (20, 9, 10), "i8", None, np.s_[:12]),
}


@pytest.mark.parametrize("how", SERVED)
def test_the_engine_serves(path: Path, how: str) -> None:
    if how == OF_A_VIEW and how not in READS:
        pytest.skip("h5py before 3.9 gives arrays of views element by element")
    chunkwise.patch_h5py()
    with h5py.File(path) as f:
        before, left = engine_reads(), left_to_h5py()
        SERVED[how](f["i4"])
        assert (engine_reads(), left_to_h5py()) == (before + 1, left)


def test_the_engine_serves_each_row_and_each_field(path: Path) -> None:
    chunkwise.patch_h5py()
    with h5py.File(path) as f:
        before, left = engine_reads(), left_to_h5py()
        assert len(list(f["i4"])) == 12
        assert engine_reads() == before + 12
        f["pair"]["x"], f["pair"]["name", 3:4], f["pair"].fields(["n", "x"])[...]
        f["S6"].asstr()[2]
        assert (engine_reads(), left_to_h5py()) == (before + 16, left)


def _swapped(first: Any, second: Any, gap: int = 0, rest: int = 0) -> np.dtype[Any]:
    """Two members, the later one named first."""
    at = np.dtype(second).itemsize + gap
    layout: Any = {"names": ["a", "b"], "formats": [first, second], "offsets": [at, 0]}
    layout["itemsize"] = at + np.dtype(first).itemsize + rest
    made: np.dtype[Any] = np.dtype(layout)
    return made


COMPOUNDS: dict[str, np.dtype[Any]] = {
    "swapped": _swapped("<i4", ">f8"),
    "with gaps": _swapped("<i4", ">f8", 3, 5),
    "nested": np.dtype([("a", _swapped("<i4", "u1", 2)), ("b", "u1")]),
    "array of swapped": np.dtype([("a", _swapped("<i4", "u1"), (2, 3)), ("b", "u1")]),
    "swapped twice": _swapped(_swapped("<i2", ">c8", 1, 1), _swapped("S3", "<f4")),
    "enum and bool": _swapped(h5py.enum_dtype({"A": 1}), "?"),
}


@pytest.mark.parametrize("dtype", COMPOUNDS.values(), ids=COMPOUNDS.keys())
def test_members_out_of_the_order_of_their_offsets(tmp_path: Path, dtype: np.dtype[Any]) -> None:
    path = tmp_path / "compound.h5"
    raw = np.zeros((7, 4), dtype)
    raw.view("u1")[:] = np.arange(raw.nbytes).reshape(7, -1) % 2
    with h5py.File(path, "w") as f:
        f.create_dataset("d", (7, 4), dtype, chunks=(3, 2), compression=1)[...] = raw
    mask, rows = np.arange(28).reshape(7, 4) % 3 == 0, np.arange(7) % 3 == 1
    some: list[Any] = [..., 2, (2, 3), np.s_[1:5:2], mask, (mask,), (rows, 1), [1, 4]]
    for index in [*some, "a", ("b", mask)]:
        assert_same_outcome(path, partial(item, "d", index, None), index)
    assert_same_outcome(path, lambda f: f["d"].fields(["b", "a"])[2:4].tolist())
    assert_same_outcome(path, lambda f: into(f["d"], (7, 4), dtype).tolist())
    with chunkwise.open(path) as ours:
        d: Any = ours["d"]
        for index in some:
            for name in "ab":
                assert d[index][name].tolist() == raw[index][name].tolist()


@pytest.mark.parametrize("name", ["swapped", "with gaps"])
def test_libhdf5_sorts_the_members_of_an_open_dataset(tmp_path: Path, name: str) -> None:
    path = tmp_path / "sorted.h5"
    mask, rows = np.arange(28).reshape(7, 4) % 3 == 0, np.arange(7) % 3 == 1
    with h5py.File(path, "w") as f:
        d = f.create_dataset("d", (7, 4), COMPOUNDS[name], chunks=(3, 2))
        d[...] = np.zeros((7, 4), COMPOUNDS[name])

    def reads(f: h5py.File) -> Any:
        before = f["d"][mask]
        # To other types libhdf5 converts, and sorts for that.
        other = np.zeros((7, 4), [("b", "<f4"), ("a", before["a"].dtype)])
        held = f["d"]
        held.read_direct(other)
        again = [held[mask], f["d"][mask], f["d"][rows, 1], f["d"][2], f["d"][...]]
        return [before.dtype, *[repr(array.dtype) for array in again]]

    assert_same_outcome(path, reads)
