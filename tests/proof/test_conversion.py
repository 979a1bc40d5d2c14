"""Is the netCDF-4 copy of a netCDF-3 file compared with it, and is every difference noticed?"""

from __future__ import annotations

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


def other_letter(file: h5py.File) -> None:
    file["name_of_step"][3, 4] = b"r"


def zero_that_is_negative(file: h5py.File) -> None:
    file["time"][0] = -0.0


def other_scalar(file: h5py.File) -> None:
    file["scalar"][()] = 41


def other_attribute(file: h5py.File) -> None:
    file["v.i2"].attrs.modify("range", np.array([-1, 101], "i2"))


def other_type_of_attribute(file: h5py.File) -> None:
    file["v.i2"].attrs["range"] = np.array([-1, 100], "i4")


def other_text(file: h5py.File) -> None:
    file.attrs["title"] = np.bytes_(b"another")


def lost_attribute(file: h5py.File) -> None:
    del file["v.i1"].attrs["units"]


def more_attributes(file: h5py.File) -> None:
    file.attrs["more"] = 1


def lost_variable(file: h5py.File) -> None:
    del file["never_written"]


def other_name(file: h5py.File) -> None:
    file.move("scalar", "number")


def swapped_variables(file: h5py.File) -> None:
    file.move("v.i4", "z")
    file.move("v.f4", "v.i4")
    file.move("z", "v.f4")


def other_dimension(file: h5py.File) -> None:
    made = file["v.f8"]
    made.dims[2].detach_scale(file["x"])
    made.dims[2].attach_scale(file["y"])


def longer(file: h5py.File) -> None:
    file["v.i1"].resize(31, 0)


def not_unlimited(file: h5py.File) -> None:
    """A dimension of the same length that cannot grow."""
    times = file["time"][:]
    attributes = dict(file["time"].attrs)
    del file["time"]
    made = file.create_dataset("time", data=times)
    made.make_scale("time")
    made.attrs["_Netcdf4Dimid"] = attributes["_Netcdf4Dimid"]


def no_variable(file: h5py.File) -> None:
    """A coordinate that is a dimension without values."""
    file["x"].attrs["NAME"] = np.bytes_(
        b"This is a netCDF dimension but not a netCDF variable.        50"
    )


MUTATIONS = (
    *(other_value, other_letter, zero_that_is_negative, other_scalar, other_attribute),
    *(other_type_of_attribute, other_text, lost_attribute, more_attributes, lost_variable),
    *(other_name, swapped_variables, other_dimension, longer, not_unlimited, no_variable),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    convert(make(folder / "a.nc"), folder / "b.nc")
    return folder


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.__name__)
def test_a_wrong_copy_is_noticed(
    mutation: Callable[[h5py.File], None], made: Path, tmp_path: Path
) -> None:
    shutil.copyfile(made / "b.nc", tmp_path / "b.nc")
    with h5py.File(tmp_path / "b.nc", "r+") as file:
        mutation(file)
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
