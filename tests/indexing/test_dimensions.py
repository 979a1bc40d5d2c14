"""Do references name the dimensions of a file, and give lengths, as netCDF-C does?"""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import chunkwise
from tests.support.indexing import by_xarray

netcdf = pytest.importorskip("netCDF4")

Shown = dict[str, tuple[tuple[str, ...], tuple[int, ...]]]
ABSENT = "This is a netCDF dimension but not a netCDF variable.         4"
quiet = settings(max_examples=40)


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


def write_netcdf(path: Path, rng: random.Random) -> None:
    """Variables in any order, of dimensions of their group and of those above, with records."""
    with netcdf.Dataset(path, "w") as file:
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


@quiet
@given(rng=st.randoms(use_true_random=False))
def test_any_netcdf_file(tmp_path: Path, rng: random.Random) -> None:
    path = tmp_path / "a.nc"
    write_netcdf(path, rng)
    assert by_index(path) == by_netcdf(path)


@quiet
@given(rng=st.randoms(use_true_random=False))
def test_any_scales(tmp_path: Path, rng: random.Random) -> None:
    path = tmp_path / "a.nc"
    write_scales(path, rng)
    try:
        theirs = by_netcdf(path)
    except OSError:  # netCDF-C does not take all that HDF5 takes.
        reject()
    assert by_index(path) == theirs


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
