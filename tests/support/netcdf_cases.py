"""Datasets of xarray's, and how to write them: what netCDF-4 files hold in practice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import xarray as xr

N = 24
DEFLATED = {"zlib": True, "complevel": 4, "shuffle": True}


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
CHUNKS = {"chunksizes": (4, 5, 12)}

CASES: dict[str, Case] = {
    "deflated": (cube, {"encoding": {"t": {**DEFLATED, **CHUNKS}}}),
    "without encoding": (cube, {}),
    "without encoding, in columns": (
        lambda: cube().chunk(time=7, y=4, x=5).assign(u=cube()["t"].chunk(time=-1, x=5)),
        {},
    ),
    "chunked, no filter": (cube, {"encoding": {"t": CHUNKS}}),
    "fletcher32": (cube, {"encoding": {"t": {"fletcher32": True, **CHUNKS}}}),
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
        lambda: cube(np.abs(_masked()["t"].values)),
        {
            "encoding": {
                "t": {"dtype": "i1", "_Unsigned": "true", "_FillValue": -1, "scale_factor": 1.0}
                | DEFLATED
            }
        },
    ),
    "fill value": (_masked, {"encoding": {"t": {"_FillValue": -1e20, **DEFLATED}}}),
    "no fill value": (cube, {"encoding": {"t": {"_FillValue": None, **DEFLATED}}}),
    "missing value": (_masked, {"encoding": {"t": {"missing_value": -9.0, **DEFLATED}}}),
    "unlimited": (cube, {"unlimited_dims": ["time"], "encoding": {"t": DEFLATED}}),
    "unlimited, by one name": (cube, {"unlimited_dims": "time"}),
    "two unlimited": (cube, {"unlimited_dims": ["time", "y"], "encoding": {"t": DEFLATED}}),
    "unlimited without a coordinate": (
        lambda: cube().drop_vars("time"),
        {"unlimited_dims": ["time"], "encoding": {"t": DEFLATED}},
    ),
    "unlimited by the dataset's encoding": (
        lambda: _with_encoding(cube(), unlimited_dims={"time"}),
        {},
    ),
    "big-endian": (lambda: cube(numbers(">f4")), {"encoding": {"t": DEFLATED}}),
    "written big-endian": (
        cube,
        {"encoding": {"t": {"dtype": ">f4", **DEFLATED}}, "engines": ["h5netcdf"]},
    ),
    "int64": (lambda: cube(numbers("i8")), {"encoding": {"t": DEFLATED}}),
    "uint8": (lambda: cube(numbers("u1")), {"encoding": {"t": DEFLATED}}),
    "float64": (lambda: cube(numbers("f8")), {"encoding": {"t": DEFLATED}}),
    "bool": (lambda: cube(numbers() > 0), {"encoding": {"t": DEFLATED}}),
    "characters": (
        lambda: xr.Dataset({"s": ("n", lazy(np.array([b"abc", b"de", b""] * 8)))}),
        {"encoding": {"s": {"zlib": True, "dtype": "S1"}}},
    ),
    "bytes": (lambda: xr.Dataset({"s": ("n", lazy(np.array([b"abc", b"de", b"f"] * 8)))}), {}),
    "strings": (
        lambda: xr.Dataset({"s": ("n", lazy(np.array(["abc", "dé", ""] * 8)))}),
        {},
    ),
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
    "another calendar": (
        lambda: cube(
            time=xr.date_range("2000-01-01", periods=N, calendar="noleap", use_cftime=True)
        ),
        {"encoding": {"t": DEFLATED}},
    ),
    "coordinates of two dimensions": (
        lambda: cube(
            lat=(("y", "x"), lazy(numbers()[0], (5, 12))),
            lon=(("y", "x"), numbers()[1]),
            member=7,
        ),
        {"encoding": {"lat": DEFLATED}},
    ),
    "a lazy dimension's coordinate": (
        lambda: xr.Dataset({"a": ("n", lazy(np.arange(24.0)))}).assign_coords(
            m=("n", lazy(np.arange(24)))
        ),
        {"encoding": {"m": DEFLATED}},
    ),
    "scalars": (
        lambda: cube().assign(one=((), lazy(np.float32(3), ())), two=5, text="words"),
        {"encoding": {"t": DEFLATED}},
    ),
    "nothing along a dimension": (
        lambda: cube().isel(time=slice(0, 0)),
        {"unlimited_dims": ["time"], "encoding": {"t": DEFLATED}},
    ),
    "no Dask at all": (lambda: cube().compute(), {"encoding": {"t": DEFLATED}}),
    "many variables of one": (
        lambda: cube().assign(u=cube()["t"] * 2, v=cube()["t"].mean("time")),
        {"encoding": {"t": DEFLATED, "u": CHUNKS, "v": DEFLATED}},
    ),
    "a group": (cube, {"group": "model/run1", "encoding": {"t": DEFLATED}}),
    "a data array": (lambda: cube()["t"], {"encoding": {"t": DEFLATED}}),
    "a data array without a name": (lambda: cube()["t"].rename(None), {}),
    "a data array named as a coordinate": (
        lambda: xr.DataArray(
            lazy(np.arange(24.0)), dims="n", coords={"n": np.arange(24)}, name="n"
        ),
        {},
    ),
    "attributes": (
        lambda: _with_attributes(cube()),
        {"encoding": {"t": DEFLATED}},
    ),
    "names": (
        lambda: cube().rename(t="2 m température (K)").rename(x="breite+"),
        {},
    ),
    "rounded by netCDF": (
        cube,
        {"encoding": {"t": {"least_significant_digit": 1, **DEFLATED}}, "engines": ["netcdf4"]},
    ),
    "zstd of netCDF": (
        cube,
        {"encoding": {"t": {"compression": "zstd", **CHUNKS}}, "engines": ["netcdf4"]},
    ),
    "lzf of h5netcdf": (
        cube,
        {"encoding": {"t": {"compression": "lzf", **CHUNKS}}, "engines": ["h5netcdf"]},
    ),
    "gzip of h5netcdf": (
        cube,
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
