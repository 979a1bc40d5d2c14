"""What should a user hear whose program ran patched, but did not use the engine?

If a program used it, for a read or a write, or uses no HDF5, it ends without a message.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from collections.abc import Container, Mapping
from typing import Any

from chunkwise.patching.installed import patch_stats

# Modules that read through a libhdf5 of their own, and what each is called.
_OTHERS = {"netCDF4": "netCDF4", "tables": "PyTables"}


def say_at_exit() -> None:
    """Say one line on stderr when this process ends, if there is something to say."""
    process = os.getpid()

    def say() -> None:
        line = line_about(patch_stats(), sys.modules) if os.getpid() == process else None
        if line is not None and sys.stderr is not None:
            # A program may have closed it, or its reader is gone.
            with contextlib.suppress(OSError, ValueError):
                print(f"chunkwise: {line}", file=sys.stderr, flush=True)

    # The first registered function is called last: after all reads.
    atexit.register(say)


def line_about(stats: Mapping[str, Any], modules: Container[str]) -> str | None:
    """What there is to say."""
    writes: dict[str, Any] = stats["writes"]
    if stats["engine"] or writes["engine"]:
        return None
    reasons: dict[str, int]
    for work, reasons in (("read", stats["h5py"]), ("write", writes["h5py"])):
        if reasons:
            reason = max(reasons, key=lambda one: reasons[one])
            return (
                f"no {work} went through the engine (by h5py: {sum(reasons.values()):,}); most "
                f"frequent reason: {reason}"
            )
    if "netCDF4" in modules and "xarray" in modules:
        return (
            "read nothing: netCDF4 has a libhdf5 of its own; give xarray's open functions "
            'engine="h5netcdf", which reads through h5py'
        )
    for module, name in _OTHERS.items():
        if module in modules:
            return (
                f"read nothing: {name} has a libhdf5 of its own; only what is read through h5py "
                "is read by the engine"
            )
    return None
