"""Is all that can be read in the new file, and is the damaged structure named?"""

import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.repacking.salvaging import salvage
from tests.support.damage import damage_attribute, damage_header, flip_in, overwrite
from tests.support.verifying import CODECS, chunks_of, command, field
from tests.support.wide import seal


@pytest.fixture
def source(request: Any, tmp_path: Path) -> Path:
    path = tmp_path / "in.h5"
    options = {**CODECS[getattr(request, "param", "deflate")], "fletcher32": True}
    with h5py.File(path, "w") as file:
        made = file.create_dataset("g/d", data=field(), chunks=(16, 20), fillvalue=-7, **options)
        made.attrs["units"] = "K"
        file.create_dataset("whole", data=field(2), chunks=(30, 70), compression=1)
        file["words"] = ["a", "b"]
        file["refers"] = made.ref
    return path


@pytest.mark.parametrize("source", ["deflate", "lz4", "bitshuffle"], indirect=True)
def test_values_are_equal_where_they_can_be_read(source: Path) -> None:
    chunks = [chunks_of(source)[number] for number in (0, 6, 15)]
    content = flip_in(source, *(8 * chunk.byte_offset + 77 for chunk in chunks))
    done = command("in.h5", "--salvage", "out.h5", cwd=source.parent)
    assert done.returncode == 1, done.stderr
    assert done.stdout.count("LOST: /g/d, chunk at (") == 3
    assert source.read_bytes() == content
    expected = field()
    for chunk in chunks:
        row, column = chunk.chunk_offset
        expected[row : row + 16, column : column + 20] = -7
    out = source.with_name("out.h5")
    with h5py.File(out) as file:
        np.testing.assert_array_equal(file["g/d"][()], expected)
        np.testing.assert_array_equal(file["whole"][()], field(2))
        assert file["g/d"].attrs["units"] == "K"
        assert file["words"].asstr()[()].tolist() == ["a", "b"]
        assert file[file["refers"][()]].name == "/g/d"
    assert chunkwise.verify(out).verdict == "sound"
    names = {path.name for path in source.parent.iterdir()}
    assert names == {"in.h5", "out.h5"}


def test_a_report_of_both(source: Path) -> None:
    chunk = chunks_of(source)[3]
    flip_in(source, 8 * chunk.byte_offset)
    done = command(source, "--salvage", source.with_name("out.h5"), "--json")
    record = json.loads(done.stdout)
    assert done.returncode == 1
    (damage,) = record["verified"]["damages"]
    (changed,) = [one for one in record["salvaged"]["datasets"] if one["path"] == "/g/d"]
    ((origin, reason),) = changed["lost_chunks"]
    assert tuple(origin) == tuple(damage["origin"]) == tuple(chunk.chunk_offset)
    assert "Fletcher-32" in reason


def test_what_is_there_is_not_replaced(source: Path) -> None:
    out = source.with_name("out.h5")
    out.write_text("mine")
    done = command(source, "--salvage", out)
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert out.read_text() == "mine"
    assert command(source, "--salvage", out, "--force").returncode == 0
    assert chunkwise.verify(out).verdict == "sound"


def test_what_cannot_be_salvaged_leaves_nothing(source: Path) -> None:
    source.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(range(256)) * 9)
    done = command(source, "--salvage", source.with_name("out.h5"))
    assert done.returncode in (1, 2, 3)
    assert "damaged" in done.stdout
    assert "chunkwise: " in done.stderr
    assert {path.name for path in source.parent.iterdir()} == {"in.h5"}


def test_the_line_for_a_damaged_file_works_as_pasted(source: Path) -> None:
    damage_header(source, "whole")
    found = [one for one in chunkwise.inspect(source).findings if one.verdict == "damaged"]
    lines = {fix.text for one in found for fix in one.fixes}
    assert {"chunkwise verify"} == {" ".join(line.split()[:2]) for line in lines}
    for line in lines:
        done = pasted(line, source.parent)
        assert done.returncode == 1, done.stderr
    with h5py.File(source.with_name("in_salvaged.h5")) as file:
        np.testing.assert_array_equal(file["g/d"][()], field())


def test_the_line_for_a_missing_file_names_where_it_belongs(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "master.h5", "w") as file:
        file["part"] = h5py.ExternalLink("raw/part.h5", "/x")
    (found,) = [one for one in chunkwise.inspect(tmp_path / "master.h5").findings if one.path]
    line = next(fix.text for fix in found.fixes if "\nls " in fix.text)
    assert pasted(line, tmp_path).returncode != 0
    (tmp_path / "raw").mkdir()
    with h5py.File(tmp_path / "raw" / "part.h5", "w") as file:
        file["x"] = 1
    assert pasted(line, tmp_path).returncode == 0
    with h5py.File(tmp_path / "master.h5") as file:
        assert file["part"][()] == 1


def pasted(line: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a line as a user would, who pastes it."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    words = ["bash", "-c", line]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True)


# --- objects that libhdf5 does not read --------------------------------------------------


ATTRIBUTES: dict[str, Any] = {
    "count": np.int16(-3),
    "units": "K",
    "empty": "",
    "words": np.array(["one", "zwölf"], h5py.string_dtype()),
    "fixed": np.bytes_(b"abc"),
    "table": np.array([(1, 2.5)], [("a", "<i4"), ("b", ">f8")]),
    "matrix": np.arange(6.0).reshape(2, 3),
    "flag": np.bool_(True),
    "nothing": h5py.Empty("<f4"),
}


def write(path: Path, libver: str, more: int = 0, links: int = 0, of: int | None = None) -> None:
    with h5py.File(path, "w", libver=libver) as file:
        for name in "abc":
            made = file.create_dataset(name, data=np.arange(100), chunks=(10,))
            made.attrs.update(list(ATTRIBUTES.items())[:of])
            made.attrs[f"last of {name}"] = 1
            made.attrs.update({f"more {number:02}": number for number in range(more)})
        for number in range(links):
            file[f"g/d{number:02}"] = [number]


def first(path: Path, signature: bytes, behind: str | None = None) -> int:
    """Find the last structure before a text, or the first of all."""
    content = path.read_bytes()
    if behind is None:
        return content.index(signature)
    return content.rindex(signature, 0, content.index(behind.encode()))


def old_message(path: Path) -> str:
    write(path, "earliest")
    damage_attribute(path, "last of b")
    return "attribute"


def new_message(path: Path) -> str:
    write(path, "latest", of=2)
    content = bytearray(path.read_bytes())
    at = content.index(b"last of b\0")
    assert content[at - 9] == 3
    content[at - 9] = 0x77  # Its version
    path.write_bytes(seal(content, content.rindex(b"OHDR", 0, at)))
    return "attribute"


def dense_node(path: Path) -> str:
    write(path, "latest", more=30)
    at = first(path, b"BTLF\0\x08")
    overwrite(path, at + 10, b"\xee" * 4)
    return "node of a version 2 B-tree"


def dense_heap(path: Path) -> str:
    write(path, "latest", more=30)
    at = first(path, b"FHDB")
    overwrite(path, at + 40, b"\xee" * 4)
    return "block of a fractal heap"


IN_ATTRIBUTES = [old_message, new_message]
DENSE = [dense_node, dense_heap]


def said_by_verify(path: Path) -> str:
    found = chunkwise.verify(path)
    damages, notes = (one.reason for one in found.damages), (one.reason for one in found.notes)
    return "; ".join((*damages, *notes))


def named(structure: str, said: str) -> bool:
    return bool(re.search(rf"the {structure} at address \d+: ", said))


@pytest.mark.parametrize("make", IN_ATTRIBUTES, ids=lambda make: make.__name__)
def test_other_attributes_are_saved(make: Callable[[Path], str], tmp_path: Path) -> None:
    path, out = tmp_path / "a.h5", tmp_path / "out.h5"
    structure = make(path)
    assert named(structure, said_by_verify(path))
    found = salvage(path, out)
    (missing,) = found.missing
    assert missing.path == "/b"
    assert named(structure, missing.reason)
    assert found.verified == "proof"
    with h5py.File(out) as file:
        names = sorted(one for one in file["a"].attrs if one in ATTRIBUTES)
        assert sorted(file["a"].attrs) == sorted([*names, "last of a"])
        assert sorted(file["b"].attrs) == names
        assert (file["b"][:] == np.arange(100)).all()
        for key in names:
            same(file["b"].attrs, file["a"].attrs, key)


def same(found: Any, expected: Any, key: str) -> None:
    """The same attribute, of the same type."""
    one, other = found.get_id(key), expected.get_id(key)
    assert one.get_type() == other.get_type(), key
    assert (one.shape, one.dtype) == (other.shape, other.dtype), key
    if isinstance(expected[key], h5py.Empty):
        assert isinstance(found[key], h5py.Empty)
    else:
        assert np.array_equal(found[key], expected[key]), key


@pytest.mark.parametrize("make", DENSE, ids=lambda make: make.__name__)
def test_everything_else_is_saved(make: Callable[[Path], str], tmp_path: Path) -> None:
    path, out = tmp_path / "a.h5", tmp_path / "out.h5"
    structure = make(path)
    assert named(structure, said_by_verify(path))
    found = salvage(path, out)
    (missing,) = found.missing
    assert named(structure, missing.reason)
    with h5py.File(out) as file:
        counts = {name: len(file[name].attrs) for name in "abc"}
        whole = len(ATTRIBUTES) + 31
        assert [count for name, count in counts.items() if f"/{name}" != missing.path] == [
            whole,
            whole,
        ]
        assert all((file[name][:] == np.arange(100)).all() for name in "abc")


def test_a_bad_link_is_named_and_others_are_kept(tmp_path: Path) -> None:
    path, out = tmp_path / "a.h5", tmp_path / "out.h5"
    write(path, "latest", links=6)
    content = bytearray(path.read_bytes())
    at = content.index(b"d03")
    assert content[at - 3] == 1
    content[at - 3] = 0x55  # The version of the message
    path.write_bytes(seal(content, content.rindex(b"OHDR", 0, at)))
    assert named("link", said_by_verify(path))
    found = salvage(path, out)
    assert [one.path for one in found.missing] == ["/g"]
    assert named("link", found.missing[0].reason)
    with h5py.File(out) as file:
        assert sorted(file["g"]) == ["d00", "d01", "d02", "d04", "d05"]
        assert [one[0] for one in file["lost+found"].values()] == [3]


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("user_block", [0, 512])
def test_without_a_root_group_all_is_in_lost_and_found(
    libver: str, user_block: int, tmp_path: Path
) -> None:
    path, out = tmp_path / "a.h5", tmp_path / "out.h5"
    with h5py.File(path, "w", libver=libver, userblock_size=user_block) as file:
        for number in range(4):
            file[f"d{number}"] = np.arange(50) + number
            file[f"d{number}"].attrs["number"] = number
        root = h5py.h5o.get_info(file.id).addr
    overwrite(path, user_block + root, struct.pack("<Q", 0xEEEE))
    found = salvage(path, out)
    assert any("root group is lost" in one for one in found.warnings)
    with h5py.File(out) as file:
        kept = {one.attrs["number"]: one[:] for one in file["lost+found"].values()}
        assert sorted(kept) == [0, 1, 2, 3]
        assert all((kept[number] == np.arange(50) + number).all() for number in kept)
