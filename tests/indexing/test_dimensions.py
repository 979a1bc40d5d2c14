"""Do references name the dimensions of a file, and give lengths, as netCDF-C does?"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from tests.support.indexing import by_xarray

netcdf = pytest.importorskip("netCDF4")

Shown = dict[str, tuple[tuple[str, ...], tuple[int, ...]]]


def by_netcdf(path: Path) -> Shown:
    def shown(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
        for name, variable in group.variables.items():
            yield prefix + name, (tuple(variable.dimensions), tuple(variable.shape))
        for name, inner in group.groups.items():
            yield from shown(inner, f"{prefix}{name}/")

    with netcdf.Dataset(path) as file:
        return dict(shown(file, ""))


def by_index(path: Path) -> Shown:
    target = path.with_suffix(".json")
    made = chunkwise.index(path, target, force=True)
    assert not made.left_out
    refs = json.loads(target.read_text())["refs"]
    return {
        key.removesuffix("/.zarray"): (
            tuple(json.loads(refs[key[:-7] + ".zattrs"])["_ARRAY_DIMENSIONS"]),
            tuple(json.loads(refs[key])["shape"]),
        )
        for key in refs
        if key.endswith("/.zarray")
    }


def test_coordinates_in_another_order_than_dimensions(tmp_path: Path) -> None:
    """netCDF-C then writes numbers of dimensions on ordinary variables, too."""
    path = tmp_path / "a.nc"
    with netcdf.Dataset(path, "w") as file:
        file.createDimension("time", 5)
        file.createDimension("range", 3)
        for name, dims in {"range": "range", "time": "time", "azimuth": "time"}.items():
            file.createVariable(name, "f4", (dims,))[:] = 1
        file.createVariable("WIDTH", "f4", ("time", "range"))[:] = 0
    with h5py.File(path) as file:
        assert "_Netcdf4Dimid" in file["WIDTH"].attrs
    found = by_index(path)
    assert found == by_netcdf(path)
    assert found["time"][0] == ("time",)


def test_numbers_of_dimensions_do_where_no_scale_is_attached(tmp_path: Path) -> None:
    """As netCDF-C writes with NC_NODIMSCALE_ATTACH."""
    path = tmp_path / "a.nc"
    with netcdf.Dataset(path, "w") as file:
        file.createDimension("a", 4)
        file.createDimension("b", 4)
        for name in "ba":
            file.createVariable(name, "i2", (name,))
        file.createVariable("v", "i2", ("b", "a"))
    with h5py.File(path, "r+") as file:
        del file["v"].attrs["DIMENSION_LIST"]
    assert by_index(path) == by_netcdf(path)
    assert by_index(path)["v"][0] == ("b", "a")


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_unlimited_dimensions_are_as_long_as_their_longest_variable(
    tmp_path: Path, suffix: str
) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    if suffix == "parquet":
        pytest.importorskip("fastparquet")
    path, target = tmp_path / "a.nc", tmp_path / f"a.{suffix}"
    with netcdf.Dataset(path, "w") as file:
        for name, length in {"t": None, "y": None, "x": 3}.items():
            file.createDimension(name, length)
        short = file.createVariable(
            "short", "i2", ("t", "y", "x"), chunksizes=(1, 2, 3), fill_value=-1
        )
        short[:] = np.arange(18).reshape(2, 3, 3)
        file.createVariable(
            "long", "f8", ("t", "y", "x"), chunksizes=(1, 2, 3), fill_value=np.nan
        )[:] = np.arange(84).reshape(4, 7, 3)
        file.createVariable("text", str, ("t",))[:] = np.array(["a", "b"], object)
    assert not chunkwise.index(path, target).left_out
    # Not by netCDF-C, which reads wrong values where only a part of a row is there.
    with xarray.open_dataset(path, engine="h5netcdf", drop_variables="text") as theirs:
        ours = by_xarray(target)
        assert ours.sizes == theirs.sizes
        assert ours["text"].values.tolist() == ["a", "b", "", ""]
        # Of shorter text, h5netcdf gives too few.
        for name in ("short", "long"):
            np.testing.assert_array_equal(ours[name].values, theirs[name].values)


@pytest.mark.parametrize("rows", [2, 3])
def test_what_netcdf_does_not_fill_is_put_into_the_index(tmp_path: Path, rows: int) -> None:
    path = tmp_path / "a.nc"
    with netcdf.Dataset(path, "w") as file:
        file.set_fill_off()
        file.createDimension("t", None)
        short = file.createVariable("short", "i2", ("t",), chunksizes=(2,), fill_value=-1)
        short[:] = np.arange(rows)
        file.createVariable("long", "i2", ("t",), chunksizes=(2,), fill_value=-1)[:] = np.ones(6)
    made = chunkwise.index(path, tmp_path / "a.json")
    assert made.inlined == 1
    pytest.importorskip("xarray")
    ours = by_xarray(tmp_path / "a.json")["short"].values
    np.testing.assert_array_equal(ours, [*range(rows), *[np.nan] * (6 - rows)])
