"""Does `chunkwise index` take what its help says, and print what it did?"""

import json
import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

from chunkwise.cli.index import command
from tests.support.golden import assert_golden, mistakes, steady


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("d", data=np.arange(100), chunks=(10,), compression=1)
        file.create_dataset("lzf", data=np.zeros(10_000), chunks=(5000,), compression="lzf")
    return tmp_path / "a.h5"


def run(*words: object) -> Any:
    return CliRunner().invoke(command, list(map(str, words)), catch_exceptions=False)


def test_what_is_printed(path: Path, tmp_path: Path) -> None:
    done = run(path, "-o", tmp_path / "out.json")
    assert done.exit_code == 0
    assert_golden("index", steady(done.output, tmp_path))
    done = run(path, "-o", tmp_path / "out.json", "--force", "--inline", "1MiB", "--json")
    record = json.loads(done.output)
    assert (record["datasets"], record["inlined"], record["left_out"]) == (2, 1, [])
    assert run(path).output.startswith(f"{path}.cwi: 12 chunks of 2 datasets, ")


def test_many_files_go_into_a_folder(path: Path, tmp_path: Path) -> None:
    other = path.with_name("b.h5")
    other.write_bytes(path.read_bytes())
    done = run(path, other, "-o", tmp_path / "refs", "--format", "json", "--json")
    assert [json.loads(line)["datasets"] for line in done.output.splitlines()] == [1, 1]
    assert sorted(one.name for one in (tmp_path / "refs").iterdir()) == ["a.h5.json", "b.h5.json"]
    assert run(path, other).exit_code == 0
    assert other.with_name("b.h5.cwi").exists()


def test_mistakes_are_one_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    said = mistakes("""
index a.h5 --url s3://x b.h5 -o out.json
index a.h5 b.h5 -o out
index a.h5 a/a.h5 -o out --format json
index a.h5 --format json
index a.h5 -o out.cwi --url s3://x
""")
    assert_golden("index-mistakes", said)


@pytest.mark.parametrize("name", ["out.json", "out.parquet", "out.cwi"])
def test_an_index_has_its_name_once_it_is_on_storage(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("fastparquet", reason="fastparquet is not installed")
    synced: list[tuple[int, bool]] = []
    out, fsync = tmp_path / name, os.fsync

    def noted(descriptor: int) -> None:
        synced.append((os.fstat(descriptor).st_ino, out.exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    assert run(path, "-o", out).exit_code == 0
    made = {one.stat().st_ino for one in (out, *out.rglob("*"))}
    assert {inode for inode, _ in synced} == made
    assert not any(named for _, named in synced)
