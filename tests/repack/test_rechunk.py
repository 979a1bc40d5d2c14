"""Rechunking gives what h5py reads, whatever the shapes, filters and memory."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import UsageError
from tests.support.native import leave_partial_chunks_unfiltered
from tests.support.reading import LEFT_TO_LIBHDF5
from tests.support.rechunking import bits, content, copied, written

FILTERS: list[dict[str, Any]] = [
    {},
    {"compression": 4},
    {"compression": 1, "shuffle": True},
    {"shuffle": True, "compression": 6, "fletcher32": True},
    {"compression": "lzf"},
    {"fletcher32": True},
]
DTYPES = ["i1", "<u2", ">i4", "<f4", ">f8", "<c16", "S3", "V5", "?", "<f2"]
COMPOUND = np.dtype([("a", "<i2"), ("b", ">f8", (2,))])


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    rank = draw(st.integers(1, 3))
    # Chunks may be larger than what may grow.
    grows = draw(st.booleans())
    shape = [draw(st.integers(1, 20)) for _ in range(rank)]

    def chunks() -> tuple[int, ...] | None:
        found = tuple(draw(st.integers(1, n + 3 * grows)) for n in shape)
        return found if draw(st.integers(0, 5)) else None

    source, target = chunks(), chunks()
    maxshape = (None,) * rank if grows else None
    return {
        "shape": tuple(shape),
        "dtype": np.dtype(draw(st.sampled_from([*DTYPES, COMPOUND]))),
        "source": source,
        "target": target,
        "source_filters": draw(st.sampled_from(FILTERS)) if source else {},
        "target_filters": draw(st.sampled_from(FILTERS)) if target else {},
        "source_max": maxshape if source else None,
        "target_max": maxshape if target else None,
        "written": draw(st.sampled_from(["all", "some", "none"])),
        "budget": draw(st.sampled_from([1 << 14, 1 << 16, 1 << 24])),
        "seed": draw(st.integers(0, 99)),
    }


def make(path: Path, case: dict[str, Any]) -> None:
    rng = np.random.default_rng(case["seed"])
    shape, dtype = case["shape"], case["dtype"]
    raw = rng.integers(0, 4, int(np.prod(shape)) * dtype.itemsize, dtype=np.uint8)
    data = (raw % 2 if dtype.kind == "b" else raw).view(dtype).reshape(shape)
    fill = data.flat[0] if dtype.kind in "iuf" else None
    with h5py.File(path, "w", libver=("earliest", "v110")) as file:
        d = file.create_dataset(
            "d",
            shape,
            dtype,
            chunks=case["source"],
            maxshape=case["source_max"],
            fillvalue=fill,
            **case["source_filters"],
        )
        if case["written"] == "all":
            d[...] = data
        elif case["written"] == "some":
            at = tuple(slice(n // 2, n // 2 + 2) for n in shape)
            d[at] = data[at]


@settings(max_examples=60, deadline=None)
@given(case=cases())
@pytest.mark.slow
def test_the_target_is_the_source(
    tmp_path_factory: pytest.TempPathFactory, case: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("rechunk")
    source, target = folder / "s.h5", folder / "t.h5"
    make(source, case)
    before = _native.cache_stats()["decoded"]
    created = {"chunks": case["target"], "maxshape": case["target_max"]}
    created |= case["target_filters"]
    with h5py.File(source) as file:
        itemsize = file["d"].id.get_type().get_size()
    try:
        plan = _native.RechunkPlan(
            case["shape"], case["source"], case["target"], itemsize, case["budget"]
        )
    except UsageError:
        with pytest.raises(UsageError, match="too few to make one chunk"):
            copied(source, target, created, memory_nbytes=case["budget"], proved=False)
        return
    result = copied(source, target, created, memory_nbytes=case["budget"], proved=False)
    decoded = _native.cache_stats()["decoded"] - before
    assert bits(content(target)) == bits(content(source))
    assert decoded == result.decodes <= plan.decodes
    # A filter that makes nothing smaller is left out, this one never.
    if case["written"] == "all" and "fletcher32" in case["source_filters"]:
        assert result.decodes == plan.decodes
    assert result.lost_chunks == []
    if case["source"] and case["target"] and case["written"] == "none":
        assert written(target) == 0


@settings(max_examples=60, deadline=None)
@given(case=cases())
def test_what_was_written_is_proved(
    tmp_path_factory: pytest.TempPathFactory, case: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("rechunk")
    source, target = folder / "s.h5", folder / "t.h5"
    make(source, case)
    created = {"chunks": case["target"], "maxshape": case["target_max"]}
    copied(source, target, created | case["target_filters"])
    assert bits(content(target)) == bits(content(source))


def one(folder: Path, data: np.ndarray[Any, Any], **created: Any) -> Path:
    path = folder / "s.h5"
    with h5py.File(path, "w", libver=("earliest", "v110")) as file:
        file.create_dataset("d", data=data, **created)
    return path


@pytest.mark.parametrize("target", [(3, 4), (5, 2), None])
@pytest.mark.parametrize("layout", ["compact", "external", "virtual", "scalar", "null", "empty"])
def test_other_layouts_are_read_by_libhdf5(
    tmp_path: Path, layout: str, target: tuple[int, int] | None
) -> None:
    source = tmp_path / "s.h5"
    data = np.arange(56, dtype="i4").reshape(7, 8)
    with h5py.File(source, "w") as file:
        if layout == "compact":
            dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            dcpl.set_layout(h5py.h5d.COMPACT)
            space = h5py.h5s.create_simple((7, 8))
            made = h5py.h5d.create(file.id, b"d", h5py.h5t.NATIVE_INT32, space, dcpl)
            h5py.Dataset(made)[...] = data
        elif layout == "external":
            outside = [(str(tmp_path / "raw"), 0, h5py.h5f.UNLIMITED)]
            file.create_dataset("d", data=data, external=outside)
        elif layout == "virtual":
            file["other"] = data
            virtual = h5py.VirtualLayout((7, 8), "i4")
            virtual[...] = h5py.VirtualSource(file["other"])
            file.create_virtual_dataset("d", virtual)
        elif layout == "scalar":
            file["d"] = np.float32(2.5)
        elif layout == "null":
            file["d"] = h5py.Empty("f4")
        else:
            file.create_dataset("d", (0, 8), "f4", chunks=(2, 3), maxshape=(None, 8))
    created: dict[str, Any] = {"chunks": target, "compression": 1 if target else None}
    if layout in {"scalar", "null"}:
        created = {"fillvalue": None}
    elif layout == "empty":
        created |= {"chunks": (3, 4), "maxshape": (None, 8)}
    result = copied(source, tmp_path / "t.h5", created)
    found, expected = content(tmp_path / "t.h5"), content(source)
    if layout != "null":
        assert bits(found) == bits(expected)
        assert found.shape == expected.shape
    if layout in {"compact", "external", "virtual", "scalar"}:
        assert result.through_libhdf5 is not None


def test_filters_without_a_decoder_or_encoder_go_through_libhdf5(tmp_path: Path) -> None:
    data = np.arange(900, dtype="f4").reshape(30, 30)
    source = one(tmp_path, data, chunks=(7, 7), **LEFT_TO_LIBHDF5)
    result = copied(source, tmp_path / "t.h5", {"chunks": (10, 4), **LEFT_TO_LIBHDF5})
    assert result.through_libhdf5 is not None
    assert "read: filter" in result.through_libhdf5
    assert "written: filter" in result.through_libhdf5
    assert bits(content(tmp_path / "t.h5")) == bits(data)
    assert result.chunks_written == 24


@pytest.mark.parametrize("compression", [None, 4])
def test_edge_chunks_may_be_stored_without_filters(
    tmp_path: Path, compression: int | None
) -> None:
    data = np.arange(700, dtype="i4").reshape(28, 25)
    source = one(tmp_path, data, chunks=(9, 9), compression=4)
    target = tmp_path / "t.h5"
    with h5py.File(source) as old, h5py.File(target, "w", libver="latest") as new:
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((8, 6))
        if compression:
            dcpl.set_deflate(compression)
        leave_partial_chunks_unfiltered(dcpl)
        space = h5py.h5s.create_simple(data.shape)
        d = h5py.h5d.create(new.id, b"d", h5py.h5t.STD_I32LE, space, dcpl)
        asked: dict[str, Any] = {"label": "d", "memory_nbytes": 1 << 24}
        dataset = old["d"]
        _native.copy_data(library(), dataset.id.id, d.id, **asked)
    assert bits(content(target)) == bits(data)


def test_a_grid_of_a_billion_chunks_is_planned_at_once() -> None:
    plan = _native.RechunkPlan((1 << 20, 1 << 20), (1, 1 << 10), (1 << 10, 1), 4, 1 << 30)
    assert plan.source_chunks == 1 << 30
    assert plan.decodes == plan.source_chunks
    assert plan.memory_nbytes <= 1 << 30


def test_chunks_that_are_there_are_overwritten_by_libhdf5(tmp_path: Path) -> None:
    data = np.arange(700, dtype="i4").reshape(28, 25)
    source = one(tmp_path, data, chunks=(9, 9), compression=4)
    target = tmp_path / "t.h5"
    with h5py.File(source) as old, h5py.File(target, "w") as new:
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((8, 6))
        dcpl.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        dcpl.set_deflate(1)
        space = h5py.h5s.create_simple(data.shape)
        d = h5py.h5d.create(new.id, b"d", h5py.h5t.STD_I32LE, space, dcpl)
        dataset = old["d"]
        result = _native.copy_data(
            library(), dataset.id.id, d.id, label="d", memory_nbytes=1 << 24
        )
    assert result.through_libhdf5 == "written: it holds chunks already"
    assert bits(content(target)) == bits(data)
