"""HDF5's checksum of metadata, for tests that change what lies under it.

That it is the one that libhdf5 writes is tested in `tests.inspect.test_format`.
"""

import struct
from pathlib import Path

from chunkwise._native import metadata_checksum as lookup3

__all__ = ["extent", "lookup3", "state_end"]


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
