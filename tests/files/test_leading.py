"""Does a file lead no farther than its reader allows, in every door?"""

import base64
import io
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import chunkwise
from chunkwise.cli.index import command as index_command
from chunkwise.cli.verify import command as verify_command
from chunkwise.errors import LeadsOutsideError, UsageError
from tests.support.web import serving

SECRET = b"a key of 20 bytes..."
# Each leads to the secret in its own way; `texts` is read by libhdf5.
LEADING = ("external", "virtual", "through", "texts", "behind", "nested")


def write(path: Path, folder: Path, name: Callable[[Path], str] = str) -> Path:
    """A file with data in others, which lie in a folder and are called by `name`."""
    folder.mkdir(exist_ok=True, parents=True)
    raw, other, between = (folder / one for one in ("raw", "other.h5", "between.h5"))
    raw.write_bytes(SECRET)
    with h5py.File(other, "w") as file:
        file["x"] = np.frombuffer(SECRET, "u1")
        file["t"] = ["word"] * 20
    with h5py.File(between, "w") as file:
        file.create_dataset("x", (20,), "u1", external=[(name(raw), 0, 20)])

    def virtual(file: str, dataset: str, dtype: Any = "u1") -> h5py.VirtualLayout:
        layout = h5py.VirtualLayout((20,), dtype)
        layout[:] = h5py.VirtualSource(file, dataset, (20,))
        return layout

    with h5py.File(path, "w") as file:
        file["own"] = np.arange(20, dtype="u1")
        file["link"] = h5py.ExternalLink(name(other), "/")
        file["soft"] = h5py.SoftLink("/link/x")
        file.create_virtual_dataset("self", virtual(".", "own"))
        file.create_dataset("external", (20,), "u1", external=[(name(raw), 0, 20)])
        file.create_virtual_dataset("virtual", virtual(name(other), "x"))
        file.create_virtual_dataset("through", virtual(".", "/link/x"))
        file.create_virtual_dataset("texts", virtual(name(other), "t", h5py.string_dtype()))
        file.create_virtual_dataset("behind", virtual(".", "external"))
        file.create_virtual_dataset("nested", virtual(name(between), "x"))
    return path


def refused(file: Any) -> list[str]:
    """The names that lead outside, by an error that says so."""
    found = []
    for name in (*LEADING, "link", "link/x", "soft"):
        try:
            object_ = file[name]
            if isinstance(object_, h5py.Dataset):
                object_[...]
        except LeadsOutsideError:
            found.append(name)
    return found


ALL = [*LEADING, "link", "link/x", "soft"]


def shows(index: Path) -> bool:
    """Whether references hold the secret."""
    values = map(str, json.loads(index.read_text())["refs"].values())
    held = [base64.b64decode(one[7:]) for one in values if one.startswith("base64:")]
    return any(SECRET in one or b"word" in one for one in held)


@pytest.mark.parametrize("opened", [io.BytesIO, "memory", "http", "simplecache", "local"])
def test_a_file_that_is_not_local_leads_to_no_other(opened: Any, tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    import fsspec

    path = write(tmp_path / "a.h5", tmp_path)
    content = path.read_bytes()
    with serving({"/a.h5": content}) as server:
        if opened == "memory":
            with fsspec.open("memory://leading.h5", "wb") as stream:
                stream.write(content)
        given: Any = {
            "memory": "memory://leading.h5",
            "http": f"{server.url}/a.h5",
            "simplecache": f"simplecache::{server.url}/a.h5",
        }.get(opened)
        if given is None:
            given = path.open("rb") if opened == "local" else io.BytesIO(content)
        with chunkwise.open(given, external="anywhere") as file:
            assert refused(file) == ALL
            assert refused(file) == ALL
            for name in LEADING:
                for read in (
                    lambda one: one[:3],
                    np.asarray,
                    lambda one: one.read_direct(np.zeros(one.shape, one.dtype)),
                    lambda one: list(one),
                    lambda one: one[np.arange(20) < 3],
                    lambda one: one.astype("O")[...],
                ):
                    with pytest.raises(LeadsOutsideError):
                        read(file[name])
            assert file["self"][...].tolist() == list(range(20))
            with pytest.raises(LeadsOutsideError):
                chunkwise.wrap(h5py.Dataset(file["external"].id))[...]


def test_an_index_of_a_url_holds_no_bytes_of_other_files(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    path = write(tmp_path / "a.h5", tmp_path)
    with serving({"/a.h5": path.read_bytes()}) as server:
        for external in ("folder", "anywhere"):
            made = chunkwise.index(
                f"{server.url}/a.h5", tmp_path / "a.json", external=external, force=True
            )
            assert not shows(tmp_path / "a.json")
            left = {one.name for one in made.left_out if "leads to" in one.reason}
            assert left == {f"/{name}" for name in LEADING}


def test_xarray_reads_nothing_of_other_files(tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    path = tmp_path / "a.h5"
    (tmp_path / "raw").write_bytes(SECRET)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (20,), "u1", external=[(str(tmp_path / "raw"), 0, 20)])
    given = io.BytesIO(path.read_bytes())
    with xr.open_dataset(given, engine="chunkwise") as found, pytest.raises(LeadsOutsideError):
        found["x"].load()
    with (
        xr.open_dataset(path, engine="chunkwise", external="none") as found,
        pytest.raises(LeadsOutsideError),
    ):
        found["x"].load()
    with xr.open_dataset(path, engine="chunkwise") as found:
        assert found["x"].values.tobytes() == SECRET


@pytest.mark.parametrize("where", ["beside", "below", "outside", "linked", "above"])
def test_a_local_file_leads_as_far_as_the_setting_says(where: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    folder = {"beside": home, "below": home / "below", "outside": tmp_path / "away"}.get(where)
    name: Callable[[Path], str] = str
    if where == "linked":
        # A symbolic link in the file's folder leads out of it.
        (tmp_path / "away").mkdir()
        (home / "here").symlink_to(tmp_path / "away")
        folder = home / "here"
    elif where == "above":
        folder = tmp_path / "away"

        def name(path: Path) -> str:
            return f"{home}/../away/{path.name}"

    assert folder is not None
    path = write(home / "a.h5", folder, name)
    inside = where in ("beside", "below")
    with chunkwise.open(path) as file:
        assert refused(file) == []
    with chunkwise.open(path, external="none") as file:
        assert refused(file) == ALL
        assert file["self"][...].tolist() == list(range(20))
        with pytest.raises(LeadsOutsideError):
            pickle.loads(pickle.dumps(file["external"]))[...]
    with chunkwise.open(path, external="folder") as file:
        assert refused(file) == ([] if inside else ALL)
    # Another opening of the same file has another answer.
    with chunkwise.open(path) as free, chunkwise.open(path, external="none") as bound:
        assert free["virtual"][...].tobytes() == SECRET
        assert refused(bound) == ALL
    out = tmp_path / "a.json"
    chunkwise.index(path, out)
    assert shows(out) == inside
    chunkwise.index(path, out, external="none", force=True)
    assert not shows(out)
    chunkwise.index(path, out, external="anywhere", force=True)
    assert shows(out)
    for external, summed in (("folder", inside), ("none", False), ("anywhere", True)):
        found = CliRunner().invoke(
            verify_command,
            [str(path), "--write-manifest", str(out), "--force", "--external", external],
        )
        assert found.exit_code == (0 if summed else found.exit_code)
        (known,) = json.loads(out.read_text())["files"].values()
        assert all((known[f"/{one}"]["sha256"] is not None) == summed for one in LEADING)
        assert known["/self"]["sha256"] is not None


def test_a_manifest_of_values_that_may_not_be_read_differs_in_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    path = write(tmp_path / "a" / "a.h5", tmp_path / "b")
    out = tmp_path / "m.json"
    chunkwise.verify(path, write_manifest=out, external="anywhere")
    found = chunkwise.verify(path, manifest=out)
    assert found.damages == ()
    assert {note.path for note in found.notes} >= {f"/{name}" for name in LEADING}


@pytest.mark.parametrize("external", ["none", "folder", "anywhere"])
def test_a_pipe_is_never_waited_for(external: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / "a.h5"
    layout = h5py.VirtualLayout((5,), "u1")
    layout[:] = h5py.VirtualSource("pipe", "x", (5,))
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (5,), "u1", external=[(str(tmp_path / "pipe"), 0, 5)])
        file.create_virtual_dataset("v", layout)
    with chunkwise.open(path, external=external) as file:
        for name in "xv":
            with pytest.raises(LeadsOutsideError, match="leads to"):
                file[name][...]
    found = CliRunner().invoke(
        index_command, [str(path), "-o", str(tmp_path / "a.json"), "--external", external]
    )
    assert found.exit_code == 0
    assert "/x: it cannot be read" in found.output


def test_other_words_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5", tmp_path)
    wrong: Any = "everywhere"
    for call in (
        lambda: chunkwise.open(path, external=wrong),
        lambda: chunkwise.index(path, tmp_path / "a.json", external=wrong),
        lambda: chunkwise.verify(path, external=wrong),
    ):
        with pytest.raises(UsageError, match="none, folder, anywhere"):
            call()
