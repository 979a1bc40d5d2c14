"""Are elements that are read as another type those that libhdf5 makes?"""

import itertools
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5s, h5t
from hypothesis import given
from hypothesis import strategies as st

import chunkwise
from chunkwise import _native
from chunkwise.routing import conversions

NUMBERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
TYPES = [
    np.dtype(order + name) for name in NUMBERS for order in "<>" if order == "<" or name[1] > "1"
]
SHAPE, CHUNK = (40, 33), (7, 9)
# Where f4 ends, at either end; infinity, and what is no number but signals.
LARGEST = float(np.finfo("f4").max)
EDGES = [LARGEST, -LARGEST, np.inf, -np.inf, -0.0, 1e-45, 7e-46, 1e-300]
EDGES += [LARGEST * factor for factor in (1 - 1e-9, 1 + 1e-9, 1.1)] + [1e300]
EDGES += list(np.array([0x7FF0000000000001, 0xFFF8DEADBEEF0000], "u8").view("f8"))

# NaNs and overflow are what is tried here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def by_libhdf5(elements: Any, source: h5t.TypeID, wanted: np.dtype[Any]) -> bytes:
    count = len(elements)
    buffer = np.zeros(count * max(elements.itemsize, wanted.itemsize), "u1")
    buffer[: elements.nbytes] = elements.view("u1")
    h5t.convert(source, h5t.py_create(wanted), count, buffer)
    return buffer[: count * wanted.itemsize].tobytes()


def ours(elements: Any, wanted: np.dtype[Any]) -> bytes | None:
    into = np.zeros(len(elements), wanted)
    return into.tobytes() if conversions.convert(elements, into) else None


def bit_patterns(dtype: np.dtype[Any]) -> Any:
    """All of a small type; of a large one many at random, and integers as floats among them."""
    if dtype.itemsize <= 2:
        return np.arange(2 ** (8 * dtype.itemsize)).astype(f"u{dtype.itemsize}").view(dtype)
    rng = np.random.default_rng(dtype.itemsize)
    random = np.frombuffer(rng.bytes(20_000 * dtype.itemsize), dtype)
    if dtype.kind != "f":
        small = rng.integers(0, 70_000, 10_000).astype(dtype)
        return np.concatenate(
            [random, small, random // dtype.type(3) ** 9, random // dtype.type(2) ** 20]
        ).astype(dtype)
    moderate = rng.normal(size=20_000) * 10.0 ** rng.uniform(-9, 20, 20_000)
    halves = rng.integers(-70_000, 70_000, 20_000) / 2
    return np.concatenate([random, moderate, halves, EDGES]).astype(dtype)


@pytest.mark.parametrize("stored", TYPES, ids=str)
def test_all_pairs_of_numbers(stored: np.dtype[Any]) -> None:
    elements = bit_patterns(stored)
    for wanted in TYPES:
        if wanted != stored:
            made = ours(elements, wanted)
            assert made in (None, by_libhdf5(elements, h5t.py_create(stored), wanted)), wanted


def test_which_pairs_are_converted_here() -> None:
    # All but what libhdf5's own routines make of halves and, before 2.0, of foreign floats.
    native = [
        dtype for dtype in TYPES if dtype.isnative and dtype.itemsize > 1 and dtype.kind != "f"
    ]
    floats = [np.dtype("f4"), np.dtype("f8")]
    for stored, wanted in itertools.product(TYPES, [*native, *floats]):
        may_differ = "f2" in (stored.str[1:], wanted.str[1:]) or (
            stored.kind == "f" and not stored.isnative and stored.str[1:] != wanted.str[1:]
        )
        if stored != wanted and not (may_differ and stored.str[1:] != wanted.str[1:]):
            assert conversions.parts_between(stored, wanted) is not None, (stored, wanted)


@pytest.mark.parametrize("stored", ["?", h5py.enum_dtype({"x": 1, "y": 200}, "<i2")], ids=str)
def test_booleans_and_enums_become_their_numbers(stored: Any) -> None:
    stored = np.dtype(stored)
    elements = np.array([0, 1, 1, 200, -3], "i2").astype(f"i{stored.itemsize}").view(stored)
    source = h5t.py_create(stored, logical=stored.kind != "b")
    for wanted in TYPES:
        made = ours(elements, wanted)
        assert made in (None, by_libhdf5(elements, source, wanted)), wanted
    assert ours(elements, np.dtype("u1")) is not None
    # No number becomes a name.
    assert ours(np.array([1, 2], "i2"), stored) is None


@given(
    st.lists(st.binary(max_size=6) | st.text(" a\0", max_size=6).map(str.encode), min_size=1),
    st.integers(1, 8),
    st.integers(1, 9),
)
def test_texts_of_other_lengths(texts: list[bytes], length: int, wanted: int) -> None:
    raw = b"".join(text[:length].ljust(length, b"\0") for text in texts)
    elements = np.frombuffer(raw, f"S{length}")
    made = ours(elements, np.dtype(f"S{wanted}"))
    source = h5t.py_create(np.dtype(f"S{length}"))
    if wanted != length:
        assert made == by_libhdf5(elements, source, np.dtype(f"S{wanted}"))


RECORD = np.dtype([("a", ">i4"), ("b", "<f8"), ("c", "S5"), ("d", "<c16"), ("e", "<u2")])
STORED: dict[str, Any] = {
    **{dtype.str: dtype for dtype in TYPES},
    "bool": np.dtype("?"),
    "enum": h5py.enum_dtype({"x": 1, "y": 2}, "<i2"),
    "c16": np.dtype("<c16"),
    "record": RECORD,
    "text": np.dtype("S5"),
}
WANTED: dict[str, list[Any]] = {
    "c16": ["<c8", ">c16", ">c8"],
    "record": [
        np.dtype([("a", "<i8"), ("b", "<f4"), ("c", "S9"), ("d", "<c8"), ("e", ">f8")]),
        np.dtype([("e", "i1"), ("a", "f4")]),
        np.dtype(
            {"names": ["b", "c"], "formats": [">f4", "S3"], "offsets": [3, 11], "itemsize": 20}
        ),
    ],
    "text": ["S3", "S5", "S12"],
}


def contents(dtype: np.dtype[Any]) -> Any:
    rng = np.random.default_rng(7)
    if dtype.kind == "b" or dtype.metadata:
        return rng.integers(0, 2, SHAPE).astype(dtype)
    if dtype.kind == "S":
        return np.array([b"a" * (n % 7) for n in range(SHAPE[0] * SHAPE[1])], dtype).reshape(SHAPE)
    if dtype.names is not None:
        made = np.zeros(SHAPE, dtype)
        for name in dtype.names:
            made[name] = contents(dtype[name])
        return made
    if dtype.kind == "c":
        return (rng.normal(size=SHAPE) + 1j * rng.normal(size=SHAPE)).astype(dtype)
    return rng.choice(bit_patterns(dtype), SHAPE)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("conversions") / "x.h5"
    with h5py.File(path, "w") as file:
        for name, dtype in STORED.items():
            group = file.create_group(name)
            data = contents(dtype)
            group["contiguous"] = data
            group.create_dataset("deflate", data=data, chunks=CHUNK, compression=1)
            group.create_dataset("chunks", data=data, chunks=CHUNK)
            fill = data[1, 1] if dtype.names is None else None
            part = group.create_dataset(
                "part", SHAPE, dtype, chunks=CHUNK, compression=1, fillvalue=fill
            )
            part[9:20, :11] = data[9:20, :11]
    return path


def entries(extent: int) -> st.SearchStrategy[Any]:
    edges = st.integers(0, extent)
    return st.one_of(
        st.just(slice(None)),
        st.integers(0, extent - 1),
        st.builds(slice, edges, edges, st.integers(1, 5)),
        st.lists(st.integers(0, extent - 1), min_size=1, unique=True).map(sorted),
    )


def indices() -> st.SearchStrategy[Any]:
    both = st.tuples(entries(SHAPE[0]), entries(SHAPE[1]))
    return both.filter(lambda index: not all(isinstance(one, list) for one in index))


def _gives_nothing(
    dataset: Any, wanted: np.dtype[Any], index: Any, refused: type[Exception]
) -> None:
    """See that nothing is read; what libhdf5 has to convert may be refused as h5py refuses it."""
    try:
        found = dataset.astype(wanted)[index]
    except refused:
        return
    assert (found.dtype, found.size) == (wanted, 0)


@given(st.data())
def test_reads_are_those_of_h5py(path: Path, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(STORED)))
    wanted = np.dtype(data.draw(st.sampled_from(WANTED.get(kind, TYPES))))
    layout = data.draw(st.sampled_from(["contiguous", "deflate", "chunks", "part"]))
    index = data.draw(indices())
    with h5py.File(path) as theirs, chunkwise.open(path) as file:
        one, other = theirs[kind][layout], file[kind][layout]
        try:
            expected = one.astype(wanted)[index]
        except (TypeError, ValueError, OSError) as error:
            if np.empty(SHAPE)[index].size == 0:
                # h5py refuses a list beside a slice of nothing; ours gives nothing.
                _gives_nothing(other, wanted, index, type(error))
                return
            with pytest.raises(type(error)):
                other.astype(wanted)[index]
            return
        found = other.astype(wanted)[index]
        assert type(found) is type(expected)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.tobytes() == expected.tobytes()
        if (
            any(isinstance(entry, list) for entry in index)
            or not expected.shape
            or not expected.size
        ):
            return
        # Bytes that no field fills stay, too.
        # No copies of arrays, which leave them out.
        into = [np.frombuffer(bytearray(b"\1" * 2 * expected.nbytes), wanted) for _ in range(2)]
        into = [array.reshape(*expected.shape, 2) for array in into]
        one.read_direct(into[0], index, np.s_[..., 1])
        other.read_direct(into[1], index, np.s_[..., 1])
        assert into[0].tobytes() == into[1].tobytes()


@pytest.mark.parametrize("wanted", [">i4", "f8", "i2"])
def test_a_list_beside_a_slice_of_nothing_gives_nothing(path: Path, wanted: str) -> None:
    with chunkwise.open(path) as file:
        found = file[">i4/contiguous"].astype(wanted)[2:2, [0, 3, 4]]
        assert (found.dtype, found.shape) == (wanted, (0, 3))


def test_nothing_is_left_to_h5py_nor_decoded_twice(path: Path) -> None:
    chunkwise.cache_clear()
    quiet = chunkwise.settings(prefetch_nbytes=0)
    with quiet, chunkwise.open(path) as file:
        before = chunkwise.patch_stats()
        decoded = chunkwise.cache_stats()["decoded"]
        for layout in ("deflate", "contiguous", "chunks"):
            file["<f8"][layout].astype("f4")[...]
            file["record"][layout].astype(WANTED["record"][0])[...]
        file[">i4/contiguous"].astype("i4")[3]
        np.asarray(file[">i4/contiguous"], "i4")
        file[">i4/contiguous"].read_direct(np.zeros(SHAPE, "i8"))
        after = chunkwise.patch_stats()
        assert after["engine"] - before["engine"] == 9
        assert after["h5py"] == before["h5py"]
        # Each chunk of the two datasets.
        assert chunkwise.cache_stats()["decoded"] - decoded == 2 * 6 * 4


@pytest.mark.parametrize("ending", [h5t.STR_NULLTERM, h5t.STR_SPACEPAD])
@pytest.mark.parametrize("length", [1, 5])
def test_text_that_is_not_padded_with_zeros(tmp_path: Path, ending: int, length: int) -> None:
    made = h5t.C_S1.copy()
    made.set_size(length)
    made.set_strpad(ending)
    elements = conversions.texts(length)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        space = h5s.create_simple(elements.shape)
        h5d.create(file.id, b"d", made, space).write(h5s.ALL, h5s.ALL, elements, made)
    with h5py.File(tmp_path / "x.h5") as theirs, chunkwise.open(tmp_path / "x.h5") as file:
        assert file["d"].explain()["path"] == "contiguous"
        for index in (..., 3, np.s_[2:9:3], [1, 4]):
            found, expected = file["d"][index], theirs["d"][index]
            assert type(found) is type(expected)
            assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()
        for wanted in ("S1", "S5", "S9"):
            assert (
                file["d"].astype(wanted)[...].tobytes()
                == theirs["d"].astype(wanted)[...].tobytes()
            )


def test_what_libhdf5_converts_otherwise_is_left_to_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with chunkwise.open(path) as file:
        dataset: Any = file["<f8/deflate"]
        assert dataset.explain(dtype="f4")["path"] == "chunked"
        plan = dataset.explain(dtype="S4")
        assert (plan["path"], plan["threads"]) == ("libhdf5", 1)
        assert "from float64 to |S4 is left to libhdf5" in plan["reason"]

        # A libhdf5 that differs in a single bit is found out.
        def another(source: Any, target: Any, count: int, buffer: Any) -> None:
            h5t_convert(source, target, count, buffer)
            buffer[0] ^= 1

        h5t_convert = h5t.convert
        monkeypatch.setattr(h5t, "convert", another)
        conversions._alike.cache_clear()
        try:
            assert dataset.explain(dtype="f4")["path"] == "libhdf5"
            expected = dataset[...].astype("f8")
            assert dataset.astype("f8")[...].tobytes() == expected.tobytes()
        finally:
            conversions._alike.cache_clear()


def test_types_that_there_are_not_are_refused() -> None:
    elements, into = np.zeros(4, "u1"), np.zeros(4, "u1")
    for types in (("<f1", "<i4"), ("|V4", "<i4"), ("", "<i4"), ("<i4", "|S0"), ("<é", "x")):
        assert not _native.convert_elements(elements, into, types)
    assert not _native.convert_elements(elements, into[:3], ("|u1", "|i1"))


@pytest.mark.parametrize("layout", [{}, {"chunks": (1100, 900)}], ids=["contiguous", "one chunk"])
@pytest.mark.parametrize("threads", [1, 3])
def test_one_large_chunk_is_converted_on_several_threads(
    tmp_path: Path, layout: dict[str, Any], threads: int
) -> None:
    data = np.random.default_rng(3).integers(-30_000, 30_000, (1100, 900)).astype(">i4")
    with h5py.File(tmp_path / "f.h5", "w") as f:
        f.create_dataset("d", data=data, **layout)
    with chunkwise.settings(threads=threads), chunkwise.open(tmp_path / "f.h5") as f:
        for index in np.s_[:, :], np.s_[3:, 5:], np.s_[::2, ::3], np.s_[:, 7:899:5], np.s_[1:9, :]:
            for wanted in "<f8", "<i2":
                got = f["d"].astype(wanted)[index]
                assert got.dtype == wanted
                assert np.array_equal(got, data[index].astype(wanted))
