"""Does any command show, or write down, what a URL has for a secret?"""

import io
import json
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.cli.main import COMMANDS, OF_URLS, cli, main
from chunkwise.errors import ChunkwiseError, FileFormatError
from chunkwise.names import printable, shown_url
from chunkwise.remote import opening
from chunkwise.remote.faults import Patience
from tests.support.web import Server, serving

SIGNED = "http://127.0.0.1:9/data.nc?X-Amz-Signature=SECRET"
URLS = {
    "signature": SIGNED,
    "password": "https://me:SECRET@127.0.0.1:9/a.nc",
    "fragment": "https://127.0.0.1:9/a.nc#SECRET",
    "chain": f"simplecache::{SIGNED}",
    "key": "s3://key:SECRET@bucket/a.nc?versionId=SECRET",
    "space": "https://127.0.0.1:9/a.nc?token=a SECRET",
    "quote": "https://127.0.0.1:9/a.nc?token=a'SECRET",
    "percent": "https://127.0.0.1:9/https%3A%2F%2Fme%3ASECRET%40host%2Fa.nc%3Fsig%3DSECRET",
}
# What is given beside it, for a command to look at it.
BESIDE = {
    "bench": ["f.h5", "/d"],
    "advise": ["f.h5", "/d"],
    "compare": ["a.json", "b.json"],
    "repack": ["f.h5", "o.h5", "--filter", "none"],
    "report": ["a.json"],
}
# These run programs, which may do with their arguments what they like.
OF_PROGRAMS = ("run", "trace")


def _leaves(command: click.Command, words: list[str]) -> Iterator[tuple[list[str], click.Command]]:
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from _leaves(below, [*words, name])
    else:
        yield words, command


def _places() -> Iterator[list[str]]:
    """Each place of a command line in which a URL may stand, as ``URL``."""
    for name in COMMANDS:
        if name in OF_PROGRAMS:
            continue
        top = cli.get_command(click.Context(cli), name)
        assert top is not None
        for words, command in _leaves(top, [name]):
            beside = BESIDE.get(name, ["f.h5"])
            yield [*words, "URL"]
            yield [*words, *beside, "URL"]
            for one in command.params:
                if (
                    isinstance(one, click.Option)
                    and not one.is_flag
                    and (words, one.name) != (["index"], "url")
                ):
                    yield [*words, one.opts[-1], "URL", *beside]
                    yield [*words, f"{one.opts[-1]}=URL", *beside]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(opening, "PATIENCE", Patience(attempts=1, timeout_s=0.2, pause_s=0.001))
    with h5py.File("f.h5", "w") as file:
        file.create_dataset("d", data=np.arange(100.0).reshape(10, 10), chunks=(2, 10))
    return tmp_path


def _ran(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    for name in ("excepthook", "argv"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    monkeypatch.setattr(sys, "argv", ["chunkwise", *words])
    monkeypatch.setattr("warnings.formatwarning", None)
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code if isinstance(ended.value.code, int) else int(bool(ended.value.code))


def _without_secret(folder: Path, *texts: str) -> None:
    for text in texts:
        assert "SECRET" not in text
    for path in folder.rglob("*"):
        assert "SECRET" not in str(path)
        assert not path.is_file() or b"SECRET" not in path.read_bytes(), path


@pytest.mark.parametrize("words", [*_places()], ids=" ".join)
def test_no_command_shows_a_signature(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    words: list[str],
) -> None:
    code = _ran([one.replace("URL", SIGNED) for one in words], monkeypatch)
    found = capfd.readouterr()
    assert code
    assert "Traceback" not in found.err
    assert "matches this pattern" not in found.err
    _without_secret(folder, *found)


@pytest.mark.parametrize("command", ["inspect", "verify", "bench", "repack", "fix", "index"])
@pytest.mark.parametrize("kind", URLS)
def test_no_kind_of_secret_is_shown(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    command: str,
    kind: str,
) -> None:
    rest = {"repack": ["out.h5"], "index": ["-o", "out.json"]}.get(command, [])
    far = command in OF_URLS
    if far:
        # Nobody answers.
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert _ran([command, URLS[kind], *rest], monkeypatch)
    found = capfd.readouterr()
    assert command == "verify" or not found.out
    assert far or "not a local file; download it first" in found.err
    _without_secret(folder, *found)


@pytest.mark.parametrize("command", ["verify", "repack", "fix"])
def test_lists_of_files_may_have_urls(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(SIGNED.encode())))
    rest = {"repack": ["-o", "out"], "fix": ["-o", "out"]}.get(command, [])
    _ran([command, "--files-from", "-", *rest, "--json"], monkeypatch)
    _without_secret(folder, *capfd.readouterr())


@pytest.mark.parametrize("url", URLS.values(), ids=URLS)
def test_calls_show_none_either(folder: Path, url: str) -> None:
    calls: list[Any] = [
        lambda: chunkwise.open(url),
        lambda: chunkwise.inspect(url),
        lambda: chunkwise.verify(url),
        lambda: chunkwise.repack(url, "out.h5"),
        lambda: chunkwise.repack("f.h5", url),
        lambda: chunkwise.fix(url),
        lambda: chunkwise.index(url, "out.json"),
        lambda: chunkwise.index("f.h5", url),
    ]
    for call in calls:
        with pytest.raises((ChunkwiseError, OSError)) as met:
            call()
        _without_secret(folder, "".join(traceback.format_exception(met.value)))


def test_a_long_message_is_cut_after_its_secrets_are_gone() -> None:
    error = FileFormatError(f"cannot read https://host/a.nc?{'x' * 400}SECRET: no such object")
    assert str(error) == "cannot read https://host/a.nc?...: no such object"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http:/me:SECRET@h/x?SECRET: bad", "http:/h/x?...: bad"),
        ("/tmp/http:/me:SECRET@h; make it", "/tmp/http:/h; make it"),
        ("message='x', url=URL('http://h/x?SECRET'))", "message='x', url=URL('http://h/x?...'))"),
        ("['http://h/x?SECRET', 'b']", "['http://h/x?...', 'b']"),
        ('{"a": "https:\\/\\/h\\/x?SECRET"}', '{"a": "https:\\/\\/h\\/x?..."}'),
        ("https://h/a%3Fsig=SECRET ends", "https://h/a%3F... ends"),
        ("C:/x?y, csr:/indptr?, a?b=c.nc", "C:/x?y, csr:/indptr?, a?b=c.nc"),
    ],
)
def test_what_is_left_of_a_text(text: str, shown: str) -> None:
    assert printable(text) == printable(printable(text)) == shown


@pytest.mark.parametrize("url", URLS.values(), ids=URLS)
def test_what_is_left_of_a_url(url: str) -> None:
    assert "SECRET" not in shown_url(url)
    assert shown_url(shown_url(url)) == shown_url(url)


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    pytest.importorskip("aiohttp")
    with serving({"/f.h5": (folder / "f.h5").read_bytes()}) as found:
        yield found


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("bare", [False, True])
def test_an_index_says_that_it_holds_a_secret_and_can_leave_it_out(
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    bare: bool,
    as_json: bool,
) -> None:
    url = f"{server.url}/f.h5?sig=SECRET"
    options = ["--no-secrets"] * bare + ["--json"] * as_json
    assert _ran(["index", url, "-o", "x.json", *options], monkeypatch) == 0
    found = capfd.readouterr()
    assert "SECRET" not in found.out + found.err
    assert ("holds a secret" in found.out + found.err) is not bare
    if as_json:
        assert json.loads(found.out)["secret"] is not bare
    refs = json.loads(Path("x.json").read_text())["refs"]
    assert refs["d/0.0"][0] == (f"{server.url}/f.h5" if bare else url)
    if bare:
        signed = url.replace("//", "//me:SECRET@")
        made = chunkwise.index("f.h5", "y.json", url=signed, secrets=False)
        assert not made.secret
        assert "SECRET" not in Path("y.json").read_text()
        assert chunkwise.index("f.h5", "y.json", url=signed, force=True).secret


def test_a_signature_that_was_left_out_is_given_to_the_reader(server: Server) -> None:
    zarr = pytest.importorskip("zarr", minversion="3")
    asked: list[str] = []

    def refusing(handler: Any) -> bool:
        asked.append(handler.path)
        if handler.path.endswith("?sig=SECRET"):
            return False
        handler.plain(403)
        return True

    server.fails = refusing
    chunkwise.index(f"{server.url}/f.h5?sig=SECRET", "x.json", secrets=False)
    storage = {
        "fo": "x.json",
        "remote_protocol": "http",
        "remote_options": {"asynchronous": True, "params": {"sig": "SECRET"}},
    }
    group = zarr.open_group("reference://", storage_options=storage, mode="r", zarr_format=2)
    assert group["d"][3, 3] == 33
    assert all(path.endswith("?sig=SECRET") for path in asked)
