"""Which outside programs do tests compare with, and what if one is missing?"""

from __future__ import annotations

import shutil

import pytest

from chunkwise.errors import UsageError
from chunkwise.trials.drivers import netcdf_library

_PACKAGES = {
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


def has_netcdf() -> bool:
    """Whether netCDF-C can be loaded, of netCDF4's wheel or the system's."""
    try:
        netcdf_library()
    except UsageError:
        return False
    return True


needs_netcdf = pytest.mark.skipif(not has_netcdf(), reason="netCDF-C is not installed")
