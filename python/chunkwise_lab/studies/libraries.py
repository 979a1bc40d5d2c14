"""Which libhdf5s and zlibs are on this machine, so that they can be compared?"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from chunkwise.errors import UsageError
from chunkwise.files.netcdf3 import in_netcdf4_wheel
from chunkwise.measure.axes import DEFAULT
from chunkwise.measure.libraries import check_zlib
from chunkwise.measure.libraries import find as find_one
from chunkwise.measure.space import Space
from chunkwise.measure.wheels import is_wheel, library_of
from chunkwise_lab.studies.study import LIBRARIES, OTHERS

# Placeholders for found libraries in a study's files.
ALL: Final = "@all"
OLDER: Final = "@older"
NETCDF4: Final = "@netcdf4"
# Whose build the library is that netCDF4 calls, if it does not share h5py's.
WHEEL: Final = "netCDF4's wheel"
# As the value of a label: what build each library is.
BUILD: Final = "@build"
# Where distributions put them, by the build.
_PLACES: Final = {
    "serial": ("libhdf5_serial.so.*", "hdf5/serial/libhdf5.so", "libhdf5.so.*"),
    "Open MPI": ("hdf5/openmpi/libhdf5.so", "libhdf5_openmpi.so.*"),
    "MPICH": ("hdf5/mpich/libhdf5.so", "libhdf5_mpich.so.*"),
}
# Where `wheels.library_of` keeps those of a wheel.
_KEPT: Final = re.compile(r".*/libraries/(h5py|netCDF4)-([^/]+)/[^/]+")
_ROOTS: Final = ("/usr/lib", "/usr/lib64", "/usr/local/lib")


@dataclass(frozen=True)
class Library:
    """A libhdf5."""

    value: str  # On the axis ``libhdf5``: ``default`` or a path
    # Such as ``1.10.8``; such as ``serial`` or ``h5py's wheel``.
    version: str
    build: str

    def __str__(self) -> str:
        return f"HDF5 {self.version} ({self.build})"


def find(named: Sequence[str] = ()) -> dict[str, Library]:
    """Find the libraries of this machine, each once, by their value on the axis."""
    named = [library_of(value) if is_wheel(value) else value for value in named]
    places = {DEFAULT: "h5py's", **_installed()}
    places |= {value: said_of(value) or "named" for value in named}
    found: dict[str, Library] = {}
    with tempfile.TemporaryDirectory(prefix="chunkwise-") as folder:
        for value in _each_once(places):
            try:
                library = find_one(None if value == DEFAULT else value, folder)
            except UsageError:
                if value in named:
                    raise
                continue
            found[value] = Library(value, library.version, places[value])
    return found


def _installed() -> dict[str, str]:
    places: dict[str, str] = {}
    roots = [path for root in _ROOTS for path in (Path(root), *Path(root).glob("*-linux-gnu"))]
    for build, patterns in _PLACES.items():
        for root in roots:
            for pattern in patterns:
                # The shortest name of a version: libhdf5_serial.so.103, not .so.103.3.0.
                for path in sorted(root.glob(pattern), key=lambda path: len(path.name))[:1]:
                    places.setdefault(str(path), build)
    places |= dict.fromkeys(map(str, in_netcdf4_wheel("libhdf5-*.so*")), WHEEL)
    return places


def _each_once(paths: Iterable[str]) -> list[str]:
    """Leave out what leads to the same file as one before it."""
    found: dict[Path, str] = {}
    for path in paths:
        found.setdefault(Path(path).resolve(), path)
    return list(found.values())


def build_of(value: str) -> str:
    """Say whose library a value of the axis is, by its path alone.

    >>> build_of("default"), build_of("/usr/lib/libhdf5_openmpi.so.103"), build_of("/opt/l.so")
    ("h5py's", 'Open MPI', '/opt/l.so')
    """
    if value == DEFAULT:
        return "h5py's"
    marks = {"serial": "serial", "openmpi": "Open MPI", "mpich": "MPICH"}
    marks["netcdf4.libs"] = WHEEL
    known = (build for mark, build in marks.items() if mark in value)
    return said_of(value) or next(known, value)


def find_zlibs(named: Sequence[str] = ()) -> dict[str, str]:
    """Find zlibs, such as a compatible zlib-ng, that can replace that of h5py's libhdf5."""
    with tempfile.TemporaryDirectory(prefix="chunkwise-") as folder:
        library = find_one(None, folder)
        found = {DEFAULT: library.zlib}
        for path in _each_once((*named, *_candidates())):
            try:
                version = check_zlib(path, "libhdf5", library)
            except UsageError:
                if path in named:
                    raise
                continue
            if version not in found.values():
                found[path] = version
    return found


def _candidates() -> list[str]:
    roots = [Path(sys.prefix) / "lib", Path("/usr/local/lib"), *Path("/opt").glob("*/lib*")]
    conda = os.environ.get("CONDA_PREFIX")
    roots += [Path(conda) / "lib"] if conda else []
    roots += [path for root in _ROOTS for path in Path(root).glob("*-linux-gnu")]
    # Distributions put a compatible build into a folder of its own.
    folders = [*roots, *(path for root in roots for path in root.glob("zlib*"))]
    wheels = Path(sysconfig.get_path("platlib")).glob("*.libs")
    return [
        str(path) for folder in (*folders, *wheels) for path in sorted(folder.glob("libz[.-]*so*"))
    ]


def expand(
    space: Space, libraries: Mapping[str, Library], zlibs: Mapping[str, str] | None = None
) -> tuple[Space | None, list[str]]:
    """Replace ``@all``, ``@others``, ``@older`` or ``@netcdf4`` in a space by what was found."""
    reasons: list[str] = []
    axes = dict(space.axes)
    for axis in LIBRARIES:
        stated = axes.get(axis, ())
        if not {ALL, OTHERS, OLDER, NETCDF4} & set(stated):
            continue
        if axis == "libhdf5":
            known, older = list(libraries), _older(libraries)
            age = "older than" if OLDER in stated else "besides"
            missing = f"no libhdf5 was found {age} h5py's: name one with --libhdf5"
        else:
            known, older = list(find_zlibs() if zlibs is None else zlibs), []
            missing = "no zlib was found that can take the place of libhdf5's, such as zlib-ng's"
        others = [value for value in known if value != DEFAULT]
        standing = {ALL: known, OTHERS: others, OLDER: older, NETCDF4: _netcdf4(libraries)}
        values = dict.fromkeys(value for text in stated for value in standing.get(text, [text]))
        if not set(values) - {DEFAULT} and NETCDF4 not in stated:
            reasons.append(missing)
        if not values:
            return None, reasons
        axes[axis] = tuple(values)
    return replace(space, axes=axes), reasons


def _netcdf4(libraries: Mapping[str, Library]) -> list[str]:
    """Return the library that netCDF4 calls: its wheel's own, or h5py's where they share one."""
    own = [value for value, one in libraries.items() if one.build == WHEEL]
    return own or [DEFAULT]


def _older(libraries: Mapping[str, Library]) -> list[str]:
    """Return the libraries older than h5py's, one of each version."""

    def number(one: Library) -> tuple[int, ...]:
        return tuple(int(part) for part in one.version.split(".") if part.isdigit())

    own = number(libraries[DEFAULT])
    by_version: dict[str, str] = {}
    for value, one in libraries.items():
        if number(one) < own:
            by_version.setdefault(one.version, value)
    return list(by_version.values())


def labels_of(
    labels: Mapping[str, str], point: Mapping[str, str], libraries: Mapping[str, Library]
) -> dict[str, str]:
    """Replace ``@build`` in a row's labels by the build of its library."""
    found = libraries.get(point["libhdf5"])
    build = "named" if found is None else found.build
    return {name: build if text == BUILD else text for name, text in labels.items()}


def said_of(path: str) -> str | None:
    """Name the wheel that a library was taken from; None for others.

    >>> said_of("/home/me/.cache/chunkwise/libraries/h5py-3.8.0/libhdf5-45610c27.so.200")
    "h5py 3.8.0's wheel"
    """
    found = _KEPT.fullmatch(path)
    return f"{found[1]} {found[2]}'s wheel" if found else None
