"""Is the netCDF-4 copy of a netCDF-3 file compared with it, and is every difference noticed?"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import UsageError, WrongValueError
from chunkwise.files import netcdf3
from chunkwise.files.netcdf3 import convert
from chunkwise.proof.conversion import prove_conversion
from tests.repack.test_netcdf3 import FORMATS, MORE_TYPES, TYPES, make
from tests.support.tools import needs_netcdf

pytestmark = needs_netcdf

NAMES = ("x", "time", "été", "a b", "grid.point", "_hidden", "CamelCase", "n" * 100, "NAME2")


def random_file(path: Path, seed: int) -> None:
    """Write dimensions, variables, attributes and values of many kinds."""
    random = np.random.default_rng(seed)
    form: Any = FORMATS[seed % 3]
    types = TYPES + (MORE_TYPES if form == "NETCDF3_64BIT_DATA" else ())
    with netCDF4.Dataset(path, "w", format=form) as file:
        file.set_auto_mask(False)
        dimensions = list(random.permutation(NAMES)[: random.integers(0, 5)])
        for number, name in enumerate(dimensions):
            grows = number == 0 and random.integers(2)
            file.createDimension(name, None if grows else int(random.integers(1, 8)))
        attributes(file, random)
        for name in random.permutation(NAMES)[: random.integers(1, 6)]:
            rank = random.integers(0, len(dimensions) + 1)
            own = list(random.permutation(dimensions)[:rank])
            own.sort(key=lambda one: not file.dimensions[one].isunlimited())
            dtype = str(random.choice(types))
            made = file.createVariable(name, dtype, own)
            attributes(made, random)
            records = int(random.integers(0, 6))
            shape = [
                records if file.dimensions[one].isunlimited() else len(file.dimensions[one])
                for one in own
            ]
            if 0 not in shape:
                values = random.integers(0, 127, shape)
                made[...] = values.astype("u1").view("S1") if dtype == "S1" else values


def attributes(owner: Any, random: np.random.Generator) -> None:
    for number in range(random.integers(0, 12)):
        kind = random.integers(4)
        value: Any = random.random(int(random.integers(1, 5)))
        if kind == 0:
            value = "text é" * int(random.integers(0, 20))
        elif kind == 1:
            value = np.array([np.nan, -0.0, np.inf], "f4")
        elif kind == 2:
            value = np.int16(random.integers(100))
        owner.setncattr(f"{chr(122 - number)} {number}", value)


@pytest.mark.parametrize("seed", range(24))
def test_what_netcdf_copies_is_the_same(seed: int, tmp_path: Path) -> None:
    random_file(tmp_path / "a.nc", seed)
    convert(tmp_path / "a.nc", tmp_path / "b.nc")
    prove_conversion(tmp_path / "a.nc", tmp_path / "b.nc")


# --- sabotage: a copy that is wrong -----------------------------------------------------


def other_value(file: h5py.File) -> None:
    file["v.f4"][29, 39, 49] += 1


def swapped_variables(file: h5py.File) -> None:
    file.move("v.i4", "z")
    file.move("v.f4", "v.i4")
    file.move("z", "v.f4")


def other_dimension(file: h5py.File) -> None:
    made = file["v.f8"]
    made.dims[2].detach_scale(file["x"])
    made.dims[2].attach_scale(file["y"])


def not_unlimited(file: h5py.File) -> None:
    """A dimension of the same length that cannot grow."""
    times = file["time"][:]
    attributes = dict(file["time"].attrs)
    del file["time"]
    made = file.create_dataset("time", data=times)
    made.make_scale("time")
    made.attrs["_Netcdf4Dimid"] = attributes["_Netcdf4Dimid"]


NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable.        50"
RANGE = np.array([-1, 101], "i2")
MUTATIONS: dict[str, Callable[[h5py.File], object]] = {
    "value": other_value,
    "letter": lambda f: f["name_of_step"].__setitem__((3, 4), b"r"),
    "zero that is negative": lambda f: f["time"].__setitem__(0, -0.0),
    "scalar": lambda f: f["scalar"].__setitem__((), 41),
    "attribute": lambda f: f["v.i2"].attrs.modify("range", RANGE),
    "type of an attribute": lambda f: f["v.i2"].attrs.__setitem__("range", [-1, 100]),
    "text": lambda f: f.attrs.__setitem__("title", np.bytes_(b"another")),
    "lost attribute": lambda f: f["v.i1"].attrs.__delitem__("units"),
    "more attributes": lambda f: f.attrs.__setitem__("more", 1),
    "lost variable": lambda f: f.__delitem__("never_written"),
    "name": lambda f: f.move("scalar", "number"),
    "swapped variables": swapped_variables,
    "dimension": other_dimension,
    "longer": lambda f: f["v.i1"].resize(31, 0),
    "not unlimited": not_unlimited,
    # A coordinate that is a dimension without values.
    "no variable": lambda f: f["x"].attrs.__setitem__("NAME", np.bytes_(NO_VARIABLE)),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    convert(make(folder / "a.nc"), folder / "b.nc")
    return folder


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_wrong_copy_is_noticed(mutation: str, made: Path, tmp_path: Path) -> None:
    shutil.copyfile(made / "b.nc", tmp_path / "b.nc")
    with h5py.File(tmp_path / "b.nc", "r+") as file:
        MUTATIONS[mutation](file)
    with pytest.raises(WrongValueError):
        prove_conversion(made / "a.nc", tmp_path / "b.nc")


@pytest.fixture
def _wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let netCDF-C write a wrong value."""

    def wrong(source: Path, target: Path) -> None:
        convert(source, target)
        with h5py.File(target, "r+") as file:
            other_value(file)

    monkeypatch.setattr(netcdf3, "convert", wrong)


@pytest.mark.usefixtures("_wrong")
def test_a_wrong_copy_gives_no_result(tmp_path: Path) -> None:
    source, target = make(tmp_path / "a.nc"), tmp_path / "b.nc"
    before = source.read_bytes()
    works = (
        lambda: chunkwise.repack(source, target),
        lambda: chunkwise.repack(source, in_place=True),
        lambda: chunkwise.fix(source, target),
        lambda: chunkwise.fix(source, in_place=True),
        lambda: chunkwise.verify(source, write_manifest=tmp_path / "a.json"),
    )
    for work in works:
        with pytest.raises(WrongValueError, match=r"a\.nc as netCDF-4: '/v\.f4 \[.*differs"):
            work()
        assert source.read_bytes() == before
        assert [one.name for one in tmp_path.iterdir()] == ["a.nc"]
    assert chunkwise.repack(source, target, verify="none").verified == "none"


def test_of_a_cut_file_what_is_there_is_compared(made: Path, tmp_path: Path) -> None:
    source = tmp_path / "a.nc"
    whole = (made / "a.nc").read_bytes()
    source.write_bytes(whole[: len(whole) // 2])
    convert(source, tmp_path / "b.nc")
    prove_conversion(source, tmp_path / "b.nc")
    with h5py.File(tmp_path / "b.nc", "r+") as file:
        file["v.f4"][2, 3, 4] += 1
    with pytest.raises(WrongValueError):
        prove_conversion(source, tmp_path / "b.nc")


def test_a_header_that_is_not_known_is_no_proof(made: Path, tmp_path: Path) -> None:
    (tmp_path / "a.nc").write_bytes((made / "a.nc").read_bytes()[:90])
    with pytest.raises(UsageError, match="--verify none"):
        prove_conversion(tmp_path / "a.nc", made / "b.nc")
