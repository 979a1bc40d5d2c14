"""Datasets of xarray's, and how to write them: what netCDF-4 files hold in practice."""

from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import xarray as xr

N = 24
DEFLATED: dict[str, Any] = {"zlib": True, "complevel": 4, "shuffle": True}


def numbers(dtype: str = "f4") -> Any:
    rng = np.random.default_rng(5)
    return (rng.normal(size=(N, 10, 12)) * 50).astype(dtype)


def lazy(values: Any, blocks: Any = None) -> Any:
    return da.from_array(values, chunks=blocks or (5, *values.shape[1:]))


def _field(values: Any, **attributes: Any) -> Any:
    return (("time", "y", "x"), lazy(values), attributes)


def cube(values: Any = None, **coordinates: Any) -> Any:
    values = numbers() if values is None else values
    axes = {
        "time": pd.date_range("2001-01-01", periods=N),
        "y": np.linspace(-45, 45, 10),
        "x": np.arange(12, dtype="i4"),
    }
    made = xr.Dataset({"t": _field(values, units="K", long_name="température")})
    return made.assign_coords({**axes, **coordinates})


def _masked() -> Any:
    values = numbers()
    values[values < -60] = np.nan
    return cube(values)


Case = tuple[Callable[[], Any], dict[str, Any]]
CHUNKS: dict[str, Any] = {"chunksizes": (4, 5, 12)}


def _t(make: Callable[[], Any] = cube, /, *engines: str, **encoding: Any) -> Case:
    """A dataset whose variable ``t`` is encoded so; by these engines, if they are named."""
    return make, {"encoding": {"t": encoding}, **({"engines": [*engines]} if engines else {})}


def _deflated(make: Callable[[], Any] = cube, /, **options: Any) -> Case:
    return make, {"encoding": {"t": DEFLATED}, **options}


def _texts(*values: Any) -> Callable[[], Any]:
    return lambda: xr.Dataset({"s": ("n", lazy(np.array(values * 8)))})


TYPES = {"big-endian": ">f4", "int64": "i8", "uint8": "u1", "float64": "f8"}
CASES: dict[str, Case] = {
    "deflated": _t(**DEFLATED, **CHUNKS),
    "without encoding": (cube, {}),
    "without encoding, in columns": (
        lambda: cube().chunk(time=7, y=4, x=5).assign(u=cube()["t"].chunk(time=-1, x=5)),
        {},
    ),
    "chunked, no filter": _t(**CHUNKS),
    "fletcher32": _t(fletcher32=True, **CHUNKS),
    "scale and offset": _t(
        _masked, dtype="int16", scale_factor=0.01, add_offset=3.0, _FillValue=-999, **DEFLATED
    ),
    "unsigned": _t(
        lambda: cube(np.abs(_masked()["t"].values)),
        **{"dtype": "i1", "_Unsigned": "true", "_FillValue": -1, "scale_factor": 1.0},
        **DEFLATED,
    ),
    "fill value": _t(_masked, _FillValue=-1e20, **DEFLATED),
    "no fill value": _t(_FillValue=None, **DEFLATED),
    "missing value": _t(_masked, missing_value=-9.0, **DEFLATED),
    "unlimited": _deflated(unlimited_dims=["time"]),
    "unlimited, by one name": (cube, {"unlimited_dims": "time"}),
    "two unlimited": _deflated(unlimited_dims=["time", "y"]),
    "unlimited without a coordinate": _deflated(
        lambda: cube().drop_vars("time"), unlimited_dims=["time"]
    ),
    "unlimited by the dataset's encoding": (
        lambda: _with_encoding(cube(), unlimited_dims={"time"}),
        {},
    ),
    "written big-endian": _t(cube, "h5netcdf", dtype=">f4", **DEFLATED),
    **{name: _deflated(partial(cube, numbers(dtype))) for name, dtype in TYPES.items()},
    "bool": _deflated(lambda: cube(numbers() > 0)),
    "characters": (_texts(b"abc", b"de", b""), {"encoding": {"s": {"zlib": True, "dtype": "S1"}}}),
    "bytes": (_texts(b"abc", b"de", b"f"), {}),
    "strings": (_texts("abc", "dé", ""), {}),
    "objects": (
        lambda: xr.Dataset({"s": ("n", lazy(np.array(["abc", "dé", ""] * 8, dtype=object)))}),
        {},
    ),
    "times, lazily": (
        lambda: cube().assign(
            when=("time", lazy(pd.date_range("1999", periods=N, freq="6h").values))
        ),
        {"encoding": {"when": {"units": "hours since 1999-01-01", "dtype": "int64", **DEFLATED}}},
    ),
    "time spans": (
        lambda: cube().assign(span=("time", lazy(pd.to_timedelta(np.arange(N), unit="h").values))),
        {"encoding": {"span": {"units": "hours", "dtype": "int32", **DEFLATED}}},
    ),
    "another calendar": _deflated(
        lambda: cube(
            time=xr.date_range("2000-01-01", periods=N, calendar="noleap", use_cftime=True)
        )
    ),
    "coordinates of two dimensions": (
        lambda: cube(
            lat=(("y", "x"), lazy(numbers()[0], (5, 12))), lon=(("y", "x"), numbers()[1]), member=7
        ),
        {"encoding": {"lat": DEFLATED}},
    ),
    "a lazy dimension's coordinate": (
        lambda: xr.Dataset({"a": ("n", lazy(np.arange(24.0)))}).assign_coords(
            m=("n", lazy(np.arange(24)))
        ),
        {"encoding": {"m": DEFLATED}},
    ),
    "scalars": _deflated(
        lambda: cube().assign(one=((), lazy(np.float32(3), ())), two=5, text="words")
    ),
    "nothing along a dimension": _deflated(
        lambda: cube().isel(time=slice(0, 0)), unlimited_dims=["time"]
    ),
    "no Dask at all": _deflated(lambda: cube().compute()),
    "many variables of one": (
        lambda: cube().assign(u=cube()["t"] * 2, v=cube()["t"].mean("time")),
        {"encoding": {"t": DEFLATED, "u": CHUNKS, "v": DEFLATED}},
    ),
    "a group": _deflated(group="model/run1"),
    "a data array": _deflated(lambda: cube()["t"]),
    "a data array without a name": (lambda: cube()["t"].rename(None), {}),
    "a data array named as a coordinate": (
        lambda: xr.DataArray(
            lazy(np.arange(24.0)), dims="n", coords={"n": np.arange(24)}, name="n"
        ),
        {},
    ),
    "attributes": _deflated(lambda: _with_attributes(cube())),
    "names": (lambda: cube().rename(t="2 m température (K)").rename(x="breite+"), {}),
    "rounded by netCDF": _t(cube, "netcdf4", least_significant_digit=1, **DEFLATED),
    "zstd of netCDF": _t(cube, "netcdf4", compression="zstd", **CHUNKS),
    "lzf of h5netcdf": _t(cube, "h5netcdf", compression="lzf", **CHUNKS),
    "gzip of h5netcdf": _t(cube, "h5netcdf", compression="gzip", compression_opts=7, shuffle=True),
    "an enumeration": (lambda: _enumerated(), {}),
    "complex": (
        lambda: cube(numbers() + 1j),
        {"invalid_netcdf": True, "engines": ["h5netcdf"], "encoding": {"t": CHUNKS}},
    ),
}


def _enumerated() -> Any:
    """Clouds as a number with names, in a variable that is opened so."""
    values = np.arange(N, dtype="u1") % 3
    kind = np.dtype(
        "u1", metadata={"enum": {"clear": 0, "cloudy": 1, "other": 2}, "enum_name": "c"}
    )
    made = xr.Dataset({"t": ("n", lazy(values))})
    made["t"].encoding["dtype"] = kind
    return made


def _with_encoding(dataset: Any, **encoding: Any) -> Any:
    dataset.encoding.update(encoding)
    return dataset


def _with_attributes(dataset: Any) -> Any:
    dataset.attrs = {"title": "a", "list": [1.5, 2.5], "number": np.int16(3), "empty": ""}
    dataset["t"].attrs.update(flag_values=np.array([1, 2], "i1"), comment="é")
    return dataset
