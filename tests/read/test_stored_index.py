"""Chunk indexes as the file has them: every kind, sparse or full, sound or not."""

import re
import struct
import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.files.stored import stored_nbytes
from chunkwise.inspection import inspect
from tests.support import bad_reader
from tests.support.damage import overwrite
from tests.support.make_bad import find, patch
from tests.support.reading import random_index, same

# Shape, chunk, largest shape (None: fixed); which of HDF5's formats.
CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], Any, str]] = {
    "btree1": ((23, 21), (2, 3), None, "earliest"),
    "btree1, deep": ((300, 60), (2, 2), (None, None), "earliest"),
    "btree1, one dimension": ((5000,), (3,), None, "earliest"),
    "fixed array": ((23, 21), (2, 3), None, "latest"),
    "fixed array, larger": ((23, 21), (2, 3), (50, 44), "latest"),
    "fixed array, pages": ((3000, 4), (1, 3), None, "latest"),
    "extensible array": ((23, 21), (2, 3), (None, 21), "latest"),
    "extensible array, inner": ((5, 23, 4), (1, 2, 3), (5, None, 9), "latest"),
    "extensible array, last": ((6, 9, 40), (2, 3, 1), (30, 9, None), "latest"),
    "extensible array, long": ((40_000,), (1,), (None,), "latest"),
    "btree2": ((23, 21), (2, 3), (None, None), "latest"),
    "single chunk": ((23, 21), (23, 21), None, "latest"),
    # Of these, listings of HDF5 2.0 name other coordinates than those that H5Dread goes by.
    "extensible array, few": ((1, 2), (1, 1), (4, None), "latest"),
    "extensible array, whole": ((3, 6), (1, 2), (3, None), "latest"),
    "extensible array, larger": ((6, 3), (1, 2), (6, None), "latest"),
    "extensible array, ones": ((3, 4, 2), (1, 1, 1), (3, None, 2), "latest"),
    "extensible array, second": ((3, 4, 7), (2, 3, 2), (5, 8, None), "latest"),
    "extensible array, first": ((30, 4), (4, 4), (None, 4), "latest"),
}


@pytest.mark.parametrize("filters", [{}, {"compression": 1}], ids=["none", "deflate"])
@pytest.mark.parametrize("written", ["all", "some", "one", "none"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
def test_chunks_are_where_h5py_finds_them(
    tmp_path: Path, case: str, written: str, filters: dict[str, Any]
) -> None:
    shape, chunk, largest, libver = CASES[case]
    rng = np.random.default_rng(len(case))
    path = tmp_path / "d.h5"
    with h5py.File(path, "w", libver=libver, userblock_size=512) as f:
        d = f.create_dataset(
            "d", shape, "<i2", chunks=chunk, maxshape=largest, fillvalue=-1, **filters
        )
        if written == "all":
            d[...] = rng.integers(0, 99, shape)
        elif written == "some":
            for _ in range(7):
                at = tuple(int(rng.integers(0, n)) for n in shape)
                d[tuple(slice(i, i + 3) for i in at)] = rng.integers(0, 99)
        elif written == "one":
            d[tuple(n - 1 for n in shape)] = 5
    with h5py.File(path) as f:
        whole = f["d"][...]
    for _ in range(3):
        # Opened anew, so that nothing is known; some reads then lead to the list.
        with chunkwise.open(path) as file:
            ours = file["d"]
            indexes = [random_index(rng, shape) for _ in range(5)]
            for index in indexes:
                # NumPy gives an array of no dimension where h5py gives a number.
                assert same(np.asarray(ours[index]), np.asarray(whole[index])), index
            plan = ours.explain(indexes[0])
            assert plan["path"] == "chunked", plan
            ours.prepare()
            # Looked up or listed, it is the same.
            assert ours.explain(indexes[0]) == plan
            assert same(ours[...], whole)


@pytest.mark.parametrize("filters", [{}, {"compression": 1}], ids=["none", "deflate"])
@pytest.mark.parametrize("largest", [(None,), (700_000,)], ids=["extensible", "fixed"])
@pytest.mark.slow
def test_pages_of_long_blocks(tmp_path: Path, largest: Any, filters: dict[str, Any]) -> None:
    """Blocks of two, four and more pages, some of which were never written."""
    path = tmp_path / "d.h5"
    rng = np.random.default_rng(3)
    written = np.zeros(700_000, "u1")
    begins = rng.integers(0, written.size, 60)
    with h5py.File(path, "w", libver="latest") as f:
        d = f.create_dataset("d", written.shape, "u1", chunks=(1,), maxshape=largest, **filters)
        for begin in begins:
            d[begin : begin + 9] = written[begin : begin + 9] = rng.integers(1, 99)
    with h5py.File(path) as f:
        ours = chunkwise.wrap(f["d"])
        assert ours.explain()["path"] == "chunked"
        # libhdf5 takes seconds for all of it, and what it says of the rest is known.
        assert same(ours[...], written)
        for begin in begins:
            assert same(f["d"][begin - 9 : begin + 18], written[begin - 9 : begin + 18])


def test_a_dataset_that_shrank_and_grew(tmp_path: Path) -> None:
    path = tmp_path / "d.h5"
    for libver in ("earliest", "latest"):
        with h5py.File(path, "w", libver=libver) as f:
            options: dict[str, Any] = {"maxshape": (30, None), "compression": 1, "chunks": (2, 3)}
            d = f.create_dataset("d", data=np.arange(600).reshape(20, 30), **options)
            d.resize((7, 11))
            d.resize((9, 40))
        with h5py.File(path) as f:
            assert same(chunkwise.wrap(f["d"])[...], f["d"][...])


@pytest.mark.parametrize("largest", [None, (None,)], ids=["fixed", "extensible"])
def test_one_chunk_of_many_millions(tmp_path: Path, largest: Any) -> None:
    """An array costs what was written of it, not what it could hold."""
    path = tmp_path / "d.h5"
    with h5py.File(path, "w", libver="latest") as f:
        d = f.create_dataset("d", (2**45,), "u1", chunks=(2**20,), maxshape=largest, compression=1)
        for at in (0, 2**44 + 2**20):
            d.id.write_direct_chunk((at,), zlib.compress(bytes([at % 251 + 1]) * 2**20))
    with chunkwise.open(path) as file:
        d = file["d"]
        assert d.explain()["path"] == "chunked"
        with h5py.File(path) as f:
            places = (np.s_[:4], np.s_[2**44 + 2**20 - 2 : 2**44 + 2**20 + 2], [3, 5, 2**44])
            for index in places:
                assert same(d[index], f["d"][index])


@pytest.mark.parametrize("largest", [None, (None,), (2**20,)], ids=["fixed", "extensible", "more"])
@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("shape", [(100,), (200_000,)], ids=["few", "many"])
def test_the_bytes_that_a_dataset_takes(
    tmp_path: Path, shape: tuple[int], libver: str, largest: Any
) -> None:
    path = tmp_path / "d.h5"
    with h5py.File(path, "w", libver=libver) as f:
        d = f.create_dataset("d", shape, "u1", chunks=(1,), maxshape=largest, compression=1)
        d[70:90] = 1
        f["scalar"] = 1
        f["null"] = h5py.Empty("f4")
        f.create_dataset("late", (3,), "i4")
    with h5py.File(path) as f:
        for name in f:
            assert stored_nbytes(f[name].id) == f[name].id.get_storage_size(), name


def test_a_block_is_not_gone_through_again_and_again(tmp_path: Path) -> None:
    """A super block of 64 blocks of data, all of them the same one."""
    path = tmp_path / "d.h5"
    blocks, elements = 64, 1024
    # Before it come 4 elements, and 12 levels that double from 16 on.
    first = 4 + 16 * (2**12 - 1)
    with h5py.File(path, "w", libver="latest") as f:
        shape = (first + blocks * elements,)
        d = f.create_dataset("d", shape, "u1", chunks=(1,), maxshape=(None,), fillvalue=9)
        d[first] = 1
    # Behind signature, version, kind, the header's address, and an offset of four bytes.
    begin = find(path, b"EASB") + 4 + 2 + 8 + 4
    address = path.read_bytes()[begin : begin + 8]
    patch(path, begin, address * blocks)
    with h5py.File(path) as f:
        ours = chunkwise.wrap(f["d"])
        assert same(ours[first - 9 :], f["d"][first - 9 :])
        plan = ours.explain()
        assert plan["chunks"] is not None
        assert plan["missing_chunks"] is not None
        assert plan["chunks"] - plan["missing_chunks"] == f["d"].id.get_num_chunks()


# --- damage that a listing does not show ------------------------------------------------

SHAPE, CHUNK = (23, 21), (11, 10)
DATA = np.arange(23 * 21, dtype="<i4").reshape(SHAPE)


def assert_read_as_by_h5py(path: Path) -> None:
    (found,) = bad_reader.outcomes([path])
    assert found["ours"]["read"] == found["theirs"]["read"]


def key_of(path: Path, origin: tuple[int, ...]) -> int:
    with h5py.File(path) as f:
        info = f["d"].id.get_chunk_info_by_coord(origin)
    record = struct.pack("<IIQQQQ", info.size, 0, *origin, 0, info.byte_offset)
    content = path.read_bytes()
    assert content.count(record) == 1
    return content.index(record)


@pytest.mark.parametrize("filters", [{}, {"compression": 1}], ids=["none", "deflate"])
@pytest.mark.parametrize("within", [4, 1 << 40, 4 * 11])
def test_a_key_within_an_element_is_no_key(
    tmp_path: Path, filters: dict[str, Any], within: int
) -> None:
    path = tmp_path / "d.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=DATA, chunks=CHUNK, **filters)
    overwrite(path, key_of(path, (11, 10)) + 24, struct.pack("<Q", within))
    assert_read_as_by_h5py(path)
    with h5py.File(path) as f:
        assert not same(f["d"][...], DATA)
        assert "within an element" in str(chunkwise.wrap(f["d"]).explain()["reason"])


def test_keys_of_different_levels_that_disagree(tmp_path: Path) -> None:
    """A look-up that goes by the upper ones does not find what is listed."""
    path = tmp_path / "d.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=np.arange(300), chunks=(2,), compression=1)
    content = path.read_bytes()
    (root,) = (at for at in range(len(content) - 6) if content[at : at + 6] == b"TREE\x01\x01")
    # Size, mask and two numbers before each child.
    second = root + 24 + 24 + 8 + 8
    (begin,) = struct.unpack_from("<Q", content, second)
    overwrite(path, second, struct.pack("<Q", begin + 20))
    assert_read_as_by_h5py(path)
    with h5py.File(path) as f:
        assert not same(f["d"][...], np.arange(300))
        assert "out of order" in str(chunkwise.wrap(f["d"]).explain()["reason"])


@pytest.mark.parametrize("filters", [{}, {"compression": 1}], ids=["none", "deflate"])
def test_chunks_beyond_the_end_that_the_file_states(
    tmp_path: Path, filters: dict[str, Any]
) -> None:
    path = tmp_path / "d.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=DATA, chunks=CHUNK, **filters)
    end = path.stat().st_size
    overwrite(path, 40, struct.pack("<Q", end - 8))
    (found,) = bad_reader.outcomes([path])
    assert "error" in found["theirs"]
    assert "error" in found["ours"]


# What makes libhdf5 choose an index (which dimensions may grow), and how a leaf of it begins.
LEAVES: dict[str, tuple[Any, bytes]] = {
    "btree1": ((None, None), b"TREE\x01\x00"),
    "fixed array": ((96, 700), b"FADB"),
    "fixed array, larger": ((200, 1500), b"FADB"),
    "extensible array": ((None, 700), b"EADB"),
    "extensible array, second": ((96, None), b"EADB"),
    "btree2": ((None, None), b"BTLF"),
}


@pytest.mark.parametrize("at", [0, -1], ids=["first", "last"])
@pytest.mark.parametrize("kind", LEAVES)
def test_damage_is_met_where_it_is_and_never_as_values(kind: str, at: int, tmp_path: Path) -> None:
    """Chunks that are looked up, in an index of which one leaf is damaged."""
    path = tmp_path / "x.h5"
    largest, leaf = LEAVES[kind]
    everything = np.arange(96 * 700, dtype="i4").reshape(96, 700)
    libver = "earliest" if kind == "btree1" else "latest"
    with h5py.File(path, "w", libver=libver) as f:
        options: dict[str, Any] = {"chunks": (2, 2), "maxshape": largest, "compression": 1}
        f.create_dataset("x", data=everything, **options)
    content = bytearray(path.read_bytes())
    place = [found.start() for found in re.finditer(re.escape(leaf), bytes(content))][at]
    content[place + 2] ^= 0x40
    path.write_bytes(content)
    met = 0
    for row in range(0, 96, 5):
        for column in (0, 333, 698):
            # Each by a reader that knows nothing yet.
            with chunkwise.open(path) as ours:
                index = np.s_[row, column : column + 2]
                try:
                    assert same(ours["x"][index], everything[index])
                except chunkwise.errors.CorruptDataError:
                    met += 1
    with chunkwise.open(path) as ours, pytest.raises(chunkwise.errors.ChunkwiseError):
        ours["x"][()]
    if kind.startswith("btree"):
        # Most leaves of a tree lie elsewhere than the damage, and are not looked at.
        assert met < 10


# Vast indexes cost what is written --------------------------------------------------------

ROWS = (0, 2**29, 2**31 - 1)


@pytest.mark.parametrize("maxshape", [(None, 8), (None, None)], ids=["array", "b-tree"])
def test_chunks_that_were_never_written_are_not_gone_through(
    tmp_path: Path, maxshape: tuple[int | None, ...]
) -> None:
    """libhdf5 lists an array index by going through each element, for a minute here."""
    with h5py.File(tmp_path / "vast.h5", "w", libver="latest") as f:
        d = f.create_dataset(
            "d", (2**31, 8), "<i2", chunks=(1, 8), maxshape=maxshape, fillvalue=-1
        )
        for row in ROWS:
            d[row] = np.arange(8) + row % 100
    with h5py.File(tmp_path / "vast.h5") as f:
        ours = chunkwise.wrap(f["d"])
        for row in ROWS:
            assert same(ours[row, 2:], f["d"][row, 2:])
        assert same(ours[2**29 - 1 : 2**29 + 2], f["d"][2**29 - 1 : 2**29 + 2])
        plan = ours.explain(np.s_[5:9])
    assert (plan["path"], plan["missing_chunks"]) == ("chunked", 4)


@pytest.mark.parametrize("dtype", ["u1", h5py.string_dtype()], ids=["plain", "strings"])
@pytest.mark.parametrize("filters", [{}, {"compression": 1}], ids=["none", "deflate"])
def test_repacking_and_inspecting_cost_what_is_written(
    tmp_path: Path, dtype: Any, filters: dict[str, Any]
) -> None:
    """Of 10^12 chunks one is written; nobody may go through the rest."""
    path, other = tmp_path / "vast.h5", tmp_path / "other.h5"
    with h5py.File(path, "w", libver="latest") as f:
        d = f.create_dataset("d", (10**12,), dtype, chunks=(1,), maxshape=(None,), **filters)
        d[5] = 7 if dtype == "u1" else "seven"
    facts = inspect(path)
    (found,) = (each.dataset for each in facts.objects if each.dataset is not None)
    assert found.chunks is not None
    assert (found.chunks.allocated, found.chunks.pairs) == (1, 0)
    for rules in (None, "d:zstd") if dtype == "u1" else (None,):
        # Of strings around the one that is written, the proof looks at what memory holds.
        chunkwise.repack(path, other, filters=rules, memory=2**20, force=True)
        with h5py.File(path) as f, h5py.File(other) as g:
            assert g["d"].shape == (10**12,)
            assert same(g["d"][:9], f["d"][:9])
