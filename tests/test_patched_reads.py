"""Does h5py give the same when it is patched: values, types, flags and exceptions?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5p
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import chunkwise
from tests.patched import assert_same_outcome, bound_always, engine_reads, left_to_h5py
from tests.reading import LEFT_TO_LIBHDF5

__all__ = ["bound_always"]
pytestmark = pytest.mark.usefixtures("bound_always")

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
        unfilled = f.create_dataset("unfilled", SHAPE, "f4", chunks=CHUNK, fill_time="never")
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
        compact.set_layout(h5py.h5d.COMPACT)
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
    "inner list": np.s_[2, [0, 3, 8]],
    "list behind ...": np.s_[..., [0, 7]],
    "numpy list": np.s_[:, np.array([2, 5], "u2"), 1],
    "one mask": np.arange(12) % 3 == 0,
    "inner mask": np.s_[2:4, np.arange(9) > 4],
    "full mask": np.arange(np.prod(SHAPE)).reshape(SHAPE) % 7 == 0,
    # What h5py refuses, each in its own way.
    "out of range": 12,
    "out of range inside": (0, -10),
    "too many": (0, 0, 0, 0),
    "two ...": (..., ...),
    "negative step": np.s_[::-1],
    "step 0": np.s_[::0],
    "unsorted list": np.s_[[5, 1]],
    "repeated list": np.s_[[1, 1]],
    "two lists": np.s_[[1, 2], [1, 2]],
    "empty list": np.s_[[]],
    "negative list": np.s_[[-3, -1]],
    "list out of range": np.s_[[1, 99]],
    "short mask": np.arange(5) > 1,
    "list of lists": np.s_[[[1, 2], [3, 4]]],
    "ragged list": np.s_[[[1, 2], [3]]],
    "none": None,
    "true": True,
    "numpy true": np.True_,
    "float": 1.5,
    "float slice": np.s_[1.0:2],
    "huge": 2**70,
    "name": "x",
    "names": ("x", "n"),
    "name and box": ("name", slice(2, 5), 1),
    "unknown name": "nothing",
    "bytes": b"x",
    "object": object,
    "array": np.array(3),
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


def item(name: str, index: Any, wanted: Any, f: h5py.File) -> Any:
    return f[name][index] if wanted is None else f[name].astype(wanted)[index]


def of(name: str, read: Callable[..., Any], *rest: Any) -> Any:
    *arguments, f = rest
    return read(f[name], *arguments)


@pytest.mark.parametrize("name", ALL)
def test_reads_are_those_of_h5py(path: Path, name: str) -> None:
    for label, index in INDEXES.items():
        assert_same_outcome(path, partial(item, name, index, None), label)
    for label, read in READS.items():
        assert_same_outcome(path, partial(of, name, read), label)


WANTED = ["i1", "<i2", ">i4", "i8", "u1", "u8", "<f4", ">f4", "<f8", "f2", "c16", "S3", "?"]


@pytest.mark.parametrize("name", ["f4", "f8", "f4be", "i2be", "i4", "u4", "u8", "bool", "enum"])
def test_conversions_are_those_of_libhdf5(path: Path, name: str) -> None:
    for wanted in WANTED:
        for index in (..., 3, (1, 2, 3), np.s_[2:7, 1:, ::3], np.s_[5:5], [1, 4], 99):
            assert_same_outcome(path, partial(item, name, index, wanted), (wanted, index))
        for read in (view_as_array, into):
            assert_same_outcome(path, partial(of, name, read, SHAPE, wanted), wanted)


LARGEST = float(np.finfo("f4").max)
EDGES = [LARGEST, -LARGEST, np.inf, -np.inf, -0.0, 1e-45, 7e-46, 1e-300, LARGEST * (1 - 1e-9)]


@pytest.mark.parametrize("beyond", [None, LARGEST * (1 + 1e-9), LARGEST * 1.1, 1e300])
def test_narrowing_rounds_as_libhdf5_does(tmp_path: Path, beyond: float | None) -> None:
    with np.errstate(all="ignore"):
        numbers = np.frombuffer(np.random.default_rng(3).bytes(4000), "f4").astype("f8")
    numbers *= 1 + 1e-9
    numbers[np.isfinite(numbers) & (np.abs(numbers) > LARGEST)] = 1
    signalling = np.array([0x7FF0000000000001, 0xFFF8DEADBEEF0000], "u8").view("f8")
    numbers = np.concatenate([numbers, EDGES, signalling, [] if beyond is None else [beyond]])
    with h5py.File(tmp_path / "edges.h5", "w") as f:
        f.create_dataset("d", data=numbers, chunks=(100,))
    before = engine_reads()
    assert_same_outcome(tmp_path / "edges.h5", partial(item, "d", ..., "f4"))
    assert (engine_reads() > before) == (beyond is None)


def view_as_array(dataset: Any, _: Any, dtype: Any) -> Any:
    return np.asarray(dataset.astype(dtype))


def into(dataset: Any, shape: Any, dtype: Any, source: Any = None, target: Any = None) -> Any:
    dest = np.full(shape, 1, dtype)
    dataset.read_direct(dest, source, target)
    return dest


TRANSFERS: list[Any] = [
    (SHAPE, None, None),
    ((20, 9, 10), None, np.s_[3:15]),
    ((12,), np.s_[:, 1, 2], None),
    ((30,), np.s_[:, 1, 2], np.s_[4:28:2]),
    ((3, 4), np.s_[2, 3, 4], np.s_[1, 2]),
    ((9, 10), 3, ...),
    ((1, 9, 10), 3, None),
    ((9, 1), np.s_[3, :, 1], None),
    ((9,), np.s_[3, :, 1:2], None),
    ((24, 9, 10), None, None),
    ((2, 9, 10), 3, None),
    ((7,), np.s_[:, 1, 2], None),
    ((12,), np.s_[:, 1, 2], np.s_[5:99]),
    ((9, 10), 99, None),
    ((9, 10), 3, 99),
    ((9, 10), np.s_[::-1], None),
    ((3, 9, 10), [1, 4, 5], None),
    ((3, 9, 10), np.s_[1:4], [0, 1, 2]),
    ((0, 9, 10), np.s_[4:4], None),
]


@pytest.mark.parametrize("dtype", ["<i4", "<i8", ">i4", "<f4", "i1"])
@pytest.mark.parametrize("name", ["i4", "contiguous", "zfp", "virtual"])
def test_read_direct(path: Path, name: str, dtype: str) -> None:
    for shape, source, target in TRANSFERS:
        transfer = (shape, dtype, source, target)
        assert_same_outcome(path, partial(of, name, into, *transfer), transfer)


@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
def test_read_direct_keeps_what_was_never_written(path: Path, dtype: str) -> None:
    for name in ("filled", "unfilled"):
        for shape, source, target in TRANSFERS:
            transfer = (shape, dtype, source, target)
            assert_same_outcome(path, partial(of, name, into, *transfer), transfer)


def unusual(kind: str) -> Any:
    dest = np.ones(SHAPE, "i4")
    match kind:
        case "Fortran order":
            return np.asfortranarray(dest)
        case "read-only":
            dest.flags.writeable = False
        case "strided":
            return np.ones((24, 9, 10), "i4")[::2]
        case "list":
            return dest.tolist()
        case "unaligned":
            return np.ones(4 * dest.size + 1, "i1")[1:].view("i4").reshape(SHAPE)
        case "subclass":
            return dest.view(np.recarray)
    return dest


KINDS = ["Fortran order", "read-only", "strided", "list", "unaligned", "subclass"]


@pytest.mark.parametrize("kind", KINDS)
def test_read_direct_into_unusual_arrays(path: Path, kind: str) -> None:
    def read(f: h5py.File) -> Any:
        dest = unusual(kind)
        f["i4"].read_direct(dest)
        return np.array(dest)

    assert_same_outcome(path, read)


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


def test_large_conversions_are_cut_along_chunks(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for nbytes in (1, 100, 1000):
        monkeypatch.setattr("chunkwise.patching.reading._PIECE_NBYTES", nbytes)
        for index in (..., np.s_[2:11:2, 1:8, 3], np.s_[::7, ::2, ::5], (1, 2, 3)):
            for name in ("i4", "contiguous"):
                assert_same_outcome(path, partial(item, name, index, "f8"), index)
        assert_same_outcome(path, lambda f: into(f["i4"], (24, 9, 10), "i4", None, np.s_[::2]))
        with h5py.File(path) as f, chunkwise.patch_h5py():
            before = chunkwise.cache_stats()["decoded"]
            f["i4"].astype("f8")[...]
            decoded = chunkwise.cache_stats()["decoded"] - before
        assert decoded == 3 * 3 * 4


@st.composite
def indexes(draw: st.DrawFn) -> Any:
    bound = st.none() | st.integers(-15, 15)
    step = st.none() | st.integers(-1, 7)
    vector = st.lists(st.integers(-1, 12), max_size=4)
    item = st.one_of(
        st.builds(slice, bound, bound, step),
        st.integers(-13, 13),
        vector.map(sorted),
        vector,
        st.just(...),
        st.sampled_from([np.arange(n) % 2 == 0 for n in SHAPE]),
    )
    items = draw(st.lists(item, max_size=4))
    return items[0] if len(items) == 1 and draw(st.booleans()) else tuple(items)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(index=indexes(), wanted=st.sampled_from([None, "f8", "i2"]))
def test_any_index_has_the_outcome_of_h5py(path: Path, index: Any, wanted: Any) -> None:
    assert_same_outcome(path, partial(item, "i4", index, wanted), index)
