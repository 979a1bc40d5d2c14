"""Which zlib does the libhdf5 of this process call, and is it the requested one?

A libhdf5 that is linked to zlib dynamically calls one with the same interface in LD_PRELOAD; if
zlib is built into it, nothing happens, and that must not count as a measurement of the other.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Final

from chunkwise import system
from chunkwise.errors import UsageError
from chunkwise.names import printable

PRELOAD: Final = "LD_PRELOAD"
# What libhdf5's deflate calls.
_CALLS: Final = ("compress2", "inflate")


class _Place(ctypes.Structure):
    """``Dl_info``."""

    _fields_ = (
        ("path", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def preloading(zlib: str | None) -> dict[str, str]:
    """Return what a worker's environment needs so that this zlib comes first."""
    if zlib is None:
        return {}
    return {PRELOAD: ":".join(filter(None, (zlib, os.environ.get(PRELOAD, ""))))}


def check_in_force(zlib: str, library: str) -> str:
    """See that a libhdf5 calls the zlib that this process was started with."""
    name = printable(zlib)
    everyone = ctypes.CDLL(None)
    for call in _CALLS:
        place = _place_of(everyone, call)
        if place is None or not system.same_file(place, zlib):
            raise UsageError(
                f"zlib {name}: cannot be loaded in zlib's place: give a shared library of this "
                "machine's architecture that has zlib's functions, such as zlib-ng's libz.so.1 "
                "(built with ZLIB_COMPAT)"
            )
        # A library calls only what it finds in itself or below it.
        below = _place_of(ctypes.CDLL(library), call)
        if below is None or not (
            system.same_file(below, zlib) or Path(below).name.startswith("libz")
        ):
            raise UsageError(
                f"zlib {name}: is not in force: {printable(library)} has a zlib of its own built "
                "in; leave zlib out, or give another --libhdf5"
            )
    return str(version_of(None))


def version_of(path: str | None) -> str | None:
    """Ask a library, or this process, for zlib's version; None if there is no zlib."""
    try:
        version = ctypes.CDLL(path).zlibVersion
    except (OSError, AttributeError):
        return None
    version.restype = ctypes.c_char_p
    return str(version().decode())


def _place_of(library: ctypes.CDLL, call: str) -> str | None:
    """Return the path of the library in which a function lies, as another one finds it."""
    try:
        function = library[call]
    except AttributeError:
        return None
    place = _Place()
    address = ctypes.cast(function, ctypes.c_void_p)
    if not ctypes.CDLL(None).dladdr(address, ctypes.byref(place)) or place.path is None:
        return None
    return os.fsdecode(place.path)
