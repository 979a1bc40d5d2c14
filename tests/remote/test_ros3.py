"""Does the engine read what h5py has opened by HDF5's driver ros3, and only if it is the same?

h5py's wheels have no such driver.  A stand-in says that files of the driver stdio were opened by a
URL; so libhdf5 reads the file on disk, and the engine what is served.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5fd, h5i

import chunkwise
from chunkwise.errors import RemoteError
from chunkwise.remote import ros3
from tests.support.patched import bound_always, engine_reads, left_to_h5py
from tests.support.processes import Program
from tests.support.web import VALUES, Server, serving

pytest.importorskip("aiohttp")

assert bound_always
pytestmark = pytest.mark.usefixtures("bound_always")

NAMES = ("plain", "x")
ANONYMOUS = {"authenticate": False}
SIGNING = {
    "authenticate": True,
    "aws_region": b"eu-west-1",
    "secret_id": b"testing",
    "secret_key": b"testing",
}


ENDPOINTS = ("aws_endpoint_url", "aws_endpoint_url_s3")


@pytest.fixture
def server(content: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "https_proxy", "all_proxy", *ENDPOINTS):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with serving({"/a.h5": content}, tags={"/a.h5": '"1"'}) as found:
        stands_in(monkeypatch, f"{found.url}/a.h5")
        yield found


def stands_in(monkeypatch: pytest.MonkeyPatch, url: str, more: int = 0) -> None:
    def opened(dataset: h5py.Dataset) -> Any:
        file = h5i.get_file_id(dataset.id)
        if file.get_access_plist().get_driver() != h5fd.STDIO:
            return None
        return url, file.get_filesize() + more, ANONYMOUS

    monkeypatch.setattr(ros3, "_opened", opened)


def read_by_h5py(path: Path, why: str) -> None:
    """Read all, and check that the engine has read nothing, and that it is said why."""
    with chunkwise.patch_h5py(), h5py.File(path, driver="stdio") as file:
        before = engine_reads(), left_to_h5py()
        for name in NAMES:
            np.testing.assert_array_equal(file[name][...], VALUES)
        assert engine_reads() == before[0]
        (said,) = left_to_h5py().keys() - before[1].keys()
        assert said.startswith("driver ros3: ")
        assert why in said
        assert chunkwise.wrap(file["x"]).explain()["reason"] == said


def test_the_engine_reads(path: Path, server: Server) -> None:
    with chunkwise.patch_h5py():
        for _ in range(2):
            with h5py.File(path, driver="stdio") as file:
                for name in NAMES:
                    before = engine_reads()
                    np.testing.assert_array_equal(
                        file[name][3:20:5, 7, ::9], VALUES[3:20:5, 7, ::9]
                    )
                    np.testing.assert_array_equal(file[name][...], VALUES)
                    assert engine_reads() == before + 2
                assert len(ros3._of_files) == 1
            assert not ros3._of_files
    # The front, once for each time that the file was opened.
    assert sum(begin == 0 for begin, _ in server.asked) == 2


def _none(server: Server, _: pytest.MonkeyPatch) -> None:
    server.files.clear()


def _longer(server: Server, patch: pytest.MonkeyPatch) -> None:
    stands_in(patch, f"{server.url}/a.h5", more=1)


def _proxy(_: Server, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("http_proxy", "http://127.0.0.1:9")
    patch.delenv("no_proxy", raising=False)


def _endpoint(_: Server, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("prepare", "why", "requests"),
    [
        (_longer, "bytes now, not ", 1),
        (_none, "404 Not Found", 1),
        (_proxy, "through a proxy", 0),
        (_endpoint, "AWS_ENDPOINT_URL is set", 0),
    ],
)
def test_what_libhdf5_has_to_read(
    path: Path, server: Server, monkeypatch: pytest.MonkeyPatch, prepare: Any, why: str,
    requests: int,
) -> None:  # fmt: skip
    prepare(server, monkeypatch)
    read_by_h5py(path, why)
    assert len(server.headers) == requests


def test_an_object_that_changes(path: Path, server: Server) -> None:
    with chunkwise.patch_h5py(), h5py.File(path, driver="stdio") as file:
        for name in NAMES:
            np.testing.assert_array_equal(file[name][0], VALUES[0])
        server.tags["/a.h5"] = '"2"'
        before = engine_reads()
        with pytest.warns(RuntimeWarning, match=r"has changed.*: reading through libhdf5"):
            np.testing.assert_array_equal(file["plain"][...], VALUES)
        asked = len(server.headers)
        np.testing.assert_array_equal(file["plain"][...], VALUES)
        assert len(server.headers) == asked
        assert engine_reads() == before
        assert any("the object has changed" in why for why in left_to_h5py())


@pytest.mark.parametrize("kept", [True, False])
def test_a_server_that_fails_later(path: Path, server: Server, kept: bool) -> None:
    def fails(handler: Any) -> bool:
        handler.plain(503)
        return True

    with chunkwise.patch_h5py(), h5py.File(path, driver="stdio") as file:
        assert (file["plain"][0] == VALUES[0]).all()
        server.fails = fails
        if not kept:
            # As when very many files are open.
            ros3._of_files.clear()
        before, out = engine_reads(), np.empty_like(VALUES)
        file["plain"].read_direct(out)
        np.testing.assert_array_equal(out, VALUES)
        np.testing.assert_array_equal(np.asarray(file["x"]), VALUES)
        assert engine_reads() == before
        assert any("503" in why for why in left_to_h5py())


def test_what_is_not_asked_for() -> None:
    pytest.importorskip("s3fs")
    for url, told, why in (
        ("s3://bucket/a.h5", ANONYMOUS, "libhdf5 alone knows"),
        ("https://host/a.h5", SIGNING, "what the bucket and the key are"),
        ("https://host/a/b.h5", {**SIGNING, "secret_id": b"ASIA1\0"}, "session token"),
    ):
        found = ros3._source(url, 1, told)
        assert isinstance(found, str)
        assert why in found


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://host:9000/b/k/l", ("http://host:9000", "b", "k/l")),
        ("https://s3.eu-x.amazonaws.com/b/k", ("https://s3.eu-x.amazonaws.com", "b", "k")),
        ("https://b.s3.eu-x.amazonaws.com/k/l", ("https://s3.eu-x.amazonaws.com", "b", "k/l")),
        ("https://b.c.s3-eu-x.amazonaws.com/k", ("https://s3-eu-x.amazonaws.com", "b.c", "k")),
        ("https://b.s3.amazonaws.com/k%2B+", ("https://s3.amazonaws.com", "b", "k++")),
    ],
)
def test_places(url: str, found: tuple[str, str, str]) -> None:
    assert ros3.place(url) == found
    for vague in ("https://host/b/", "https://host/b/k?versionId=1", "https://host"):
        with pytest.raises(RemoteError, match="does not say"):
            ros3.place(vague)


# libhdf5 waits for answers with Python's lock held: another process has to give them.
_SERVER = """
import sys
from pathlib import Path
from tests.support.processes import Program
from tests.support.web import serving
content = Path(sys.argv[1]).read_bytes()
with serving({"/b/a.h5": content}, tags={"/b/a.h5": '"1"'}) as server:
    print(server.url, flush=True)
    sys.stdin.readline()
    server.tags["/b/a.h5"] = '"2"'
    print("changed", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.skipif(not h5py.h5.get_config().ros3, reason="this h5py has no driver ros3")
def test_the_driver_itself(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with Program(_SERVER, path) as process:
        url = process.hear()
        with chunkwise.patch_h5py(), h5py.File(f"{url}/b/a.h5", driver="ros3") as file:
            for name in NAMES:
                before = engine_reads()
                np.testing.assert_array_equal(file[name][3:5], VALUES[3:5])
                assert engine_reads() == before + 1, left_to_h5py()
            process.tell()
            process.hear()
            with pytest.warns(RuntimeWarning, match="has changed"):
                np.testing.assert_array_equal(file["plain"][...], VALUES)
        process.tell()
