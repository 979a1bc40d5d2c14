"""Which outside programs do tests compare with, and what if one is missing?"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chunkwise.errors import UsageError
from chunkwise.trials.readers import netcdf_library
from tests.support.commands import ended

_PACKAGES = {
    "h5clear": "hdf5-tools",
    "h5diff": "hdf5-tools",
    "h5dump": "hdf5-tools",
    "h5ls": "hdf5-tools",
    "h5repack": "hdf5-tools",
    "nccopy": "netcdf-bin",
    "ncdump": "netcdf-bin",
}


def require_tool(name: str) -> str:
    """Give the path of a program, or skip the test with one line that says so."""
    path = shutil.which(name)
    if path is None:
        package = _PACKAGES.get(name, name)
        pytest.skip(f"{name} is not installed (Debian package {package}; `make tools`)")
    return path


def paste(command: str, folder: Path) -> None:
    """Run a command as it would be pasted into a shell, where chunkwise is installed.

    One of chunkwise runs in this process, with the words that the shell makes of it: to import
    takes longer.  The programs that are named in others are asked for first, so that a missing one
    skips the test.
    """
    if command.startswith("chunkwise "):
        shell = f"chunkwise() {{ printf '%s\\0' \"$@\"; }}\n{command}"
        words = subprocess.run(["bash", "-c", shell], capture_output=True, check=True).stdout
        ours = ended(*map(os.fsdecode, words.split(b"\0")[:-1]), cwd=folder)
        assert ours.returncode == 0, f"{command}\n{ours.stderr}"
        return
    scripts = str(Path(sys.executable).parent)
    for name in ("h5repack", "nccopy", "h5clear"):
        if name in shlex.split(command):
            require_tool(name)
    done = subprocess.run(
        ["bash", "-c", command],  # bash, for $'...'
        cwd=folder,
        env={**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stderr}"


def has_netcdf() -> bool:
    """Whether netCDF-C can be loaded, of netCDF4's wheel or the system's."""
    try:
        netcdf_library()
    except UsageError:
        return False
    return True


needs_netcdf = pytest.mark.skipif(not has_netcdf(), reason="netCDF-C is not installed")
