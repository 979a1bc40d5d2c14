"""How tests damage files; `bad_reader` reads them where a crash is conceivable."""

from pathlib import Path
from typing import Any

import h5py


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
