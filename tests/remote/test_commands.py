"""Do inspect and verify say of a URL what they say of the file, and what fetching took?"""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import RemoteError, UsageError
from chunkwise.verdicts import FileVerdict
from tests.support.commands import run
from tests.support.tools import paste
from tests.support.web import VALUES, Server, serving
from tests.support.wide import widen

pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")


def scattered() -> bytes:
    """A file whose headers lie between its data, with something to find."""
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        for number in range(12):
            group = file.create_group(f"group {number}")
            dataset = group.create_dataset("x", data=VALUES, chunks=(30, 100, 1), compression=1)
            dataset.attrs["about"] = "a word"
        file.create_dataset("tiny", data=VALUES, chunks=(1, 10, 10), compression=1)
        file["twice"] = file["group 3"]
        file["gone"] = h5py.SoftLink("/nowhere")
    return stream.getvalue()


@pytest.fixture(scope="module")
def stored() -> bytes:
    return scattered()


@pytest.fixture
def server(stored: bytes) -> Iterator[Server]:
    with serving({"/a.h5": stored}, tags={"/a.h5": '"one"'}) as told:
        yield told


def facts_of(found: Any) -> dict[str, Any]:
    """All that does not name the file, nor say how it came."""
    record: dict[str, Any] = found.as_dict()
    for name in ("path", "far", "copy", "findings", "commands"):
        del record[name]
    return record


def test_the_facts_are_those_of_the_file(server: Server, stored: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    path.write_bytes(stored)
    here = chunkwise.inspect(path, sample=False)
    far = chunkwise.inspect(f"{server.url}/a.h5", sample=False, latency_s=0.25)
    assert facts_of(far) == facts_of(here)
    assert [one.code for one in far.findings] == [one.code for one in here.findings]
    assert far.path == f"{server.url}/a.h5"
    assert far.far is not None
    assert far.far.requests == len(server.asked)
    assert far.far.nbytes == server.nbytes
    assert far.far.latency_s == 0.25
    assert 1 < far.far.rounds <= far.far.requests
    assert far.far.seconds == pytest.approx(far.far.rounds * 0.25 + far.far.nbytes / 100e6)
    one = chunkwise.inspect(f"{server.url}/a.h5", "group 3/x", sample=True, access=["line:0"])
    assert one.objects[0].dataset is not None
    assert one.objects[0].dataset.sample is not None


def test_remedies_are_for_a_copy(server: Server, stored: bytes, tmp_path: Path) -> None:
    found = chunkwise.inspect(f"{server.url}/a.h5?key=secret", sample=False)
    assert found.copy == "a.h5"
    assert found.commands
    text = json.dumps(found.as_dict())
    assert "secret" not in text
    assert all(server.url not in fix.text for fix in found.commands)
    (tmp_path / found.copy).write_bytes(stored)
    line = next(fix.text for fix in found.commands if fix.tool == "chunkwise")
    paste(line, tmp_path)
    mended = chunkwise.inspect(tmp_path / "a_repacked.h5", sample=False)
    assert {one.code for one in found.findings} - {one.code for one in mended.findings} == {
        "small-chunks"
    }
    with h5py.File(tmp_path / "a_repacked.h5") as file:
        assert np.array_equal(file["tiny"], VALUES)
    done = run("inspect", f"{server.url}/a.h5", "--latency", "50ms")
    assert not done.code
    assert "Download the file as a.h5." in done.out
    assert "at 50.0 ms a request" in done.out
    # Nothing here is sampled, as nobody asked for it.
    assert "No times" not in done.out
    assert "chunkwise bench" not in done.out


def test_what_this_hdf5_refuses(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "wide.h5"
    with h5py.File(path, "w", libver="v110") as file:
        file.create_dataset("x", data=VALUES, chunks=(7, 90, 90), compression=1).attrs["u"] = "K"
    assert widen(path) == 1
    server.files["/wide.h5"] = path.read_bytes()
    here, far = chunkwise.inspect(path), chunkwise.inspect(f"{server.url}/wide.h5", sample=False)
    assert [one.code for one in far.findings if one.severity == "error"] == [
        one.code for one in here.findings if one.severity == "error"
    ]
    assert far.verdict is here.verdict is FileVerdict.SOUND
    assert far.file_format.refused == here.file_format.refused
    assert chunkwise.verify(f"{server.url}/wide.h5").verdict is FileVerdict.SOUND


def test_several_urls(server: Server) -> None:
    done = run("inspect", f"{server.url}/a.h5", f"{server.url}/b.h5?key=secret")
    assert done.code == 2
    assert "secret" not in done.out + done.err
    assert f"{server.url}/a.h5" in done.out
    assert "404" in done.out


def test_a_file_is_verified_from_afar(server: Server, stored: bytes, tmp_path: Path) -> None:
    sums = tmp_path / "sums.json"
    url = f"{server.url}/a.h5"
    found = chunkwise.verify(url, write_manifest=sums, latency_s=0.5)
    assert found.verdict == "sound, with loose ends"
    assert (found.path, found.nbytes, found.datasets) == (url, len(stored), 13)
    assert found.far is not None
    assert found.far.seconds >= 0.5
    path = tmp_path / "a.h5"
    path.write_bytes(stored)
    assert not chunkwise.verify(path, manifest=sums).damages
    changed = bytearray(stored)
    with h5py.File(path) as file:
        at = file["group 5/x"].id.get_chunk_info(0).byte_offset
    changed[at + 40 : at + 60] = bytes(20)
    server.files["/a.h5"] = bytes(changed)
    done = run("verify", url, "--manifest", sums, "--latency", "50ms")
    assert done.code == 1
    assert done.out.startswith(f"{url}: damaged: ")
    assert "/group 5/x" in done.out
    assert "at 50.0 ms a request" in done.out
    assert "chunkwise." not in done.out
    saved = tmp_path / "saved.h5"
    done = run("verify", url, "--salvage", saved, "--json")
    assert done.code == 1
    assert json.loads(done.out)["verified"]["far"]["requests"] > 0
    with h5py.File(saved) as file:
        assert np.array_equal(file["group 4/x"], VALUES)


def test_large_files_come_by_large_requests(server: Server, monkeypatch: Any) -> None:
    monkeypatch.setattr("chunkwise.remote.copying._PIECE_NBYTES", 1 << 20)
    values = np.random.default_rng(2).integers(0, 255, 5 << 20).astype("u1")
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        file["x"] = values
    server.files["/a.h5"] = stream.getvalue()
    found = chunkwise.verify(f"{server.url}/a.h5")
    assert found.verdict == "sound"
    assert found.stored_nbytes == len(values)
    assert len(server.asked) <= 8


def test_what_is_for_files_here_says_so(server: Server, tmp_path: Path) -> None:
    url = f"{server.url}/a.h5"
    for words, said in (
        (["--resume", tmp_path / "state"], "--resume is for local files; download it first"),
        (["--external", "anywhere"], "leads to no other file"),
        ([url], "a URL is verified alone"),
    ):
        done = run("verify", url, *words)
        assert (done.code, done.out) == (2, "")
        assert said in done.err
    assert not server.asked
    path = tmp_path / "a.h5"
    path.write_bytes(server.files["/a.h5"])
    for command in ("inspect", "verify"):
        assert "a latency is for a URL" in run(command, path, "--latency", "5ms").err
    with pytest.raises(UsageError, match="a latency is for a URL"):
        chunkwise.verify(path, latency_s=1.0)


def test_without_room_for_a_copy(server: Server, monkeypatch: Any) -> None:
    class Full:
        free = 1000

    monkeypatch.setattr("shutil.disk_usage", lambda _: Full)
    done = run("verify", f"{server.url}/a.h5")
    assert done.code == 2
    assert "set TMPDIR to a folder with more" in done.err


def test_what_is_not_there(server: Server) -> None:
    with pytest.raises(RemoteError, match="404"):
        chunkwise.verify(f"{server.url}/nothing.h5")
    assert run("inspect", f"{server.url}/nothing.h5").code == 2
    server.files["/a.txt"] = b"no HDF5 file at all, but a text" * 10
    done = run("verify", f"{server.url}/a.txt")
    assert done.code == 2
    assert done.out.startswith(f"{server.url}/a.txt: could not be read")
    assert "not an HDF5 file" in done.out
