"""Serve one file by HTTP on loopback, each answer after a while, over a line of some bandwidth.

``python web.py FILE SECONDS BYTES_PER_S`` (0: no limit) prints its port, and ends with its stdin.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
import time
from pathlib import Path
from typing import Final

# Bytes of an answer sent at once over a line of limited bandwidth.
_PIECE: Final = 64 << 10
_RANGE: Final = re.compile(rb"range: bytes=(\d+)-(\d*)", re.IGNORECASE)


class Line:
    """One line that all answers share: the bytes pass one after the other."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._free_at = 0.0

    async def carry(self, writer: asyncio.StreamWriter, content: memoryview) -> None:
        """Send ``content`` as fast as the line allows."""
        for begin in range(0, len(content), _PIECE):
            piece = content[begin : begin + _PIECE]
            now = time.monotonic()
            self._free_at = max(now, self._free_at) + len(piece) / self._rate
            await asyncio.sleep(self._free_at - now)
            writer.write(piece)
            await writer.drain()


async def serve(content: bytes, latency_s: float, rate: float) -> None:
    """Answer until nobody holds standard input any more."""
    size = len(content)
    line = Line(rate) if rate else None

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await asyncio.sleep(latency_s)
                begin, end, status = 0, size, "200 OK"
                requested = _RANGE.search(head)
                if requested:
                    begin, status = int(requested[1]), "206 Partial Content"
                    end = min(int(requested[2]) + 1 if requested[2] else size, size)
                lines = [
                    f"HTTP/1.1 {status}",
                    'ETag: "1"',
                    "Accept-Ranges: bytes",
                    f"Content-Length: {end - begin}",
                ]
                if requested:
                    lines.append(f"Content-Range: bytes {begin}-{end - 1}/{size}")
                writer.write("\r\n".join([*lines, "", ""]).encode())
                if head.startswith(b"GET"):
                    body = memoryview(content)[begin:end]
                    if line:
                        await line.carry(writer, body)
                    else:
                        writer.write(body)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=300)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    file, latency_s, rate = sys.argv[1:]
    asyncio.run(serve(Path(file).read_bytes(), float(latency_s), float(rate)))
