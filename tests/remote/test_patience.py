"""How long is a request waited for, how often is it made, and what is never fetched?"""

import asyncio
import io
import threading
from collections.abc import Iterator
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import RemoteError
from chunkwise.remote import faults, opening, requests, stores
from chunkwise.remote.faults import Patience, RefusedError
from tests.remote.test_web import made, refuse
from tests.support.web import Server, serving

pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")

URL = "s3://bucket/a.h5"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving({"/a.h5": made()}, tags={"/a.h5": '"first"'}) as told:
        yield told


@pytest.fixture
def silence(server: Server) -> Iterator[Server]:
    """A server that takes requests, and never answers."""
    stop = threading.Event()
    server.fails = lambda _: bool(stop.wait(30)) or True
    yield server
    stop.set()


@pytest.fixture
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "PATIENCE", Patience(attempts=1))


@pytest.mark.usefixtures("once")
@pytest.mark.parametrize("url", ["{}/a.h5", "simplecache::{}/a.h5", "blockcache::{}/a.h5"])
def test_the_time_out_that_is_set_is_that_of_each_request(
    silence: Server, url: str, tmp_path: Any
) -> None:
    kind = url.partition("::")[0]
    options = {kind: {"cache_storage": str(tmp_path)}} if "::" in url else None
    with (
        chunkwise.settings(request_timeout_s=0.15),
        pytest.raises(RemoteError, match=r"no answer within 0\.15 s, once|or has no answer"),
    ):
        chunkwise.open(url.format(silence.url), storage_options=options)


@pytest.mark.usefixtures("once")
def test_the_time_out_of_an_open_file_may_be_changed(server: Server) -> None:
    stop = threading.Event()
    with chunkwise.open(f"{server.url}/a.h5") as file:
        dataset = file["group/plain"]
        assert dataset[0].shape == (60, 80)
        server.fails = lambda _: bool(stop.wait(30)) or True
        with (
            chunkwise.settings(request_timeout_s=0.15),
            pytest.raises(RemoteError, match=r"no answer within 0\.15 s, once"),
        ):
            dataset[20:30]
        stop.set()


@pytest.mark.usefixtures("once")
def test_s3_has_the_time_out_too_and_is_asked_as_often_as_is_said(
    silence: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("s3fs")
    client = {"endpoint_url": silence.url, "region_name": "us-east-1"}
    options = {"key": "k", "secret": "s", "client_kwargs": client}
    with (
        chunkwise.settings(request_timeout_s=0.2),
        pytest.raises(RemoteError, match=r"no answer within 0\.2 s, once"),
    ):
        chunkwise.open(URL, storage_options=options)
    silence.fails = refuse(503)
    silence.headers.clear()
    monkeypatch.setattr(opening, "PATIENCE", Patience(attempts=3, pause_s=0.01))
    with pytest.raises(RemoteError, match=r"3 times; check the network"):
        chunkwise.open(URL, storage_options=options)
    assert len(silence.headers) == 3


def test_options_of_the_caller_come_first() -> None:
    patience = Patience(timeout_s=7.0)
    one = faults.with_time_outs(
        URL, {"anon": True, "config_kwargs": {"read_timeout": 3}}, patience
    )
    config = one.pop("config_kwargs")
    assert one == {"anon": True}
    assert (config["read_timeout"], config["connect_timeout"]) == (3, 7.0)
    # Each request of a single URL of the web has its own.
    assert faults.with_time_outs("https://host/a", {"headers": {}}, patience) == {"headers": {}}
    given: dict[str, Any] = {"https": {"headers": {"a": "b"}}, "simplecache": {"x": 1}}
    chain = faults.with_time_outs("simplecache::https://host/a", given, patience)
    assert chain["https"]["client_kwargs"]["timeout"].sock_read == 7.0
    assert (chain["https"]["headers"], chain["simplecache"]) == ({"a": "b"}, {"x": 1})
    assert given == {"https": {"headers": {"a": "b"}}, "simplecache": {"x": 1}}
    own = {"https": {"timeout": 5}}
    assert faults.with_time_outs("simplecache::https://host/a", own, patience) == own


def test_what_shares_a_slow_line_is_waited_for() -> None:
    """Each takes half a second, for which one alone would be given up."""
    patience = Patience(attempts=1, timeout_s=0.1, least_nbytes_per_s=10_000)

    async def slow() -> int:
        await asyncio.sleep(0.5)
        return 7

    async def together(count: int) -> list[Any]:
        work = [requests._repeated(slow, 1000, patience) for _ in range(count)]
        return list(await asyncio.gather(*work, return_exceptions=True))

    assert asyncio.run(together(40)) == [7] * 40
    [alone] = asyncio.run(together(1))
    assert isinstance(alone, RemoteError)
    assert requests._traffic.under_way == 0


def test_a_request_that_drips_is_given_up() -> None:
    async def forever() -> bytes:
        await asyncio.sleep(60)
        return b""

    patience = Patience(attempts=1, timeout_s=0.1, least_nbytes_per_s=1000)
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(requests._watched(forever, 100, patience))
    assert requests._traffic.under_way == 0


class Body:
    """What S3's client gives to read from."""

    was_read = False

    async def read(self) -> bytes:
        self.was_read = True
        return bytes(1000)

    def close(self) -> None:
        pass


class Bucket:
    """A store that behaves as S3, and answers as it is told."""

    loop = None

    def __init__(self, **answer: Any) -> None:
        self.answer = {"Body": Body(), **answer}

    def split_path(self, path: str) -> tuple[str, str, None]:
        return "bucket", path, None

    async def set_session(self) -> None:
        pass

    async def get_s3(self, _: str) -> Any:
        return self

    def _get_s3_method_kwargs(self, _: Any, **options: Any) -> dict[str, Any]:
        return options

    async def get_object(self, **_: Any) -> dict[str, Any]:
        return self.answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"ContentLength": 1 << 40}, "sends no parts"),
        ({"ContentLength": None}, "sends no parts"),
        ({"ContentLength": 100, "ContentRange": "bytes 5-104/1000"}, "sends bytes 5-104/1000"),
        ({"ContentLength": 1000, "ContentRange": "bytes 0-999/1000"}, "sends bytes 0-999/1000"),
    ],
)
def test_a_bucket_that_knows_no_parts_is_not_read_whole(answer: dict[str, Any], said: str) -> None:
    fs = Bucket(ETag='"1"', **answer)
    with pytest.raises(RefusedError, match=said):
        asyncio.run(stores.S3Store(fs, "a.h5").first(100))
    assert not fs.answer["Body"].was_read


def test_a_store_that_sends_all_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")
    fs = fsspec.filesystem("memory")
    content = made()
    fs.pipe_file("/whole/a.h5", content)
    asked = []

    def cat_file(path: str, **wanted: int) -> bytes:
        asked.append((path, wanted))
        return content

    monkeypatch.setattr(fs, "cat_file", cat_file)
    try:
        with pytest.raises(RemoteError, match="sends more than is asked for; download it"):
            chunkwise.open("memory://whole/a.h5")
        assert len(asked) == 1
    finally:
        fs.rm("/whole", recursive=True)


def test_an_index_that_cannot_be_had_is_no_damage(server: Server) -> None:
    opening.PATIENCE = Patience(attempts=1, timeout_s=60.0)
    stream = io.BytesIO()
    values = np.arange(400 * 1000).reshape(400, 1000)
    with h5py.File(stream, "w") as file:
        file.create_dataset("x", data=values, chunks=(1, 1000), compression=1)
    server.files["/x.h5"] = stream.getvalue()
    with chunkwise.open(f"{server.url}/x.h5") as file:
        dataset = file["x"]
        server.fails = refuse(503)
        with pytest.raises(RemoteError, match=r"x\.h5: dataset /x: .*503"):
            dataset[300:302]
        # Nor is it taken for damage later.
        server.fails = None
        threading.Event().wait(2.1)
        np.testing.assert_array_equal(dataset[300:302], values[300:302])
        assert dataset.explain()["reason"] is None
