"""Does only the page that was opened get answers, and does the server end with it?"""

from __future__ import annotations

import http.client
import json
import os
import re
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import chunkwise
from chunkwise.viewing import server as serving
from chunkwise.viewing.server import Server
from chunkwise.viewing.session import Session


@pytest.fixture
def server(path: Path) -> Iterator[Server]:
    made = Server(Session(str(path), chunkwise.inspect(path, sample=False, metadata=False)))
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def get(server: Server, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    port = server.server_address[1]
    sent = {"Host": f"127.0.0.1:{port}"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    connection.request("GET", path, headers=sent)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), content


def test_the_page_is_whole_and_small(server: Server) -> None:
    status, headers, content = get(server, f"/{server.token}/")
    assert status == 200
    assert len(content) < 1 << 20
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert not re.search(rb"""(src|href)=["'](?!data:|#)""", content)
    # Nothing that a name holds is markup.
    assert content.count(b"<script") == 3
    assert b"<img" not in content
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize("what", ["", "facts", "costs?dataset=1&read=all", "alive"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors", "Sec_Fetch_Dest": "script"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "iframe"},
    ],
)
def test_other_sites_get_nothing(server: Server, what: str, headers: dict[str, str]) -> None:
    status, _, content = get(server, f"/{server.token}/{what}", **headers)
    assert (status, content) == (403, b"")


@pytest.mark.parametrize("address", ["/", "", "/wrong/", "/wrong/facts", "//", "/%2e%2e/", "x"])
def test_who_has_not_the_token_gets_nothing(server: Server, address: str) -> None:
    assert get(server, address)[0] in (400, 403)


def test_a_forwarded_port_is_this_machine_too(server: Server) -> None:
    for host in ("localhost:8000", "127.0.0.1:8000"):
        assert get(server, f"/{server.token}/", Host=host, Origin=f"http://{host}")[0] == 200
    assert get(server, f"/{server.token}/nothing")[0] == 404


def test_what_goes_wrong_is_a_message(server: Server) -> None:
    status, _, content = get(server, f"/{server.token}/costs?dataset=x")
    assert status == 400
    assert json.loads(content)["error"]


def post(server: Server, what: str, body: bytes = b"", **headers: str) -> int:
    port = server.server_address[1]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    own = {"Host": f"127.0.0.1:{port}", "Origin": f"http://127.0.0.1:{port}"}
    connection.request("POST", f"/{server.token}/{what}", body, headers={**own, **headers})
    status = connection.getresponse().status
    connection.close()
    return status


def test_only_the_page_s_own_buttons_do_something(server: Server) -> None:
    assert post(server, "cancel") == 200
    assert post(server, "begin", b"work=nothing&dataset=1") == 400
    assert post(server, "facts") == 404
    assert post(server, "begin", b"x" * (1 << 17)) == 403
    for origin in ("http://evil.example", "null"):
        assert post(server, "begin", b"work=write", Origin=origin) == 403
    # A page that does not say where it comes from gets answers, and does nothing.
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    connection.request("POST", f"/{server.token}/cancel")
    assert connection.getresponse().status == 403
    connection.close()
    assert get(server, f"/{server.token}/begin?work=write")[0] == 404


def test_a_browser_is_led_to_the_page_by_a_file_of_its_owner(server: Server) -> None:
    with server.door() as door:
        assert server.token not in door
        file = Path(urllib.request.url2pathname(urllib.parse.urlsplit(door).path))
        assert server.address in file.read_text("utf-8")
        if os.name == "posix":
            assert file.stat().st_mode & 0o777 == 0o600
            assert file.parent.stat().st_mode & 0o777 == 0o700
    assert not file.parent.exists()


def test_it_ends_when_the_page_is_gone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_AWAY_S", 0.3)
    monkeypatch.setattr(serving, "_BEAT_S", 0.05)
    made = Server(Session(str(path), chunkwise.inspect(path, sample=False, metadata=False)))
    ended = threading.Thread(target=made.until_left)
    ended.start()
    connection = http.client.HTTPConnection("127.0.0.1", made.server_address[1], timeout=60)
    connection.request("GET", f"/{made.token}/alive")
    answer: Any = connection.getresponse()
    assert answer.read(5)
    assert ended.is_alive()
    answer.close()
    connection.close()
    ended.join(60)
    assert not ended.is_alive()
