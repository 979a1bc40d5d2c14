"""How is a file shown to one browser on this machine, and to nobody else?

The address holds a token that nobody can guess.  A page of another site cannot use it: the server
answers only if Host names this machine, and Origin, if there is one, is the page's own.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from chunkwise.errors import ChunkwiseError
from chunkwise.inspection.records import plain
from chunkwise.names import HDF5_ERRORS, printable
from chunkwise.viewing.document import document, policy
from chunkwise.viewing.session import Query, Session

HOST: Final = "127.0.0.1"
# By any port: ssh -L may have another one at its end.
_NAMES: Final = frozenset({"127.0.0.1", "localhost"})
_OWN_SITES: Final = (None, "same-origin", "none")
# A page that is loaded again is away for a moment.
_AWAY_S: Final = 20.0
_BEAT_S: Final = 2.0
# Bytes of what a button may say.
_MOST_SENT: Final = 1 << 16


@dataclass
class Viewers:
    """Which pages are open now?"""

    open: int = 0
    seen: bool = False
    left_at: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def come(self) -> None:
        """One more page is open."""
        with self.lock:
            self.open, self.seen = self.open + 1, True

    def leave(self) -> None:
        """One page was closed."""
        with self.lock:
            self.open, self.left_at = self.open - 1, time.monotonic()

    @property
    def are_gone(self) -> bool:
        """Whether there were pages, and all were closed some time ago."""
        away_s = time.monotonic() - self.left_at
        return self.seen and self.open == 0 and away_s > _AWAY_S


class Server(ThreadingHTTPServer):
    """Serves one session."""

    daemon_threads = True

    def __init__(self, session: Session) -> None:
        self.session, self.viewers = session, Viewers()
        self.token = secrets.token_urlsafe(24)
        super().__init__((HOST, 0), _Handler)

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{HOST}:{self.server_address[1]}/{self.token}/"

    @contextmanager
    def door(self) -> Iterator[str]:
        """Give a file that leads a browser to the page, for as long as the block lasts."""
        # Others see with which words a browser was started, but only its owner can read the file.
        folder = Path(mkdtemp(prefix="chunkwise-"))
        file = folder / "view.html"
        try:
            file.touch(0o600)
            file.write_text(
                f'<!doctype html><meta http-equiv="refresh" content="0;url={self.address}">'
                f'<a href="{self.address}">chunkwise view</a>',
                encoding="utf-8",
            )
            yield file.as_uri()
        finally:
            rmtree(folder, ignore_errors=True)

    def until_left(self) -> None:
        """Serve until the page is closed, or Ctrl-C."""
        for work in (self.session.prepare, self.serve_forever):
            threading.Thread(target=work, daemon=True).start()
        try:
            while not self.viewers.are_gone:
                time.sleep(0.2)
        finally:
            self.shutdown()
            self.server_close()
            self.session.cancel({})

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of browsers that end a connection."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    # A connection that says nothing is closed.
    timeout = 60

    def log_message(self, *_: Any) -> None:
        """The terminal is the user's."""

    def version_string(self) -> str:
        """Do not say which server it is."""
        return "chunkwise"

    def do_POST(self) -> None:
        """Do what a button says; of a page that does not say where it comes from, nothing."""
        length = self.headers.get("Content-Length", "")
        own = self._is_own_page() and self.headers.get("Origin") is not None
        if not own or not length.isdecimal() or int(length) > _MOST_SENT:
            self.close_connection = True
            self._send(HTTPStatus.FORBIDDEN, b"", "text/plain")
            return
        what, sent = self.path.split("/", 2)[2], self.rfile.read(int(length))
        if what in self.server.session.deeds:
            query = parse_qs(sent.decode("utf-8", "replace"), keep_blank_values=True)
            self._answer(self.server.session.deeds[what], query)
        else:
            self._send(HTTPStatus.NOT_FOUND, b"", "text/plain")

    def do_GET(self) -> None:
        """Answer what the page wants to know; nothing here changes a file."""
        if not self._is_own_page():
            self._send(HTTPStatus.FORBIDDEN, b"", "text/plain")
            return
        url = urlsplit(self.path)
        what = url.path.split("/", 2)[2]
        session = self.server.session
        if what == "":
            first = session.first()
            self._send(HTTPStatus.OK, document(first).encode(), "text/html; charset=utf-8")
        elif what == "alive":
            self._stay()
        elif what in session.answers:
            query = parse_qs(url.query, keep_blank_values=True)
            self._answer(session.answers[what], query)
        else:
            self._send(HTTPStatus.NOT_FOUND, b"", "text/plain")

    def _is_own_page(self) -> bool:
        host = self.headers.get("Host", "")
        name, _, port = host.partition(":")
        origin = self.headers.get("Origin")
        token = self.path.split("?", 1)[0].split("/")[1] if self.path.startswith("/") else ""
        return (
            name in _NAMES
            and (port.isdecimal() or not port)
            and origin in (None, f"http://{host}")
            and (self._is_opened() or self.headers.get("Sec-Fetch-Site") in _OWN_SITES)
            and hmac.compare_digest(token.encode(), self.server.token.encode())
            and self.path.count("/") >= 2
        )

    def _is_opened(self) -> bool:
        """Whether a browser opens the page, led here by `Server.door`: nobody else can read it."""
        sent = [self.headers.get(f"Sec-Fetch-{name}") for name in ("Mode", "Dest")]
        return sent == ["navigate", "document"] and self.path.endswith("/")

    def _answer(self, answer: Callable[[Query], Any], query: Query) -> None:
        try:
            found = answer(query)
        except (ChunkwiseError, *HDF5_ERRORS, ArithmeticError, MemoryError) as error:
            record = json.dumps({"error": printable(str(error))})
            self._send(HTTPStatus.BAD_REQUEST, record.encode(), "application/json")
            return
        if isinstance(found, bytes):
            self._send(HTTPStatus.OK, found, "application/octet-stream")
        else:
            self._send(HTTPStatus.OK, json.dumps(plain(found)).encode(), "application/json")

    def _send(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        self.send_response(status)
        self._headers(kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _headers(self, kind: str) -> None:
        for name, value in {
            "Content-Type": kind,
            "Content-Security-Policy": policy(served=True),
            "Cache-Control": "no-store",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
        }.items():
            self.send_header(name, value)

    def _stay(self) -> None:
        """Hold the connection for as long as the page is open."""
        self.close_connection = True
        self.send_response(HTTPStatus.OK)
        self._headers("text/event-stream")
        self.end_headers()
        self.server.viewers.come()
        try:
            while True:
                self.wfile.write(b": here\n\n")
                self.wfile.flush()
                time.sleep(_BEAT_S)
        except OSError:
            pass
        finally:
            self.server.viewers.leave()
