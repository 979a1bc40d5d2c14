"""Is what HDF5 cannot read reported in its place, and the rest shown, never a traceback?"""

import contextlib
import json
import os
import random
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from h5py import h5a, h5o

from chunkwise.cli.main import cli
from chunkwise.errors import CrashedError
from chunkwise.files.contained import contained_each
from chunkwise.inspection import inspect
from chunkwise.names import encode_name
from tests.support.commands import run as command
from tests.support.damage import damage_attribute, damage_header
from tests.support.inspect_files import make_file, make_indexes, make_netcdf


def run(path: Path, *options: str) -> str:
    result = CliRunner().invoke(
        cli, ["inspect", str(path), "--all", *options], env={"COLUMNS": "80"}
    )
    assert result.exception is None
    assert result.exit_code == 0
    return result.output


def words(path: Path) -> str:
    """The output with its lines joined, as they may be wrapped anywhere."""
    return " ".join(run(path).replace("│", " ").split())


def kinds(path: Path) -> dict[str, str]:
    facts = inspect(path, sample=False)
    json.dumps(facts.as_dict())
    return {entry.path: entry.kind for entry in facts.objects}


# --- damage in its place ---------------------------------------------------------------


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("name", ["a/bad", "a"])
def test_damaged_object_header(tmp_path: Path, libver: str, name: str) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        file["a/bad"], file["a/good"], file["z"] = 1, 2, 3
    damage_header(path, name)
    expected = {"/": "group", "/a": "group", "/a/bad": "unreadable", "/a/good": "dataset"}
    if name == "a":
        expected = {"/": "group", "/a": "unreadable"}
    assert kinds(path) == expected | {"/z": "dataset"}
    output = words(path)
    assert f"{name.rpartition('/')[2]} cannot be opened: " in output
    assert "z scalar int64" in output
    assert "unreadable-object" in output


def test_damaged_attribute(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["a"], file["z"] = 1, 2
        for name in ("units", "long_name", "offset"):
            file["a"].attrs[name] = "K"
    damage_attribute(path, "long_name")
    facts = {entry.path: entry for entry in inspect(path).objects}
    assert facts["/a"].attributes == 3
    assert facts["/a"].unreadable_attributes == ("* (bad version number for attribute message)",)
    assert facts["/z"].unreadable_attributes == ()
    # Where it is, how it is stored is known all the same.
    assert facts["/a"].dataset is not None
    assert "unreadable-attribute" in words(path)


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("maxshape", [(40, 40), (None, 40), (None, None)])
def test_damaged_chunk_index(
    tmp_path: Path, libver: str, maxshape: tuple[int | None, int | None]
) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("a", data=np.ones((40, 40)), chunks=(4, 4), maxshape=maxshape)
        file["z"] = 1
    content = path.read_bytes()
    signatures = [b"TREE\1", b"FADB", b"EADB", b"EASB", b"BTHD"]
    begins = [content.index(signature) for signature in signatures if signature in content]
    assert begins
    with path.open("r+b") as stream:
        for begin in begins:
            stream.seek(begin + 5)
            stream.write(b"\xee" * 8)
    assert kinds(path)["/z"] == "dataset"
    assert "z scalar int64" in words(path)


# --- links -----------------------------------------------------------------------------


def test_links_that_lead_nowhere_and_in_circles(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["good"] = 1
        file["gone"] = h5py.SoftLink("/nowhere")
        file["here"] = h5py.SoftLink("good")
        file["self"] = h5py.SoftLink("/self")
        file["ping"], file["pong"] = h5py.SoftLink("/pong"), h5py.SoftLink("/ping")
        file["away"] = h5py.ExternalLink("away.h5", "/x")
        file["back"] = h5py.ExternalLink("a.h5", "/back")
        file["round"] = h5py.ExternalLink("a.h5", "/good")
        group = file.create_group("g")
        group["up"], group["g"] = file["/"], group
    found = {entry.path: entry for entry in inspect(path).objects}
    dangling = {name.strip("/") for name, entry in found.items() if entry.dangling}
    assert dangling == {"gone", "self", "ping", "pong", "away", "back"}
    assert (found["/g/up"].kind, found["/g/up"].target) == ("hard_link", "/")
    assert (found["/g/g"].kind, found["/g/g"].target) == ("hard_link", "/g")
    assert "dangling-link" in words(path)


def test_links_to_pipes_are_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    os.mkfifo(tmp_path / "pipe")
    with h5py.File(path, "w") as file:
        file["pipe"] = h5py.ExternalLink("pipe", "/x")
        file["device"] = h5py.ExternalLink("/dev/tty", "/x")
        file["folder"] = h5py.ExternalLink(str(tmp_path), "/x")
        file["long"] = h5py.ExternalLink("n" * 5000, "/x")
    dangling = {entry.path: entry.dangling for entry in inspect(path).objects}
    assert dangling == {
        "/": False, "/pipe": False, "/device": False, "/folder": True, "/long": True,
    }  # fmt: skip


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.slow
def test_a_group_of_30_000_links(tmp_path: Path, libver: str) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        file["z"] = 1
        group = file.create_group("many").id
        for i in range(30_000):
            group.links.create_soft(b"%d" % i, b"/z" if i else b"/nowhere")
    output = CliRunner().invoke(cli, ["inspect", str(path), "--no-sample"]).output
    assert "many/0" in output
    # What the screen cannot hold is counted, not printed.
    lines = output.splitlines()
    assert len(lines) < 200
    hidden = int(lines[-1].split(" ")[0].replace(",", ""))
    assert sum("soft link to" in line for line in lines) + hidden >= 29_900


# --- names and depth -------------------------------------------------------------------


def test_names_of_any_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    names = [bytes([b]) * 2 for b in range(1, 256) if b not in b"/."]
    names += [b"\x1b[31mred", b"line\nbreak", "höhe".encode(), "\u202eevil".encode(), b" "]
    with h5py.File(path, "w") as file:
        group = file.create_group(b"all \xff")
        for name in names:
            group[name] = 1
            group[name].attrs["units"] = "K"
    found = inspect(path, sample=False)
    given = {encode_name(entry.path) for entry in found.objects[2:]}
    assert given == {b"/all \xff/" + name for name in names}
    output = run(path)
    assert not re.search(r"[^\x20-\x7e\n]", re.sub("[│├└─ö\xa1-\xff]", "", output))
    assert r"\x1b[31mred" in output
    assert r"line\nbreak" in output
    assert r"\u202eevil" in output
    for name in (b"\xff\xff", b"\n\n", b"\x1b[31mred"):
        # One dataset, asked for by its name as a shell would pass it.
        result = CliRunner().invoke(cli, ["inspect", str(path), os.fsdecode(b"all \xff/" + name)])
        assert (result.exception, result.exit_code) == (None, 0), name
        assert "\x1b" not in result.output


def test_deep_nesting(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    depth = 1100  # beyond Python's limit of recursion
    with h5py.File(path, "w") as file:
        group = file.id
        for _ in range(depth):
            group = h5py.h5g.create(group, b"d")
        h5py.Group(group)["bottom"] = 1
    facts = inspect(path, sample=False)
    assert len(facts.objects) == depth + 2
    assert facts.objects[-1].path == "/d" * depth + "/bottom"
    assert "/d/d/bottom" in "".join(run(path).split())


# --- whole files -----------------------------------------------------------------------


def test_truncated_anywhere(tmp_path: Path) -> None:
    whole = tmp_path / "whole.h5"
    make_file(whole)
    content = whole.read_bytes()
    path = tmp_path / "cut.h5"
    for nbytes in range(0, len(content), 1999):
        path.write_bytes(content[:nbytes])
        result = CliRunner().invoke(cli, ["inspect", str(path)])
        # The error is printed by `main`, which is not run here.
        assert type(result.exception).__name__ == "DamagedFileError", nbytes
        assert "\n" not in str(result.exception)


MAKERS: dict[str, Callable[[Path], None]] = {
    "all": make_file,
    "netcdf": make_netcdf,
    "latest": lambda path: make_indexes(path, "latest"),
}


def read_by_h5py(path: Path) -> None:
    def visit(group: h5py.h5g.GroupID) -> None:
        for name in list(group):
            with contextlib.suppress(Exception):
                found = h5o.open(group, name)
                h5o.get_info(found)
                h5a.iterate(found, lambda *_: None)
                if isinstance(found, h5py.h5d.DatasetID):
                    found.chunk_iter(lambda *_: None)
                    h5py.Dataset(found)[...]
                elif isinstance(found, h5py.h5g.GroupID):
                    visit(found)

    visit(h5py.File(path).id)


@pytest.mark.parametrize("make", MAKERS)
def test_bytes_changed_anywhere(tmp_path: Path, make: str) -> None:
    """The command ends with a code of its own, where h5py alone does not hang or crash."""
    MAKERS[make](tmp_path / "base.h5")
    content = (tmp_path / "base.h5").read_bytes()
    survived = 0
    for seed in range(24):
        rng = random.Random(seed)
        damaged = bytearray(content)
        for _ in range(rng.choice([1, 1, 2, 5, 20])):
            byte = rng.choice([0, 1, 0x7F, 0xFF, rng.randrange(256)])
            damaged[rng.randrange(len(damaged))] = byte
        path = tmp_path / f"{seed}.h5"
        path.write_bytes(damaged)
        # A moment's work, on a busy machine too.
        (found,) = contained_each([(partial(command, "inspect", path), "inspect")], 1, 30)
        if isinstance(found.error, CrashedError):
            (alone,) = contained_each([(partial(read_by_h5py, path), "h5py")], 1, 30)
            assert isinstance(alone.error, CrashedError), seed
            continue
        done = found.get()
        assert done.code in (0, 1, 2, 3), (seed, done)
        assert "Traceback" not in done.err, (seed, done)
        survived += done.code != 2
    # Most damage is: it hits data, or one object among many.
    assert survived > 14
