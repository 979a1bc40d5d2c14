"""Which libhdf5 does this process call?  The one of h5py's handles, under h5py's lock."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import h5py
from h5py import h5pl, h5s

from chunkwise import _native
from chunkwise.settings import check_environment


@cache
def library() -> _native.Library:
    """The libhdf5 of h5py, found by a handle that it alone can have made."""
    check_environment()
    _leave_plugins_of_netcdf4()
    # 60 random bits: handles are counted, and would be valid in a second libhdf5, too.
    dims = (1 + _random_bits(30), 1 + _random_bits(30))
    space = h5s.create_simple(dims)
    return _native.Library.from_handle((space.id, dims), _modules(), h5py._objects.phil)


def _random_bits(count: int) -> int:
    # Without the module `secrets`, which imports much.
    return int.from_bytes(os.urandom(8), "little") >> (64 - count)


def _leave_plugins_of_netcdf4() -> None:
    """Take the plugins of netCDF4's wheel out of the path of h5py's libhdf5."""
    # They call the libhdf5 of that wheel.  `import netCDF4` adds them to HDF5_PLUGIN_PATH.
    for number in reversed(range(h5pl.size())):
        folder = Path(os.fsdecode(h5pl.get(number)))
        package = folder.parent
        has_hdf5 = (package.parent / "netcdf4.libs").is_dir()
        if (package.name, folder.name) == ("netCDF4", "plugins") and has_hdf5:
            h5pl.remove(number)


def _modules() -> list[str]:
    """Return the paths of h5py's loaded extension modules, under any name of its build."""
    found = [
        str(getattr(module, "__file__", None))
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == "h5py"
    ]
    return [path for path in dict.fromkeys(found) if path.endswith(tuple(EXTENSION_SUFFIXES))]


# Registered at import, so all our other work at the end comes before it.
@atexit.register
def _keep_threads_from_ending_with_the_lock() -> None:
    """Take h5py's lock for good."""
    # Python ends a daemon thread where it next asks for the interpreter.  One that has h5py's lock
    # there, for a read or write, never gives it back, and h5py asks for it as it lets go of its
    # own objects: the program would hang.  A thread that waits for the lock instead ends
    # with the process.
    lock = h5py._objects.phil
    if threading.active_count() > 1:
        while not lock.acquire(blocking=False):
            # A signal gets through.
            time.sleep(0.005)
