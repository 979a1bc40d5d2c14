"""Are files behind URLs indexed as local ones, and does a sidecar hold for what it was made of?"""

import io
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import chunkwise
from chunkwise.cli.index import command
from chunkwise.errors import FileChangedError, RemoteError, UsageError
from chunkwise.remote import opening
from chunkwise.remote.faults import Patience
from tests.support.indexing import assert_same_values, by_xarray, by_zarr
from tests.support.web import Server, serving

pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")


def made(seed: int = 0, **options: Any) -> bytes:
    """A file whose indexes do not all lie at its front."""
    stream = io.BytesIO()
    values = np.random.default_rng(seed).integers(0, 1 << 30, (300, 50, 10)).astype("i4")
    with h5py.File(stream, "w", **options) as file:
        file.create_dataset("contiguous", data=values)
        file.create_dataset("chunked", data=values, chunks=(1, 50, 10), compression=1)
        file.create_dataset(
            "growing", data=values, chunks=(1, 50, 10), maxshape=(None, 50, 10), shuffle=True
        )
        file.create_dataset("lzf", data=values[0], compression="lzf")
        file["word"] = "word"
    return stream.getvalue()


@pytest.fixture(scope="module")
def content() -> bytes:
    return made(libver="latest")


@pytest.fixture
def server(content: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(opening, "PATIENCE", Patience(attempts=2, timeout_s=60.0, pause_s=0.005))
    files = {"/a.h5": content, "/b.h5": made(1, userblock_size=512)}
    with serving(files, tags={"/a.h5": '"first"', "/b.h5": '"other"'}) as told:
        yield told


def run(*words: object) -> Any:
    return CliRunner().invoke(command, list(map(str, words)), catch_exceptions=False)


def test_references_of_urls_are_read_by_zarr(server: Server, tmp_path: Path) -> None:
    urls = [f"{server.url}/a.h5?signature=secret", f"{server.url}/b.h5"]
    done = run(*urls, "-o", tmp_path / "refs", "--format", "json", "--json")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["source"] for record in records] == [f"{server.url}/a.h5?...", urls[1]]
    for name, record in zip("ab", records, strict=True):
        assert record["target"] == f"{tmp_path}/refs/{name}.h5.json"
        assert record["left_out"] == []
        with h5py.File(io.BytesIO(server.files[f"/{name}.h5"])) as file:
            group = by_zarr(Path(record["target"]), protocol="http")
            for dataset in ("contiguous", "lzf", "word"):
                assert_same_values(group[dataset], file[dataset])
            for dataset in ("chunked", "growing"):
                np.testing.assert_array_equal(group[dataset][::60], file[dataset][::60])
    # They name the file, as it was named.
    refs = json.loads((tmp_path / "refs" / "a.h5.json").read_text())["refs"]
    assert refs["chunked/0.0.0"][0] == urls[0]


def test_references_are_those_of_the_local_file(
    server: Server, content: bytes, tmp_path: Path
) -> None:
    (tmp_path / "a.h5").write_bytes(content)
    url = f"{server.url}/a.h5"
    chunkwise.index(tmp_path / "a.h5", tmp_path / "local.json", url=url)
    for source in (url, f"simplecache::{url}", f"blockcache::{url}"):
        chunkwise.index(source, tmp_path / "far.json", force=True)
        assert (tmp_path / "far.json").read_text() == (tmp_path / "local.json").read_text()
    pytest.importorskip("pandas")
    pytest.importorskip("fastparquet")
    pytest.importorskip("xarray")
    chunkwise.index(url, tmp_path / "far.parquet")
    found = by_xarray(tmp_path / "far.parquet", protocol="http")
    with h5py.File(io.BytesIO(content)) as file:
        np.testing.assert_array_equal(found["growing"][7:9].values, file["growing"][7:9])


def test_an_index_takes_few_requests(server: Server, tmp_path: Path) -> None:
    """The nodes of one level are asked for together, and not one after the other."""
    made = chunkwise.index(f"{server.url}/b.h5", tmp_path / "b.json")
    assert made.chunks == 601
    assert len(server.asked) < 30


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_sidecar_of_a_url_is_read_by(server: Server, tmp_path: Path, name: str) -> None:
    url, sidecar = f"{server.url}/{name}.h5", tmp_path / "any.cwi"
    made = chunkwise.index(url, sidecar)
    assert (made.format, made.datasets, made.left_out) == ("sidecar", 3, ())
    with (
        h5py.File(io.BytesIO(server.files[f"/{name}.h5"])) as theirs,
        chunkwise.open(url, index=sidecar) as ours,
    ):
        for dataset in ("chunked", "growing"):
            assert ours[dataset].explain(np.s_[3])["sidecar"] == str(sidecar)
            for key in (np.s_[3, 2:9], np.s_[::7, 7], np.s_[-1, -1], np.s_[...]):
                np.testing.assert_array_equal(ours[dataset][key], theirs[dataset][key])
        again = pickle.loads(pickle.dumps(ours))
        assert again["chunked"].explain(np.s_[3])["sidecar"] == str(sidecar)
        again.close()
    # Nothing looks for one by itself.
    with chunkwise.open(url) as ours:
        assert ours["chunked"].explain(np.s_[3])["sidecar"] is None


def test_a_sidecar_of_a_url_holds_while_the_object_is_what_it_was(
    server: Server, content: bytes, tmp_path: Path
) -> None:
    url, sidecar = f"{server.url}/a.h5", tmp_path / "a.cwi"
    chunkwise.index(url, sidecar)
    server.tags["/a.h5"] = '"second"'
    with pytest.raises(FileChangedError, match="make it anew: chunkwise index http"):
        chunkwise.open(url, index=sidecar)
    server.tags["/a.h5"] = '"first"'
    server.files["/a.h5"] = content + b"more"
    with pytest.raises(FileChangedError, match="make it anew"):
        chunkwise.open(url, index=sidecar)
    with pytest.raises(FileChangedError, match="is of another file"):
        chunkwise.open(f"{server.url}/b.h5", index=sidecar)
    # Nor is it one of a file here, whose time it does not know.
    (tmp_path / "a.h5").write_bytes(content)
    with pytest.raises(FileChangedError):
        chunkwise.open(tmp_path / "a.h5", index=sidecar)


def test_what_cannot_be_is_refused(server: Server, tmp_path: Path) -> None:
    url, out = f"{server.url}/a.h5", tmp_path / "out.json"
    secret, sidecar = url.replace("//", "//me:secret@"), tmp_path / "a.cwi"
    del server.tags["/a.h5"]
    calls: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: chunkwise.open(url, index=True), UsageError, "say which sidecar"),
        (lambda: chunkwise.index(url), UsageError, "say where the index shall be"),
        (
            lambda: chunkwise.index(f"zip://a.h5::{url}", out),
            UsageError,
            "chain of URLs; give --url",
        ),
        (lambda: chunkwise.index(secret, out), UsageError, "would hold its password"),
        (lambda: chunkwise.index("a.h5", out, storage_options={}), UsageError, "URLs only"),
        (lambda: chunkwise.index(url, sidecar), UsageError, "neither ETag nor Last-Modified"),
        (lambda: chunkwise.index(f"simplecache::{url}", sidecar), UsageError, "part by part"),
        (lambda: chunkwise.index(f"{server.url}/none.h5", out), RemoteError, "no such object"),
    ]
    for call, kind, said in calls:
        with pytest.raises(kind, match=said) as met:
            call()
        assert "me:secret" not in str(met.value)
    assert [path.name for path in tmp_path.iterdir()] == []


def test_what_could_not_be_had_is_not_left_out(server: Server, tmp_path: Path) -> None:
    """A network that fails makes no index that lacks datasets."""
    for target in ("c.json", "c.cwi"):
        before = len(server.asked)
        chunkwise.index(f"{server.url}/b.h5", tmp_path / target)
        total = len(server.asked) - before
        (tmp_path / target).unlink()
        assert total > 3
        for last in {1, 2, total // 2, total - 1}:
            answered = len(server.headers) + last

            refused: list[int] = []

            def failing(handler: Any, most: int = answered, refused: Any = refused) -> bool:
                if len(server.headers) <= most:
                    return False
                refused.append(403)
                handler.plain(403)
                return True

            server.fails = failing
            said = ""
            try:
                chunkwise.index(f"{server.url}/b.h5", tmp_path / target)
            except RemoteError as error:
                said = str(error)
            # How many requests there are differs a little: perhaps all were answered.
            assert bool(refused) == ("403" in said)
            assert refused or last > 2
            assert (tmp_path / target).exists() == (not refused)
            (tmp_path / target).unlink(missing_ok=True)
            assert list(tmp_path.iterdir()) == []
            server.fails = None


def test_options_are_passed_on(server: Server, tmp_path: Path) -> None:
    options = {"headers": {"X-A": "b"}}
    chunkwise.index(f"{server.url}/a.h5", tmp_path / "a.json", storage_options=options)
    assert all(headers.get("X-A") == "b" for headers in server.headers)
