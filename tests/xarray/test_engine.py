"""Does engine="chunkwise" open what netCDF4 and h5netcdf open, with nothing of it different?"""

import concurrent.futures
import io
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

pytest.importorskip("dask.array", reason="Dask is not installed")
pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
pytest.importorskip("xarray", reason="xarray is not installed")

import xarray as xr

import chunkwise
from chunkwise.errors import DatasetNotFoundError, FileFormatError, UsageError
from chunkwise.handles import handle
from chunkwise.routing.reading import counts
from tests.support.clusters import cluster
from tests.support.damage import damage_chunk
from tests.support.netcdf_cases import CASES, DEFLATED, N, cube
from tests.support.netcdf_files import WRITTEN

# What h5netcdf's engine tells besides from xarray 2026 on: filters that are not there, and more.
NEWER = (
    set()
    if tuple(map(int, xr.__version__.split(".")[:2])) < (2026, 0)
    else {"contiguous", "zlib", "szip", "bzip2", "blosc", "zstd", "complevel", "dtype"}
)


def opened(path: Path, engine: str, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return xr.open_dataset(path, engine=engine, **options)


def alike(one: Any, other: Any) -> bool:
    """Whether two values of an encoding or an attribute are the same, types and NaN included."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, np.dtype):
        return bool(one == other and one.metadata == other.metadata)
    return type(one) is type(other) and repr(one) == repr(other)


def assert_same(path: Path, **options: Any) -> None:
    """Hold a group of a file against h5netcdf's, decoded and not."""
    for decode in (True, False):
        how = {"decode_cf": decode, **options}
        with opened(path, "chunkwise", **how) as ours, opened(path, "h5netcdf", **how) as theirs:
            assert ours.encoding == theirs.encoding
            for name in theirs.variables:
                a, b = ours.variables[name], theirs.variables[name]
                assert a.dtype == b.dtype
                assert alike(a.attrs, b.attrs)
                common = {key: b.encoding.get(key) for key in a.encoding}
                assert alike(dict(a.encoding), common)
                assert set(b.encoding) - set(a.encoding) <= NEWER
            assert list(ours.variables) == list(theirs.variables)
            assert alike(ours.attrs, theirs.attrs)
            if "ragged" in theirs:
                # Rows of unequal lengths, which xarray cannot compare.
                assert repr(ours["ragged"].values) == repr(theirs["ragged"].values)
                ours, theirs = ours.drop_vars("ragged"), theirs.drop_vars("ragged")
            xr.testing.assert_identical(ours, theirs)


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
@pytest.mark.parametrize("name", CASES)
def test_what_xarray_writes(name: str, engine: str, tmp_path: Path) -> None:
    pytest.importorskip({"netcdf4": "netCDF4"}.get(engine, engine))
    make, more = CASES[name]
    more = dict(more)
    if engine not in more.pop("engines", [engine]):
        pytest.skip(f"not an option of {engine}")
    path = tmp_path / "a.nc"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make().to_netcdf(path, engine=engine, **more)
    assert_same(path, group=more.get("group"))
    # netCDF4 has no LZF, and keeps an attribute of its own to itself.
    if "invalid_netcdf" not in more and not name.startswith(("lzf", "rounded")):
        pytest.importorskip("netCDF4")
        how = {"group": more.get("group")}
        with opened(path, "chunkwise", **how) as ours, opened(path, "netcdf4", **how) as theirs:
            xr.testing.assert_identical(ours, theirs)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_others_write(name: str, tmp_path: Path) -> None:
    write, groups = WRITTEN[name]
    write(tmp_path / "a.nc")
    for group in groups:
        assert_same(tmp_path / "a.nc", group=group)
        for options in ({"decode_vlen_strings": False}, {"phony_dims": "sort"}):
            assert_same(tmp_path / "a.nc", group=group, **options)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "cube.nc"
    encoding = {"t": {"chunksizes": (4, 5, 12), **DEFLATED}}
    cube().to_netcdf(made, engine="h5netcdf", encoding=encoding)
    return made


def test_dask_reads_of_a_block_what_is_needed(path: Path) -> None:
    with opened(path, "chunkwise", chunks={"time": 8, "y": 10, "x": 12}) as lazily:
        chunkwise.cache_clear()
        before = chunkwise.cache_stats()["decoded"]
        np.testing.assert_array_equal(lazily["t"][:, 0, 3], cube()["t"][:, 0, 3])
        assert chunkwise.cache_stats()["decoded"] - before == N // 4


def test_blocks_are_whole_stored_chunks(path: Path) -> None:
    with opened(path, "chunkwise", chunks={}) as lazily:
        assert lazily["t"].chunks == ((4,) * (N // 4), (5, 5), (12,))
    with opened(path, "chunkwise", chunks="auto") as lazily:
        assert all(size % 4 == 0 for size in lazily["t"].chunks[0])
        before = counts.engine
        xr.testing.assert_identical(lazily.load(), cube().load())
        assert counts.engine > before


def test_trees(tmp_path: Path) -> None:
    WRITTEN["groups"][0](tmp_path / "a.nc")
    ways: list[dict[str, Any]] = [{}, {"group": "a"}]
    for how in ways:
        a: Any = xr.open_groups(tmp_path / "a.nc", engine="chunkwise", **how)
        # h5netcdf's opens no group here.
        b: Any = xr.open_groups(tmp_path / "a.nc", engine="netcdf4", **how)
        assert list(a) == list(b)
        for name in a:
            xr.testing.assert_identical(a[name], b[name])
    with xr.open_datatree(tmp_path / "a.nc", engine="chunkwise", group="a") as tree:
        assert tree["b"].attrs["title"] == "deep"


def test_many_files_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than libhdf5 keeps open; what is parked is read nevertheless."""
    monkeypatch.setattr(handle, "MOST", 4)
    whole = cube().load()
    for at in range(0, N, 2):
        whole.isel(time=slice(at, at + 2)).to_netcdf(tmp_path / f"{at:02}.nc", engine="h5netcdf")
    for parallel in (False, True):
        how: Any = {"engine": "chunkwise", "parallel": parallel}
        with xr.open_mfdataset(str(tmp_path / "*.nc"), **how) as many:
            xr.testing.assert_identical(many.load(), whole)


def test_a_dataset_goes_to_other_processes(path: Path) -> None:
    # What it sets holds for the process, until this ends.
    now = chunkwise.settings(threads=2)
    with now, opened(path, "chunkwise", settings={"threads": 1}) as here:
        there = pickle.loads(pickle.dumps(here))
        xr.testing.assert_identical(there, here)
        lazily = pickle.loads(pickle.dumps(here.chunk(time=3)))
        xr.testing.assert_identical(lazily.load(), here)


@pytest.mark.parametrize("scheduler", ["sync", "threads", "processes"])
def test_schedulers_of_dask(path: Path, scheduler: str) -> None:
    import dask

    with (
        opened(path, "chunkwise", chunks={"time": 5, "y": 3}) as lazily,
        dask.config.set(scheduler=scheduler, num_workers=2),
    ):
        xr.testing.assert_identical(lazily.load(), cube().load())


def test_a_cluster_of_dask(path: Path) -> None:
    with cluster() as client, opened(path, "chunkwise", chunks={"time": 5}) as lazily:
        found = client.gather(client.compute(lazily))
        xr.testing.assert_identical(found, cube().load())


def test_threads_read_what_h5netcdf_converts(tmp_path: Path) -> None:
    """Text and records, and variables that are met for the first time by several threads."""
    WRITTEN["variable length"][0](tmp_path / "a.nc")
    with opened(tmp_path / "a.nc", "chunkwise", cache=False) as here:
        expected = here["text"].values.tolist()
        there = pickle.loads(pickle.dumps(here))
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: there["text"].values.tolist(), range(200)))
    assert found == [expected] * 200


def test_what_was_closed_is_opened_again(path: Path) -> None:
    here = opened(path, "chunkwise", cache=False)
    here.close()
    expected = cube()["t"].isel(time=0).values
    np.testing.assert_array_equal(here["t"].isel(time=0).values, expected)
    part = here["t"].isel(time=0)
    # Once the last that may read it is gone, nothing has it open, and it can be written.
    del here
    np.testing.assert_array_equal(part.values, expected)
    del part
    with h5py.File(path, "r+") as f:
        f["t"][0] = 0
    with opened(path, "chunkwise") as again:
        assert not again["t"].isel(time=0).values.any()


def test_a_dataset_that_is_forgotten_closes_its_file(path: Path) -> None:
    here = opened(path, "chunkwise")
    del here
    with h5py.File(path, "r+") as f:
        f["t"][0] = 0


@pytest.fixture
def given(path: Path) -> Iterator[list[Any]]:
    with chunkwise.open(path) as ours, h5py.File(path) as theirs, path.open("rb") as stream:
        yield [ours, theirs, stream, io.BytesIO(path.read_bytes()), str(path), path]


def test_what_can_be_opened(given: list[Any]) -> None:
    expected = cube().load()
    for one in given:
        with opened(one, "chunkwise") as found:
            xr.testing.assert_identical(found.load(), expected)
        if isinstance(one, h5py.File):
            # It stays open.
            assert "t" in one


def test_a_url(path: Path) -> None:
    pytest.importorskip("fsspec")
    url: Any = f"file://{path}"
    with opened(url, "chunkwise", storage_options={"auto_mkdir": False}) as found:
        xr.testing.assert_identical(found.load(), cube().load())


def test_settings_hold_in_the_process_that_opens(path: Path) -> None:
    with chunkwise.settings(threads=2), opened(path, "chunkwise", settings={"threads": 1}):
        assert chunkwise.settings().threads == 1


def test_options_of_h5py(path: Path) -> None:
    for options in ({"driver": "core"}, {"driver_kwds": {"locking": False}}):
        with opened(path, "chunkwise", **options) as found:
            xr.testing.assert_identical(found.load(), cube().load())


def test_guessing(given: list[Any], tmp_path: Path) -> None:
    engine = xr.backends.list_engines()["chunkwise"]
    other = tmp_path / "other.nc"
    other.write_bytes(b"CDF\x01" + bytes(60))
    for one in given[2:]:
        assert engine.guess_can_open(one)
    assert not engine.guess_can_open(other)
    assert engine.guess_can_open(tmp_path / "not there.nc")
    assert not engine.guess_can_open(tmp_path / "not there.txt")
    assert not engine.guess_can_open(io.BytesIO(b"garbage"))


def test_errors_say_what_to_do(path: Path, tmp_path: Path) -> None:
    garbage, content = io.BytesIO(b"garbage"), path.read_bytes()
    refused: list[tuple[type[Exception], str, Any, dict[str, Any]]] = [
        (FileNotFoundError, "no such file", tmp_path / "none.nc", {}),
        (
            DatasetNotFoundError,
            "group not found: b of /b; groups there: none",
            path,
            {"group": "b"},
        ),
        (ValueError, "must be a string", path, {"group": ("a",)}),
        (UsageError, "phony_dims='x': give 'access' or 'sort'", path, {"phony_dims": "x"}),
        (UsageError, "NETCDF4 only", path, {"format": "NETCDF3_64BIT"}),
        (ValueError, r"as bytes: give a path, or io\.BytesIO", content, {}),
        (FileFormatError, "not the signature", garbage, {}),
        (UsageError, "settings: threads=0", path, {"settings": {"threads": 0}}),
        (TypeError, "nonsense", path, {"driver_kwds": {"nonsense": 1}}),
    ]
    for kind, said, given, options in refused:
        with pytest.raises(kind, match=said):
            opened(given, "chunkwise", **options)


def test_what_is_no_netcdf_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mixed.h5"
    with h5py.File(path, "w") as f:
        f["x"] = np.arange(3)
        f["x"].make_scale("x")
        f["v"] = np.ones((3, 4))
        f["v"].dims[0].attach_scale(f["x"])
    with pytest.raises(FileFormatError, match=r"mixed\.h5: .*mixing of labeled.*chunkwise\.open"):
        opened(path, "chunkwise")
    # Nothing keeps it open.
    with h5py.File(path, "r+"):
        pass


@pytest.mark.parametrize("kind", ["object", "region"])
def test_a_single_reference_is_left_out(tmp_path: Path, kind: str) -> None:
    """As netCDF-C does it; h5netcdf refuses the file."""
    path = tmp_path / "a.nc"
    with h5py.File(path, "w") as file:
        for name in ("x", "v"):
            file[name] = np.arange(5.0)
        file["x"].make_scale("x")
        file["v"].dims[0].attach_scale(file["x"])
        file["v"].attrs["units"] = "K"
        for holder in (file["v"], file):
            holder.attrs["r"] = file["x"].ref if kind == "object" else file["x"].regionref[1:3]
    with opened(path, "chunkwise") as ours, opened(path, "netcdf4") as theirs:
        assert dict(ours.v.attrs) == dict(theirs.v.attrs) == {"units": "K"}
        xr.testing.assert_identical(ours, theirs)


def test_a_file_of_many_variables_asks_for_each_name_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libhdf5 searches the file for the name of what a reference leads to."""
    path = tmp_path / "a.nc"
    xr.Dataset({f"v{n}": (("y", "x"), np.zeros((2, 3))) for n in range(40)}).assign_coords(
        x=[1, 2, 3], y=[4, 5]
    ).to_netcdf(path, engine="netcdf4")
    searched: list[Any] = []
    name_of = h5py.HLObject.name.fget

    def search(one: Any) -> Any:
        if isinstance(one, handle.Kept) and one._path is None:
            searched.append(one)
        return name_of(one)

    monkeypatch.setattr(h5py.HLObject, "name", property(search))
    with h5py.File(path) as file, opened(file, "chunkwise") as ours:
        assert ours.v39.dims == ("y", "x")
    assert 0 < len(searched) <= 2


def test_damage_is_named(path: Path) -> None:
    damage_chunk(path, "t", 0)
    with opened(path, "chunkwise") as here, pytest.raises(OSError, match=r"cube\.nc.*/t.*chunk"):
        here["t"].load()
