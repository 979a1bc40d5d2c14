"""Write lengths of chunks in more bytes than they need, as PureHDF and JLD2 do."""

import struct
from pathlib import Path

from chunkwise import _native

NIL, LAYOUT = 0, 8


def widen(path: Path, width: int = 8) -> int:
    """Widen the lengths of all chunked datasets of a file in the newest format; count these.

    A header stays as long as it is: a message without a meaning behind makes room.
    """
    content = bytearray(path.read_bytes())
    count = at = 0
    while (at := content.find(b"OHDR", at)) >= 0:
        begin, end = _block(content, at)
        body = _widened(bytes(content[begin:end]), 6 if content[at + 5] & 4 else 4, width)
        if body is not None:
            content[begin:end] = body
            seal(content, at)
            count += 1
        at += 4
    path.write_bytes(content)
    return count


def seal(content: bytearray, header: int) -> bytearray:
    """Give the first block of a header its checksum."""
    _, end = _block(content, header)
    checksum = _native.metadata_checksum(bytes(content[header:end]))
    content[end : end + 4] = struct.pack("<I", checksum)
    return content


def _block(content: bytearray, header: int) -> tuple[int, int]:
    """Where the messages of a header's first block begin and end."""
    flags = content[header + 5]
    head = header + 6 + 16 * bool(flags & 32) + 4 * bool(flags & 16)
    begin = head + (1 << (flags & 3))
    return begin, begin + int.from_bytes(content[head:begin], "little")


def _widened(body: bytes, head: int, width: int) -> bytes | None:
    made, more, at = b"", 0, 0
    while at + head <= len(body):
        kind, nbytes = body[at], int.from_bytes(body[at + 1 : at + 3], "little")
        rest = body[at + 3 : at + head]
        message = body[at + head : at + head + nbytes]
        at += head + nbytes
        if kind == LAYOUT and message[:2] == b"\4\2":
            rank, had = message[3:5]
            lengths = [message[5 + i * had : 5 + (i + 1) * had] for i in range(rank)]
            wide = b"".join(length.ljust(width, b"\0") for length in lengths)
            message = message[:4] + bytes([width]) + wide + message[5 + rank * had :]
            more = len(message) - nbytes
        elif kind == NIL and more and nbytes >= more:
            message, more, widened = message[more:], 0, True
            made += struct.pack("<BH", kind, len(message)) + rest + message + body[at:]
            return made if widened else None
        made += struct.pack("<BH", kind, len(message)) + rest + message
    return None
