"""Are objects of S3 read as they are on disk, by s3fs from moto's server?"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import chunkwise
from chunkwise.errors import FileChangedError, RemoteError
from chunkwise.remote import ros3
from chunkwise.remote.source import RemoteBytes
from chunkwise.viewing.session import Session
from tests.support.web import VALUES

pytest.importorskip("s3fs", reason="s3fs is not installed")
pytest.importorskip("moto", reason="moto is not installed")
pytest.importorskip("flask", reason="moto's server needs Flask")

CREDENTIALS = {"key": "testing", "secret": "testing"}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def options(endpoint: str) -> dict[str, Any]:
    return {**CREDENTIALS, "client_kwargs": {"endpoint_url": endpoint}}


@pytest.fixture
def store(options: dict[str, Any], content: bytes) -> Any:
    import s3fs

    fs = s3fs.S3FileSystem(**options)
    if not fs.exists("bucket"):
        fs.mkdir("bucket")
    fs.pipe_file("bucket/folder/a.h5", content)
    return fs


def test_objects_are_read(store: Any, options: dict[str, Any]) -> None:
    with chunkwise.open("s3://bucket/folder/a.h5", storage_options=options) as file:
        for name in ("x", "plain"):
            plan = file[name].explain()
            assert (plan["reason"], plan["storage"]) == (None, "s3://bucket/folder/a.h5")
            np.testing.assert_array_equal(file[name][...], VALUES)
            np.testing.assert_array_equal(file[name][::4, 3, ::9], VALUES[::4, 3, ::9])
    with store.open("bucket/folder/a.h5") as given, chunkwise.open(given) as file:
        np.testing.assert_array_equal(file["x"][5], VALUES[5])


@pytest.mark.usefixtures("store")
def test_an_object_is_shown_with_what_the_environment_says(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_ACCESS_KEY_ID", "testing"),
        ("AWS_SECRET_ACCESS_KEY", "testing"),
    ):
        monkeypatch.setenv(name, value)
    shown = Session.of("s3://bucket/folder/a.h5", "x", ("line:0",))
    first = shown.first()
    assert first["file"] == "s3://bucket/folder/a.h5"
    assert first["far"]["requests"] > 0
    asked = {"dataset": [str(first["chosen"])], "read": ["line:0"]}
    found = shown.costs(asked)
    assert found["reads"][0]["now"]["chunkwise_requests"] > 0
    assert found["page"]["begin"] == "chunkwise view s3://bucket/folder/a.h5 /x"


def test_what_the_driver_ros3_was_told(store: Any, endpoint: str, content: bytes) -> None:
    told = {"authenticate": True, "aws_region": b"us-east-1"}
    told |= {"secret_id": b"testing", "secret_key": b"testing"}
    assert store.cat_file("bucket/folder/a.h5") == content
    source = ros3._source(f"{endpoint}/bucket/folder/a.h5", len(content), told)
    assert isinstance(source, RemoteBytes)
    assert source.read_ranges([(300_000, 1000)]) == [content[300_000:301_000]]
    found = ros3._source(f"{endpoint}/bucket/none.h5", len(content), told)
    assert isinstance(found, str)
    assert "no such object" in found


def test_an_object_that_has_changed(store: Any, options: dict[str, Any], content: bytes) -> None:
    with chunkwise.open("s3://bucket/folder/a.h5", storage_options=options) as file:
        _ = file["x"][0]
        store.pipe_file("bucket/folder/a.h5", content[:-1] + b"x")
        with pytest.raises(FileChangedError, match=r"s3://bucket/folder/a.h5: dataset /x"):
            file["x"][9:]


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3://bucket/none.h5", "no such object"),
        ("s3://bucket", "names a bucket or a folder"),
        ("s3://bucket/folder/", "no such object"),
        ("s3://nowhere/a.h5", "no such object|no such bucket|does not exist"),
    ],
)
def test_what_is_not_there(url: str, said: str, options: dict[str, Any]) -> None:
    with pytest.raises(RemoteError, match=said):
        chunkwise.open(url, storage_options=options)


def test_missing_credentials_are_named(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    options = {"client_kwargs": {"endpoint_url": endpoint}, "skip_instance_cache": True}
    with pytest.raises(RemoteError, match="AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        chunkwise.open("s3://bucket/folder/a.h5", storage_options=options)
