"""How tests damage files, and read them where a crash is conceivable."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import Any

import h5py

from tests.support.processes import ran

# Reads each dataset whole, by h5py (unless told not to) and then by chunkwise, and prints, a
# line each, a checksum or the error; nothing for a file that h5py cannot open.
READER = """
import faulthandler, resource, sys, warnings, zlib
faulthandler.enable()
import h5py, chunkwise
from chunkwise.trials.environment import peak_rss_nbytes
warnings.simplefilter("ignore")
path, nbytes, first = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
chunkwise.settings().threads
resource.setrlimit(resource.RLIMIT_AS, (nbytes, nbytes))
try:
    f = h5py.File(path)
    names = list(f)
except (OSError, RuntimeError):
    names = []
for read in (lambda n: f[n][...], lambda n: chunkwise.wrap(f[n])[...])[first:]:
    for name in names:
        try:
            print("read", zlib.crc32(read(name).tobytes()))
        except Exception as error:
            classes = [c.__name__ for c in type(error).__mro__]
            print("error", ",".join(classes), str(error).replace(chr(10), " "))
# Not ru_maxrss, which on Linux survives exec: it would be the peak of whoever runs the tests.
print("peak", peak_rss_nbytes())
"""


class Reading:
    """What the subprocess said: of h5py, of chunkwise, and its peak memory in bytes."""

    def __init__(self, lines: list[str], with_h5py: bool) -> None:
        *results, peak = lines
        half = len(results) // 2 if with_h5py else 0
        self.theirs, self.ours = results[:half], results[half:]
        self.peak_nbytes = int(peak.split()[1])


def read_elsewhere(path: Path, limit_nbytes: int = 4 << 30, *, with_h5py: bool = True) -> Reading:
    """Read all datasets in a process of their own, which must not crash."""
    done = ran(
        [sys.executable, "-c", READER, *map(str, (path, limit_nbytes, int(not with_h5py)))],
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return Reading(done.stdout.splitlines(), with_h5py)


def chunk_at(path: Path, name: str, origin: tuple[int, ...]) -> Any:
    """h5py's StoreInfo of a chunk, its offset counted from the start of the file."""
    with h5py.File(path) as f:
        info = f[name].id.get_chunk_info_by_coord(origin)
        # Before 2.0 libhdf5 counts from the end of the user block.
        before = f.userblock_size if h5py.version.hdf5_version_tuple < (2,) else 0
    return info._replace(byte_offset=info.byte_offset + before)


def overwrite(path: Path, address: int, content: bytes) -> None:
    with path.open("r+b") as stream:
        stream.seek(address)
        stream.write(content)


def flip_in(path: Path, *bits: int) -> bytes:
    """Change bits of a file; gives its bytes."""
    content = bytearray(path.read_bytes())
    for bit in bits:
        content[bit // 8] ^= 1 << (bit % 8)
    path.write_bytes(content)
    return bytes(content)


def damage_chunk(path: Path, name: str, number: int, content: bytes | None = None) -> list[int]:
    """Overwrite a chunk's bytes, in its middle if there are few; gives where it begins."""
    with h5py.File(path) as f:
        info = f[name].id.get_chunk_info(number)
        before = f.userblock_size if h5py.version.hdf5_version_tuple < (2,) else 0
    at = info.byte_offset + before
    if content is None:
        at, content = at + info.size // 2, b"\xff" * 8
    overwrite(path, at, content)
    return [int(n) for n in info.chunk_offset]


def btree_key(path: Path, name: str, origin: tuple[int, ...]) -> int:
    """Where the v1 B-tree's record of a chunk lies.

    Size and filter mask (4 bytes each), an offset of 8 bytes for each dimension and for
    the bytes of an element, the chunk's address (8 bytes).
    """
    info = chunk_at(path, name, origin)
    offsets = struct.pack(f"<{len(origin) + 1}Q", *origin, 0)
    address = struct.pack("<Q", info.byte_offset)
    record = struct.pack("<II", info.size, info.filter_mask) + offsets + address
    content = path.read_bytes()
    assert content.count(record) == 1
    return content.index(record)


def damage_header(path: Path, name: str) -> None:
    """Make HDF5 refuse an object of the old format: its header begins with a version."""
    with h5py.File(path) as f:
        address = h5py.h5o.get_info(f[name].id).addr
    overwrite(path, address, b"\xee")


def damage_attribute(path: Path, attribute: str) -> None:
    """Make HDF5 refuse an attribute of the old format, whose name is in the file once.

    Before the name stand the message's version, a reserved byte and three sizes of two.
    """
    content = path.read_bytes()
    name = attribute.encode() + b"\0"
    assert content.count(name) == 1
    overwrite(path, content.index(name) - 8, b"\xee")
