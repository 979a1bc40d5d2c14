"""Are dimensions named by the scales that netCDF4 and h5py attached to them?"""

from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
from h5py import h5a, h5r, h5s, h5t

from chunkwise.files.dimensions import is_scale
from chunkwise.files.objects import walk
from chunkwise.inspection.dimensions import dimension_names
from tests.support.inspect_files import make_netcdf

Names = dict[str, tuple[str | None, ...] | None]


def all_names(path: Path) -> Names:
    """By the walk's paths, and by HDF5's own search, which must agree."""
    with h5py.File(path) as file:
        datasets = [entry for entry in walk(file) if entry.kind == "dataset"]
        paths = {entry.address: entry.path for entry in datasets if entry.address is not None}
        result = {entry.path: dimension_names(entry.identifier, paths) for entry in datasets}
        assert result == {entry.path: dimension_names(entry.identifier) for entry in datasets}
    return result


def test_netcdf(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    make_netcdf(path)
    assert all_names(path) == {"/time": None, "/x": None, "/deep/values": ("time", "x")}
    with h5py.File(path) as file:
        # `x` is "a netCDF dimension but not a netCDF variable".
        assert b"not a netCDF variable" in file["x"].attrs["NAME"]
        scales = [is_scale(file[name].id) for name in ("time", "x", "deep/values")]
    assert scales == [True, True, False]


def test_netcdf_dimensions_of_groups(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", 2)
        group = file.createGroup("forecast")
        group.createDimension("time", 3)
        group.createDimension("höhe", 4)
        group.createVariable("a", "f4", ("time", "höhe"))
        file.createVariable("forecast/b", "f4", ("time",))
        file.createVariable("c", "f4", ("time",))
        file.createVariable("scalar", "f4", ())
    found = all_names(path)
    assert found["/forecast/a"] == ("/forecast/time", "/forecast/höhe")
    assert found["/forecast/b"] == ("/forecast/time",)
    assert found["/c"] == ("time",)
    assert found["/scalar"] is None


def test_scales_of_h5py(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["data"] = np.zeros((4, 3, 2))
        file["none"] = np.zeros(3)
        for name, size in (("z", 4), ("other", 4), ("sub/x", 2)):
            file[name] = np.arange(size)
            file[name].make_scale("a name that h5py was given")
        file["data"].dims[0].attach_scale(file["z"])
        file["data"].dims[0].attach_scale(file["other"])
        file["data"].dims[2].attach_scale(file["sub/x"])
    found = all_names(path)
    assert found["/data"] == ("other", None, "/sub/x")
    assert found["/none"] is None


def test_agrees_with_h5ds(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    make_netcdf(path)
    with h5py.File(path) as file:
        values = file["deep/values"]
        theirs = tuple(dimension[0].name.removeprefix("/") for dimension in values.dims)
        assert dimension_names(values.id) == theirs


def test_scales_that_are_gone(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["x"], file["y"], file["data"] = np.arange(4), np.arange(3), np.zeros((4, 3))
        for axis, name in enumerate(("x", "y")):
            file[name].make_scale()
            file["data"].dims[axis].attach_scale(file[name])
        del file["x"]
    assert all_names(path)["/data"] == (None, "y")
    with h5py.File(path, "r+") as file:
        del file["y"]
    assert all_names(path)["/data"] is None


@pytest.mark.parametrize("value", ["text", 1, [1, 2, 3], h5py.Empty("i4")])
def test_attributes_that_only_share_the_name(tmp_path: Path, value: object) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["data"] = np.zeros((4, 3))
        file["data"].attrs["DIMENSION_LIST"] = value
        file["data"].attrs["CLASS"] = value
    assert all_names(path) == {"/data": None}
    with h5py.File(path) as file:
        assert not is_scale(file["data"].id)


# H5DSiterate_scales reads past the attribute's end, when it has fewer elements than the
# dataset has dimensions.
@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_list_of_another_length(tmp_path: Path, length: int) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["x"], file["data"] = np.arange(4), np.zeros((4, 4, 4))
        lists = np.empty(length, h5py.vlen_dtype(h5py.ref_dtype))
        for i in range(length):
            lists[i] = np.array([file["x"].ref], h5py.ref_dtype)
        datatype = h5t.vlen_create(h5t.STD_REF_OBJ)
        space = h5s.create_simple((length,))
        attribute = h5a.create(file["data"].id, b"DIMENSION_LIST", datatype, space)
        attribute.write(lists)
    assert all_names(path)["/data"] is None


def test_references_that_lead_to_no_dataset(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["data"] = np.zeros((4, 4, 4))
        group = file.create_group("group")
        lists = np.empty(3, h5py.vlen_dtype(h5py.ref_dtype))
        lists[0] = np.array([group.ref], h5py.ref_dtype)
        lists[1] = np.array([h5r.Reference()], h5py.ref_dtype)
        lists[2] = np.array([], h5py.ref_dtype)
        file["data"].attrs.create("DIMENSION_LIST", lists, dtype=lists.dtype)
    assert all_names(path)["/data"] is None
