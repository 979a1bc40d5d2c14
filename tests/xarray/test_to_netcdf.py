"""Is a netCDF-4 file that workers write the one that xarray writes by itself?"""

import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

pytest.importorskip("dask.array", reason="Dask is not installed")
pytest.importorskip("xarray", reason="xarray is not installed")

import xarray as xr

from chunkwise.errors import ChunkwiseError, UsageError
from chunkwise.xarray import to_netcdf
from tests.support.clusters import cluster, left_in
from tests.support.netcdf_cases import CASES, DEFLATED, N, cube, lazy
from tests.support.tools import require_tool


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with cluster() as made:
        yield made


def _ncdump(path: Path, *options: str) -> str:
    command = [require_tool("ncdump"), "-n", "x", *options, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
@pytest.mark.parametrize("name", CASES)
def test_the_file_is_xarrays(name: str, engine: str, tmp_path: Path, client: Any) -> None:
    pytest.importorskip({"netcdf4": "netCDF4"}.get(engine, engine))
    make, more = CASES[name]
    more = dict(more)
    if engine not in more.pop("engines", [engine]):
        pytest.skip(f"not an option of {engine}")
    mine, theirs = tmp_path / "mine.nc", tmp_path / "theirs.nc"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make().to_netcdf(theirs, engine=engine, **more)
        to_netcdf(make(), mine, engine=engine, client=client, **more)
        assert left_in(tmp_path) == ["mine.nc", "theirs.nc"]
        # The system's netCDF-C does not read h5py's own filter.
        if "invalid_netcdf" not in more and not name.startswith("lzf"):
            assert _ncdump(mine, "-s") == _ncdump(theirs, "-s")
        for reader in ("netcdf4", "h5netcdf"):
            if reader == "netcdf4" and ("invalid_netcdf" in more or name.startswith("lzf")):
                continue
            for decode in (True, False):
                how: Any = {"engine": reader, "group": more.get("group"), "decode_cf": decode}
                with xr.open_dataset(mine, **how) as a, xr.open_dataset(theirs, **how) as b:
                    xr.testing.assert_identical(a, b)
                    for one in a.variables:
                        left, right = a[one].encoding, b[one].encoding
                        assert left.pop("source", 1) != right.pop("source", 2)
                        assert repr(left) == repr(right)


def test_lengths_of_dimension_scales_are_netcdfs(client: Any, tmp_path: Path) -> None:
    """Unlimited dimensions of which no coordinate tells the length."""
    pytest.importorskip("netCDF4")
    data = cube().drop_vars("time")
    how: Any = {"unlimited_dims": ["time"], "engine": "netcdf4"}
    data.to_netcdf(tmp_path / "theirs.nc", **how)
    to_netcdf(data, tmp_path / "mine.nc", client=client, **how)
    with h5py.File(tmp_path / "mine.nc") as a, h5py.File(tmp_path / "theirs.nc") as b:
        assert {one: a[one].shape for one in a} == {one: b[one].shape for one in b}
        assert a["t"].chunks == b["t"].chunks


def test_threads_write_it_too(tmp_path: Path) -> None:
    data = cube()
    done = to_netcdf(data, tmp_path / "a.nc", encoding={"t": DEFLATED}, client="threads")
    assert done.blocks
    with xr.open_dataset(tmp_path / "a.nc") as found:
        xr.testing.assert_identical(found.compute(), data.compute())


def test_what_is_not_written_by_workers_is_told(client: Any, tmp_path: Path) -> None:
    data = cube().assign(s=("time", lazy(np.array(["a"] * N))))
    done = to_netcdf(data, tmp_path / "a.nc", client=client)
    assert list(done.by_client) == ["s"]
    assert "variable length" in done.by_client["s"]
    assert done.blocks == len(data["t"].data.chunks[0])


def _broken(_: Any) -> Any:
    raise ZeroDivisionError("this block")


def test_a_failure_leaves_what_was_there(client: Any, tmp_path: Path) -> None:
    (tmp_path / "a.nc").write_bytes(b"before")
    data = cube()
    data["t"] = data["t"].copy(data=data["t"].data.map_blocks(_broken, dtype="f4"))
    for encoding in ({"t": DEFLATED}, {}):
        with pytest.raises(ZeroDivisionError, match="this block"):
            to_netcdf(data, tmp_path / "a.nc", client=client, encoding=encoding)
    with pytest.raises(ValueError, match="unexpected encoding"):
        to_netcdf(data, tmp_path / "a.nc", client=client, encoding={"t": {"nonsense": 1}})
    with pytest.raises(UsageError, match="exists already; overwrite=True"):
        to_netcdf(data, tmp_path / "a.nc", client=client, overwrite=False)
    assert (tmp_path / "a.nc").read_bytes() == b"before"
    assert left_in(tmp_path) == ["a.nc"]


@pytest.mark.parametrize(
    ("given", "more", "said"),
    [
        ([1, 2], {}, "give an xarray.Dataset or xarray.DataArray"),
        (xr.Dataset(), {"engine": "scipy"}, "engine 'scipy': write netcdf4 or h5netcdf"),
        (xr.Dataset({1: ("a", [1])}), {}, "variable 1: netCDF needs names that are text"),
    ],
)
def test_what_cannot_be_written_is_said(
    given: Any, more: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ChunkwiseError, match=said):
        to_netcdf(given, tmp_path / "a.nc", client="threads", **more)
    assert left_in(tmp_path) == []
