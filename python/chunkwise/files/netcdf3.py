"""How does code that reads HDF5 read a netCDF-3 file?  netCDF-C converts it to a scratch file."""

from __future__ import annotations

import ctypes.util
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from chunkwise import _native
from chunkwise.errors import UsageError
from chunkwise.names import printable

_MAGIC: Final = (b"CDF\x01", b"CDF\x02", b"CDF\x05")
# Data held while it is converted.
_SLAB_NBYTES: Final = 64 << 20


def is_netcdf3(path: str | os.PathLike[str]) -> bool:
    """Recognize a netCDF-3 file by its first bytes; False also if it cannot be read."""
    try:
        with Path(path).open("rb") as stream:
            return stream.read(4) in _MAGIC
    except (OSError, ValueError):
        return False


def netcdf_library() -> str | None:
    """Find netCDF-C: netCDF4-python's, or the system's; None if there is none."""
    patterns = ("libnetcdf-*.so*", "netcdf-*.dll", "libnetcdf.*.dylib")
    found = [one for pattern in patterns for one in in_netcdf4_wheel(pattern)]
    return str(found[0]) if found else ctypes.util.find_library("netcdf")


def in_netcdf4_wheel(pattern: str) -> list[Path]:
    """Find libraries in netCDF4-python's wheel: beside the package, or on macOS in it."""
    package = importlib.util.find_spec("netCDF4")
    if package is None or package.origin is None:
        return []
    folder = Path(package.origin).parent
    # By the wheel's tools: of Linux and Windows, whose names differ in case only, and of macOS.
    places = (folder.parent / "netcdf4.libs", folder / ".dylibs")
    return sorted(found for place in places for found in place.glob(pattern))


def require_netcdf(path: str | os.PathLike[str]) -> str:
    """Find netCDF-C for a netCDF-3 file."""
    library = netcdf_library()
    if library is None:
        raise UsageError(
            f"{printable(os.fspath(path))}: is a netCDF-3 file, which netCDF-C reads, and that is "
            "not installed here: pip install netCDF4"
        )
    return library


def convert(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Write a netCDF-3 file as a new netCDF-4 file: ``ncdump`` prints the same of both."""
    # In a process of its own: netCDF-C crashes on some damaged files.
    from chunkwise.files.contained import contained

    library = require_netcdf(source)
    # netCDF-C leaves out blanks at the beginning of a path, or takes it for a URL.
    files = str(Path(source).absolute()), str(Path(target).absolute())
    contained(partial(_convert, library, *files), printable(os.fspath(source)))


def _convert(library: str, source: str, target: str) -> None:
    _native.NetCdf(library).convert(source, target, _SLAB_NBYTES)


@contextmanager
def as_netcdf4(path: Path, folder: Path | None = None) -> Iterator[Path]:
    """Give a file as it is, or for the block's time a netCDF-4 copy of one of netCDF-3."""
    if not is_netcdf3(path):
        yield path
        return
    with TemporaryDirectory(prefix=f".{path.name[:40]}.netcdf4.", dir=folder) as made:
        copy = Path(made, path.name)
        convert(path, copy)
        copy.chmod(path.stat().st_mode & 0o777)
        yield copy
