"""Groups, datasets, links and attributes are made as h5py makes them; what cannot be is said."""

import math
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chunkwise
from chunkwise.errors import ChunkwiseError, DatasetNotFoundError, MismatchError, UsageError
from chunkwise.grammar import Pipeline
from chunkwise.model.chunk_shape import BEGUN_NBYTES, default_chunk
from tests.support.golden import assert_golden, refused
from tests.support.versions import H5PY, in_memory

CUBE = (365, 600, 600)


@pytest.fixture
def file(tmp_path: Path) -> Any:
    with chunkwise.open(tmp_path / "x.h5", "w", sync=False) as opened:
        yield opened


def same(ours: chunkwise.File, path: str, wanted: h5py.Dataset) -> None:
    """Whether h5py would have made the same dataset."""
    made = ours.h5py[path]
    assert (made.shape, made.maxshape, made.dtype) == (wanted.shape, wanted.maxshape, wanted.dtype)
    assert made.id.get_type().equal(wanted.id.get_type())
    np.testing.assert_array_equal(made[()], wanted[()])
    assert np.asarray(made.fillvalue) == np.asarray(wanted.fillvalue)


@pytest.mark.parametrize(
    "keywords",
    [
        {"shape": 7},
        {"shape": (3, 4), "dtype": ">i2", "fillvalue": -9},
        {"shape": (), "dtype": "f8"},
        {"data": 3.5},
        {"data": [1, 2, 3]},
        {"data": [[1, 2], [3, 4]], "dtype": "f4"},
        {"data": np.linspace(0, 2, 40000), "dtype": "f2"},
        {"data": np.linspace(0, 2, 40000), "dtype": ">f2", "chunks": 100, "compression": 1},
        {"data": np.arange(6), "shape": (2, 3)},
        {"data": "text"},
        {"data": ["a", "bcd"]},
        {"data": np.array([b"ab", b"c"])},
        {"data": [True, False]},
        {"data": np.array([(1, 2.5)], "i4,f8")},
        {"data": h5py.Empty("f4")},
        {"dtype": "i8"},
        {"shape": 3, "dtype": h5py.string_dtype()},
        {"data": np.arange(4), "maxshape": (None,)},
        {"data": np.arange(4), "maxshape": True},
        {"data": np.arange(4.0), "maxshape": 9, "compression": "gzip"},
        {"shape": (0, 5), "maxshape": (None, 5), "dtype": "i1"},
        {"shape": 2, "dtype": h5py.enum_dtype({"A": 1, "B": 2}), "fillvalue": 1},
        {"data": np.arange(4), "track_order": True, "fill_time": "never"},
    ],
)
def test_a_dataset_is_the_one_that_h5py_makes(file: chunkwise.File, keywords: Any) -> None:
    if "fill_time" in keywords and H5PY < (3, 12):
        pytest.skip("h5py has fill_time from 3.12 on")
    file.create_dataset("deep/group/x", **keywords)
    with in_memory() as oracle:
        theirs = {"dtype": "f4", **keywords} if set(keywords) == {"shape"} else keywords
        if keywords.get("maxshape") is True:
            theirs = {**theirs, "maxshape": (None,)}
        same(file, "deep/group/x", oracle.create_dataset("x", **theirs))


def test_named_types_and_hdf5_types_are_taken(file: chunkwise.File) -> None:
    file["kind"] = np.dtype("<i2")
    named = file.h5py["kind"]
    assert file.create_dataset("named", (3,), named).dtype == "<i2"
    assert file.h5py["named"].id.get_type().committed()
    assert file.create_dataset("raw", (3,), h5py.h5t.STD_I16BE).dtype == ">i2"


@pytest.mark.parametrize(
    "filters",
    ["none", "deflate:6", "shuffle+deflate:1+fletcher32", "szip:nn:16", "scaleoffset:in:0", "lzf"],
)
def test_filters_are_stored_as_stated(file: chunkwise.File, filters: str) -> None:
    data = np.arange(4000, dtype="i4").reshape(40, 100)
    for name, given_as in (("text", filters), ("parsed", Pipeline.parse(filters))):
        made = file.create_dataset(name, data=data, chunks=(10, 100), filters=given_as)
        assert made.filters == filters
        assert made.chunks == (10, 100)
        np.testing.assert_array_equal(made[...], data)


def test_fast_is_stored_as_level_1_and_remembered(file: chunkwise.File) -> None:
    made = file.create_dataset("x", (100, 100), "f4", filters="shuffle+deflate:fast")
    assert made.filters == "shuffle+deflate:1"
    assert made._written().effort == "fast"
    assert file["x"] is made
    other = file.create_dataset("y", (100,), "f4", filters="deflate:1")
    assert other._written().effort == "as-stated"


def test_chunks_are_chosen_only_where_something_needs_them(file: chunkwise.File) -> None:
    def chunks(name: str, **keywords: Any) -> Any:
        return file.create_dataset(name, CUBE, "f4", **keywords).chunks

    assert chunks("a") is None
    assert chunks("b", chunks=False) is None
    assert chunks("c", chunks="contiguous") is None
    whole = default_chunk(CUBE, 4)
    assert chunks("d", chunks=True) == chunks("e", chunks="auto") == whole
    assert chunks("f", filters="deflate:1") == chunks("g", compression="gzip") == whole
    assert chunks("h", maxshape=(None, 600, 600)) == whole
    assert chunks("i", access="1x600x600") == default_chunk(CUBE, 4, access=[(1, 600, 600)])
    both = default_chunk(CUBE, 4, access=[(1, 1, 600), (1, 600, 600)])
    assert chunks("j", access=["row", "1x600x600"]) == both
    assert chunks("k", chunks="365x20x20") == chunks("l", chunks=(365, 20, 20)) == (365, 20, 20)
    assert file.create_dataset("m", 100, "f4", chunks=10).chunks == (10,)
    assert file.create_dataset("n", 100, "f4", filters="none").chunks is None
    assert file.create_dataset("o", (0, 5), "f4", filters="shuffle").chunks == (1, 5)


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=4).flatmap(
        lambda shape: st.tuples(
            st.just(shape), st.tuples(*(st.none() | st.integers(n, n + 9) for n in shape))
        )
    ),
    st.sampled_from(("i1", "f8", "S3000", h5py.string_dtype())),
)
def test_libhdf5_never_refuses_chunks_that_are_chosen(
    file: chunkwise.File, shapes: Any, dtype: Any
) -> None:
    shape, maxshape = shapes
    if any(n == 0 == most for n, most in zip(shape, maxshape, strict=True)):
        maxshape = tuple(n or None for n in shape)
    made = file.create_dataset("x", shape, dtype, maxshape=maxshape, chunks=True)
    assert made.chunks is not None
    assert math.prod(made.chunks) * 16 < 2**32
    assert made.maxshape == maxshape
    del file["x"]


@settings(max_examples=20)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=3).map(tuple),
    st.sampled_from(("u1", "f8", "S20")),
    st.sampled_from(("none", "shuffle", "deflate:1", "shuffle+zstd:1")),
)
def test_many_small_datasets_that_may_grow_make_no_large_file(
    tmp_path: Path, shape: tuple[int, ...], dtype: str, filters: str
) -> None:
    count, sizes = 20, []
    data = np.ones(shape, dtype)
    path = tmp_path / "x.h5"
    options: dict[str, Any] = {"data": data, "maxshape": (None,) * len(shape)}
    ours: dict[str, Any] = {"filters": filters}
    for open_file, more in ((chunkwise.open, ours), (h5py.File, {})):
        with open_file(path, "w") as made:
            for number in range(count):
                made.create_dataset(str(number), **options, **more)
        sizes.append(path.stat().st_size)
    # Beside the values, which one chunk holds, room for some more; compressed, none.
    room = 2048 if "deflate" in filters or "zstd" in filters else BEGUN_NBYTES
    assert sizes[0] <= sizes[1] + count * room


def test_what_cannot_be_made_is_said_in_one_line_and_not_made(file: chunkwise.File) -> None:
    asked: list[Any] = [
        {},
        {"shape": "3x4"},
        {"shape": (-1,)},
        {"shape": (4,), "data": [1, 2]},
        {"shape": (4, 4), "chunks": (2,)},
        {"shape": (4, 4), "chunks": (2, 0)},
        {"shape": (4, 4), "chunks": (2, 5)},
        {"shape": (4, 4), "chunks": (2, 5), "maxshape": (None, 4)},
        {"shape": 9, "chunks": "stored"},
        {"shape": 9, "chunks": "3y"},
        {"shape": 9, "chunks": {1: 2}},
        {"shape": 2**30, "chunks": 2**30, "dtype": "f4"},
        {"shape": (4, 4), "maxshape": (4,)},
        {"shape": (4, 4), "maxshape": (4, 3)},
        {"shape": 9, "filters": "defalte"},
        {"shape": 9, "filters": "deflate:10"},
        {"shape": 9, "filters": "shuffle", "chunks": False},
        {"shape": 9, "filters": "shuffle", "compression": "gzip"},
        {"shape": (), "filters": "shuffle"},
        {"shape": (), "chunks": True},
        {"shape": 9, "filters": "scaleoffset:in:0", "dtype": "f4"},
        {"shape": 9, "filters": "scaleoffset:in:0", "dtype": "S4"},
        {"shape": 9, "filters": "filter-300:1"},
        {"shape": 9, "access": "10"},
        {"shape": 9, "access": ["1x1"]},
        {"shape": 9, "access": ["rows"]},
    ]
    lines = refused(lambda more: file.create_dataset("group/x", **more), asked)
    assert_golden("create-refused", lines.replace(file.filename, "x.h5"))
    # The rest of the line is said by NumPy, h5py or libhdf5.
    others: tuple[tuple[Any, str], ...] = (
        ({"shape": 3, "dtype": "U5"}, "no place in HDF5"),
        ({"shape": 3, "dtype": "no"}, "no place in HDF5"),
        ({"shape": 9, "blocks": 3}, "blocks"),
        ({"shape": 9, "filters": "szip", "dtype": "S40", "chunks": 9}, "does not work on"),
    )
    for keywords, said in others:
        assert said in refused(lambda more: file.create_dataset("group/x", **more), [keywords])
    assert list(file) == []


def test_a_name_is_needed_and_must_be_free(file: chunkwise.File) -> None:
    file["x"] = 1
    file["dangling"] = h5py.SoftLink("/nowhere")
    for name in ("x", "/x", "dangling", b"x"):
        for make in (file.create_group, lambda name: file.create_dataset(name, (3,), "f4")):
            with pytest.raises(UsageError, match="exists already"):
                make(name)
    nameless: Any
    for nameless in ("", 3):
        with pytest.raises(UsageError, match="needs a name"):
            file.create_group(nameless)
    with pytest.raises(UsageError, match=r"x\.h5: group /x/below: cannot be made"):
        file.create_group("x/below")


def test_a_dataset_whose_data_cannot_be_written_is_not_left(
    file: chunkwise.File, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ChunkwiseError("no")

    monkeypatch.setattr(chunkwise.Dataset, "__setitem__", fail)
    with pytest.raises(ChunkwiseError, match="no"):
        file.create_dataset("x", data=np.arange(3))
    assert list(file) == []


def test_groups_datasets_and_links(file: chunkwise.File) -> None:
    group = file.create_group("a/b", track_order=True)
    assert group.name == "/a/b"
    assert file.require_group("a/b").name == "/a/b"
    assert file.require_group("a/c").name == "/a/c"
    made = group.create_dataset("x", data=[1, 2, 3])
    group["soft"] = h5py.SoftLink("x")
    group["hard"] = made
    group["again"] = file["a/c"]
    file["outside"] = h5py.ExternalLink("elsewhere.h5", "/x")
    # One dataset, by whichever name, so that what waits to be written is in one place.
    assert file["a/b/x"] == group["soft"] == group["hard"] == made
    del group["x"]
    assert group["hard"] == made
    assert list(group) == ["soft", "hard", "again"]
    del group["hard"]
    other = group.create_dataset("x", data=[4, 5])
    assert other is not made
    assert group["soft"][1] == 5
    with pytest.raises(DatasetNotFoundError, match="does not exist"):
        del group["hard"]
    assert type(file.h5py.get("outside", getlink=True)) is h5py.ExternalLink


def test_required_datasets(file: chunkwise.File) -> None:
    made = file.require_dataset("x", (3,), "i4", filters="deflate:1")
    assert file.require_dataset("x", 3, "i4") is made
    assert file.require_dataset("x", (3,), "i2") is made
    file.create_group("g")
    for name, shape, dtype, exact in (
        ("x", (4,), "i4", False),
        ("x", (3,), "i8", False),
        ("x", (3,), "i2", True),
        ("g", (3,), "i2", False),
    ):
        with pytest.raises(MismatchError, match="another name") as error:
            file.require_dataset(name, shape, dtype, exact)
        assert isinstance(error.value, TypeError)
    with pytest.raises(MismatchError, match="no group"):
        file.require_group("x")
