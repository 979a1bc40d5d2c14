"""Are files behind a dataset found where libhdf5 finds them, also when something has changed?"""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

import chunkwise
from chunkwise.routing import elsewhere
from tests.read.test_virtual import (
    NO_END,
    mapped,
    master,
    numbered,
    opened,
    read_both,
    rows,
    wrote,
)
from tests.support.mapping import select
from tests.support.patched import bound_always, engine_reads
from tests.support.processes import descriptors, python
from tests.support.reading import same

__all__ = ["bound_always"]


def virtual(path: Path, source: str, name: str = "x", count: int = 3) -> Path:
    """A virtual dataset ``v`` that is all of its source."""
    layout = h5py.VirtualLayout((count,), "i8")
    layout[:] = h5py.VirtualSource(source, name, (count,))
    return master(path, layout, fillvalue=-1)


def test_a_writer_is_found_wherever_its_name_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = rows(tmp_path)
    monkeypatch.chdir(tmp_path)
    with chunkwise.open(path) as file:
        v = file["v"]
        assert v[1, 0] == 100
        with h5py.File("1.h5", "r+") as writer:
            writer["x"][0] = 8
            # In libhdf5's buffers alone.
            monkeypatch.chdir("/")
            assert v[1, 0] == 8
        assert v[1, 0] == 8


def test_sources_are_beside_a_file_wherever_the_process_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value, place in enumerate(("here", "there")):
        (tmp_path / place).mkdir()
        wrote(tmp_path / place / "s.h5", np.full(3, value))
        virtual(tmp_path / place / "v.h5", "s.h5")
    found = []
    for ours in (False, True):
        monkeypatch.chdir(tmp_path / "here")
        with h5py.File("v.h5") as file:
            monkeypatch.chdir(tmp_path / "there")
            dataset = chunkwise.wrap(file["v"]) if ours else file["v"]
            found.append(dataset[...])
    assert same(found[1], found[0])
    assert found[0].tolist() == [0, 0, 0]


def test_a_missing_source_is_looked_for_where_the_process_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    wrote(tmp_path / "there" / "s.h5", np.arange(3))
    path = virtual(tmp_path / "v.h5", "s.h5")
    with h5py.File(path) as theirs, chunkwise.open(path) as ours:
        for place, value in ((tmp_path, -1), (tmp_path / "there", 1)):
            monkeypatch.chdir(place)
            assert theirs["v"][1] == ours["v"][1] == value
            assert ours["v"].explain()["path"] == "virtual"


def test_folders_behind_links_are_those_that_the_system_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # By its text, "link/.." is the folder above; to the system it is "real".
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real/inner")
    for folder, value in ((tmp_path, 0), (tmp_path / "real", 1)):
        wrote(folder / "s.h5", np.full(3, value))
        np.full(3, value).tofile(folder / "s.raw")
        virtual(folder / "v.h5", "s.h5")
    virtual(tmp_path / "w.h5", "t.h5")
    wrote(tmp_path / "real" / "t.h5", np.full(3, 1))
    monkeypatch.chdir(tmp_path)
    with h5py.File("e.h5", "w") as file:
        file.create_dataset("v", (3,), "i8", external=[("link/../s.raw", 0, 24)])
    dapl = h5p.create(h5p.DATASET_ACCESS)
    dapl.set_virtual_prefix(b"link/..")
    for name, how in (("e.h5", None), ("link/../v.h5", None), ("w.h5", dapl)):
        by = "contiguous" if name == "e.h5" else "virtual"
        assert read_both(name, how, by=by).tolist() == [1, 1, 1]


def test_external_files_are_opened_from_where_the_process_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with h5py.File(tmp_path / "e.h5", "w") as file:
        file.create_dataset("v", (3,), "i8", external=[("a.raw", 0, 24)])
    with h5py.File(tmp_path / "e.h5") as theirs, chunkwise.open(tmp_path / "e.h5") as ours:
        for value in range(2):
            (tmp_path / str(value)).mkdir()
            monkeypatch.chdir(tmp_path / str(value))
            np.full(3, value).tofile("a.raw")
            assert theirs["v"][1] == ours["v"][1] == value
            assert ours["v"].explain()["path"] == "contiguous"


def test_an_external_file_may_be_a_device(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "e.h5", "w") as file:
        file.create_dataset("v", (300,), "i8", external=[("/dev/urandom", 0, 2400)])
    with chunkwise.open(tmp_path / "e.h5") as file:
        # Which has no length.
        assert "no regular file" in str(file["v"].explain()["reason"])
        assert file["v"][...].any()


def test_a_link_that_leads_nowhere_is_no_source_that_came(tmp_path: Path) -> None:
    path = rows(tmp_path)
    (tmp_path / "2.h5").rename(tmp_path / "away")
    (tmp_path / "2.h5").symlink_to("nowhere")
    with chunkwise.open(path) as file:
        v: Any = file["v"]
        assert v[2, 5] == -1
        bound = v._binding.bound
        assert v[2, 5] == -1
        # It was not described again.
        assert v._binding.bound is bound
        (tmp_path / "away").rename(tmp_path / "nowhere")
        assert v[2, 5] == 205


@pytest.mark.usefixtures("bound_always")
def test_a_patched_program_sees_how_many_sources_there_are_now(tmp_path: Path) -> None:
    path = numbered(tmp_path, [0, 1])
    chunkwise.patch_h5py()
    with h5py.File(path) as file:
        first = file["v"]
        assert first[...].shape == (4, 10)
        assert first[-1, 0] == 100
        del first
        wrote(tmp_path / "p2.h5", np.arange(10) + 200, chunks=(4,))
        before = engine_reads()
        assert file["v"].shape == (6, 10)
        assert file["v"][-1, 0] == 200
        assert file["v"][...].shape == (6, 10)
        assert engine_reads() == before + 2
    chunkwise.unpatch_h5py()


def test_refresh_sees_how_many_sources_there_are_now(tmp_path: Path) -> None:
    path = numbered(tmp_path, [0, 1])
    with chunkwise.open(path) as file:
        v = file["v"]
        assert (v.shape, v[...].shape) == ((4, 10), (4, 10))
        wrote(tmp_path / "p2.h5", np.arange(10) + 200, chunks=(4,))
        v.refresh()
        assert (v.shape, v[...].shape) == ((6, 10), (6, 10))
        assert v[-1, 0] == 200
        assert v.explain()["path"] == "virtual"


def test_a_gap_that_is_closed_changes_the_shape_for_all(tmp_path: Path) -> None:
    path = numbered(tmp_path, [0, 2, 4])
    dapl = h5p.create(h5p.DATASET_ACCESS)
    dapl.set_virtual_printf_gap(1)
    with h5py.File(path) as file:
        ours = chunkwise.wrap(opened(file, dapl))
        assert ours.shape == ours[...].shape == (10, 10)
        wrote(tmp_path / "p6.h5", np.arange(10) + 600, chunks=(4,))
        wrote(tmp_path / "p1.h5", np.arange(10) + 100, chunks=(4,))
        assert ours[3, 0] == 100
        assert ours.shape == ours[...].shape == opened(file, dapl).shape
        assert ours[-1, 0] == 600


@pytest.mark.parametrize("gap", [0, 1])
def test_numbers_behind_a_gap_are_left_out_where_there_is_room_for_them(
    tmp_path: Path, gap: int
) -> None:
    """Two rows of sources; the one that goes further makes the dataset as long as it is."""
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_fill_value(np.array(-9))
    there = h5s.create_simple((2,))
    for column, (letter, numbers) in enumerate((("a", range(6)), ("b", (0, 1, 3, 6)))):
        here = h5s.create_simple((0, 2), (NO_END, 2))
        select(here, [(0, 2, NO_END, 2), (column, 1, 1, 1)])
        dcpl.set_virtual(here, f"{letter}%b.h5".encode(), b"x", there)
        for number in numbers:
            wrote(tmp_path / f"{letter}{number}.h5", np.arange(2) + 10 * number)
    mapped(tmp_path / "v.h5", here, dcpl)
    dapl = h5p.create(h5p.DATASET_ACCESS)
    dapl.set_virtual_printf_gap(gap)
    column = read_both(tmp_path / "v.h5", dapl)[:, 1].tolist()
    beyond = [30, 31] if gap else [-9, -9]
    assert column == [0, 1, 10, 11, -9, -9, *beyond, *[-9] * 4]


def test_an_external_file_that_begins_before_its_start(tmp_path: Path) -> None:
    path, offset = tmp_path / "e.h5", 0x1122334455667788
    with h5py.File(path, "w") as file:
        file.create_dataset("v", (3,), "i8", external=[(str(tmp_path / "a.raw"), offset, 24)])
    np.arange(3).tofile(tmp_path / "a.raw")
    written = path.read_bytes()
    assert written.count(offset.to_bytes(8, "little")) == 1
    path.write_bytes(
        written.replace(offset.to_bytes(8, "little"), (2**64 - 8).to_bytes(8, "little"))
    )
    with chunkwise.open(path) as file, pytest.raises(OSError, match=r"e\.h5: dataset /v: "):
        file["v"][...]


# Virtual datasets of virtual datasets ---------------------------------------------------


def test_sources_that_are_virtual_are_opened_as_libhdf5_opens_them(tmp_path: Path) -> None:
    numbered(tmp_path, [0, 1, 3])
    layout = h5py.VirtualLayout((8, 10), "i8")
    layout[:] = h5py.VirtualSource("p.h5", "v", (8, 10))
    master(tmp_path / "w.h5", layout, fillvalue=-1)
    (tmp_path / "far").mkdir()
    wrote(tmp_path / "far" / "s.h5", np.arange(3))
    virtual(tmp_path / "inner.h5", "s.h5")
    virtual(tmp_path / "outer.h5", "inner.h5", "v")
    for name in ("w.h5", "outer.h5"):
        for gap, prefix in ((0, b""), (1, b""), (0, b"${ORIGIN}/far")):
            dapl = h5p.create(h5p.DATASET_ACCESS)
            dapl.set_virtual_printf_gap(gap)
            dapl.set_virtual_prefix(prefix)
            with h5py.File(tmp_path / name) as file:
                try:
                    theirs = opened(file, dapl)[...]
                except OSError:
                    continue
            with h5py.File(tmp_path / name) as file:
                assert same(chunkwise.wrap(opened(file, dapl))[...], theirs), (name, gap, prefix)


def test_sources_that_are_virtual_and_have_no_end(tmp_path: Path) -> None:
    """What libhdf5 takes for their shape is what was so when they were made."""
    wrote(tmp_path / "s.h5", np.arange(6), maxshape=(None,), chunks=(3,))
    endless = select(h5s.create_simple((0,), (NO_END,)), [(0, 1, NO_END, 1)])
    for shape in (0, 4, 6):
        dcpl = h5p.create(h5p.DATASET_CREATE)
        dcpl.set_fill_value(np.array(-9))
        dcpl.set_virtual(endless, b"s.h5", b"x", endless)
        with h5py.File(tmp_path / "inner.h5", "w") as file:
            space = h5s.create_simple((shape,), (NO_END,))
            h5d.create(file.id, b"v", h5t.NATIVE_INT64, space, dcpl)
        virtual(tmp_path / "outer.h5", "inner.h5", "v", 6)
        path = tmp_path / "outer.h5"
        with h5py.File(path) as theirs, chunkwise.open(path) as ours:
            try:
                expected = theirs["v"][...]
            except OSError:
                with pytest.raises(OSError, match=r"outer\.h5: dataset /v: "):
                    ours["v"][...]
            else:
                assert same(ours["v"][...], expected), shape


def test_many_ways_to_many_sources_are_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of some datasets leads to all of the next: ways are many more than datasets."""
    monkeypatch.setattr(elsewhere, "MOST_SOURCES", 50)
    with h5py.File(tmp_path / "v.h5", "w") as file:
        for level in range(4):
            for number in range(4):
                layout = h5py.VirtualLayout((4,), "i8")
                for row in range(4):
                    layout[row : row + 1] = h5py.VirtualSource(".", f"{level + 1}{row}", (4,))[:1]
                file.create_virtual_dataset(f"{level}{number}", layout)
        for number in range(4):
            file[f"4{number}"] = np.arange(4) + number
    with chunkwise.open(tmp_path / "v.h5") as file:
        assert "more than 50 sources" in str(file["00"].explain()["reason"])
        assert file["30"].explain()["path"] == "virtual"
        assert file["30"][...].tolist() == [0, 1, 2, 3]


# What it costs ---------------------------------------------------------------------------


def test_a_union_of_more_elements_than_memory_has_is_explained(tmp_path: Path) -> None:
    side, half = 1 << 20, 1 << 19
    layout = h5py.VirtualLayout((side, side), "u1")
    for row in range(2):
        with h5py.File(tmp_path / f"{row}.h5", "w") as file:
            file.create_dataset("x", (half, side), "u1", chunks=(1 << 15, 1 << 15))
        layout[row * half : (row + 1) * half] = h5py.VirtualSource(f"{row}.h5", "x", (half, side))
    master(tmp_path / "v.h5", layout)
    with chunkwise.open(tmp_path / "v.h5") as file:
        wanted = chunkwise.union(
            [chunkwise.hyperslab((0, 0), (side, half)), chunkwise.hyperslab((5, 9), (7, side - 9))]
        )
        found = file["v"].explain(wanted)
        # Two chunks wide of the first half, and the rest of the uppermost.
        assert found["chunks"] == found["missing_chunks"] == 32 * 16 + 16
        assert found["selected_nbytes"] == side * half + 7 * half


def test_masks_and_unions_over_many_mappings(tmp_path: Path) -> None:
    """Points in order, of which each mapping has a few, and others."""
    rng = np.random.default_rng(1)
    values = rng.integers(0, 1000, (40, 25))
    wrote(tmp_path / "s.h5", values, chunks=(7, 9))
    layout = h5py.VirtualLayout(values.shape, values.dtype)
    source = h5py.VirtualSource("s.h5", "x", values.shape)
    for row in range(40):
        # From the last to the first, in two halves each.
        layout[row, :11] = source[39 - row, :11]
        if row % 5:
            layout[row, 11:] = source[row, 11:]
    master(tmp_path / "v.h5", layout, fillvalue=-3)
    with h5py.File(tmp_path / "v.h5") as theirs, chunkwise.open(tmp_path / "v.h5") as ours:
        whole, v = theirs["v"][...], ours["v"]
        assert v.explain()["path"] == "virtual"
        mask = rng.integers(0, 3, whole.shape) == 0
        assert same(v[mask], whole[mask])
        places = [rng.integers(0, n, 90) for n in whole.shape]
        assert same(v.vindex[tuple(places)], whole[tuple(places)])
        slabs = [((3, 4), (20, 9)), ((0, 10), (40, 3)), ((39, 0), (1, 25))]
        wanted = np.zeros(whole.shape, bool)
        for start, count in slabs:
            wanted[tuple(slice(a, a + n) for a, n in zip(start, count, strict=True))] = True
        union = chunkwise.union([chunkwise.hyperslab(*slab) for slab in slabs])
        assert same(v.read(union), whole[wanted])


def test_nothing_stays_open_when_sources_come_and_go(tmp_path: Path) -> None:
    path = rows(tmp_path)
    with chunkwise.open(path) as file:
        v = file["v"]
        v[...]
        before = descriptors()
        for value in range(20):
            wrote(tmp_path / "new", np.full(30, value, "i4"))
            (tmp_path / "new").replace(tmp_path / "1.h5")
            assert v[1, 3] == value
            assert v[...][1, 4] == value
            assert v[0, 0] == 0
        assert v.explain()["path"] == "virtual"
        assert descriptors() <= before + 4


PROGRAM = """
import sys
import numpy as np
import chunkwise
from tests.support.memory import begin, memory
v = chunkwise.open(sys.argv[1])["v"]
assert v.explain()["path"] == "virtual"
mask = np.ones(v.shape[1], bool)
mask[[5, 7, 100]] = False
v[:2, mask]
# All is known now that a read needs.
before = begin()
found = v[:, mask]
print(memory("VmHWM") - before - found.nbytes)
assert (found == np.arange(v.shape[0]).astype("u1")[:, None]).all()
"""


def test_lists_do_not_take_memory_for_each_mapping(tmp_path: Path) -> None:
    count, width = 600, 12000
    wrote(tmp_path / "s.h5", np.repeat(np.arange(count).astype("u1"), width).reshape(count, width))
    dcpl = h5p.create(h5p.DATASET_CREATE)
    for row in range(count):
        here = h5s.create_simple((count, width))
        select(here, [(row, 1, 1, 1), (0, 1, 1, width)])
        dcpl.set_virtual(here, b"s.h5", b"x", here)
    with h5py.File(tmp_path / "v.h5", "w") as file:
        h5d.create(file.id, b"v", h5t.NATIVE_UINT8, h5s.create_simple((count, width)), dcpl)
    # Twice as many numbers as elements would take 100 MB.
    assert int(python(PROGRAM, tmp_path / "v.h5")) < 48 << 20
