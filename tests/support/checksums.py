"""HDF5's checksum of metadata, for tests that change what lies under it.

Bob Jenkins's lookup3 (public domain), as in ``H5checksum.c``: structures of the newer file
format end with it.
"""

import struct
from pathlib import Path

_MASK = 0xFFFFFFFF


def _rotated(value: int, count: int) -> int:
    return (value << count | value >> (32 - count)) & _MASK


def lookup3(content: bytes) -> int:
    """The checksum of `content`."""
    a = b = c = (0xDEADBEEF + len(content)) & _MASK
    whole = max((len(content) - 1) // 12, 0)
    for x, y, z in struct.iter_unpack("<III", content[: 12 * whole]):
        a, b, c = (a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK
        for count in (4, 6, 8, 16, 19, 4):
            a = (a - c) & _MASK ^ _rotated(c, count)
            c = (c + b) & _MASK
            a, b, c = b, c, a
    rest = content[12 * whole :]
    if not rest:
        return int(c)
    x, y, z = struct.unpack("<III", rest.ljust(12, b"\0"))
    a, b, c = (a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK
    for count in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - _rotated(b, count)) & _MASK
        a, b, c = b, c, a
    # Seven steps turn the three once too often.
    return int(b)


def extent(content: bytes, start: int) -> int:
    """Where the checksum of the structure at `start` lies: the first that is right."""
    for end in range(start + 8, len(content) - 3):
        (found,) = struct.unpack_from("<I", content, end)
        if found == lookup3(content[start:end]):
            return end
    raise ValueError(f"no structure with a checksum begins at {start}")


def state_end(path: Path, end: int) -> None:
    """Let the superblock of a file state another end; its checksum, if it has one, is right."""
    content = bytearray(path.read_bytes())
    if content[8] < 2:
        struct.pack_into("<Q", content, 40, end)
    else:
        struct.pack_into("<Q", content, 28, end)
        struct.pack_into("<I", content, 44, lookup3(bytes(content[:44])))
    path.write_bytes(content)
