"""`chunkwise hstest`: what it prints, and with which exit code it ends."""

import io
import json
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest
from rich.console import Console

from chunkwise import measure
from chunkwise.measure.render import show
from chunkwise.measure.run import run as run_bench
from chunkwise_lab import hstest
from tests.support.commands import run
from tests.support.damage import damage_chunk
from tests.support.wrong_reader import WRONG_H5PY, WRONG_NOTHING


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as f:
        data = np.arange(6000, dtype=">f4").reshape(60, 100)
        f.create_dataset("g/d", data=data, chunks=(7, 30), compression=1)
        f["flat"] = data
    return path


def test_each_reader_has_a_row(file: Path) -> None:
    done = run("hstest", file, "--count", 5, "-k", 6)
    assert done.code == 0
    printed = done
    lines = printed.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "/g/d in x.h5: 60x100 >f4, chunks of 7x30, filters deflate:1"
    assert lines[1].startswith("5 unions")
    title = next(i for i, line in enumerate(lines) if line.startswith("reader"))
    rows = [line.split() for line in lines[title + 1 :]]
    assert [row[0] for row in rows] == list(hstest.READERS)
    assert {row[-1] for row in rows} == {"0"}
    # All have checked the same elements.
    assert len({row[-2] for row in rows}) == 1
    assert printed.err == ""


def test_a_file_without_chunks_is_taken(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "flat.h5", "w") as f:
        f["flat"] = np.arange(600, dtype="i2").reshape(20, 30)
    done = run("hstest", tmp_path / "flat.h5", "--count", 2, "-k", 3, "--reader", "h5py,chunkwise")
    assert done.code == 0, done.err
    assert done.out.startswith("/flat in flat.h5: 20x30 <i2, contiguous")


def test_a_damaged_chunk_is_named(file: Path) -> None:
    damage_chunk(file, "g/d", 10, b"\xff" * 20)
    done = run("hstest", file, "--count", 2, "-k", 3)
    assert done.code == 1
    told = done.err
    assert told.startswith(
        f"chunkwise: '/g/d' in {file}: the chunk at element [14, 60] cannot be read: "
    )
    assert told.count("\n") == 1
    assert "scratch" not in told


def test_a_damaged_chunk_is_named_where_bench_writes_variants(file: Path) -> None:
    damage_chunk(file, "g/d", 1, b"\xff" * 20)
    done = run("bench", file, "g/d", "--chunk", "10x10")
    assert done.code == 1
    told = done.err
    assert "the chunk at element [0, 30] cannot be read: " in told


def test_data_without_chunks_that_cannot_be_read_is_said(file: Path) -> None:
    with h5py.File(file, "r+") as f:
        f.create_dataset("out", (60, 100), "f4", external=[("none.raw", 0, 24000)])
    done = run("hstest", file, "out", "--count", 2, "-k", 3)
    assert done.code == 1
    told = done.err
    assert told.startswith(f"chunkwise: 'out' in {file}: cannot be read: ")


def test_what_libhdf5_read_in_chunkwises_place_is_said(file: Path) -> None:
    with h5py.File(file, "a") as f:
        layout = h5py.VirtualLayout((60, 100), ">f4")
        layout[:] = h5py.VirtualSource(f["flat"])
        f.create_virtual_dataset("seen", layout)
    given = (file, "seen", "--count", 2, "-k", 3, "--reader", "chunkwise")
    done = run("hstest", *given)
    assert done.code == 0
    printed = " ".join(done.out.split())
    assert "done by libhdf5 in chunkwise's place: 'cells:3:2:0' by chunkwise: " in printed
    results = run_bench(
        file, "seen", measure.Space.of(access=["all"], reader=["chunkwise"]), repeat=1
    )
    out = io.StringIO()
    show(results, Console(file=out, width=80))
    assert "done by libhdf5 in chunkwise's place: 'all' by chunkwise: " in out.getvalue()


def test_a_wrong_value_ends_with_1(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = (file, "flat", "--reader", "h5py", "--count", 3, "--seed", 8)
    monkeypatch.setattr(hstest, "run_bench", partial(run_bench, worker=WRONG_H5PY))
    done = run("hstest", *arguments)
    assert done.code == 1
    printed = " ".join(done.out.split())
    assert "WRONG: 'flat' in " in printed
    assert all(fact in printed for fact in ("'cells:20:3:8'", "seed 8"))
    done = run("hstest", *arguments, "--json")
    assert done.code == 1
    told = json.loads(done.out)
    assert len(told["wrong"]) == 1
    assert told["records"][0]["wrong"] is True
    monkeypatch.setattr(hstest, "run_bench", partial(run_bench, worker=WRONG_NOTHING))
    done = run("hstest", *arguments, "--json")
    assert done.code == 0
    record = json.loads(done.out)["records"][0]
    assert record["checked_elements"] * 4 == record["selected_nbytes"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--reader", "netcdf4"], "leave the reader netcdf4 out"),
        (["-k", "1"], "x>=2"),
        (["missing"], "missing"),
    ],
)
def test_what_makes_no_sense_is_one_line(file: Path, arguments: list[str], said: str) -> None:
    done = run("hstest", file, *arguments)
    assert done.code == 2
    assert said in done.err
