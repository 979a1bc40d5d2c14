"""Does a trace say what a program has read, in patterns that the other commands take?"""

from __future__ import annotations

import itertools
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from chunkwise import patterns
from chunkwise.running import environment, render, trace
from tests.running import test_in_c
from tests.support.processes import ran
from tests.support.tools import require_tool
from tests.support.traces import dataset, walk

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


@pytest.fixture(autouse=True)
def by_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads of tiny chunks too, which are left to the program's HDF5 otherwise."""
    monkeypatch.setenv("CHUNKWISE_READ_LEAST", "1")


def traced_by(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return ran([*CHUNKWISE, "trace", *words], cwd=folder)


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
    done = traced_by(folder, "-o", "t.json", *words, "--", sys.executable, "program.py")
    assert (done.returncode, done.stdout) == (3, "")
    told = [line for line in done.stderr.splitlines() if str(folder) not in line]
    assert max(map(len, told)) <= 80
    record = json.loads((folder / "t.json").read_text())
    found = {one["dataset"]: one for one in record["datasets"]}
    one = found["/x"]
    assert one["file"] == str(folder / "x.h5")
    assert (one["shape"], one["item_nbytes"], one["calls"]) == ([40, 30], 4, 45)
    assert one["nbytes"] == 4 * (40 * 30 + 3 * 40 + 40 * 30 + 3)
    assert one["by_chunkwise"] == (0 if only else 45)
    assert one["seconds"] > 0
    assert one["chunk"] == [7, 30]
    assert found["/plain"]["chunk"] == []
    assert [(run["times"], run["in_order"], run["by"]) for run in one["runs"]] == [
        (40, True, [1, 0]),
        (3, False, [0, 10]),
        (1, False, None),
    ]
    assert [run["last"] for run in one["runs"]] == [[39, 0], [0, 20], [0, 0]]
    # One after the other, and no longer within the calls than from the first to the last.
    assert one["runs"][0]["began"] >= 0
    for run, later in itertools.pairwise(one["runs"]):
        assert run["began"] + run["seconds"] * 0.999 <= run["ended"] <= later["began"]
    assert one["unlisted"] == 1
    # By the engine, HDF5 decodes nothing.  Its own cache holds all that it has decoded.
    assert (one["chunks"], one["loaded"]) == ((6, 6) if only else (0, 0))
    assert [each["name"] for each in one["filters"]] == (["deflate"] if only else [])
    assert one["touched"] >= one["loaded"]
    assert found["/plain"]["calls"] == 1
    # Of the columns a tenth was read.
    assert one["access"] == ["1x30@walk weight 10", "all weight 10", "40x1@walk"]


def test_its_patterns_are_taken(folder: Path) -> None:
    done = traced_by(folder, "--", sys.executable, "program.py")
    (command,) = (
        line.strip()
        for line in done.stderr.replace("\\\n", "").splitlines()
        if "chunkwise advise" in line and "/x " in line
    )
    words = shlex.split(command)
    given = [words[i + 1] for i, word in enumerate(words) if word == "--access"]
    assert len(given) == 3
    for pattern in given:
        patterns.parse(pattern, (40, 30), 4, "x")
    advised = ran([sys.executable, "-m", *words, "--budget", "1s"], cwd=folder)
    assert advised.returncode == 0, advised.stderr


def test_processes_are_counted_together(folder: Path) -> None:
    require_tool("h5dump")
    done = traced_by(
        folder,
        "-o",
        "t.json",
        "--",
        "sh",
        "-c",
        "h5dump -d /x x.h5 >/dev/null; h5dump -d /x x.h5 >/dev/null; kill -TERM $$",
    )
    assert done.returncode == 128 + 15
    (one,) = json.loads((folder / "t.json").read_text())["datasets"]
    assert (one["processes"], one["nbytes"]) == (2, 2 * 4 * 40 * 30)
    assert "by 2 processes" in done.stderr


def test_a_program_without_hdf5(folder: Path) -> None:
    done = traced_by(folder, "--", "ls")
    assert "no read or write of an HDF5 dataset was seen" in done.stderr
    assert done.returncode == 0


def test_what_cannot_be_traced_is_said(folder: Path) -> None:
    for words, told in (
        ([], "which program?"),
        (["no-such-program"], "no such program"),
        (["-o", "nowhere/t.json", "--", "ls"], "no such folder"),
    ):
        done = traced_by(folder, *words)
        assert (done.returncode, told in done.stderr) == (2, True), done.stderr


def test_words_for_what_is_odd() -> None:
    gaps = walk((0,), (1,), 4, by=(0,), gaps=(2, 3))
    runs = [gaps, *(walk((start,), (1,)) for start in (4, 2, 3))]
    one = dataset((9,), (), runs, file="f", dataset="/d", unlisted=2)
    assert "3 of 1 in no order" in trace.in_words(one)
    assert [*map(str, trace.patterns(one))] == ["1@random"]
    said = list(render.lines(trace.Trace([one], {1: "program"})))
    assert said[-1] == "  chunkwise advise f /d --access 1@random"


def test_boxes_in_no_order() -> None:
    """As a program reads that shuffles: any two boxes of them are a run, some are in order."""
    starts = [int(n) for n in np.random.default_rng(0).permutation(40)]
    runs = []
    while starts:
        first, *rest = starts
        by = rest[0] - first if rest else None
        runs.append(
            walk(
                (first, 0), (1, 30), 2 if rest else 1, by=(by, 0) if by else None, ordered=by == 1
            )
        )
        starts = rest[1:]
    one = dataset((40, 30), (7, 30), runs)
    assert [*map(str, trace.patterns(one))] == ["1x30@random"]
    assert trace.in_words(one) == "40 of 1x30 in no order"
    mostly = dataset((40, 30), (7, 30), [walk((0, 0), (1, 30), 35, by=(1, 0)), *runs[:3]])
    found = list(trace.patterns(mostly))
    assert [*map(str, found)] == ["1x30@walk"]
    # Written and read again, they are the same.
    assert patterns.read(map(str, found)) == tuple(found)
    assert trace.in_words(mostly).endswith("then 6 of 1x30 in no order")


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
        done = traced_by(folder, "-o", "t.json", *words, "--", sys.executable, program)
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


@pytest.mark.slow
@pytest.mark.parametrize("only", [False, True], ids=["engine", "observed"])
def test_a_converter_whose_cache_is_too_small(only: bool, tmp_path: Path) -> None:
    """In C, as the archive converter of paper 000: the line that is printed, pasted, helps."""
    source = Path(__file__).with_name("converter.c")

    def traced(*words: str) -> tuple[str, dict[str, Any]]:
        built = ran(
            [require_tool("h5cc"), "-shlib", *words, "-I.", "-o", "converter", source],
            cwd=tmp_path,
        )
        assert built.returncode == 0, built.stderr
        done = traced_by(
            tmp_path,
            "-o",
            "t.json",
            *(["--observe-only"] if only else []),
            "--",
            "./converter",
            "t.h5",
        )
        assert done.returncode == 0, done.stderr
        record = json.loads((tmp_path / "t.json").read_text())
        (one,) = record["datasets"]
        return done.stderr, one | {"found": record["found"]}

    told, one = traced()
    assert (one["operation"], one["calls"], one["by_chunkwise"]) == ("write", 64, 0)
    assert (one["nbytes"], one["chunk"]) == (4 * 4 * 64 * 240, [4, 32, 120])
    assert [(run["times"], run["in_order"]) for run in one["runs"]] == [(64, True)]
    # Each line but the first of a chunk needs the chunk again: two chunks a line.
    assert (one["chunks"], one["loaded"]) == (4, 2 * (64 - 2))
    assert "Written: 64 of 4x1x240 in order." in told
    assert one["found"]["code"] == "writes-exceed-cache"
    assert one["found"]["line"] in told.replace("\n  ", "\n")
    # The other line, too, runs as it is printed.
    lines = told.replace("\\\n", "").splitlines()
    (advise,) = (line for line in lines if "chunkwise advise" in line)
    words = [*shlex.split(advise), "--budget", "1s"]
    assert "4x1x240 write" in words
    advised = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True)
    assert advised.returncode == 0, advised.stderr
    assert "(written)" in advised.stdout
    with h5py.File(tmp_path / "t.h5") as file:
        before = file["t"][()]
    (tmp_path / "remedy.inc").write_text(one["found"]["line"])
    told, mended = traced("-DREMEDY")
    assert (mended["loaded"], mended["found"]) == (0, None)
    with h5py.File(tmp_path / "t.h5") as file:
        np.testing.assert_array_equal(file["t"][()], before)


def _chunk_nbytes(path: Path) -> int:
    with h5py.File(path) as file:
        return int(np.prod(file["x"].chunks)) * 8


def traced(
    folder: Path, *words: str | Path, only: bool
) -> tuple[tuple[str, str], dict[str, trace.TracedDataset], dict[str, trace.TracedDataset]]:
    """Trace a program: what it said, read, and wrote, by dataset."""
    told = folder / "traced"
    told.mkdir()
    given = dict(os.environ, **environment.variables(), CHUNKWISE_TRACE=str(told))
    if only:
        given["CHUNKWISE_OBSERVE"] = "1"
    done = subprocess.run(words, cwd=folder, env=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    datasets = trace.collected(told).datasets
    read, written = (
        {one.dataset: one for one in datasets if one.operation == operation}
        for operation in ("read", "write")
    )
    return (done.stdout, done.stderr), read, written


def untraced(folder: Path, *words: str | Path) -> tuple[str, str]:
    """Run a program as it is: what it said."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize("only", [False, True], ids=["engine", "observed"])
def test_selections_of_all_kinds(only: bool, tmp_path: Path) -> None:
    """Nothing is printed for the program, and all that was read is counted."""
    test_in_c.write_for_seldom(tmp_path / "x.h5")
    words = (test_in_c.made("seldom", tmp_path), "selections", "x.h5", "out.h5")
    plain = untraced(tmp_path, *words)
    assert plain[1] == ""
    said, found, written = traced(tmp_path, *words, only=only)
    assert said == plain
    assert (set(found), set(written)) == ({"/contiguous", "/grows"}, {"/grows", "/written"})
    one = found["/contiguous"]
    # Of another number of dimensions, irregular, and of points: in no walk.
    assert (one.calls, one.unlisted, one.nbytes) == (5, 5, 4 * 500)
    one = found["/grows"]
    assert (one.calls, one.shape, one.nbytes) == (2, (30, 6), 4 * 6 * (10 + 30))


@pytest.mark.parametrize("only", [False, True], ids=["engine", "observed"])
def test_selections_that_replace_each_other(only: bool, tmp_path: Path) -> None:
    """However the selection of a dataspace changes, what is recorded is what libhdf5 reads."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = np.arange(100, dtype="f4")
    words = (test_in_c.made("selecting", tmp_path), "x.h5")
    plain = untraced(tmp_path, *words)
    said, found, _ = traced(tmp_path, *words, only=only)
    assert said == plain
    read = [tuple(map(int, line.split())) for line in plain[0].splitlines()]
    assert max(count for count, _, _ in read) == 100
    one = found["/x"]
    assert (one.calls, one.nbytes) == (len(read), 4 * sum(count for count, _, _ in read))
    # A box of one run follows from its first, its last and the distance.
    boxes = []
    for run in one.runs:
        ((start, stride, count, block),) = run.first
        if count == 1 or stride == block:
            (by,) = run.by or (count * block,)
            boxes += [(count * block, start + k * by) for k in range(run.times)]
    assert boxes == [(count, first) for count, is_box, first in read if is_box]


@pytest.mark.parametrize("only", [False, True], ids=["engine", "observed"])
def test_several_datasets_by_one_call(only: bool, tmp_path: Path) -> None:
    """Each is a read of its own; the time and what was decoded are divided among them."""
    rng = np.random.default_rng(3)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name, chunk in (("a", (5, 30)), ("c", (20, 30))):
            values = rng.integers(0, 99, (40, 30)).astype("f4")
            file.create_dataset(name, data=values, chunks=chunk, compression=1)
        file["plain"] = np.arange(600, dtype="f4")
    words = (made_with_several(tmp_path), "x.h5", "out.h5")
    plain = untraced(tmp_path, *words)
    said, found, written = traced(tmp_path, *words, only=only)
    assert said == plain
    # A call that fails reads with the engine what it can.
    tried = 0 if only else 1
    rows, field = 4 * 150, 4 * 1200
    assert {name: (one.calls, one.nbytes) for name, one in found.items()} == {
        "/a": (4 + tried, field + (3 + tried) * rows),
        "/c": (4 + tried, (4 + tried) * field),
        "/plain": (1, 4 * 600),
    }
    assert {name: (one.calls, one.nbytes) for name, one in written.items()} == {
        "/a": (1, field),
        "/c": (1, field),
        "/plain": (1, 4 * 600),
    }
    ours = {name: one.by_chunkwise for name, one in found.items()}
    assert ours == ({"/a": 0, "/c": 0, "/plain": 0} if only else {"/a": 5, "/c": 5, "/plain": 0})
    assert all(one.seconds > 0 for one in found.values())
    # All chunks once; HDF5 had them in its cache later.
    loaded = {name: one.loaded for name, one in found.items()}
    assert loaded == ({"/a": 8, "/c": 2, "/plain": 0} if only else dict.fromkeys(found, 0))
    assert [run.times for run in found["/a"].runs] == [1, 3, 1][: 2 + tried]


def made_with_several(folder: Path) -> Path:
    """Compile a program for the libhdf5 of h5py's wheel, if that is 1.14 or later."""
    wheel = Path(h5py.__file__).resolve().parents[1] / "h5py.libs"
    libraries = [path for path in wheel.glob("libhdf5-*") if ".so" in path.name]
    if not libraries or h5py.version.hdf5_version_tuple < (1, 14, 0):
        pytest.skip("this h5py is not a wheel with HDF5 1.14 or later")
    source = Path(__file__).resolve().parent / "multi.c"
    # Found by what it depends on, too.
    found = f"-Wl,--disable-new-dtags,-rpath,{wheel}"
    made = ran([require_tool("gcc"), "-o", "multi", source, libraries[0], found], cwd=folder)
    assert made.returncode == 0, made.stderr
    return folder / "multi"
