"""Does a trace say what a program has read, in patterns that the other commands take?"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from chunkwise import access
from chunkwise.running import environment, telling, trace
from chunkwise.running.trace import Run, TracedDataset
from tests.support.tools import require_tool

if not environment.LIBRARY.is_file():
    pytest.skip("libchunkwise_preload.so is not built (`make install`)", allow_module_level=True)

CHUNKWISE = (sys.executable, "-m", "chunkwise")
PROGRAM = """
import h5py, sys
with h5py.File("x.h5") as file:
    d = file["x"]
    for i in range(40):
        d[i]
    for i in range(0, 30, 10):
        d[:, i : i + 1]
    d[...]
    d[[1, 5, 7], 3]
    file["plain"][2:5]
sys.exit(3)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file and a program that reads it."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        values = np.arange(40 * 30, dtype="f4").reshape(40, 30)
        file.create_dataset("x", data=values, chunks=(7, 30), compression="gzip")
        file.create_dataset("plain", data=values)
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


@pytest.mark.parametrize("only", [False, True], ids=["engine", "observed"])
def test_what_a_program_reads(only: bool, folder: Path) -> None:
    words = ["--observe-only"] if only else []
    done = subprocess.run(
        [*CHUNKWISE, "trace", "-o", "t.json", *words, "--", sys.executable, "program.py"],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "")
    told = [line for line in done.stderr.splitlines() if str(folder) not in line]
    assert max(map(len, told)) <= 80
    record = json.loads((folder / "t.json").read_text())
    found = {one["dataset"]: one for one in record["datasets"]}
    one = found["/x"]
    assert one["file"] == str(folder / "x.h5")
    assert (one["shape"], one["item_nbytes"], one["reads"]) == ([40, 30], 4, 45)
    assert one["nbytes"] == 4 * (40 * 30 + 3 * 40 + 40 * 30 + 3)
    assert one["by_chunkwise"] == (0 if only else 45)
    assert one["seconds"] > 0
    assert [(run["times"], run["in_order"], run["by"]) for run in one["runs"]] == [
        (40, True, [1, 0]),
        (3, False, [0, 10]),
        (1, False, None),
    ]
    assert one["unlisted"] == 1
    # By the engine, HDF5 decodes nothing.  Its own cache holds all that it has decoded.
    assert (one["chunks"], one["loaded"]) == ((6, 6) if only else (0, 0))
    assert [each["name"] for each in one["filters"]] == (["deflate"] if only else [])
    assert one["touched"] >= one["loaded"]
    assert found["/plain"]["reads"] == 1
    # Of the columns a tenth was read.
    assert one["access"] == ["1x30 weight 10", "all weight 10", "40x1"]


def test_its_patterns_are_taken(folder: Path) -> None:
    done = subprocess.run(
        [*CHUNKWISE, "trace", "--", sys.executable, "program.py"],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    (command,) = (
        line.strip()
        for line in done.stderr.replace("\\\n", "").splitlines()
        if "chunkwise advise" in line and "/x " in line
    )
    words = shlex.split(command)
    patterns = [words[i + 1] for i, word in enumerate(words) if word == "--access"]
    assert len(patterns) == 3
    for pattern in patterns:
        access.parse(pattern, (40, 30), 4, "x")
    advised = subprocess.run(
        [sys.executable, "-m", *words, "--budget", "1s"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert advised.returncode == 0, advised.stderr


def test_processes_are_counted_together(folder: Path) -> None:
    require_tool("h5dump")
    done = subprocess.run(
        [*CHUNKWISE, "trace", "-o", "t.json", "--", "sh", "-c",
         "h5dump -d /x x.h5 >/dev/null; h5dump -d /x x.h5 >/dev/null; kill -TERM $$"],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 128 + 15
    (one,) = json.loads((folder / "t.json").read_text())["datasets"]
    assert (one["processes"], one["nbytes"]) == (2, 2 * 4 * 40 * 30)
    assert "by 2 processes" in done.stderr


def test_a_program_without_hdf5(folder: Path) -> None:
    done = subprocess.run(
        [*CHUNKWISE, "trace", "--", "ls"], cwd=folder, capture_output=True, text=True
    )
    assert "no read of an HDF5 dataset was seen" in done.stderr
    assert done.returncode == 0


def test_what_cannot_be_traced_is_said(folder: Path) -> None:
    for words, told in (
        ([], "which program?"),
        (["no-such-program"], "no such program"),
        (["-o", "nowhere/t.json", "--", "ls"], "no such folder"),
    ):
        done = subprocess.run(
            [*CHUNKWISE, "trace", *words], cwd=folder, capture_output=True, text=True
        )
        assert (done.returncode, told in done.stderr) == (2, True), done.stderr


def run(*starts: int, size: int = 1, times: int = 1, by: tuple[int, ...] | None = None) -> Run:
    return Run(tuple((start, 1, 1, size) for start in starts), times, by, by is not None)


def test_words_for_what_is_odd() -> None:
    gaps = Run(((0, 2, 3, 1),), 4, (0,), False)
    one = TracedDataset("f", "/d", (9,), 8, 8, 0, 0.0, 0, "", (gaps, run(4), run(2), run(3)), 2)
    assert trace.in_words(one) == (
        "4 of with gaps, each (0) further, then one of 1, then one of 1, then 1 more, then 2 of "
        "points, unions or other selections"
    ).replace("4 of with gaps", "4 with gaps")
    assert list(trace.patterns(one)) == ["1@random"]
    assert telling.advice(one) == "chunkwise advise f /d --access 1@random"


SMALL_CACHE = """
import h5py
with h5py.File("small.h5", rdcc_nbytes=1) as file:
    for i in range(20):
        file["x"][i]
"""


@pytest.mark.slow
def test_what_is_found_helps(folder: Path) -> None:
    """A cache that is too small: what HDF5 decodes, what `run` makes of it, and what helps."""
    with h5py.File(folder / "small.h5", "w") as file:
        values = np.random.default_rng(0).normal(size=(60, 4500)).round(2)
        file.create_dataset("x", data=values, chunks=(60, 2250), compression=1, shuffle=True)
    (folder / "small.py").write_text(SMALL_CACHE)

    def traced(*words: str, program: str = "small.py") -> tuple[str, dict[str, Any]]:
        done = subprocess.run(
            [*CHUNKWISE, "trace", "-o", "t.json", *words, "--", sys.executable, program],
            cwd=folder, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stderr, json.loads((folder / "t.json").read_text())["datasets"][0]

    told, one = traced("--observe-only")
    assert (one["chunks"], one["touched"], one["loaded"]) == (2, 40, 40)
    assert [each["decodes"] for each in one["filters"]] == [40, 40]
    flat = " ".join(told.split())
    assert "HDF5 decoded 40 chunks of the dataset, which has 2, and had 0 in its cache" in flat
    assert "Under 'chunkwise run', each chunk is decoded once" in flat
    # What it promises comes: the engine answers, and HDF5 decodes nothing any more.
    _, under = traced()
    assert (under["by_chunkwise"], under["loaded"]) == (20, 0)
    # So does the line.
    (repack,) = (line for line in told.splitlines() if "chunkwise repack" in line)
    words = shlex.split(repack)
    done = subprocess.run([sys.executable, "-m", *words], cwd=folder, capture_output=True)
    assert done.returncode == 0, done.stderr
    (folder / "mended.py").write_text(SMALL_CACHE.replace("small.h5", words[-1]))
    _, mended = traced("--observe-only", program="mended.py")
    decoded = mended["loaded"] * _chunk_nbytes(folder / words[-1])
    assert decoded < 0.5 * one["loaded"] * _chunk_nbytes(folder / "small.h5")


def _chunk_nbytes(path: Path) -> int:
    with h5py.File(path) as file:
        return int(np.prod(file["x"].chunks)) * 8
