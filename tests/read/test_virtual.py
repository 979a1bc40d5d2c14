"""Virtual datasets are read as libhdf5 reads them, by the engine."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t
from hypothesis import given
from hypothesis import strategies as st

import chunkwise
from tests.support.mapping import make_random, select
from tests.support.processes import descriptors
from tests.support.reading import assert_reads_like_h5py, random_index, same

NO_END = h5s.UNLIMITED


def wrote(path: Path, values: Any, name: str = "x", **options: Any) -> None:
    with h5py.File(path, "a") as file:
        file.create_dataset(name, data=values, **options)


def master(path: Path, layout: h5py.VirtualLayout, **options: Any) -> Path:
    """Write a virtual dataset ``v``."""
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("v", layout, **options)
    return path


def mapped(path: Path, space: Any, dcpl: Any) -> Path:
    """Write one of integers in ways that h5py's layouts lack."""
    with h5py.File(path, "w") as file:
        h5d.create(file.id, b"v", h5t.NATIVE_INT64, space, dcpl)
    return path


def opened(file: h5py.File, dapl: Any = None, name: bytes = b"v") -> h5py.Dataset:
    return h5py.Dataset(h5d.open(file.id, name, dapl or h5p.create(h5p.DATASET_ACCESS)))


def read_both(path: Path | str, dapl: Any, name: bytes = b"v", by: str = "virtual") -> Any:
    """What libhdf5 reads of it; ours is the same, and read by this path."""
    with h5py.File(path) as file:
        theirs = opened(file, dapl, name)[...]
    with h5py.File(path) as file:
        ours = chunkwise.wrap(opened(file, dapl, name))
        assert ours.explain()["path"] == by
        assert same(ours[...], theirs)
    return theirs


def rows(folder: Path, count: int = 4, width: int = 30, **options: Any) -> Path:
    """A virtual dataset, each row of which is a file."""
    layout = h5py.VirtualLayout((count, width), "i4")
    for row in range(count):
        values = np.arange(width, dtype="i4") + 100 * row
        wrote(folder / f"{row}.h5", values, chunks=(8,), compression="gzip")
        layout[row] = h5py.VirtualSource(f"{row}.h5", "x", (width,))
    return master(folder / "v.h5", layout, fillvalue=-1, **options)


def agree(path: Path, indices: list[Any], expected: str = "virtual", name: str = "v") -> None:
    """Compare with h5py, and the path that was taken with what is expected."""
    with h5py.File(path) as theirs, chunkwise.open(path) as ours:
        found = ours[name].explain()
        assert found["path"] == expected, found["reason"]
        for index in indices:
            assert same(ours[name][index], theirs[name][index]), index


@given(st.integers(0, 2**32 - 1))
def test_any_mappings_give_what_libhdf5_gives(tmp_path: Path, seed: int) -> None:
    """Strided, overlapping or not, of other shapes and types, missing, in the same file."""
    path = make_random(tmp_path, seed)
    rng = np.random.default_rng(seed)
    with h5py.File(path) as theirs, chunkwise.open(path) as ours:
        d, v = theirs["v"], ours["v"]
        found = v.explain()
        whole = d[...]
        assert same(v[...], whole)
        if found["path"] != "virtual":
            # What libhdf5 makes of the rest depends on what is read with it.
            assert found["reason"] == "its mappings overlap"
            return
        for _ in range(6):
            index = random_index(rng, d.shape)
            assert same(v[index], d[index]), index
        picked = [rng.integers(0, n, rng.integers(1, 6)) for n in d.shape]
        assert same(v.oindex[tuple(picked)], whole[np.ix_(*picked)])
        places = [rng.integers(0, n, 7) for n in d.shape]
        assert same(v.vindex[tuple(places)], whole[tuple(places)])
        mask = rng.integers(0, 2, d.shape).astype(bool)
        assert same(v[mask], whole[mask])
        assert same(v[::-1], whole[::-1])
        low, high = chunkwise.hyperslab((0,) * d.ndim, (1,) * d.ndim), d.shape
        last = chunkwise.hyperslab(tuple(n - 1 for n in high), (1,) * d.ndim)
        assert same(v.read(chunkwise.union([low, last])), whole.flat[sorted({0, whole.size - 1})])
        assert same(v.astype("f8")[...], d.astype("f8")[...])
        out = np.full(d.shape, 3, "i4")
        v.read_direct(out)
        assert same(out, whole)


def test_rows_of_files_are_read_by_the_engine(tmp_path: Path) -> None:
    path = rows(tmp_path)
    with h5py.File(path) as file:
        assert_reads_like_h5py(file["v"], 30)
    with chunkwise.open(path) as file:
        found = file["v"].explain(np.s_[1:3, :9])
        assert (found["path"], found["chunks"], found["missing_chunks"]) == ("virtual", 4, 0)
        assert found["selected_nbytes"] == 2 * 9 * 4
        # Each chunk has 8 elements.
        assert found["decoded_nbytes"] == 4 * 8 * 4
        assert file["v"].chunks is None


def test_sources_and_external_data_may_be_named_from_the_root(tmp_path: Path) -> None:
    values = np.arange(1, 6)
    (tmp_path / "sub").mkdir()
    wrote(tmp_path / "sub" / "source.h5", values)
    layout = h5py.VirtualLayout(values.shape, values.dtype)
    layout[:] = h5py.VirtualSource(tmp_path / "sub" / "source.h5", "x", values.shape)
    path = master(tmp_path / "v.h5", layout, fillvalue=-1)
    outside = [(str(tmp_path / "outside.raw"), 0, h5py.h5f.UNLIMITED)]
    wrote(path, values, external=outside)
    with chunkwise.open(path) as file:
        for name, expected in (("v", "virtual"), ("x", "contiguous")):
            assert np.array_equal(file[name][...], values)
            assert file[name].explain()["path"] == expected


def test_a_virtual_dataset_may_lead_to_virtual_ones(tmp_path: Path) -> None:
    rows(tmp_path)
    layout = h5py.VirtualLayout((2, 2, 30), "i4")
    for half in range(2):
        layout[half] = h5py.VirtualSource("v.h5", "v", (4, 30))[2 * half : 2 * half + 2]
    master(tmp_path / "w.h5", layout)
    agree(tmp_path / "w.h5", [np.s_[...], np.s_[1, 0, 3:20:4], np.s_[:, 1], np.s_[0, :, -1]])


@pytest.mark.parametrize("sources", [("v0",), ("v1", "v0"), ("v1", "v2", "v1")])
def test_one_that_leads_to_itself_is_an_error(tmp_path: Path, sources: tuple[str, ...]) -> None:
    """libhdf5 ends the process."""
    with h5py.File(tmp_path / "v.h5", "w") as file:
        for number, source in enumerate(sources):
            layout = h5py.VirtualLayout((5,), "i4")
            layout[:] = h5py.VirtualSource("." if number else "v.h5", source, (5,))
            file.create_virtual_dataset(f"v{number}", layout)
    with chunkwise.open(tmp_path / "v.h5") as file:
        v = file["v0"]
        for read in (lambda: v[...], lambda: v[2], lambda: v.read(), lambda: np.asarray(v)):
            with pytest.raises(chunkwise.errors.CorruptDataError, match=r"v0: .*leads to itself"):
                read()
        assert v.shape == (5,)


def numbered(folder: Path, numbers: list[int], pattern: bytes = b"p%b.h5") -> Path:
    """A dataset without end, whose rows are files with numbers."""
    for number in numbers:
        wrote(folder / f"p{number}.h5", np.arange(10) + 100 * number, chunks=(4,))
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_fill_value(np.array(-9))
    here = h5s.create_simple((0, 10), (NO_END, 10))
    here.select_hyperslab((1, 0), (NO_END, 1), (2, 1), (1, 10))
    dcpl.set_virtual(here, pattern, b"x", h5s.create_simple((10,)))
    return mapped(folder / "p.h5", here, dcpl)


@pytest.mark.parametrize("gap", [0, 1, 3])
def test_sources_with_numbers_are_found_up_to_a_gap(tmp_path: Path, gap: int) -> None:
    path = numbered(tmp_path, [0, 1, 3, 6])
    dapl = h5p.create(h5p.DATASET_ACCESS)
    dapl.set_virtual_printf_gap(gap)
    with h5py.File(path) as file:
        theirs = opened(file, dapl)
        whole = theirs[...]
        ours = chunkwise.wrap(opened(file, dapl))
        assert ours.explain()["path"] == "virtual"
        assert ours.shape == whole.shape == ({0: 4, 1: 8, 3: 14}[gap], 10)
        assert same(ours[...], whole)
        assert same(ours[1:, 3:5], whole[1:, 3:5])


def percent(folder: Path) -> Path:
    """One whose source has per cent signs in its names."""
    wrote(folder / "50%.h5", np.arange(6, dtype="i4"), "a%b")
    layout = h5py.VirtualLayout((6,), "i4")
    layout[:] = h5py.VirtualSource("50%%.h5", "a%%b", (6,))
    return master(folder / "percent.h5", layout)


def test_names_with_percent_signs(tmp_path: Path) -> None:
    agree(percent(tmp_path), [np.s_[...]])


def endless(folder: Path) -> Path:
    """One of two sources without end, of which each has every other pair of elements."""
    dcpl, here = h5p.create(h5p.DATASET_CREATE), None
    dcpl.set_fill_value(np.array(-9))
    for number, length in enumerate([7, 4]):
        values = np.arange(length) + 100 * number
        wrote(folder / f"long{number}.h5", values, maxshape=(None,), chunks=(3,))
        here = h5s.create_simple((0,), (NO_END,))
        here.select_hyperslab((2 * number,), (NO_END,), (4,), (2,))
        there = h5s.create_simple((0,), (NO_END,))
        there.select_hyperslab((0,), (NO_END,), (1,), (1,))
        dcpl.set_virtual(here, b"long%d.h5" % number, b"x", there)
    return mapped(folder / "endless.h5", here, dcpl)


@pytest.mark.parametrize("view", [h5d.VDS_FIRST_MISSING, h5d.VDS_LAST_AVAILABLE])
def test_sources_without_end_count_as_far_as_they_go(tmp_path: Path, view: int) -> None:
    dapl = h5p.create(h5p.DATASET_ACCESS)
    dapl.set_virtual_view(view)
    is_ours = view == h5d.VDS_LAST_AVAILABLE
    whole = read_both(endless(tmp_path), dapl, by="virtual" if is_ours else "libhdf5")
    assert len(whole) == 13 if is_ours else len(whole) < 13


def scattered(folder: Path) -> Path:
    """One of a mapping of several blocks, which lie otherwise in the source."""
    wrote(folder / "s.h5", np.arange(40).reshape(5, 8), chunks=(2, 3), compression="gzip")
    dcpl = h5p.create(h5p.DATASET_CREATE)
    here = select(h5s.create_simple((6, 9)), [(0, 1, 1, 2), (1, 4, 2, 2)])
    select(here, [(4, 1, 1, 1), (0, 1, 1, 7)], h5s.SELECT_OR)
    there = select(h5s.create_simple((5, 8)), [(1, 1, 1, 3), (2, 1, 1, 5)])
    dcpl.set_virtual(here, b"s.h5", b"x", there)
    return mapped(folder / "scattered.h5", h5s.create_simple((6, 9)), dcpl)


def test_mappings_of_scattered_blocks(tmp_path: Path) -> None:
    agree(scattered(tmp_path), [np.s_[...], np.s_[1], np.s_[:, 2:6], np.s_[4, 3]])


def test_sources_are_looked_for_where_libhdf5_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = h5py.VirtualLayout((3,), "i8")
    layout[:] = h5py.VirtualSource("s.h5", "x", (3,))
    far = h5py.VirtualLayout((3,), "i8")
    far[:] = h5py.VirtualSource("/no/such/folder/s.h5", "x", (3,))
    places = ["home", "prefix", "other", "cwd", "real"]
    for place in places:
        (tmp_path / place).mkdir()
    with h5py.File(master(tmp_path / "real" / "v.h5", layout, fillvalue=-1), "a") as file:
        file.create_virtual_dataset("far", far, fillvalue=-1)
    (tmp_path / "home" / "v.h5").symlink_to("../real/v.h5")
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setenv("HDF5_VDS_PREFIX", f"/nowhere:{tmp_path / 'prefix'}")
    dapl = h5p.create(h5p.DATASET_ACCESS)
    dapl.set_virtual_prefix(b"${ORIGIN}/../other")
    # From the last place to the first, so that each one found goes before those that were.
    for value, place in enumerate(["", "real", "cwd", "home", "other", "prefix"]):
        if place:
            wrote(tmp_path / place / "s.h5", np.full(3, value))
        for name in (b"v", b"far"):
            read_both(tmp_path / "home" / "v.h5", dapl, name)


def damaged(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file["x"].id.write_direct_chunk((8,), b"nothing that deflates")


def holding(*values: Any) -> Callable[[Path], None]:
    """The source has such values, or such a link, or nothing."""

    def harm(path: Path) -> None:
        with h5py.File(path, "w") as file:
            for value in values:
                file["x"] = value

    return harm


def a_group(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_group("x")


HARMS: dict[str, Callable[[Path], Any]] = {
    "no file": Path.unlink,
    "no dataset": holding(),
    "dangling": holding(h5py.SoftLink("/nowhere")),
    "a group": a_group,
    "no HDF5": lambda path: path.write_bytes(b"no HDF5 at all"),
    "cut": lambda path: os.truncate(path, 900),
    "shorter": holding(np.arange(9)),
    "longer": holding(np.arange(90)),
    "of another rank": holding(np.zeros((3, 30))),
    "of text": holding(np.full(30, b"abcd")),
    "damaged": damaged,
}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS.keys())
def test_what_is_wrong_with_a_source_is_wrong_as_in_h5py(
    tmp_path: Path, harm: Callable[[Path], Any]
) -> None:
    path = rows(tmp_path)
    harm(tmp_path / "1.h5")
    for index in (np.s_[...], np.s_[0], np.s_[1], np.s_[1, :3]):
        with h5py.File(path) as theirs, chunkwise.open(path) as ours:
            try:
                expected = theirs["v"][index]
            except OSError:
                with pytest.raises(OSError, match=r"\.h5: dataset ") as caught:
                    ours["v"][index]
                assert isinstance(caught.value, chunkwise.ChunkwiseError)
                assert "\n" not in str(caught.value)
            else:
                assert same(ours["v"][index], expected)


def test_an_error_names_the_source(tmp_path: Path) -> None:
    path = rows(tmp_path)
    damaged(tmp_path / "1.h5")
    with chunkwise.open(path) as file:
        with pytest.raises(
            chunkwise.errors.CorruptDataError, match=r"1\.h5: dataset x: the chunk"
        ):
            file["v"][...]
        # The others can be read.
        assert file["v"][2, 3] == 203


def test_a_source_that_comes_later_is_seen(tmp_path: Path) -> None:
    path = rows(tmp_path)
    (tmp_path / "2.h5").rename(tmp_path / "away")
    holding()(tmp_path / "1.h5")
    with chunkwise.open(path) as file:
        v = file["v"]
        assert v[1:3, 5].tolist() == [-1, -1]
        (tmp_path / "away").rename(tmp_path / "2.h5")
        assert v[1:3, 5].tolist() == [-1, 205]
        wrote(tmp_path / "1.h5", np.arange(30, dtype="i4"))
        assert v[1:3, 5].tolist() == [5, 205]
        assert v.explain()["path"] == "virtual"


def test_what_this_process_writes_into_a_source_is_seen(tmp_path: Path) -> None:
    path = rows(tmp_path)
    with chunkwise.open(path) as file:
        v = file["v"]
        assert v[1, 0] == 100
        with h5py.File(tmp_path / "1.h5", "r+") as writer:
            writer["x"][0] = 8
            # In libhdf5's buffers alone.
            assert v[1, 0] == 8
            assert v.read(chunkwise.hyperslab((1, 0), (1, 2))).tolist() == [[8, 101]]
            assert np.asarray(v)[1, 0] == 8
            assert v.explain()["path"] == "libhdf5"
        assert v[1, 0] == 8
    with chunkwise.open(path) as file:
        v = file["v"]
        assert v[1, 0] == 8
        with chunkwise.open(tmp_path / "2.h5", "r+") as writer:
            source: Any = writer["x"]
            source[:4] = 9
            assert v[2, :5].tolist() == [9, 9, 9, 9, 204]
            assert v.read(chunkwise.hyperslab((2, 0), (1, 2))).tolist() == [[9, 9]]


def test_sources_of_many_files_need_few_descriptors(tmp_path: Path) -> None:
    count = 300
    layout = h5py.VirtualLayout((count, 4), "i4")
    for number in range(count):
        wrote(tmp_path / f"{number}.h5", np.full(4, number, "i4"))
        layout[number] = h5py.VirtualSource(f"{number}.h5", "x", (4,))
    master(tmp_path / "v.h5", layout)
    with chunkwise.open(tmp_path / "v.h5") as file:
        before = descriptors()
        expected = np.repeat(np.arange(count, dtype="i4"), 4).reshape(count, 4)
        assert same(file["v"][...], expected)
        assert same(file["v"][...], expected)
        assert descriptors() - before <= 257


def test_elements_with_fields_and_text(tmp_path: Path) -> None:
    dtype = np.dtype([("a", "i4"), ("b", "f8"), ("c", "S3")])
    values = np.zeros(20, dtype)
    values["a"], values["b"], values["c"] = np.arange(20), np.arange(20) / 3, b"xy"
    layout = h5py.VirtualLayout((3, 10), dtype)
    for row in range(2):
        wrote(tmp_path / f"{row}.h5", values[10 * row :][:10], chunks=(3,))
        layout[row] = h5py.VirtualSource(f"{row}.h5", "x", (10,), dtype)
    fill = np.array((5, 6.5, b"z"), dtype)
    master(tmp_path / "v.h5", layout, fillvalue=fill)
    agree(tmp_path / "v.h5", [np.s_[...], np.s_[2], np.s_[1, 3], "b", np.s_["a", 1:, ::3]])


def test_external_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.arange(100, dtype="i4").tofile("a.raw")
    np.arange(100, 200, dtype="i4").tofile("b.raw")
    (tmp_path / "sub").mkdir()
    np.arange(500, 600, dtype="i4").tofile("sub/b.raw")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        # Pieces that end within an element, and the last without end.
        parts = [("a.raw", 8, 201), (str(tmp_path / "b.raw"), 3, h5py.h5f.UNLIMITED)]
        file.create_dataset("v", (15, 10), "i4", external=parts)
        file.create_dataset("w", (10,), "i4", external=[("b.raw", 0, 40)])
        file.create_dataset("none", (10,), "i4", external=[("c.raw", 0, 40)])
    indices = [np.s_[...], np.s_[4:7], np.s_[::2, 1:9:3], np.s_[14, 9], np.s_[:, [1, 5]]]
    agree(path, indices, "contiguous")
    dapl = h5p.create(h5p.DATASET_ACCESS)
    dapl.set_efile_prefix(b"${ORIGIN}/sub")
    with h5py.File(path) as file:
        ours = chunkwise.wrap(h5py.Dataset(h5d.open(file.id, b"w", dapl)))
        assert ours.explain()["path"] == "contiguous"
        assert ours[0] == 500
    with chunkwise.open(path) as file:
        with pytest.raises(OSError, match="none: an external file with its data cannot be read"):
            file["none"][...]
        assert file["w"][0] == 100
        np.arange(100, dtype="i4").tofile("b.raw")
        assert file["w"][:2].tolist() == [0, 1]
        assert file["w"].explain()["path"] == "contiguous"
    # What lies beyond a file's end is 0.
    os.truncate("b.raw", 50)
    agree(path, indices, "contiguous")


def test_what_a_read_brought_is_found_again(tmp_path: Path) -> None:
    """Of more chunks than the cache holds, many are there the next time, as in one dataset."""
    layout = h5py.VirtualLayout((40, 50, 50), "f4")
    for number in range(8):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            values = np.full((5, 50, 50), number, "f4")
            file.create_dataset("x", data=values, chunks=(1, 50, 50), compression=1)
        source = h5py.VirtualSource(f"{number}.h5", "x", (5, 50, 50))
        layout[5 * number : 5 * number + 5] = source
    with h5py.File(tmp_path / "master.h5", "w") as file:
        file.create_virtual_dataset("x", layout)
    chunkwise.cache_clear()
    with (
        # Of several threads, one may come last to what the other has just replaced.
        chunkwise.settings(cache_nbytes=30 * 50 * 50 * 4, threads=1),
        chunkwise.open(tmp_path / "master.h5") as file,
    ):
        hits = []
        for _ in range(2):
            before = chunkwise.cache_stats()["hits"]
            assert file["x"][:, 3, 4].tolist() == [n // 5 for n in range(40)]
            hits.append(chunkwise.cache_stats()["hits"] - before)
    # By age alone it would be none.
    assert hits[0] == 0
    assert 25 <= hits[1] <= 30
