"""Is a netCDF-4 file that workers write the one that xarray writes by itself?"""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

pytest.importorskip("dask.array", reason="Dask is not installed")
pytest.importorskip("xarray", reason="xarray is not installed")

import dask.array as da
import pandas as pd
import xarray as xr

from chunkwise.errors import ChunkwiseError, UsageError
from chunkwise.xarray import to_netcdf
from tests.support.clusters import cluster, left_in
from tests.support.tools import require_tool

N = 24
DEFLATED = {"zlib": True, "complevel": 4, "shuffle": True}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with cluster() as made:
        yield made


def _values(dtype: str = "f4") -> Any:
    rng = np.random.default_rng(5)
    return (rng.normal(size=(N, 10, 12)) * 50).astype(dtype)


def _lazy(values: Any, blocks: Any = None) -> Any:
    return da.from_array(values, chunks=blocks or (5, *values.shape[1:]))


def _field(values: Any, **attributes: Any) -> Any:
    return (("time", "y", "x"), _lazy(values), attributes)


def _cube(values: Any = None, **coordinates: Any) -> Any:
    values = _values() if values is None else values
    axes = {
        "time": pd.date_range("2001-01-01", periods=N),
        "y": np.linspace(-45, 45, 10),
        "x": np.arange(12, dtype="i4"),
    }
    made = xr.Dataset({"t": _field(values, units="K", long_name="température")})
    return made.assign_coords({**axes, **coordinates})


def _masked() -> Any:
    values = _values()
    values[values < -60] = np.nan
    return _cube(values)


Case = tuple[Callable[[], Any], dict[str, Any]]
CHUNKS = {"chunksizes": (4, 5, 12)}

CASES: dict[str, Case] = {
    "deflated": (_cube, {"encoding": {"t": {**DEFLATED, **CHUNKS}}}),
    "without encoding": (_cube, {}),
    "without encoding, in columns": (
        lambda: _cube().chunk(time=7, y=4, x=5).assign(u=_cube()["t"].chunk(time=-1, x=5)),
        {},
    ),
    "chunked, no filter": (_cube, {"encoding": {"t": CHUNKS}}),
    "fletcher32": (_cube, {"encoding": {"t": {"fletcher32": True, **CHUNKS}}}),
    "scale and offset": (
        _masked,
        {
            "encoding": {
                "t": {
                    "dtype": "int16",
                    "scale_factor": 0.01,
                    "add_offset": 3.0,
                    "_FillValue": -999,
                    **DEFLATED,
                }
            }
        },
    ),
    "unsigned": (
        lambda: _cube(np.abs(_masked()["t"].values)),
        {
            "encoding": {
                "t": {"dtype": "i1", "_Unsigned": "true", "_FillValue": -1, "scale_factor": 1.0}
                | DEFLATED
            }
        },
    ),
    "fill value": (_masked, {"encoding": {"t": {"_FillValue": -1e20, **DEFLATED}}}),
    "no fill value": (_cube, {"encoding": {"t": {"_FillValue": None, **DEFLATED}}}),
    "missing value": (_masked, {"encoding": {"t": {"missing_value": -9.0, **DEFLATED}}}),
    "unlimited": (_cube, {"unlimited_dims": ["time"], "encoding": {"t": DEFLATED}}),
    "unlimited, by one name": (_cube, {"unlimited_dims": "time"}),
    "two unlimited": (_cube, {"unlimited_dims": ["time", "y"], "encoding": {"t": DEFLATED}}),
    "unlimited without a coordinate": (
        lambda: _cube().drop_vars("time"),
        {"unlimited_dims": ["time"], "encoding": {"t": DEFLATED}},
    ),
    "unlimited by the dataset's encoding": (
        lambda: _with_encoding(_cube(), unlimited_dims={"time"}),
        {},
    ),
    "big-endian": (lambda: _cube(_values(">f4")), {"encoding": {"t": DEFLATED}}),
    "written big-endian": (
        _cube,
        {"encoding": {"t": {"dtype": ">f4", **DEFLATED}}, "engines": ["h5netcdf"]},
    ),
    "int64": (lambda: _cube(_values("i8")), {"encoding": {"t": DEFLATED}}),
    "uint8": (lambda: _cube(_values("u1")), {"encoding": {"t": DEFLATED}}),
    "float64": (lambda: _cube(_values("f8")), {"encoding": {"t": DEFLATED}}),
    "bool": (lambda: _cube(_values() > 0), {"encoding": {"t": DEFLATED}}),
    "characters": (
        lambda: xr.Dataset({"s": ("n", _lazy(np.array([b"abc", b"de", b""] * 8)))}),
        {"encoding": {"s": {"zlib": True, "dtype": "S1"}}},
    ),
    "bytes": (lambda: xr.Dataset({"s": ("n", _lazy(np.array([b"abc", b"de", b"f"] * 8)))}), {}),
    "strings": (
        lambda: xr.Dataset({"s": ("n", _lazy(np.array(["abc", "dé", ""] * 8)))}),
        {},
    ),
    "objects": (
        lambda: xr.Dataset({"s": ("n", _lazy(np.array(["abc", "dé", ""] * 8, dtype=object)))}),
        {},
    ),
    "times, lazily": (
        lambda: _cube().assign(
            when=("time", _lazy(pd.date_range("1999", periods=N, freq="6h").values))
        ),
        {"encoding": {"when": {"units": "hours since 1999-01-01", "dtype": "int64", **DEFLATED}}},
    ),
    "time spans": (
        lambda: _cube().assign(
            span=("time", _lazy(pd.to_timedelta(np.arange(N), unit="h").values))
        ),
        {"encoding": {"span": {"units": "hours", "dtype": "int32", **DEFLATED}}},
    ),
    "another calendar": (
        lambda: _cube(
            time=xr.date_range("2000-01-01", periods=N, calendar="noleap", use_cftime=True)
        ),
        {"encoding": {"t": DEFLATED}},
    ),
    "coordinates of two dimensions": (
        lambda: _cube(
            lat=(("y", "x"), _lazy(_values()[0], (5, 12))),
            lon=(("y", "x"), _values()[1]),
            member=7,
        ),
        {"encoding": {"lat": DEFLATED}},
    ),
    "a lazy dimension's coordinate": (
        lambda: xr.Dataset({"a": ("n", _lazy(np.arange(24.0)))}).assign_coords(
            m=("n", _lazy(np.arange(24)))
        ),
        {"encoding": {"m": DEFLATED}},
    ),
    "scalars": (
        lambda: _cube().assign(one=((), _lazy(np.float32(3), ())), two=5, text="words"),
        {"encoding": {"t": DEFLATED}},
    ),
    "nothing along a dimension": (
        lambda: _cube().isel(time=slice(0, 0)),
        {"unlimited_dims": ["time"], "encoding": {"t": DEFLATED}},
    ),
    "no Dask at all": (lambda: _cube().compute(), {"encoding": {"t": DEFLATED}}),
    "many variables of one": (
        lambda: _cube().assign(u=_cube()["t"] * 2, v=_cube()["t"].mean("time")),
        {"encoding": {"t": DEFLATED, "u": CHUNKS, "v": DEFLATED}},
    ),
    "a group": (_cube, {"group": "model/run1", "encoding": {"t": DEFLATED}}),
    "a data array": (lambda: _cube()["t"], {"encoding": {"t": DEFLATED}}),
    "a data array without a name": (lambda: _cube()["t"].rename(None), {}),
    "a data array named as a coordinate": (
        lambda: xr.DataArray(
            _lazy(np.arange(24.0)), dims="n", coords={"n": np.arange(24)}, name="n"
        ),
        {},
    ),
    "attributes": (
        lambda: _with_attributes(_cube()),
        {"encoding": {"t": DEFLATED}},
    ),
    "names": (
        lambda: _cube().rename(t="2 m température (K)").rename(x="breite+"),
        {},
    ),
    "rounded by netCDF": (
        _cube,
        {"encoding": {"t": {"least_significant_digit": 1, **DEFLATED}}, "engines": ["netcdf4"]},
    ),
    "zstd of netCDF": (
        _cube,
        {"encoding": {"t": {"compression": "zstd", **CHUNKS}}, "engines": ["netcdf4"]},
    ),
    "lzf of h5netcdf": (
        _cube,
        {"encoding": {"t": {"compression": "lzf", **CHUNKS}}, "engines": ["h5netcdf"]},
    ),
    "gzip of h5netcdf": (
        _cube,
        {
            "encoding": {"t": {"compression": "gzip", "compression_opts": 7, "shuffle": True}},
            "engines": ["h5netcdf"],
        },
    ),
    "an enumeration": (
        lambda: _enumerated(),
        {},
    ),
    "complex": (
        lambda: _cube(_values() + 1j),
        {"invalid_netcdf": True, "engines": ["h5netcdf"], "encoding": {"t": CHUNKS}},
    ),
}


def _enumerated() -> Any:
    """Clouds as a number with names, in a variable that is opened so."""
    values = np.arange(N, dtype="u1") % 3
    kind = np.dtype(
        "u1", metadata={"enum": {"clear": 0, "cloudy": 1, "other": 2}, "enum_name": "c"}
    )
    made = xr.Dataset({"t": ("n", _lazy(values))})
    made["t"].encoding["dtype"] = kind
    return made


def _with_encoding(dataset: Any, **encoding: Any) -> Any:
    dataset.encoding.update(encoding)
    return dataset


def _with_attributes(dataset: Any) -> Any:
    dataset.attrs = {"title": "a", "list": [1.5, 2.5], "number": np.int16(3), "empty": ""}
    dataset["t"].attrs.update(flag_values=np.array([1, 2], "i1"), comment="é")
    return dataset


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
            assert _ncdump(mine) == _ncdump(theirs)
            assert _ncdump(mine, "-sh") == _ncdump(theirs, "-sh")
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
    data = _cube().drop_vars("time")
    how: Any = {"unlimited_dims": ["time"], "engine": "netcdf4"}
    data.to_netcdf(tmp_path / "theirs.nc", **how)
    to_netcdf(data, tmp_path / "mine.nc", client=client, **how)
    with h5py.File(tmp_path / "mine.nc") as a, h5py.File(tmp_path / "theirs.nc") as b:
        assert {one: a[one].shape for one in a} == {one: b[one].shape for one in b}
        assert a["t"].chunks == b["t"].chunks


def test_threads_write_it_too(tmp_path: Path) -> None:
    data = _cube()
    done = to_netcdf(data, tmp_path / "a.nc", encoding={"t": DEFLATED}, client="threads")
    assert done.blocks
    with xr.open_dataset(tmp_path / "a.nc") as found:
        xr.testing.assert_identical(found.compute(), data.compute())


def test_what_is_not_written_by_workers_is_told(client: Any, tmp_path: Path) -> None:
    data = _cube().assign(s=("time", _lazy(np.array(["a"] * N))))
    done = to_netcdf(data, tmp_path / "a.nc", client=client)
    assert list(done.by_client) == ["s"]
    assert "variable length" in done.by_client["s"]
    assert done.blocks == len(data["t"].data.chunks[0])


def _broken(_: Any) -> Any:
    raise ZeroDivisionError("this block")


def test_a_failure_leaves_what_was_there(client: Any, tmp_path: Path) -> None:
    (tmp_path / "a.nc").write_bytes(b"before")
    data = _cube()
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
