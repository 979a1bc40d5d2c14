"""Do zarr and xarray read by the references what h5py reads, and is all else named?"""

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chunkwise
from chunkwise.indexing import kerchunk, variables
from chunkwise.indexing.arrays import UnfitError
from tests.support.everything import write_everything
from tests.support.filtered import BLOSC2S, CASES, SZIPS, Case, create, values
from tests.support.indexing import assert_same_values, by_xarray, by_zarr

READ = ("zstd", "bzip2", "blosc ")
DEFLATE, SHUFFLE, FLETCHER32 = Case(1, (4,)), Case(2), Case(3)


def names_left_out(found: Any) -> dict[str, str]:
    return {one.name: one.reason for one in found.left_out}


def test_every_filter_is_read_or_named(tmp_path: Path) -> None:
    path = tmp_path / "filters.h5"
    cases = {**CASES, **SZIPS, **BLOSC2S}
    with h5py.File(path, "w") as file:
        for number, (name, case) in enumerate(cases.items()):
            dataset = create(file, name, "<i4", (130, 22), (50, 7), [case])
            dataset[...] = values("<i4", (130, 22), "constant", number)
    found = chunkwise.index(path, tmp_path / "out.json", inline=0)
    left = names_left_out(found)
    with h5py.File(path) as file:
        group = by_zarr(tmp_path / "out.json")
        for name in cases:
            reason = left.get(f"/{name}")
            if reason is None:
                assert_same_values(group[name], file[name])
                continue
            assert "--inline 11440 puts" in reason
            if name == "blosc stored":
                assert "filter masks" in reason
            else:
                assert not name.startswith(READ), reason
                assert name.split()[0] in reason
        # Their values can be in the index itself.
        found = chunkwise.index(path, tmp_path / "out.json", inline="16KiB", force=True)
        assert (found.left_out, found.inlined) == ((), len(left))
        group = by_zarr(tmp_path / "out.json")
        for name in left:
            assert_same_values(group[name], file[name])


@st.composite
def datasets(draw: st.DrawFn) -> dict[str, Any]:
    shape = draw(st.lists(st.integers(0, 9), min_size=1, max_size=3))
    chunk = [draw(st.integers(1, max(length, 1))) for length in shape]
    pipelines = [
        [], [DEFLATE], [SHUFFLE, DEFLATE], [FLETCHER32], [SHUFFLE, DEFLATE, FLETCHER32],
        [FLETCHER32, SHUFFLE, DEFLATE], [DEFLATE, SHUFFLE], [DEFLATE, DEFLATE],
    ]  # fmt: skip
    return {
        "dtype": draw(st.sampled_from(["u1", "<i2", ">i4", "<f8", ">f4", "<c8", "S3", "?"])),
        "shape": tuple(shape),
        "chunk": tuple(chunk),
        "filters": draw(st.sampled_from(pipelines)),
        "fill": draw(st.sampled_from([None, 0, 1])),
        "written": draw(st.sampled_from(["all", "some", "none"])),
        "libver": draw(st.sampled_from(["earliest", "latest"])),
        "user_block": draw(st.sampled_from([0, 512])),
        "parquet": draw(st.integers(0, 3)) == 0,
        "record": draw(st.integers(1, 20)),
    }


def write_generated(path: Path, case: dict[str, Any]) -> None:
    options = {"libver": case["libver"], "userblock_size": case["user_block"]}
    with h5py.File(path, "w", **options) as file:
        fill = {} if case["fill"] is None else {"fill": case["fill"]}
        shape, dtype = case["shape"], case["dtype"]
        dataset = create(file, "d", dtype, shape, case["chunk"], case["filters"], **fill)
        data = values(dtype, shape, "few")
        if case["written"] == "all":
            dataset[...] = data
        elif case["written"] == "some":
            dataset[: shape[0] // 2] = data[: shape[0] // 2]
        file.create_dataset("contiguous", data=data)


@given(case=datasets())
@settings(max_examples=25)
def test_generated_datasets_are_read_as_h5py_reads_them(
    case: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("generated")
    path = folder / "a.h5"
    write_generated(path, case)
    target = folder / "out.json"
    if case["parquet"] and _can_write_parquet():
        target = folder / "out.parquet"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kerchunk, "_IN_A_FILE", case["record"])
        patch.setattr(variables, "PIECE_NBYTES", 40)
        found = chunkwise.index(path, target)
    assert not found.left_out
    group = by_zarr(target)
    with h5py.File(path) as file:
        for name in ("d", "contiguous"):
            assert_same_values(group[name], file[name])


def _can_write_parquet() -> bool:
    try:
        kerchunk.parquet_engine()
    except chunkwise.ChunkwiseError:
        return False
    return True


def test_of_everything_all_is_read_or_named(tmp_path: Path) -> None:
    path = tmp_path / "everything.h5"
    write_everything(path)
    found = chunkwise.index(path, tmp_path / "out.json", inline=0)
    left = names_left_out(found)
    group = by_zarr(tmp_path / "out.json")
    with h5py.File(path) as file:
        names: list[str] = []
        file.visititems(
            lambda name, one: names.append(name) if isinstance(one, h5py.Dataset) else None
        )
        for name in names:
            if f"/{name}" not in left:
                assert_same_values(group[name], file[name])
    assert found.datasets + sum(f"/{name}" in left for name in names) == len(names)
    assert all(left.values())


def test_filter_masks_and_plain_edges_are_named(tmp_path: Path) -> None:
    path = tmp_path / "masks.h5"
    with h5py.File(path, "w", libver="latest") as file:
        dataset = file.create_dataset("mask", (4,), "i4", chunks=(2,), compression=1)
        dataset[...] = 7
        dataset.id.write_direct_chunk((2,), np.array([1, 2], "i4").tobytes(), filter_mask=1)
    found = chunkwise.index(path, tmp_path / "out.json", inline=0)
    assert "filter masks" in names_left_out(found)["/mask"]
    chunkwise.index(path, tmp_path / "out.json", force=True)
    assert by_zarr(tmp_path / "out.json")["mask"][...].tolist() == [7, 7, 1, 2]


def test_never_written_chunks_that_are_not_the_fill_value_are_named(tmp_path: Path) -> None:
    path = tmp_path / "fill.h5"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("d", (4, 50_000), "i4", chunks=(2, 50_000), fillvalue=3)
        dataset[:2] = 1
        dataset.attrs["_FillValue"] = np.array([9], "i4")
    found = chunkwise.index(path, tmp_path / "out.json")
    assert "never written" in names_left_out(found)["/d"]


def test_a_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.h5"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("d", data=np.arange(100_000), chunks=(1000,))
        last = dataset.id.get_chunk_info(99)
        end = last.byte_offset + last.size
        assert variables._listing(dataset.id, end).written == 100
        with pytest.raises(UnfitError, match="cut off"):
            variables._listing(dataset.id, end - 1)


def write_netcdf(path: Path) -> None:
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(path, "w") as file:
        for name, length in {"t": None, "y": 5, "x": 7, "nv": 2, "l": 4}.items():
            file.createDimension(name, length)
        packed = {"zlib": True, "shuffle": True, "fletcher32": True}
        file.createVariable("t", "f8", ("t",))[:] = np.arange(3)
        file["t"].units = "days since 2000-01-01"
        file.createVariable("y", "f4", ("y",))[:] = np.arange(5)
        short = file.createVariable("v", "i2", ("t", "y", "x"), fill_value=-1, **packed)
        short[0], short[2] = 3, 4
        short.scale_factor, short.list, short.text = 0.1, np.arange(3), "é"
        # Fewer records than there are, which are missing values.
        late = file.createVariable("late", "f4", ("t", "x"), fill_value=-5.0, **packed)
        late[:2] = np.ones((2, 7))
        file.createVariable("twice", "i4", ("x", "x"))[:] = 3
        plain = file.createVariable("zeros", "u1", ("y", "x"), fill_value=False)
        plain[:] = np.arange(35).reshape(5, 7) // 30
        file.createVariable("text", str, ("y",))[:] = np.array(list("abcdé"), object)
        file.createVariable("l", "f4", ("y", "l"))[:] = 2
        file.createVariable("crs", "i4", ())[...] = 1
        group = file.createGroup("g")
        group.createDimension("z", 3)
        group.createVariable("q", "f4", ("z", "x"))[:] = 1
        group.note = "below"


@pytest.mark.parametrize("group", [None, "g"])
def test_xarray_reads_what_it_reads_of_the_file(tmp_path: Path, group: str | None) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    path = tmp_path / "a.nc"
    write_netcdf(path)
    assert not chunkwise.index(path, tmp_path / "out.json").left_out
    with xarray.open_dataset(path, engine="h5netcdf", group=group) as theirs:
        ours = by_xarray(tmp_path / "out.json", group)
        xarray.testing.assert_identical(ours, theirs)


def test_dimensions_without_scales_are_numbered_as_in_netcdf(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        for name, shape in {"a": (3, 4), "b": (4, 4), "c": (3,), "g/d": (5, 3)}.items():
            file[name] = np.zeros(shape)
    chunkwise.index(path, tmp_path / "out.json")
    ours = by_xarray(tmp_path / "out.json")
    # The deepest group first.
    assert by_xarray(tmp_path / "out.json", "g")["d"].dims == ("phony_dim_0", "phony_dim_1")
    assert {name: ours[name].dims for name in "abc"} == {
        "a": ("phony_dim_2", "phony_dim_3"),
        "b": ("phony_dim_3", "phony_dim_4"),
        "c": ("phony_dim_2",),
    }


def test_odd_names_and_attributes_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "odd.h5"
    with h5py.File(path, "w") as file:
        file[b"bytes\xff"] = 1
        file[".zarray"] = 1
        file['quo"te\n'] = np.arange(3)
        file.attrs["complex"] = 1j
        file.attrs["reference"] = file.ref
        file.attrs["not a number"] = np.nan
        file.attrs["empty"] = h5py.Empty("S1")
        file.attrs[b"\xfe"] = 1
        file["link"] = h5py.SoftLink('/quo"te\n')
    left = names_left_out(chunkwise.index(path, tmp_path / "out.json"))
    assert left["/.zarray"] == "zarr keeps names that begin with .z for itself"
    assert left["/bytes\udcff"] == "its name is no UTF-8"
    assert left["/link"].startswith("it is a link to")
    assert {"/@complex", "/@reference"} <= {*left}
    group = by_zarr(tmp_path / "out.json")
    assert group['quo"te\n'][...].tolist() == [0, 1, 2]
    assert np.isnan(group.attrs["not a number"])


def test_where_readers_find_the_file_can_be_said(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["d"] = np.arange(3)
        address = file["d"].id.get_offset()
    found = chunkwise.index(path, tmp_path / "out.json", url='s3://bucket/a "b".h5')
    refs = json.loads((tmp_path / "out.json").read_text())["refs"]
    assert refs["d/0"] == ['s3://bucket/a "b".h5', address, 24]
    assert (found.datasets, found.chunks, found.format) == (1, 1, "json")
    assert found.index_nbytes == (tmp_path / "out.json").stat().st_size
