"""How does a shared library come to need less than it was linked with?

As ``patchelf --remove-needed`` does it: the entry that names the needed library gets a number
that the loader passes over.  (ELF, 64 bits, little-endian.)
"""

from __future__ import annotations

import struct
from pathlib import Path

_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NULL, _DT_NEEDED, _DT_STRTAB = 0, 1, 5
# Of those left to operating systems, and given to nothing.
_PASSED_OVER = 0x6000_F000


def forget_needed(library: Path, begin: str) -> list[str]:
    """Take out what `library` needs and whose name begins so; gives the names."""
    image = bytearray(library.read_bytes())
    assert image[:6] == b"\x7fELF\x02\x01", library
    (offset,) = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    headers = [struct.unpack_from("<IIQQQQ", image, offset + n * size) for n in range(count)]
    loads = [
        (at, address, nbytes) for kind, _, at, address, _, nbytes in headers if kind == _PT_LOAD
    ]
    (dynamic,) = (at for kind, _, at, *_ in headers if kind == _PT_DYNAMIC)
    entries = []
    for at in range(dynamic, len(image), 16):
        tag, value = struct.unpack_from("<QQ", image, at)
        if tag == _DT_NULL:
            break
        entries.append((at, tag, value))
    (table,) = (value for _, tag, value in entries if tag == _DT_STRTAB)
    names = next(at + table - first for at, first, n in loads if first <= table < first + n)
    forgotten = []
    for at, tag, value in entries:
        if tag == _DT_NEEDED:
            start = names + value
            name = image[start : image.index(0, start)].decode()
            if name.startswith(begin):
                struct.pack_into("<Q", image, at, _PASSED_OVER)
                forgotten.append(name)
    library.write_bytes(image)
    return forgotten
