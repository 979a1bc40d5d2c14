"""Are objects that only references lead to copied, as a reader meets them?"""

import ctypes
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5g, h5t
from hypothesis import given, settings
from hypothesis import strategies as st

import chunkwise
from chunkwise.files.objects import walk
from tests.support.native import keep_without_links
from tests.support.native import library as libhdf5
from tests.support.references import write_like_jld2
from tests.support.repacking import require_proof


def unlinked(path: Path) -> list[str]:
    with h5py.File(path) as file:
        return [one.path for one in walk(file) if not one.linked]


def test_values_of_jld2_are_copied_and_rechunked(tmp_path: Path) -> None:
    source, target = write_like_jld2(tmp_path / "a.jld2"), tmp_path / "b.jld2"
    done = chunkwise.repack(source, target, chunk="300x100", filters="shuffle+deflate:1")
    assert done.warnings == ()
    require_proof(source, target)
    assert unlinked(target) == unlinked(source)
    with h5py.File(target) as file:
        assert list(file) == ["value", "cells"]
        first = file[file["value"][()]["more"][0]]
        assert first.chunks == (300, 100)
        assert first.shuffle
        assert file[file["value"][()]["next"]]["b"].chunks == (300, 100)


def test_names_say_what_leads_there(tmp_path: Path) -> None:
    source = write_like_jld2(tmp_path / "a.jld2")
    assert unlinked(source) == [
        "/value(type)->", "/value[0]->", "/value[0]->/b", "/value[0]->/lost", "/value[0]->/soft",
        "/value[0:1]->", "/value(type)->@julia type[0]->",
    ]  # fmt: skip
    done = chunkwise.repack(source, tmp_path / "b.h5", filters={"/value[0:1]->": "none"})
    (one,) = [one for one in done.datasets if one.filters != one.filters_before]
    assert (one.path, one.filters) == ("/value[0:1]->", "none")


def test_a_name_is_not_that_of_a_link(tmp_path: Path) -> None:
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(source, "w") as file:
        file["refs[0]->"] = [1.0]
        file["x"] = np.arange(40_000)
        keep_without_links(file["x"])
        file["refs"] = np.array([file["x"].ref], h5py.ref_dtype)
        del file["x"]
    assert unlinked(source) == ["/refs[0]->>"]
    chunkwise.repack(source, target, chunk="100")
    require_proof(source, target)


def test_workers_leave_them_to_this_process(tmp_path: Path) -> None:
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    data = np.random.default_rng(0).integers(0, 9, (1200, 1200))
    with h5py.File(source, "w") as file:
        for name in ("linked", "x"):
            file.create_dataset(name, data=data, chunks=(1200, 10), compression=1)
        keep_without_links(file["x"])
        file.attrs["refs"] = np.array([file["x"].ref], h5py.ref_dtype)
        del file["x"]
    pytest.importorskip("dask")
    from chunkwise.dask import repack

    repack(source, target, chunk="300x300", filters="deflate:1")
    require_proof(source, target)
    with h5py.File(target) as file:
        assert file[file.attrs["refs"][0]].chunks == (300, 300)


def test_references_that_lead_nowhere_are_named(tmp_path: Path) -> None:
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(source, "w") as file:
        file["x"] = [1]
        wrong = np.array([1 << 40, file["x"].id.id], np.uint64)
        refs = file.create_dataset("refs", (3,), h5py.ref_dtype)
        refs[2] = file["x"].ref
        native = libhdf5()
        kind = ctypes.c_int64.in_dll(native, "H5T_STD_REF_OBJ_g")
        space = h5py.h5s.create_simple((3,))
        space.select_hyperslab((0,), (2,))
        memory = h5py.h5s.create_simple((2,))
        wrong[1] = 7
        handles = map(ctypes.c_int64, (refs.id.id, kind.value, memory.id, space.id, 0))
        assert native.H5Dwrite(*handles, wrong.ctypes.data_as(ctypes.c_void_p)) >= 0
    done = chunkwise.repack(source, target)
    (warning,) = done.warnings
    assert warning.startswith("/refs: 2 of its references led to nothing")
    with h5py.File(target) as file:
        assert [bool(one) for one in file["refs"]] == [False, False, True]


@pytest.mark.slow
def test_many_cells_take_no_time_with_the_square(tmp_path: Path) -> None:
    """Each of 1,200 cells leads to the next, and one dataset to all of them."""
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(source, "w") as file:
        cells: list[Any] = []
        for number in range(1200):
            cell = file.create_dataset(f"{number}", (2,), h5py.ref_dtype)
            if cells:
                cell[0] = cells[-1].ref
            keep_without_links(cell)
            cells.append(cell)
        file["all"] = np.array([one.ref for one in cells[::2]], h5py.ref_dtype)
        file["last"] = np.array([cells[-1].ref], h5py.ref_dtype)
        for number in range(1200):
            del file[f"{number}"]
    names = unlinked(source)
    assert len(names) == len(set(names)) == 1200
    assert max(map(len, names)) < 300
    chunkwise.repack(source, target)
    assert unlinked(target) == names
    require_proof(source, target)


def test_unwritten_references_are_not_read(tmp_path: Path) -> None:
    source = tmp_path / "a.h5"
    with h5py.File(source, "w") as file:
        made = file.create_dataset("refs", (1 << 48,), h5py.ref_dtype, chunks=(1024,))
        made[1 << 40] = file.ref
        file.create_dataset("none", (1 << 40,), h5py.ref_dtype, chunks=(1024,))
        empty = h5py.h5s.create_simple((1 << 30,))
        h5d.create(file.id, b"late", h5t.STD_REF_OBJ, empty)
    begun = time.monotonic()
    assert unlinked(source) == []
    assert time.monotonic() - begun < 60


# --- random graphs ----------------------------------------------------------------------------

KINDS = st.sampled_from(
    ["group", "numbers", "refs", "compound", "sequences", "arrays", "regions", "type"]
)
OBJECTS = st.lists(
    st.tuples(KINDS, st.lists(st.integers(-1, 9), min_size=1, max_size=4), st.booleans()),
    min_size=1,
    max_size=10,
)
LINKS = st.lists(st.tuples(st.integers(-1, 9), st.integers(0, 9)), max_size=8)
ATTRIBUTES = st.lists(st.tuples(st.integers(-1, 9), st.integers(0, 9), st.booleans()), max_size=6)

PAIR = np.dtype([("n", "<i4"), ("lead", h5py.ref_dtype), ("part", h5py.regionref_dtype)])
ROW = h5py.special_dtype(vlen=h5py.ref_dtype)


def _make(group: h5py.Group, name: str, kind: str, types: list[str]) -> Any:
    """Make an object whose references are all null."""
    if kind == "group":
        return group.create_group(name, track_order=len(name) > 1)
    if kind == "type":
        group[name] = PAIR
        types.append(name)
        return group[name]
    if kind == "numbers":
        return group.create_dataset(name, data=np.arange(600).reshape(20, 30), chunks=(5, 30))
    if kind == "compound" and types:
        space = h5py.h5s.create_simple((4,))
        return h5py.Dataset(h5d.create(group.id, name.encode(), group[types[-1]].id, space))
    dtype = {
        "refs": h5py.ref_dtype,
        "compound": PAIR,
        "sequences": ROW,
        "arrays": np.dtype([("two", h5py.ref_dtype, (2,))]),
        "regions": h5py.regionref_dtype,
    }[kind]
    return group.create_dataset(name, (4,), dtype, chunks=(3,))


def _fill(made: Any, kind: str, leads: list[Any], regions: list[Any]) -> None:
    """Let an object lead to others."""
    for place, lead in enumerate(leads):
        if lead is None:
            continue
        region = regions[place % len(regions)] if regions else None
        if kind == "refs":
            made[place] = lead.ref
        elif kind == "regions" and region is not None:
            made[place] = region.regionref[1:9:2, 2:7]
        elif kind == "sequences":
            made[place] = np.array([lead.ref] * (place + 1), h5py.ref_dtype)
        elif kind == "compound":
            part = region.regionref[3:4, :] if region is not None else h5py.RegionReference()
            made[place] = np.array([(place, lead.ref, part)], PAIR)[0]
        elif kind == "arrays":
            one = np.zeros((), made.dtype)
            one["two"] = [lead.ref, leads[0].ref if leads[0] is not None else lead.ref]
            made[place] = one


def _write(path: Path, objects: Any, links: Any, attributes: Any) -> None:
    with h5py.File(path, "w") as file:
        file["base"] = np.arange(600).reshape(20, 30)
        group = file.create_group("made")
        types: list[str] = []
        made = [
            _make(group, f"{number}", kind, types) for number, (kind, *_) in enumerate(objects)
        ]
        regions = [one for one, (kind, *_) in zip(made, objects, strict=True) if kind == "numbers"]

        def of(number: int) -> Any:
            return None if number < 0 else made[number % len(made)]

        for number, (one, (kind, leads, linked)) in enumerate(zip(made, objects, strict=True)):
            _fill(one, kind, [of(lead) for lead in leads], regions)
            if linked:
                file[f"l{number}"] = one
            else:
                keep_without_links(one)
        groups = [file["/"]] + [one for one in made if isinstance(one, h5py.Group)]
        for number, (holder, lead) in enumerate(links):
            groups[holder % len(groups)][f"x{number}"] = of(lead)
        for number, (holder, lead, region) in enumerate(attributes):
            owner = file if holder < 0 else of(holder)
            if region and regions:
                owner.attrs[f"a{number}"] = regions[lead % len(regions)].regionref[0:2, 5:7]
            else:
                owner.attrs[f"a{number}"] = of(lead).ref
        del file["made"]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(objects=OBJECTS, links=LINKS, attributes=ATTRIBUTES)
def test_a_copy_is_the_same_graph(
    tmp_path_factory: pytest.TempPathFactory, objects: Any, links: Any, attributes: Any
) -> None:
    folder = tmp_path_factory.mktemp("graph")
    source, target = folder / "a.h5", folder / "b.h5"
    _write(source, objects, links, attributes)
    done = chunkwise.repack(source, target, chunk={"**": "7x11"}, filters="shuffle+deflate:1")
    assert done.warnings == ()
    require_proof(source, target)
    assert unlinked(target) == unlinked(source)


def test_a_copy_has_no_more_names_than_links(tmp_path: Path) -> None:
    """An object in a group that references alone lead to has the one name that it has there."""
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(source, "w") as file:
        group = file.create_group("group")
        group["x"] = [1]
        keep_without_links(group)
        file["refs"] = np.array([group["x"].ref, group.ref], h5py.ref_dtype)
        del file["group"]
    chunkwise.repack(source, target)
    require_proof(source, target)
    with h5py.File(target) as file:
        assert h5g.get_objinfo(file[file["refs"][0]].id).nlink == 1
