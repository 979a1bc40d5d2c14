"""Which parts of a file have a checksum, and how is it made right again after damage?

Structures of the newer formats end with one (``tests/support/checksums.py``).  Most are short,
and their end is found by trying.  The blocks of array indexes are long, and their lengths follow
from what the array's header says; long ones are cut into pages, each with a checksum of its own.
"""

import itertools
import re
import struct

from tests.support.checksums import extent, lookup3

_SIGNATURES = re.compile(
    rb"OHDR|OCHK|BTHD|BTIN|BTLF|FRHP|FHDB|FSHD|FSSE|FAHD|FADB|EAHD|EAIB|EASB|EADB|\x89HDF\r\n"
)
# Longer ones are left as they are: trying takes the square of their length.
_MOST = 3000
_HEAD = 14  # of a block: signature, version, kind, the address of the array's header


def parts(content: bytes) -> list[range]:
    """Where structures lie, each up to what has a name again; blocks have pages behind them."""
    begins = [found.start() for found in _SIGNATURES.finditer(content)]
    return [range(begin, end) for begin, end in itertools.pairwise(begins)]


def seal_again(content: bytearray, sound: bytes, at: int) -> None:
    """Make the checksum right over a byte that was changed, if it is under one."""
    sealed = _around(sound, at)
    if sealed is not None:
        end = sealed.stop
        content[end : end + 4] = struct.pack("<I", lookup3(bytes(content[sealed.start : end])))


def _around(sound: bytes, at: int) -> range | None:
    """The bytes under the checksum over a byte."""
    begins = [found.start() for found in _SIGNATURES.finditer(sound[: at + 8])]
    begin = max((one for one in begins if one <= at), default=None)
    if begin is None:
        return None
    signature = sound[begin : begin + 4]
    if signature in (b"FADB", b"EADB"):
        sealed, page = _block(sound, begin, signature)
        if at >= sealed.stop + 4 and page:
            # The last page may be shorter, and then nothing is mended.
            begin = sealed.stop + 4 + (at - sealed.stop - 4) // page * page
            sealed = range(begin, begin + page - 4)
    else:
        try:
            sealed = range(begin, extent(sound[: begin + _MOST], begin))
        except ValueError:
            return None
    right = sealed.stop + 4 <= len(sound) and at < sealed.stop
    stored = sound[sealed.stop : sealed.stop + 4]
    if right and stored == struct.pack("<I", lookup3(sound[sealed.start : sealed.stop])):
        return sealed
    return None


def _block(sound: bytes, begin: int, signature: bytes) -> tuple[range, int]:
    """The bytes under the checksum of a block of elements, and the length of its pages or 0."""
    header = sound.index(b"FAHD" if signature == b"FADB" else b"EAHD")
    if signature == b"FADB":
        entry, page_bits, count = struct.unpack_from("<BBQ", sound, header + 6)
        pages = -(-count // (1 << page_bits))
        head, bitmap = _HEAD, -(-pages // 8)
    else:
        entry, len_bits, _, least = struct.unpack_from("<BBBB", sound, header + 6)
        page_bits = sound[header + 11]
        offset_len = -(-len_bits // 8)
        head, bitmap = _HEAD + offset_len, 0
        offset = int.from_bytes(sound[begin + _HEAD : begin + head], "little")
        # Its length follows from the level of its first element.  Before the first super block
        # libhdf5 adds the lengths of the blocks of former levels to the offset.
        levels = (n for n in itertools.count() if offset < least * (2 ** (n + 1) - 1))
        level = 2 if offset in (7 * least, 9 * least) else next(levels)
        count = least * 2 ** -(-level // 2)
    if count <= 1 << page_bits:
        return range(begin, begin + head + count * entry), 0
    return range(begin, begin + head + bitmap), (entry << page_bits) + 4
