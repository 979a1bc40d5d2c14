"""What does the superblock of an HDF5 file say, byte for byte?

The library does not show the marks that a writer leaves in a superblock while it has the file
open, nor the end that the file states, and refuses a file that still has those marks.  So these
few bytes are read here (HDF5 file format specification, "Disk Format: Level 0A").
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from chunkwise import _native
from chunkwise.names import shell_word

HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"

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


def hdf5_offset(stream: BinaryIO, nbytes: int) -> int | None:
    """Find where the HDF5 signature stands: the size of the user block."""
    offset = 0
    while offset + len(HDF5_SIGNATURE) <= nbytes:
        stream.seek(offset)
        if stream.read(len(HDF5_SIGNATURE)) == HDF5_SIGNATURE:
            return offset
        offset = max(512, 2 * offset)
    return None


def what_it_is(path: Path, head: bytes) -> str:
    """Say what a file that is not HDF5 looks like, and what to do with it."""
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
    if not any(head):
        return "it begins with zeros; its download or copy may not have finished, get it again"
    return "its format is not known here; `file` may name it"


def is_zarr(path: Path) -> bool:
    """Tell whether a directory is a Zarr store (version 2 or 3)."""
    return any((path / name).is_file() for name in _ZARR_FILES)


# Version 0 with 8-byte offsets, the largest that is of interest here, has 96 bytes.
_HEAD_NBYTES: Final = 128
# In versions 2 and 3: where the sizes of offsets and the consistency flags stand.
_OFFSET_SIZE_AT: Final = 9
_FLAGS_AT: Final = 11
_CHECKSUM_NBYTES: Final = 4
# In versions 0 and 1 some bytes come before the size of offsets.
_OLD_OFFSET_SIZE_AT: Final = 13
# Version 3: bit 0, open for writing; bit 2, open for writing under SWMR.
_FLAG_NAMES: Final = ((0x01, "write"), (0x04, "swmr"))


@dataclass(frozen=True, slots=True)
class Superblock:
    """The first bytes of HDF5 in a file."""

    offset: int  # Where it begins: the size of the user block
    version: int  # 0 to 3
    content: bytes  # All its bytes; its extension, an object header elsewhere, is not part of it

    @property
    def flags(self) -> tuple[str, ...]:
        """Marks of a writer that has not closed the file: ``write``, ``swmr``."""
        # Only version 3 has them: in version 2 the byte is there, without a meaning.  Under a
        # wrong checksum they prove nothing.
        if self.version < 3 or not self.is_sound:
            return ()
        byte = self.content[_FLAGS_AT]
        return tuple(name for bit, name in _FLAG_NAMES if byte & bit)

    @property
    def is_sound(self) -> bool:
        """Whether its checksum is right; versions 0 and 1 have none."""
        if self.version < 2:
            return False
        body = self.content[:-_CHECKSUM_NBYTES]
        return self.content[-_CHECKSUM_NBYTES:] == checksum(body)

    @property
    def end(self) -> int:
        """Where the file ends by its own account, in bytes from its first one."""
        # libhdf5 writes it when it flushes or closes the file, and not while it writes for SWMR
        # readers: there the file grows beyond it.
        at, width = self._end_at()
        return int.from_bytes(self.content[at : at + width], "little")

    def closed(self, file_nbytes: int) -> bytes:
        """Give its bytes as a proper close would leave them, the checksum included."""
        # The marks are gone, and the file ends where it does, if that is beyond `end`.
        if self.version < 3:
            raise ValueError(f"a superblock of version {self.version} has no flags")
        body = bytearray(self.content[:-_CHECKSUM_NBYTES])
        body[_FLAGS_AT] = 0
        at, width = self._end_at()
        body[at : at + width] = max(self.end, file_nbytes).to_bytes(width, "little")
        return bytes(body) + checksum(bytes(body))

    def _end_at(self) -> tuple[int, int]:
        """Where the end of the file stands, and in how many bytes."""
        if self.version < 2:
            raise ValueError(f"a superblock of version {self.version} is laid out otherwise")
        width = self.content[_OFFSET_SIZE_AT]
        # After the base address and that of the superblock's extension.
        return _FLAGS_AT + 1 + 2 * width, width


def read_superblock(path: str | os.PathLike[str]) -> Superblock | None:
    """Read the superblock of a file, whether or not the library would open it."""
    try:
        # Opening a pipe or a device may block for ever.
        if not Path(path).is_file():
            return None
        with Path(path).open("rb") as stream:
            offset = hdf5_offset(stream, os.fstat(stream.fileno()).st_size)
            if offset is None:
                return None
            stream.seek(offset)
            head = stream.read(_HEAD_NBYTES)
    except OSError:
        return None
    if len(head) <= _OLD_OFFSET_SIZE_AT:
        return None
    version = head[8]
    if version in (2, 3):
        nbytes = 12 + 4 * head[_OFFSET_SIZE_AT] + _CHECKSUM_NBYTES
    elif version in (0, 1):
        # Four addresses, then the root group's entry: two offsets and 24 bytes.
        nbytes = 24 + 4 * version + 6 * head[_OLD_OFFSET_SIZE_AT] + 24
    else:
        return None
    return Superblock(offset, version, head[:nbytes]) if nbytes <= len(head) else None


def stated_end(superblock: Superblock) -> int:
    """Give where a file ends by its own account, in bytes from its first one."""
    if superblock.version >= 2:
        return superblock.offset + superblock.end - _number(superblock, 12, superblock.content[9])
    # After the sizes and nodes of B-trees, of which version 1 has more: where the file begins,
    # where its free space is listed, and where it ends.
    width = superblock.content[13]
    begin = 24 + 4 * superblock.version
    begin_at = _number(superblock, begin, width)
    return superblock.offset + _number(superblock, begin + 2 * width, width) - begin_at


def exceeds_stated_end(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file is longer than it states, by a superblock that nothing disproves."""
    superblock = read_superblock(path)
    if superblock is None or superblock.flags:
        return False
    if superblock.version >= 2 and not superblock.is_sound:
        return False
    return Path(path).stat().st_size > stated_end(superblock)


def _number(superblock: Superblock, at: int, width: int) -> int:
    return int.from_bytes(superblock.content[at : at + width], "little")


def checksum(body: bytes) -> bytes:
    """Compute the four bytes that stand behind metadata of the newer format."""
    return struct.pack("<I", _native.metadata_checksum(body))
