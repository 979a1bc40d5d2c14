"""Are the dimensions of files those that netCDF-C sees, by libhdf5 and by the file's bytes?"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

pytest.importorskip("netCDF4", reason="netCDF4 is not installed")
pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
pytest.importorskip("xarray", reason="xarray is not installed")

import h5netcdf
import netCDF4

from chunkwise.files.dimensions import HIDDEN, Named, all_named
from chunkwise.files.objects import walk
from chunkwise.xarray.native import LeftToH5netcdfError
from chunkwise.xarray.opened import SharedFile
from tests.xarray.test_native import OPTIONS, read_natively

ABSENT = "This is a netCDF dimension but not a netCDF variable.         4"
# Of a group, length of each dimension and whether it is unlimited; names and lengths of the
# dimensions of each variable.
Said = tuple[dict[str, tuple[int, bool]], dict[str, Named]]


def by_netcdf(path: Path) -> dict[str, Said]:
    found: dict[str, Said] = {}

    def below(group: Any, at: str) -> None:
        dimensions = {
            name: (len(one), one.isunlimited())
            for name, one in group.dimensions.items()
            if not name.startswith("phony_dim_")
        }
        found[at or "/"] = (
            dimensions,
            {
                name: Named(tuple(one.dimensions), tuple(map(int, one.shape)))
                for name, one in group.variables.items()
            },
        )
        for name, inner in group.groups.items():
            below(inner, f"{at}/{name}")

    try:
        with netCDF4.Dataset(path) as file:
            below(file, "")
    except (OSError, RuntimeError):  # netCDF-C does not take all that HDF5 takes.
        reject()
    return found


def by_libhdf5(path: Path) -> dict[str, dict[str, Named]]:
    found: dict[str, dict[str, Named]] = {}
    with h5py.File(path) as file:
        entries = list(walk(file))
        for one in entries:
            if one.kind == "group":
                found[one.path] = {}
        for place, named in all_named(entries).items():
            group, _, name = place.rpartition("/")
            found[group or "/"][name.removeprefix("_nc4_non_coord_")] = named
    return found


def by_bytes(path: Path, group: str) -> Said | None:
    """What the xarray engine says by itself."""
    source = SharedFile(str(path), OPTIONS, {})
    try:
        facts = read_natively(source).group(group)
    except LeftToH5netcdfError:
        return None
    finally:
        source.close()
    variables = {
        name: Named(one.dimensions, tuple(facts.sizes[each] for each in one.dimensions))
        for name, one in facts.variables.items()
    }
    dimensions = {name: (one.size, one.is_unlimited) for name, one in facts.dimensions.items()}
    return dimensions, variables


def compare(path: Path, least: int = 0) -> None:
    """Compare all groups, of which so many are read by the bytes of the file."""
    theirs, read = by_netcdf(path), 0
    assert by_libhdf5(path) == {group: variables for group, (_, variables) in theirs.items()}
    for group, said in theirs.items():
        ours = by_bytes(path, group)
        if ours is not None:
            assert _told(ours) == _told(said)
            read += 1
    assert read >= least


def _told(said: Said) -> Any:
    """Without the length of an unlimited dimension that no variable of the group has."""
    # h5netcdf takes that of its scale, and netCDF-C that of the longest variable: none here.
    dimensions, variables = said
    used = {name for one in variables.values() for name in one.names}
    return {
        name: (None if grows and name not in used else length, grows)
        for name, (length, grows) in dimensions.items()
    }, variables


def write_netcdf(path: Path, rng: random.Random) -> None:
    """Variables in any order, of dimensions of their group and of those above, with records."""
    with netCDF4.Dataset(path, "w") as file:
        groups = [file]
        for number in range(rng.choice((0, 0, 1, 2))):
            groups.append(rng.choice(groups).createGroup(f"g{number}"))
        # A name only once: what a variable below a hidden dimension means, netCDF4 does not say.
        free = list("tuvwxyz")
        rng.shuffle(free)
        for group in groups:
            for _ in range(rng.randint(group is file, 3)):
                if free:
                    length = None if rng.random() < 0.3 else rng.randint(1, 4)
                    group.createDimension(free.pop(), length)
        made = []
        for group in groups:
            known = _visible(group)
            for _ in range(rng.randint(1, 6)):
                name = rng.choice([*group.dimensions, "A", "B", "C", "D"])
                if name in group.variables:
                    continue
                dims = rng.sample(known, min(len(known), rng.randint(0, 3)))
                if name in group.dimensions and rng.random() < 0.7:
                    dims = [name, *(one for one in dims if one != name)][: rng.randint(1, 2)]
                made.append(group.createVariable(name, "i2", dims))
        rng.shuffle(made)
        for variable in made:
            if rng.random() < 0.7:
                shape = [length or rng.randint(1, 4) for length in variable.shape]
                variable[...] = np.ones(shape, "i2")


def _visible(group: Any) -> list[str]:
    above = [] if group.parent is None else _visible(group.parent)
    return [*above, *group.dimensions]


def write_scales(path: Path, rng: random.Random) -> None:
    """Scales as programs on HDF5 make them, all dimensions of a dataset with one or none."""
    with h5py.File(path, "w", track_order=True) as file:
        groups = [
            file,
            *(file.create_group("g", track_order=True) for _ in range(rng.choice((0, 1)))),
        ]
        free = list("tuvwxyz")
        rng.shuffle(free)
        scales: list[Any] = []
        for group in groups:
            for _ in range(rng.randint(0, 3)):
                length = rng.randint(1, 4)
                shape: Any = (length, 2) if rng.random() < 0.1 else (length,)
                limits: Any = (None, *shape[1:]) if rng.random() < 0.2 else None
                scale = group.create_dataset(free.pop(), shape, "i2", maxshape=limits)
                scale.make_scale(rng.choice(("", "other", ABSENT)))
                scales.append(scale)
        for group in groups:
            fitting = [one for one in scales if one.parent in (file, group)]
            for name in "AB":
                chosen = rng.choices(fitting, k=rng.randint(0, 2)) if fitting else []
                shape = [one.shape[0] for one in chosen] or rng.choices((1, 2, 3, 4), k=2)
                dataset = group.create_dataset(name, shape, "i2")
                for number, scale in enumerate(chosen):
                    dataset.dims[number].attach_scale(scale)
                    others = [one for one in fitting if one.shape[0] == scale.shape[0]]
                    if rng.random() < 0.2:
                        dataset.dims[number].attach_scale(rng.choice(others))
                if rng.random() < 0.3:
                    dataset.attrs["_Netcdf4Dimid"] = np.int32(rng.randint(0, 3))


def write_h5netcdf(path: Path, rng: random.Random) -> None:
    """Dimensions with and without variables, in groups, some of two dimensions or unlimited."""
    with h5netcdf.File(path, "w") as file:
        groups = [file]
        for number in range(rng.choice((0, 1, 2))):
            groups.append(rng.choice(groups).create_group(f"g{number}"))
        free = list("tuvwxyz")
        rng.shuffle(free)
        for group in groups:
            for _ in range(rng.randint(group is file, 2)):
                name, length = free.pop(), rng.choice((None, 1, 2, 3))
                group.dimensions[name] = length
                if length is None:
                    group.resize_dimension(name, rng.randint(1, 4))
        for group in groups:
            above, at = [], group
            while at is not None:
                above += list(at.dimensions)
                at = at.parent
            for _ in range(rng.randint(1, 4)):
                name = rng.choice([*group.dimensions, "A", "B", "C"])
                if name in group.variables:
                    continue
                dims = rng.sample(above, min(len(above), rng.randint(0, 3)))
                if name in group.dimensions:
                    # h5netcdf looks for the others in the same group alone.
                    others = [one for one in dims if one != name and one in group.dimensions]
                    dims = [name, *others][: rng.randint(1, 2)]
                group.create_variable(name, tuple(dims), "i2")


def write_odd(path: Path, rng: random.Random) -> None:
    """Names of dimensions in groups below that are no scales, dimensions without any."""
    with h5py.File(path, "w", track_order=rng.random() < 0.7) as file:
        lengths = {name: rng.randint(1, 3) for name in "xyz"}
        scales = [name for name in lengths if rng.random() < 0.7]
        for name, length in lengths.items():
            if name in scales:
                limits = (None,) if rng.random() < 0.3 else None
                file.create_dataset(name, (length,), "i2", maxshape=limits).make_scale(name)
        below = file.create_group("g", track_order=True)
        for group in (file, below, below.create_group("h")):
            for name in rng.sample([*"xyzAB"], rng.randint(0, 4)):
                if name in group:
                    continue
                axes = rng.choices("xyz", k=rng.randint(0, 3))
                most: Any = [None if rng.random() < 0.2 else lengths[axis] for axis in axes]
                one = group.create_dataset(
                    name, [lengths[axis] for axis in axes], "i2", maxshape=tuple(most)
                )
                if axes and all(axis in scales for axis in axes) and rng.random() < 0.6:
                    for number, axis in enumerate(axes):
                        one.dims[number].attach_scale(file[axis])


@settings(max_examples=40, deadline=None)
@pytest.mark.parametrize("write", [write_netcdf, write_h5netcdf, write_scales, write_odd])
@given(rng=st.randoms(use_true_random=False))
def test_any_file(
    tmp_path: Path, write: Callable[[Path, random.Random], None], rng: random.Random
) -> None:
    path = tmp_path / "a.nc"
    write(path, rng)
    compare(path)


def test_an_unlimited_dimension_that_only_a_coordinate_of_two_has(tmp_path: Path) -> None:
    """No scale is attached to it, and no list of references has its length."""
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        file.createDimension("t", None)
        file.createVariable("x", "i2", ("x", "t"))[:] = np.ones((3, 5))
    compare(path, 1)
    said = by_bytes(path, "/")
    assert said is not None
    assert said[0] == {"x": (3, False), "t": (5, True)}


def test_a_coordinate_of_two_dimensions_may_grow(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("t", None)
        file.createDimension("x", 3)
        file.createVariable("t", "i2", ("t", "x"))[:] = np.ones((4, 3))
    compare(path, 1)
    said = by_bytes(path, "/")
    assert said is not None
    assert said[0]["t"] == (4, True)


def test_numbers_count_before_scales(tmp_path: Path) -> None:
    """As in a file of netCDF-C whose scales another program has attached anew."""
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as file:
        for name in "ab":
            file.createDimension(name, 4)
        for name in "ba":
            file.createVariable(name, "i2", (name,))
        file.createVariable("v", "i2", ("b", "a"))
    with h5py.File(path, "r+") as file:
        assert "_Netcdf4Coordinates" in file["v"].attrs
        for axis, (old, new) in enumerate((("b", "a"), ("a", "b"))):
            file["v"].dims[axis].detach_scale(file[old])
            file["v"].dims[axis].attach_scale(file[new])
    compare(path, 1)
    assert by_libhdf5(path)["/"]["v"].names == ("b", "a")


def test_hidden_attributes_are_those_that_netcdf_hides(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        file.createVariable("v", "i2", ("x",))
    with h5py.File(path, "r+") as file:
        for name in HIDDEN - {"DIMENSION_LIST", "_Netcdf4Coordinates"}:
            file["v"].attrs[name] = np.int32(1)
        file["v"].attrs["seen"] = 1
    with netCDF4.Dataset(path) as file:
        assert file["v"].ncattrs() == ["seen"]
