"""What do netCDF-C and plain HDF5 write?  Files, each about one thing, and their groups."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest


def _netcdf4(make: Callable[[Any], None]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        netCDF4 = pytest.importorskip("netCDF4")  # noqa: N806
        with netCDF4.Dataset(path, "w") as f:
            make(f)

    return write


def _enumerations(f: Any) -> None:
    kind = f.createEnumType(np.uint8, "cloud", {"clear": 0, "cloudy": 1, "missing": 255})
    f.createDimension("t", None)
    f.createVariable("c", kind, "t", fill_value=255)[:] = np.array([1, 0, 255], "u1")
    inner = f.createGroup("inner")
    inner.createVariable("c", kind, "t")[:] = np.array([1, 1, 0], "u1")


def _of_variable_length(f: Any) -> None:
    f.createDimension("t", 3)
    kind = f.createVLType(np.int32, "row")
    ragged = f.createVariable("ragged", kind, "t")
    for at in range(3):
        ragged[at] = np.arange(at + 1, dtype="i4")
    f.createVariable("text", str, "t")[:] = np.array(["a", "", "bc"], object)


def _records(f: Any) -> None:
    f.createDimension("t", 2)
    kind = f.createCompoundType(np.dtype([("a", "i4"), ("b", "f8")]), "pair")
    f.createVariable("r", kind, "t")[:] = np.array([(1, 2.5), (3, 4.5)], kind.dtype)


def _big_endian(f: Any) -> None:
    f.createDimension("t", 30)
    for kind in ("i2", "u4", "i8", "f4", "f8"):
        made = f.createVariable(kind, f">{kind}", "t", endian="big", zlib=True, chunksizes=(7,))
        made[:] = np.arange(30)


def _groups(f: Any) -> None:
    f.createDimension("t", None)
    f.createDimension("x", 4)
    f.createVariable("t", "f8", "t")[:] = np.arange(5.0)
    f["t"].units = "days since 2000-01-01"
    a = f.createGroup("a")
    a.createDimension("x", 6)
    a.createVariable("v", "i4", ("t", "x"), zlib=True)[:] = np.arange(30).reshape(5, 6)
    b = a.createGroup("b")
    b.createVariable("w", "i2", ("t", "x"))[:] = np.arange(30).reshape(5, 6)
    b.title = "deep"
    f.createGroup("empty")


def _unequal(f: Any) -> None:
    """Variables of one unlimited dimension, of which each has another length."""
    f.createDimension("t", None)
    f.createDimension("x", 3)
    f.createVariable("long", "f4", ("t", "x"), zlib=True)[:] = np.ones((6, 3))
    f.createVariable("short", "f4", ("t", "x"), zlib=True)[0:2] = np.full((2, 3), 2.0)
    f.createVariable("never", "i4", ("t",))
    f.createVariable("filled", "i2", ("t",), fill_value=-5)[0:1] = [7]


def _names(f: Any) -> None:
    """A variable that is called as a dimension, and has others; one of two dimensions."""
    for name, size in (("x", 3), ("y", 4), ("station", 2), ("nchar", 5)):
        f.createDimension(name, size)
    f.createVariable("x", "f4", ("y",))[:] = np.arange(4)
    f.createVariable("y", "f4", ("y", "x"))[:] = np.ones((4, 3))
    import netCDF4

    label = f.createVariable("station", "S1", ("station", "nchar"))
    label[:] = netCDF4.stringtochar(np.array([b"abcde", b"fg"], "S5"))
    same = f.createVariable("same", "i4", ("x", "x"))
    same[:] = np.arange(9).reshape(3, 3)


def _attributes(f: Any) -> None:
    f.createDimension("t", 2)
    v = f.createVariable("v", "u1", "t", fill_value=255)
    v[:] = [1, 2]
    v.flags, v.one, v.text = np.array([1, 2], "i1"), np.float32(2), "é"
    v.words, v.nothing, v.raw = ["a", "b"], "", b"bytes"
    v._Unsigned = "true"
    f.numbers = np.arange(3)


def _calendars(f: Any) -> None:
    f.createDimension("t", 3)
    for calendar in ("standard", "noleap", "360_day", "julian", "proleptic_gregorian"):
        made = f.createVariable(calendar, "f8", "t")
        made[:] = [0, 59.5, 400]
        made.units, made.calendar = "days since 2001-01-01", calendar


def _scalars(f: Any) -> None:
    f.createVariable("number", "f8")[...] = 2.5
    f.createVariable("letter", "S1")[...] = b"c"
    f.createVariable("text", str)[...] = "words"
    f.createDimension("none", None)
    f.createVariable("empty", "f4", "none")


def _filters(f: Any) -> None:
    f.createDimension("t", 40)
    f.createVariable("f", "i4", "t", zlib=True, fletcher32=True, chunksizes=(9,))[:] = range(40)
    f.createVariable("plain", "i4", "t", contiguous=True)[:] = range(40)
    f.createVariable("chunked", "i4", "t", chunksizes=(40,))[:] = range(40)


def _plain_hdf5(path: Path) -> None:
    with h5py.File(path, "w") as f:
        f["a"] = np.arange(12).reshape(3, 4)
        f["g/b"] = np.arange(9.0).reshape(3, 3)
        f["flags"] = np.array([True, False])
        f["fixed"] = np.array([b"ab", b"c"], "S2")
        f["text"] = ["x", "yz"]
        f["half"] = np.arange(4, dtype="f2")


WRITTEN: dict[str, tuple[Callable[[Path], None], tuple[str | None, ...]]] = {
    "enumerations": (_netcdf4(_enumerations), (None, "inner")),
    "variable length": (_netcdf4(_of_variable_length), (None,)),
    "records": (_netcdf4(_records), (None,)),
    "big-endian": (_netcdf4(_big_endian), (None,)),
    "groups": (_netcdf4(_groups), (None, "a", "/a/b", "empty")),
    "unequal lengths": (_netcdf4(_unequal), (None,)),
    "names": (_netcdf4(_names), (None,)),
    "attributes": (_netcdf4(_attributes), (None,)),
    "calendars": (_netcdf4(_calendars), (None,)),
    "scalars": (_netcdf4(_scalars), (None,)),
    "filters": (_netcdf4(_filters), (None,)),
    "HDF5 without dimensions": (_plain_hdf5, (None, "g")),
}
