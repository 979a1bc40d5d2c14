"""A web server on loopback that is slow, fails and changes its mind as a test asks."""

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

# What the served file of `tests/remote/conftest.py` holds.
VALUES = np.random.default_rng(5).integers(0, 90, (30, 100, 100)).astype("i4")
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


@dataclass
class Server:
    """What is served, and how; may be changed at any time."""

    files: dict[str, bytes]  # Bytes by path, which begins with a slash
    latency_s: float = 0.0  # Seconds before each answer
    # Is given a handler, and answers in its stead if it returns True.
    fails: Callable[[Any], bool] | None = None
    # ETags by path; of those that are missing, none is sent.
    tags: dict[str, str] = field(default_factory=dict)
    # Last-Modified by path; of those that are missing, none is sent.
    changed: dict[str, str] = field(default_factory=dict)
    # First byte, one past the last, of each GET that was answered with bytes.
    asked: list[tuple[int, int]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""

    @property
    def nbytes(self) -> int:
        """Bytes sent so far."""
        return sum(end - begin for begin, end in self.asked)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    told: Server

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(with_bytes=False)

    def do_GET(self) -> None:
        self._answer(with_bytes=True)

    def plain(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Answer with a status and a few bytes."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _answer(self, with_bytes: bool) -> None:
        told = self.told
        time.sleep(told.latency_s)
        told.headers.append(dict(self.headers))
        if told.fails is not None and told.fails(self):
            return
        path = self.path.partition("?")[0]
        content = told.files.get(path)
        if content is None:
            self.plain(404)
            return
        tag = told.tags.get(path)
        wanted = self.headers.get("If-Match")
        if wanted is not None and wanted != tag:
            self.plain(412)
            return
        begin, end, status = 0, len(content), 200
        ranged = _RANGE.fullmatch(self.headers.get("Range", ""))
        if ranged is not None:
            begin, status = int(ranged[1]), 206
            end = min(int(ranged[2]) + 1 if ranged[2] else end, end)
            if begin >= len(content):
                self.plain(416, Content_Range=f"bytes */{len(content)}")
                return
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(content)}")
        if tag is not None:
            self.send_header("ETag", tag)
        if path in told.changed:
            self.send_header("Last-Modified", told.changed[path])
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(end - begin))
        self.end_headers()
        if with_bytes:
            told.asked.append((begin, end))
            self.wfile.write(memoryview(content)[begin:end])


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 200

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error."""


@contextlib.contextmanager
def serving(files: dict[str, bytes], **options: Any) -> Iterator[Server]:
    """Serve files on loopback for as long as the block takes."""
    told = Server(files, **options)
    handler = type("Handler", (_Handler,), {"told": told})
    server = _Quiet(("127.0.0.1", 0), handler)
    told.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
