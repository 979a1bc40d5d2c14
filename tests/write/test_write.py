"""Whatever is written gives the file that h5py would have made."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import strategies as st

import chunkwise
from chunkwise._lib import library
from chunkwise.errors import SelectionError, UsageError
from tests.support.filtered import with_plain_edges

RECORD = np.dtype([("x", "i4"), ("y", "f8")])


def both(path: Path, **options: Any) -> tuple[h5py.File, chunkwise.Dataset, h5py.Dataset]:
    """The same dataset twice in one new file: one to be written by each."""
    file = h5py.File(path, "w")
    ours, theirs = (file.create_dataset(name, **options) for name in ("ours", "theirs"))
    return file, chunkwise.wrap(ours), theirs


def slices(size: int) -> st.SearchStrategy[Any]:
    """Integers and slices, of which none is empty."""
    some = st.tuples(st.integers(0, size - 1), st.integers(1, size), st.integers(1, 3)).map(
        lambda t: slice(t[0], min(t[0] + t[1], size), t[2])
    )
    return st.one_of(some, some, st.just(slice(None)), st.integers(-size, size - 1))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("i1", np.array([300.7, -300.0, np.nan, 5])),
        ("u1", np.array([-1, 256, 3, 4])),
        ("f4", np.array([1e300, -1e300, np.inf, 1.5])),
        ("f2", np.array([1.0, 2.5, 65519.0, 1e9])),
        (">f8", np.array([1, 2, 3, 4], ">i4")),
        ("?", np.array([True, False, True, True])),
        ("S3", np.array([b"a", b"bcd", b"", b"ef"])),
        ("S3", ["a", "bc", "d", "e"]),
        ("c8", np.array([1 + 2j, 3, 4j, 5])),
        (h5py.string_dtype(), ["a", "bcd", "", "ef"]),
        (h5py.enum_dtype({"a": 1, "b": 2}), np.array([1, 2, 1, 2], "u1")),
        (RECORD, np.array([(1, 2.0)] * 4, "i4,f8")),
        (RECORD, np.array([(1, 2.0)] * 4, RECORD)),
        (np.dtype([("x", "i4")]), [(1,), (2,), (3,), (4,)]),
        (np.dtype(("i2", (2,))), np.arange(8).reshape(4, 2)),
        ("i4", 3),
        ("i4", [5]),
        ("i4", np.array([[5, 6, 7, 8]])),
        ("i4", np.float64(2.9)),
    ],
)  # fmt: skip
def test_values_are_converted_as_h5py_converts_them(
    tmp_path: Path, dtype: Any, value: Any
) -> None:
    file, ours, theirs = both(tmp_path / "x.h5", shape=(4,), chunks=(3,), dtype=dtype)
    with file:
        for index in (..., slice(0, 4), slice(None)):
            try:
                theirs[index] = value
            except Exception as error:
                with pytest.raises(type(error)):
                    ours[index] = value
            else:
                ours[index] = value
        ours.flush()
        np.testing.assert_array_equal(file["ours"][...], theirs[...])


class Like:
    """No array, but what NumPy makes one of."""

    def __init__(self, *values: float) -> None:
        self.values = np.array(values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.values, dtype)


@pytest.mark.parametrize("dtype", ["i1", "u1", ">i4", "f2", "?", "S3", "V4"])
def test_what_is_no_array_is_made_one_as_by_h5py(tmp_path: Path, dtype: str) -> None:
    """By NumPy, whose conversions are others than libhdf5's."""
    file, ours, theirs = both(tmp_path / "x.h5", shape=(4,), chunks=(3,), dtype=dtype)
    value = Like(300.7, -300.0, 5.0, 65521.0)
    with file, np.errstate(all="ignore"):
        try:
            theirs[...] = value
        except TypeError:
            with pytest.raises(TypeError):
                ours[...] = value
        else:
            ours[...] = value
        assert ours[...].tobytes() == theirs[...].tobytes()


def test_what_is_no_array_is_converted_for_a_field(tmp_path: Path) -> None:
    file, ours, theirs = both(tmp_path / "x.h5", shape=(4,), chunks=(3,), dtype=RECORD)
    with file:
        # Its elements become those of the field as libhdf5 reads them.
        file["numbers"] = np.array([1e300, np.nan, -1e300, 5])
        for d in (ours, theirs):
            d["x"] = file["numbers"]
            with pytest.raises(OSError, match="conversion"):
                d["x"] = np.zeros(4, "V4")
        np.testing.assert_array_equal(ours[...], theirs[...])


def test_a_matrix_is_an_array(tmp_path: Path) -> None:
    file, ours, theirs = both(tmp_path / "x.h5", shape=(5, 3, 4), chunks=(2, 2, 4), dtype="i4")
    value = np.arange(20).reshape(5, 4).view(np.matrix)
    with file:
        for d in (ours, theirs):
            d[:, 1] = value
        np.testing.assert_array_equal(ours[...], theirs[...])


def test_unions_and_hyperslabs(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        d = chunkwise.wrap(file.create_dataset("x", (9, 8), "f4", chunks=(4, 3), compression=1))
        slab = chunkwise.hyperslab((1, 0), stride=(3, 1), count=(2, 8), block=(2, 1))
        union = slab | chunkwise.hyperslab((0, 6), count=(9, 2))
        model = np.zeros((9, 8), "f4")
        where = np.zeros((9, 8), bool)
        where[[1, 2, 4, 5]] = True
        where[:, 6:] = True
        values = np.arange(where.sum(), dtype="f4")
        d.write(union, values)
        model[where] = values
        np.testing.assert_array_equal(d[...], model)
        np.testing.assert_array_equal(d.read(union), values)
        d.write(slab, 5)
        model[[1, 2, 4, 5]] = 5
        d.write(None, model + 1)
        np.testing.assert_array_equal(d[...], model + 1)
        with pytest.raises(SelectionError):
            d.write(slab, np.zeros(3, "f4"))
        with pytest.raises(SelectionError):
            d.write((1, 2), 3)  # type: ignore[arg-type]
        with pytest.raises(SelectionError):
            d[9] = 1


def test_lines_of_one_level_encode_each_chunk_once(tmp_path: Path) -> None:
    data = np.random.default_rng(0).normal(size=(6, 16, 20)).astype("f4")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        options = {"chunks": (3, 8, 10), "compression": 1}
        d = chunkwise.wrap(file.create_dataset("x", data.shape, "f4", **options))
        order = [(level, line) for level in range(6) for line in range(0, 16, 4)]
        np.random.default_rng(1).shuffle(order)
        for level, line in order:
            d[level, line : line + 4] = data[level, line : line + 4]
        d.flush()
        plan = d.explain_write()
        assert (plan["committed_chunks"], plan["read_chunks"]) == (2 * 2 * 2, 0)
        assert (plan["path"], plan["dirty_chunks"]) == ("chunked", 0)
        np.testing.assert_array_equal(file["x"][...], data)


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_appending_encodes_each_chunk_once(tmp_path: Path, libver: str) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver=libver) as file:
        options = {"chunks": (4, 3), "maxshape": (None, 6), "compression": 1}
        d = chunkwise.wrap(file.create_dataset("x", (0, 6), "i4", **options))
        for row in range(21):
            d.append(np.full((1, 6), row))
        d.append(np.full(6, 21))
        d.flush()
        assert d.explain_write()["committed_chunks"] == 12
        d.append(np.full((3, 6), 22))
        expected = np.repeat(np.array([*range(23), 22, 22]), 6).reshape(25, 6)
        np.testing.assert_array_equal(d[...], expected)
        d.resize((3, 6))
        d.resize(5, axis=0)
        cut = np.vstack([expected[:3], np.zeros((2, 6))])
        with pytest.raises(SelectionError):
            d.append(np.zeros((1, 5)))
        with pytest.raises(UsageError):
            d.append(np.zeros((5, 1)), axis=1)
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["x"][...], cut)


@pytest.mark.parametrize("filters", ["lzf", "szip", "shuffle+lzf+deflate:1"])
def test_what_begins_empty_need_not_shrink(tmp_path: Path, filters: str) -> None:
    """The mask of the first chunk, while there is no other, is libhdf5's affair."""
    noise = np.frombuffer(np.random.default_rng(0).bytes(8 * 70), "i8")
    with chunkwise.open(tmp_path / "x.h5", "w", sync=False) as file:
        d = file.create_dataset(
            "x", (0,), "i8", maxshape=(None,), chunks=(40,), filters=filters
        )  # fmt: skip
        for begin in range(0, 70, 10):
            d.append(noise[begin : begin + 10])
            np.testing.assert_array_equal(d[...], noise[: begin + 10])
        assert d.writer_reason is None
    with h5py.File(tmp_path / "x.h5") as read:
        np.testing.assert_array_equal(read["x"][...], noise)


def test_short_chunks_survive_what_libhdf5_rewrites(tmp_path: Path) -> None:
    """Had the second chunk a mask, libhdf5 would keep it: it makes 12 bytes of 12 bytes."""
    data = np.arange(1, 13, dtype="f2").reshape(6, 2)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        options = {"chunks": (3, 2), "maxshape": (None, 8), "compression": 1}
        d = chunkwise.wrap(file.create_dataset("x", data.shape, "f2", **options))
        d[...] = data
        d.resize((4, 1))
    with h5py.File(tmp_path / "x.h5") as file:
        np.testing.assert_array_equal(file["x"][...], data[:4, :1])


@pytest.mark.parametrize("driver", [None, "core"])
def test_edges_are_completed_where_libhdf5_lists_chunks_wrongly(
    tmp_path: Path, driver: str | None
) -> None:
    """The second dimension is the unlimited one, which the numbers of chunks begin with."""
    expected = np.zeros((9, 13), "i4")
    expected[:5, :11] = 7
    expected[5:, :11] = 0
    with h5py.File(tmp_path / "x.h5", "w", libver="latest", driver=driver) as file:
        options: dict[str, Any] = {"chunks": (4, 3), "compression": 1, "fletcher32": True}
        d = chunkwise.wrap(file.create_dataset("x", (6, 14), "i4", maxshape=(24, None), **options))
        d[:5, :11] = 7
        d.resize(expected.shape)
        assert d.writer_reason is None
        np.testing.assert_array_equal(d[...], expected)
        h5 = file["x"]
        origins = library().written_origins(h5.id.id, 99) if driver is None else []
        assert origins == [[y, x] for y in (0, 4) for x in (0, 3, 6, 9)][: len(origins)]
    with h5py.File(tmp_path / "x.h5") as file:
        np.testing.assert_array_equal(file["x"][...], expected)


def test_the_encoder_follows_the_data(tmp_path: Path) -> None:
    """What begins with zeros and goes on counting is deflated by another encoder then."""
    rows, width = 48, 1 << 17
    data = np.zeros((rows, width), "i4")
    data[4:] = np.arange((rows - 4) * width, dtype="i4").reshape(-1, width)
    with chunkwise.open(tmp_path / "x.h5", "w", sync=False) as file:
        d = file.create_dataset("x", data.shape, "i4", chunks=(1, width // 4), filters="deflate:1")
        encoders = []
        for row in range(rows):
            d[row] = data[row]
            encoders.append(d.explain_write()["encoder"])
    first, last = (str(encoders[at]).split(",")[0] for at in (0, -1))
    assert first != last
    with h5py.File(tmp_path / "x.h5") as read:
        np.testing.assert_array_equal(read["x"][...], data)


def test_large_broadcasts_are_written_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chunkwise.writing.values.PART_NBYTES", 1000)
    file, ours, theirs = both(tmp_path / "x.h5", shape=(70, 20), chunks=(8, 7), dtype="i4")
    with file:
        for d in (ours, theirs):
            d[...] = 3
            d[5:66:2] = np.arange(20)
            d[7:20, 3] = 8
        assert ours.explain_write()["read_chunks"] == 0
        np.testing.assert_array_equal(ours[...], theirs[...])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"shape": (4,)}, "contiguous"),
        ({"shape": ()}, "scalar"),
        ({"shape": (4,), "chunks": (2,), "dtype": h5py.string_dtype()}, "variable length"),
    ],
)
def test_what_is_not_encoded_here_says_why(
    tmp_path: Path, options: dict[str, Any], reason: str
) -> None:
    file, ours, theirs = both(tmp_path / "x.h5", **options)
    with file:
        plan = ours.explain_write()
        assert plan["path"] == "libhdf5"
        assert ours.writer_reason is not None
        assert any(part in ours.writer_reason for part in reason.split("|"))
        value = b"x" if h5py.check_string_dtype(theirs.dtype) else 5
        for d in (ours, theirs):
            d[()] = value
        np.testing.assert_array_equal(ours[()], theirs[()])


def test_a_file_for_reading_is_not_written(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (4,), "i4", chunks=(2,))
    with h5py.File(tmp_path / "x.h5") as file:
        d = chunkwise.wrap(file["x"])
        assert d.writer_reason == "the file is open for reading only"
        with pytest.raises(OSError, match=r"x\.h5: dataset /x"):
            d[0] = 1


# Chunks at the edge ---------------------------------------------------------------------------


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("append", [True, False])
def test_what_was_never_written_grows(tmp_path: Path, libver: str, append: bool) -> None:
    path = tmp_path / "x.h5"
    model = np.zeros((7, 11), "i4")
    with h5py.File(path, "w", libver=libver) as file:
        with_plain_edges(file, (7, 5), (None, None), (4, 4), model.dtype, ("shuffle", "deflate"))
        d = chunkwise.wrap(file["x"])
        if append:
            d.append(np.ones((7, 6), "i4"), axis=1)
            model[:, 5:] = 1
        else:
            d.resize((7, 11))
        d[2:6] = 3
        model[2:6] = 3
        np.testing.assert_array_equal(d[...], model)
    with h5py.File(path, "r+") as file:
        np.testing.assert_array_equal(file["x"][...], model)
        file["x"][...] = model + 1
        np.testing.assert_array_equal(chunkwise.wrap(file["x"])[...], model + 1)


@pytest.mark.parametrize("filters", [("lzf",), ("shuffle", "lzf"), ("lzf", "fletcher32")])
@pytest.mark.parametrize("shape", [(10, 7), (3, 2)])
def test_what_is_whole_after_a_resize_is_not_lost(
    tmp_path: Path, filters: tuple[str, ...], shape: tuple[int, int]
) -> None:
    """LZF makes noise no smaller: libhdf5 leaves it out, and keeps the length."""
    path = tmp_path / "x.h5"
    rng = np.random.default_rng(1)
    model = rng.integers(0, 256, shape, "u1")
    with h5py.File(path, "w", libver="latest") as file:
        with_plain_edges(file, shape, (None, None), (4, 4), model.dtype, filters)
        d = chunkwise.wrap(file["x"])
        d[...] = model
        d.resize((12, 8))
        model = np.pad(model, [(0, 12 - shape[0]), (0, 8 - shape[1])])
        np.testing.assert_array_equal(d[...], model)
        d[::2, 1:7] = 9
        model[::2, 1:7] = 9
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["x"][...], model)
        np.testing.assert_array_equal(chunkwise.wrap(file["x"])[...], model)


def test_a_resize_that_is_refused_leaves_chunks_as_they_are(tmp_path: Path) -> None:
    values = np.random.default_rng(2).integers(0, 256, 10, "u1")
    with h5py.File(tmp_path / "x.h5", "w", libver="latest") as file:
        with_plain_edges(file, (10,), (14,), (8,), values.dtype, ("lzf",))
        d = chunkwise.wrap(file["x"])
        d[...] = values
        with pytest.raises(UsageError, match="cannot be resized"):
            d.resize((20,))
        assert len(file["x"].id.read_direct_chunk((8,))[1]) == 8
        np.testing.assert_array_equal(d[...], values)
