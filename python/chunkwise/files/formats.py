"""What is a file that is not HDF5, and what helps?"""

from __future__ import annotations

import os
from pathlib import Path

from chunkwise.names import shell_word

_CONVERT_NETCDF3 = "convert it: chunkwise repack {file} {netcdf4}"
_CONVERT_TIFF = "convert it: gdal_translate -of netCDF -co FORMAT=NC4 {file} {netcdf4}"
_GET_AGAIN = "download the data file itself again"
_LOGIN_PAGE = f"{_GET_AGAIN} (a login page is often saved in its place)"

# First bytes, what they mean, what to do.  {file} and {netcdf4} are filled in.
_FORMATS: tuple[tuple[bytes, str, str], ...] = (
    (b"CDF\x01", "a netCDF-3 classic file", _CONVERT_NETCDF3),
    (b"CDF\x02", "a netCDF-3 classic file (64-bit offsets)", _CONVERT_NETCDF3),
    (b"CDF\x05", "a netCDF-3 classic file (64-bit data, CDF-5)", _CONVERT_NETCDF3),
    (b"\x0e\x03\x13\x01", "an HDF4 file", "convert it: h4toh5 {file}"),
    (b"GRIB", "a GRIB file", "convert it: grib_to_netcdf -k 4 -o {netcdf4} {file}"),
    (b"BUFR", "a BUFR file", "decode it with ecCodes"),
    (b"\x1f\x8b", "gzip-compressed", "decompress it: gunzip -k {file}"),
    (b"BZh", "bzip2-compressed", "decompress it: bunzip2 -k {file}"),
    (b"\xfd7zXZ\x00", "xz-compressed", "decompress it: unxz -k {file}"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed", "decompress it: unzstd {file}"),
    (b"PK\x03\x04", "a zip archive", "unpack it: unzip {file}"),
    (b"II*\x00", "a TIFF image", _CONVERT_TIFF),
    (b"MM\x00*", "a TIFF image", _CONVERT_TIFF),
    (b"SIMPLE  =", "a FITS file", "convert it with astropy and h5py"),
    (b"\x93NUMPY", "a NumPy array file", "convert it with numpy.load and h5py"),
    (b"PAR1", "a Parquet file", "convert it with pandas.read_parquet and h5py"),
    (
        b"version https://git-lfs",
        "a Git LFS pointer",
        "fetch the data it stands for: git lfs pull",
    ),
    (b"<!DOCTYPE", "a web page", _LOGIN_PAGE),
    (b"<html", "a web page", _LOGIN_PAGE),
    (b"<?xml", "an XML document", f"{_GET_AGAIN} (an error report is often saved in its place)"),
)

_ZARR_FILES = ("zarr.json", ".zgroup", ".zarray", ".zmetadata")


def known_format(path: Path, head: bytes) -> str | None:
    """Name the format of a file that is not HDF5, and what to do with it; None if not known."""
    lowered = head.lower()
    for magic, name, remedy in _FORMATS:
        # Markup is written in either case; no binary magic starts with "<".
        given = lowered if magic.startswith(b"<") else head
        if given.startswith(magic.lower() if magic.startswith(b"<") else magic):
            names = {
                "file": shell_word(os.fspath(path)),
                "netcdf4": shell_word(f"{path.stem}_nc4.nc"),
            }
            return f"it is {name}; {remedy.format(**names)}"
    return None


def what_it_is(path: Path, head: bytes) -> str:
    """Say what a file that is not HDF5 looks like, and what to do with it."""
    known = known_format(path, head)
    if known is not None:
        return known
    if not any(head):
        return "it begins with zeros; its download or copy may not have finished, get it again"
    return "its format is not known here; `file` may name it"


def is_zarr(path: Path) -> bool:
    """Return whether a directory is a Zarr store (version 2 or 3)."""
    return any((path / name).is_file() for name in _ZARR_FILES)
