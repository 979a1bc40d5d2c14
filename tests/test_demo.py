"""Do the demo's tables say what was published and what was measured?"""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import h5py
import pytest

from chunkwise.bench import Measurement, Results, Target
from chunkwise.bench.planning import Planned, spell_out, trial_of
from chunkwise.bench.records import as_json
from chunkwise.bench.results import Cell
from chunkwise.bench.target import look
from chunkwise.bench.variants import prepared, variant_of
from chunkwise.sample import write
from tests.tools import require_tool

ROOT = Path(__file__).resolve().parent.parent
SHAPE, CHUNK = (60, 30, 9, 717), (4, 30, 9, 717)
TOTALS = {"row": 16_200, "chunk": 15, "all": 1}
ENVIRONMENT: dict[str, str | int] = {
    "hdf5": "2.0.0",
    "zlib": "1.2.13",
    "chunkwise": "0.1.0",
    "cpu": "A processor",
    "cpu_count": 2,
}
# Paper 004, as its page prints them.
PUBLISHED = {
    1: ["0.1", "0.37*"],
    2: ["0.1", "0.37"],
    3: ["0.04", "0.36"],
    4: ["0.08", "0.36", "3", "12"],
    5: ["345", "0.37"],
    6: ["0.37", "0.1", "0.1"],
    7: ["345", "0.36"],
    8: ["345", "0.37", "0.36", "0.36", "12"],
}
# A figure in each of the last four columns, or "-"; the first column is what is read.
CELL = re.compile(r"  (\S.*?) {2,}([\d.]+\*?|-) +(~?[\d.,]+|-) +(~?[\d.,]+|-) +(~?[\d.,]+|-)")


sys.path.insert(0, str(ROOT / "examples"))
paper004: Any = importlib.import_module("paper004")
reads: Any = importlib.import_module("paper004_reads")
repack: Any = importlib.import_module("repack")


def target(default_cache: int = 8 << 20) -> Target:
    return Target(
        "demo-files/cris.h5", "demo-files/cris.h5", reads.DATASET, SHAPE, ">f4", 4,
        True, CHUNK, "deflate:6", 43_000_000, 8191, default_cache, 0.75,
    )  # fmt: skip


def seconds(one: Planned) -> float:
    """What a canned trial takes: only one collapses, as in the paper."""
    if one.point["driver"] == "chunkwise":
        return 0.15
    if one.point["filter"] == "none":
        return 0.005 if one.access.name == "chunk" else 0.05
    small_cache = one.point["cache"] == "1MiB" and one.point["chunk"] == "stored"
    return 243.0 if one.access.name == "row" and small_cache else 0.24


def canned(
    default_cache: int = 8 << 20,
    status: Any = "ok",
    took: Callable[[Planned], float] = seconds,
    version: str | None = "1.10.8",
) -> Any:
    """A document as `measure` gives it, of the run that it would make."""
    known = target(default_cache)
    cells = []
    for one in spell_out(known, reads.space()).planned:
        total, operations = took(one), TOTALS[one.access.name]
        stored = replace(known, chunks=one.variant.chunks, filters=one.variant.filters)
        trial = trial_of(stored, one.access, **one.parameters)
        measured = Measurement(
            trial, status, operations=25 if total > 100 else operations,
            total_operations=operations, total_s=total if status == "ok" else None,
            extrapolated=total > 100, environment=ENVIRONMENT,
        )  # fmt: skip
        cells.append(Cell(one.access, trial, (measured,), one.point))
    results = Results(known, tuple(cells), 10.0, 5.0)
    repacked = version and {"version": version, "stored": 1.7, "none": 0.06}
    return {**as_json(results), "repack": repacked}


def report(**options: Any) -> Any:
    return reads.Report(canned(**options))


def cells(text: str) -> list[tuple[str, ...]]:
    """The rows of the tables in a text: what is read, and four figures."""
    found = (CELL.fullmatch(line) for line in text.splitlines())
    return [match.groups() for match in found if match]


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("number", PUBLISHED)
def test_each_table_shows_the_published_figures(number: int) -> None:
    text = paper004.draw(report(), number)
    rows = cells(text)
    assert [row[1] for row in rows] == PUBLISHED[number]
    # Of what is measured nothing is missing; h5repack alone repacks.
    assert all(row[2] != "-" for row in rows)
    assert [row[0] for row in rows if row[3] == "-"] == [
        row[0] for row in rows if row[0].startswith("repacking")
    ]
    assert [line for line in text.splitlines() if line.startswith("Table")] == [
        line
        for line in paper004.draw(report()).splitlines()
        if line.startswith(f"Table {number}:")
    ]


def test_all_tables_are_drawn_and_nothing_is_measured_for_none() -> None:
    text = paper004.draw(report())
    assert [row[1] for row in cells(text)] == [*chain(*PUBLISHED.values()), "-", "-"]
    used = {cell.key for table in paper004.TABLES for cell in table.cells}
    assert used == reads.CASES.keys() | reads.REPACKS.keys()
    # Each case through libhdf5; chunkwise has no cache to vary: three fewer.
    planned = spell_out(target(), reads.space()).planned
    assert [one.point["driver"] for one in planned].count("libhdf5") == len(reads.CASES) == 10
    assert [one.point["driver"] for one in planned].count("chunkwise") == 7


def test_the_misprint_of_table_1_is_told_beside_it() -> None:
    text = flat(paper004.draw(report(), 1))
    assert "So printed. For the same read Tables 5, 7 and 8 have 345" in text
    assert "So printed" not in paper004.draw(report(), 2)


def test_estimates_are_marked() -> None:
    found = report()
    collapsed = ["~243", "0.15", "~1,600"]
    for number, place in ((1, 1), (5, 0), (7, 0), (8, 0)):
        rows = cells(paper004.draw(found, number))
        assert list(rows[place][2:]) == collapsed
        assert not any("~" in "".join(row) for row in rows if row is not rows[place])
    estimate = "'rows, compressed, cache 1 MB' by libhdf5: 25 of 16,200"
    assert estimate in flat(paper004.draw(found, 8))
    assert estimate not in flat(paper004.draw(found, 2))


def test_it_fits_and_says_how_it_was_measured() -> None:
    slow = report(took=lambda _: 200.0)
    for found in (report(), report(default_cache=1 << 20), slow, report(status="failed")):
        assert max(map(len, paper004.draw(found).splitlines())) <= 80
    text = flat(paper004.draw(report()))
    for phrase in ("under 3 MiB", "default cache (8.0 MiB)", "h5repack 1.10.8", "2 CPUs"):
        assert phrase in text


def test_findings() -> None:
    holds, fails = flat(paper004.draw(report())).split("do not hold here")
    assert "~4,900 times as long as rows not compressed (3,450)" in holds
    assert "equally well: 0.24, 0.24 and 0.24 s (0.37, 0.36 and 0.36)" in holds
    assert "1.7 s, then 0.24 s, instead of ~243" in holds
    assert "0.050 s with 1 MB, 0.050 s with 3 MB" in holds
    assert "HDF5 2.0.0 gives a cache of 8.0 MiB, which holds the chunk" in fails
    assert "4.8 times as long as not compressed (3.7), whole chunks 48 times (9)" in fails
    assert "~1,600 times as fast as libhdf5 where that collapses" in fails
    assert "1.6 to 1.6 times in the other compressed cases, and 0.033 to 0.33" in fails


def test_with_an_older_library_the_collapse_is_the_default() -> None:
    holds, fails = flat(paper004.draw(report(default_cache=1 << 20))).split("do not hold here")
    assert "collapse by default: HDF5 2.0.0 gives a cache of 1.0 MiB" in holds
    assert "collapse by default" not in fails


def test_findings_follow_the_figures() -> None:
    # Nothing collapses, decoding costs nothing, a small cache does: all turns round.
    def took(one: Planned) -> float:
        return 0.9 if one.point["filter"] == "none" and one.point["cache"] == "1MiB" else 0.3

    holds, fails = flat(paper004.draw(report(took=took))).split("do not hold here")
    assert "a factor of ten at most: rows take 0.33 times" in holds
    assert "compressed rows take 0.33 times as long" in fails
    assert "equally well: 0.30, 0.30 and 0.30 s" in fails
    assert "pays at once" in fails
    assert "0.90 s with 1 MB, 0.30 s with 3 MB" in fails


def test_trials_without_figures_leave_gaps() -> None:
    text = paper004.draw(report(status="timeout", version=None))
    assert [row[1] for row in cells(text)][: len(PUBLISHED[1])] == PUBLISHED[1]
    assert all(row[2:] == ("-", "-", "-") for row in cells(text))
    assert "Repacking was not measured" in text
    assert "CPUs" not in text
    assert "Findings" not in text


def test_different_bytes_come_first() -> None:
    found = report()
    found.mismatches = ["libhdf5 and chunkwise met different bytes"]
    assert "\n\nDIFFERENT BYTES: libhdf5 and" in paper004.draw(found)


def test_a_run_survives_json(tmp_path: Path) -> None:
    saved = tmp_path / "paper004.json"
    saved.write_text(json.dumps(canned()), encoding="utf-8")
    assert paper004.draw(paper004.load(saved)) == paper004.draw(report())
    figures = paper004.figures(paper004.load(saved))
    assert set(figures) == set(paper004.FIGURES)
    assert figures["row_speedup"] == "1,600"
    assert figures["row_3mb_libhdf5"] == "0.24"
    assert figures["machine"] == "A processor, 2 CPUs"
    # It is a run of bench as any other.
    command = [sys.executable, "-c", "from chunkwise.cli import main; main()", "compare"]
    done = subprocess.run([*command, saved, saved], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("value", "text"), [(345.2, "345"), (3.6, "3.6"), (0.372, "0.37"), (0.0054, "0.0054")]
)
def test_seconds(value: float, text: str) -> None:
    assert reads.seconds(value) == text


@pytest.mark.parametrize(("value", "text"), [(1649, "1,600"), (12.4, "12"), (0.944, "0.94")])
def test_times(value: float, text: str) -> None:
    assert reads.times(value) == text


def test_drawing_what_is_no_run_is_one_line(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}", encoding="utf-8")
    for path in (tmp_path / "none.json", wrong):
        done = subprocess.run(
            [sys.executable, ROOT / "examples/paper004.py", path],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert "is no report" in done.stderr
        assert "Traceback" not in done.stderr


def test_what_bench_writes_is_what_sample_writes(tmp_path: Path) -> None:
    write("cris", tmp_path / "cris.h5", shape=(8, 30, 9, 717))
    known = look(tmp_path / "cris.h5", reads.DATASET)
    ways = [(case.chunk, case.filter) for case in reads.CASES.values()]
    variants = {variant_of(known, *way): way for way in ways}
    with prepared(known, list(variants), scratch=str(tmp_path)) as made:
        for variant, (chunk, filters) in variants.items():
            other = tmp_path / f"{chunk}-{filters}.h5"
            write(
                "cris",
                other,
                shape=known.shape,
                chunk=shape_of(chunk),
                filters=None if filters == "stored" else filters,
            )
            assert facts(Path(made.reading[variant].file)) == facts(other)


def shape_of(text: str) -> tuple[int, ...] | None:
    return None if text == "stored" else tuple(map(int, text.split("x")))


def facts(path: Path) -> tuple[Any, ...]:
    """All that decides how fast a dataset is read, and its bytes."""
    with h5py.File(path) as file:
        dataset = file[reads.DATASET]
        dcpl = dataset.id.get_create_plist()
        return (
            file.id.get_create_plist().get_version(),
            dataset.dtype.str,
            dataset.chunks,
            dataset.maxshape,
            dataset.fillvalue,
            [dcpl.get_filter(i)[:3] for i in range(dcpl.get_nfilters())],
            dcpl.get_alloc_time(),
            dataset.id.get_storage_size(),
            dataset[...].tobytes(),
        )


def test_repacking_is_timed_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "cris.h5"
    write("cris", file, shape=(4, 30, 9, 717))
    arguments = (file, reads.DATASET, reads.SMALL_CHUNK)
    require_tool("h5repack")
    found = repack.measure(*arguments)
    assert found["stored"] > found["none"] > 0
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", found["version"])
    # One that copies alone, one that fails, and none.
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for script in ('cp "$3" "$4"', "exit 1"):
        (bin_folder / "h5repack").write_text(f"#!/bin/sh\n{script}\n")
        (bin_folder / "h5repack").chmod(0o755)
        monkeypatch.setenv("PATH", f"{bin_folder}:/usr/bin:/bin")
        assert repack.measure(*arguments) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert repack.measure(*arguments) is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "cris.h5"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    files, scratch = tmp_path / "demo-files", tmp_path / "tmp"
    files.mkdir()
    scratch.mkdir()
    write("cris", files / "cris.h5", shape=(8, 30, 9, 717))
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import demo; demo.newcomer = print; raise SystemExit(demo.main())",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "examples"), "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 60
    while not list(files.glob("chunkwise-*/*.h5")):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "Traceback" not in said
    assert [path.name for path in files.iterdir()] == ["cris.h5"]
    assert not list(scratch.iterdir())
