"""Is everything that can be read in the new file, and nothing else?"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from tests.support.damage import damage_header, flip_in
from tests.support.verifying import CODECS, chunks_of, command, field


@pytest.fixture(params=["deflate", "lz4", "bitshuffle"])
def source(request: Any, tmp_path: Path) -> Path:
    path = tmp_path / "in.h5"
    options = {**CODECS[request.param], "fletcher32": True}
    with h5py.File(path, "w") as file:
        made = file.create_dataset("g/d", data=field(), chunks=(16, 20), fillvalue=-7, **options)
        made.attrs["units"] = "K"
        file.create_dataset("whole", data=field(2), chunks=(30, 70), compression=1)
        file["words"] = ["a", "b"]
        file["refers"] = made.ref
    return path


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
