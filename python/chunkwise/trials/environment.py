"""On what machine, and with which libraries, was this measured?"""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path

import numpy as np

from chunkwise import _native
from chunkwise.trials.zlibs import version_of


def describe(hdf5: str | None = None) -> dict[str, str | int]:
    """Return the machine and the versions of everything loaded in this process."""
    if hdf5 is None:
        import h5py

        hdf5 = str(h5py.version.hdf5_version)
    return {
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cpu_count": usable_cpus(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "h5py": _h5py_version(),
        "hdf5": hdf5,
        "numpy": np.__version__,
        "chunkwise": _native.__version__,
        "zlib": zlib_version(),
    }


def _h5py_version() -> str:
    # It is not imported for this, as that would load its libhdf5 too.
    loaded = sys.modules.get("h5py")
    if loaded is not None:
        return str(loaded.__version__)
    try:
        return metadata.version("h5py")
    except metadata.PackageNotFoundError:
        # Debian's package goes by another name.
        return "unknown"


def usable_cpus() -> int:
    """Return how many processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def peak_rss_nbytes() -> int | None:
    """Return this process's peak resident memory."""
    # ``ru_maxrss`` survives `exec` on Linux: a worker would report its parent's peak.
    peak = field("/proc/self/status", "VmHWM:")
    return None if peak is None else int(peak.split()[0]) * 1024


def _cpu_model() -> str:
    found = field("/proc/cpuinfo", "model name")
    return (found or "").strip(" \t:") or platform.processor() or "unknown"


def zlib_version() -> str:
    """Ask the zlib that libhdf5 has loaded: zlib-ng and zlib differ in speed."""
    for line in _lines("/proc/self/maps"):
        path = line.rpartition(" ")[2]
        if "libz" in Path(path).name and ".so" in path:
            version = version_of(path)
            if version is not None:
                return version
    return "unknown"


def field(path: str, name: str) -> str | None:
    """Return what follows a name in one of the system's files; None if unknown."""
    found = (line for line in _lines(path) if line.startswith(name))
    return next((line.removeprefix(name).strip() for line in found), None)


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
