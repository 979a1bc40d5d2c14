"""Do the demo's table and README.md say what was measured, and do their commands exist?"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from chunkwise.bench import Access, Measurement, Results, Target
from chunkwise.bench.planning import trial_of
from chunkwise.bench.results import Cell
from chunkwise.sample import write

ROOT = Path(__file__).resolve().parent.parent
BLOCKS = {"row": (1, 1, 1, 717), "chunk": (4, 30, 9, 717), "all": (60, 30, 9, 717)}
TOTALS = {
    "row": 16_200,
    "chunk": 15,
    "all": 1,
}
ENVIRONMENT: dict[str, str | int] = {
    "hdf5": "2.0.0",
    "zlib": "1.2.13",
    "chunkwise": "0.1.0",
    "cpu": "A processor",
    "cpu_count": 2,
}


def load(path: str) -> ModuleType:
    """Import a script by its path."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


table8: Any = load("examples/table8.py")
readme: Any = load("scripts/readme.py")


def seconds(name: str, access: str, driver: str, cache: int | None) -> float:
    """What a canned trial takes: only one collapses, as in the paper."""
    if driver == "chunkwise":
        return 0.15
    collapses = (name, access, cache) == (table8.COMPRESSED, "row", 1 << 20)
    return 243.0 if collapses else 0.24


def canned(default_cache: int = 8 << 20, status: Any = "ok") -> list[Results]:
    """Results as `bench.run` gives them for the table's runs."""
    runs = []
    for name, patterns, caches, _ in table8.RUNS:
        target = Target(
            f"demo-files/{name}", f"demo-files/{name}", table8.DATASET, BLOCKS["all"], ">f4", 4,
            True, BLOCKS["chunk"], "deflate:6", 43_000_000, 8191, default_cache, 0.75,
        )  # fmt: skip
        cells = []
        for access in (pattern.partition("=")[0] for pattern in patterns):
            for driver in ("libhdf5", "chunkwise"):
                for cache in caches if driver == "libhdf5" else (None,):
                    total = seconds(name, access, driver, cache)
                    done = 25 if total > 100 else TOTALS[access]
                    trial = trial_of(
                        target, Access(access, BLOCKS[access]), driver, cache_nbytes=cache
                    )
                    measured = Measurement(
                        trial, status, operations=done, total_operations=TOTALS[access],
                        total_s=total, extrapolated=total > 100, environment=ENVIRONMENT,
                    )  # fmt: skip
                    cells.append(Cell(Access(access, BLOCKS[access]), trial, (measured,)))
        runs.append(Results(target, tuple(cells), 10.0, 5.0))
    return runs


def shown(report: Any) -> str:
    console = Console(width=80, no_color=True)
    with console.capture() as capture:
        table8.show(report, console)
    return capture.get()


def test_rows_stand_beside_the_published_figures() -> None:
    report = table8.report(canned())
    rows = {row.case.key: row for row in report.rows}
    # Paper 004, Table 8; uncompressed: Tables 6 and 3.
    published = [rows[k].case.published_s for k in ("row", "row_3mb", "chunk", "small")]
    assert published == [345, 0.37, 0.36, 0.36]
    assert [rows[k].case.published_s for k in ("plain_row", "plain_chunk")] == [0.1, 0.04]
    assert rows["row"].libhdf5.estimated
    assert rows["row"].ratio == pytest.approx(1620)
    assert not rows["row_3mb"].libhdf5.estimated
    assert rows["row_3mb"].ratio == pytest.approx(1.6)
    assert rows["row_default"].libhdf5.total_s == 0.24


def test_the_table_fits_and_is_marked() -> None:
    text = shown(table8.report(canned()))
    assert max(map(len, text.splitlines())) <= 80
    first = next(line for line in text.splitlines() if "rows, cache 1 MB" in line)
    assert first.split()[-4:] == ["345", "~243", "0.15", "~1,600"]
    for phrase in ("25 of 16,200 reads", "under 3 MiB", "gives 8.0 MiB", "took 12 s", "2 CPUs"):
        assert phrase in " ".join(text.split())


def test_with_an_older_library_the_collapse_is_todays() -> None:
    text = " ".join(shown(table8.report(canned(default_cache=1 << 20))).split())
    assert "still gives 1.0 MiB: the collapse is today's default" in text


def test_trials_without_figures_leave_gaps() -> None:
    report = table8.report(canned(status="timeout"))
    assert all(row.ratio is None for row in report.rows)
    assert "345" in shown(report)


def test_a_report_survives_json() -> None:
    report = table8.report(canned())
    again = table8.from_json(table8.to_json(report))
    assert again.rows == report.rows
    assert shown(again) == shown(report)
    figures = table8.figures(again)
    assert set(figures) == set(table8.FIGURES)
    assert figures["row_speedup"] == "1,600"
    assert figures["machine"] == "A processor, 2 CPUs"


@pytest.mark.parametrize(
    ("value", "text"), [(345.2, "345"), (3.6, "3.6"), (0.372, "0.37"), (0.0054, "0.0054")]
)
def test_seconds(value: float, text: str) -> None:
    assert table8.seconds(value) == text


@pytest.mark.parametrize(("value", "text"), [(1649, "1,600"), (12.4, "12"), (0.944, "0.94")])
def test_times(value: float, text: str) -> None:
    assert table8.times(value) == text


def test_drawing_a_missing_report_is_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples/table8.py", tmp_path / "none.json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "is no report" in done.stderr
    assert "Traceback" not in done.stderr


def test_readme_is_filled_and_its_commands_parse() -> None:
    assert readme.check((ROOT / "README.md").read_text(encoding="utf-8")) == []


def test_readme_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "demo-files").mkdir()
    write("cube", tmp_path / "demo-files/cube.h5", shape=(120, 101, 201))
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^( *)```python\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 2
    names: dict[str, Any] = {}
    for _, code in blocks:
        exec(textwrap.dedent(code), names)
    assert names["series"].shape == (120,)
    assert names["plan"]["path"] == "chunked"
    assert names["everything"].shape == (120, 101, 201)


MARKED = (
    "a <!--=row_speedup-->1<!--/--> b\n<!-- run: chunkwise inspect x.h5 -->\nold\n<!-- end -->\n"
)


def test_fill() -> None:
    filled = readme.fill(MARKED, lambda command: f"ran {command} \n", {"row_speedup": "1,600"})
    assert filled == (
        "a <!--=row_speedup-->1,600<!--/--> b\n<!-- run: chunkwise inspect x.h5 -->\n"
        "```console\n$ chunkwise inspect x.h5\nran chunkwise inspect x.h5\n```\n<!-- end -->\n"
    )
    # What cannot be run stays; filling again changes nothing.
    assert readme.fill(MARKED, lambda _: None, {"row_speedup": "1"}) == MARKED
    assert readme.fill(filled, lambda c: f"ran {c}", {"row_speedup": "1,600"}) == filled


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<!-- run: chunkwise mend x.h5 -->\nx\n<!-- end -->", "no command 'mend'"),
        ("<!-- run: chunkwise bench x.h5 --chache 1 -->\nx\n<!-- end -->", "--chache"),
        ("<!-- run: python examples/none.py -->\nx\n<!-- end -->", "there is no"),
        ("<!-- run: rm x.h5 -->\nx\n<!-- end -->", "neither chunkwise"),
        ("<!-- run: chunkwise inspect x.h5 -->\n<!-- end -->", "not filled"),
        ("<!-- run: chunkwise inspect x.h5 -->\nx\n", "no end"),
        ("<!--=speedup-->1<!--/-->", "no figure"),
        ("<!--=machine--><!--/-->", "not filled"),
        ("```\nchunkwise bench x.h5 \\\n  --no-such-option\n```\n", "--no-such-option"),
    ],
)
def test_check_finds(text: str, said: str) -> None:
    assert [line for line in readme.check(text) if said in line]
    assert readme.check(MARKED) == []
