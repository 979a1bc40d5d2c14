"""Serve one file by HTTP on loopback, each answer after a while.

``python web.py FILE SECONDS`` says its port, and ends with its standard input.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from pathlib import Path
from typing import Final

_RANGE: Final = re.compile(rb"range: bytes=(\d+)-(\d*)", re.IGNORECASE)


async def serve(content: bytes, latency_s: float) -> None:
    """Answer until nobody holds standard input any more."""
    size = len(content)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await asyncio.sleep(latency_s)
                begin, end, status = 0, size, "200 OK"
                asked = _RANGE.search(head)
                if asked:
                    begin, status = int(asked[1]), "206 Partial Content"
                    end = min(int(asked[2]) + 1 if asked[2] else size, size)
                lines = [
                    f"HTTP/1.1 {status}",
                    'ETag: "1"',
                    "Accept-Ranges: bytes",
                    f"Content-Length: {end - begin}",
                ]
                if asked:
                    lines.append(f"Content-Range: bytes {begin}-{end - 1}/{size}")
                writer.write("\r\n".join([*lines, "", ""]).encode())
                if head.startswith(b"GET"):
                    writer.write(memoryview(content)[begin:end])
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=300)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]).read_bytes(), float(sys.argv[2])))
