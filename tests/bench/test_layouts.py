"""Do the lines that bench prints store the data as it was measured, and does repacking pay?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from rich.console import Console

import chunkwise
from chunkwise.grammar import Pipeline
from chunkwise.measure import Results
from chunkwise.measure.layouts import best, pays, remedies, show_layouts
from chunkwise.measure.planning import trial_of
from chunkwise.measure.restoring import commands, repack_s
from chunkwise.measure.results import Cell
from chunkwise.measure.target import look
from chunkwise.measure.variants import Variant
from chunkwise.patterns import Access
from chunkwise.trials.trial import Measurement
from tests.bench.test_explain import CUBE
from tests.support.tools import paste

DATA = np.arange(24 * 30 * 20, dtype="<i4").reshape(24, 30, 20)
STORED = "shuffle+deflate:2"
LAYOUTS = {
    "other chunks": Variant((12, 10, 20), STORED),
    "other filters": Variant((1, 30, 20), "deflate:5"),
    "no filter": Variant((1, 30, 20), "none"),
    "both": Variant((24, 5, 5), "shuffle+deflate:6"),
    "contiguous": Variant(None, "none"),
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with h5py.File("a file.nc", "w") as made:
        made.create_dataset("t", data=DATA, chunks=(1, 30, 20), compression=2, shuffle=True)
    return tmp_path / "a file.nc"


def layout_of(path: Path) -> tuple[tuple[int, ...] | None, str]:
    with h5py.File(path) as made:
        assert np.array_equal(made["t"], DATA)
        return made["t"].chunks, str(Pipeline.from_dcpl(made["t"].id.get_create_plist()))


@pytest.mark.parametrize("variant", LAYOUTS.values(), ids=LAYOUTS)
def test_each_line_gives_its_layout_as_pasted(file: Path, variant: Variant) -> None:
    target = look(file.name, "t")
    lines = commands(target, variant)
    tools = [fix.tool for fix in lines]
    assert tools[0] == "chunkwise"
    # Of a layout without chunks, nccopy knows nothing.
    wanted = {"chunkwise", "h5repack"} | ({"nccopy"} if variant.chunks is not None else set())
    assert set(tools) == wanted
    for fix in lines:
        before = set(file.parent.iterdir())
        paste(fix.text, file.parent)
        (made,) = set(file.parent.iterdir()) - before
        assert layout_of(made) == (variant.chunks, variant.filters), fix.text
        made.unlink()


def test_a_tool_that_would_lose_another_dataset_is_not_offered(file: Path) -> None:
    with h5py.File(file, "r+") as made:
        made.create_dataset("other", data=DATA, chunks=(1, 30, 20), compression="lzf")
    for variant in LAYOUTS.values():
        (fix,) = commands(look(file.name, "t"), variant)
        assert fix.tool == "chunkwise"


def test_nccopy_is_not_offered_for_chunks_longer_than_the_data(tmp_path: Path) -> None:
    path = tmp_path / "grows.nc"
    with h5py.File(path, "w") as made:
        made.create_dataset("t", data=DATA, chunks=(1, 30, 20), maxshape=(None, 30, 20))
    found = commands(look(path, "t"), Variant((100, 30, 20), "none"))
    assert [fix.tool for fix in found] == ["chunkwise", "h5repack"]


@pytest.mark.parametrize("variant", LAYOUTS.values(), ids=LAYOUTS)
def test_repacking_is_timed_and_leaves_nothing(
    file: Path, tmp_path: Path, variant: Variant
) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    took = repack_s(look(file.name, "t"), variant, str(folder))
    assert took is not None
    assert took > 0
    assert not list(folder.iterdir())


def test_what_cannot_be_repacked_has_no_time(file: Path, tmp_path: Path) -> None:
    assert repack_s(look(file.name, "t"), Variant((25, 30, 20), "none"), str(tmp_path)) is None
    assert [one.name for one in tmp_path.iterdir()] == [file.name]


def test_a_run_tells_what_each_layout_takes_to_reach(file: Path) -> None:
    results = chunkwise.bench(
        file, "t", access="all", reader="h5py", chunk=["stored", "12x10x20"], repeat=1, seconds=4
    )
    rows = results.summary()
    assert rows[0]["repack_s"] is None
    assert rows[1]["repack_s"] > 0
    assert results.repack_s.keys() == {LAYOUTS["other chunks"]}


def test_a_samples_time_is_that_of_all_of_it(file: Path) -> None:
    results = chunkwise.bench(
        file, "t", access="all", reader="h5py", chunk=["stored", "12x10x20"], repeat=1, seconds=4,
        sample_nbytes=DATA.nbytes // 3,
    )  # fmt: skip
    (took,) = results.repack_s.values()
    assert results.sampled == 8
    assert results.summary()[1]["repack_s"] == pytest.approx(3 * took)


# --- when it pays, by made-up figures --------------------------------------------------

HERE = replace(
    CUBE, file="a.nc", storage="a.nc", shape=DATA.shape, dtype="<i4", chunks=(1, 30, 20),
    filters=STORED,
)  # fmt: skip
LINE, MAP = Access("line", (24, 1, 1)), Access("map", (1, 30, 20))
OTHER = LAYOUTS["other chunks"]


def cell(variant: Variant, access: Access, total_s: float, reader: str = "h5py") -> Cell:
    target = replace(HERE, chunks=variant.chunks, filters=variant.filters)
    trial = trial_of(target, access, reader)
    measured = Measurement(trial, "ok", operations=1, total_operations=1, total_s=total_s)
    point = {"operation": "read", "access": access.name, "reader": reader}
    return Cell(access, trial, (measured,), {**point, "chunk": "x", "filter": "x"})


def results_of(*cells: Cell, repack_s: float | None = 10.0) -> Results:
    times = {} if repack_s is None else {OTHER: repack_s}
    return Results(HERE, cells, 30.0, 1.0, repack_s=times)


NOW = Variant(HERE.chunks, HERE.filters)


def test_it_pays_by_the_pattern_that_gains_most() -> None:
    found = results_of(
        cell(NOW, MAP, 1.0), cell(OTHER, MAP, 2.0), cell(NOW, LINE, 5.0), cell(OTHER, LINE, 1.0)
    )
    won_back = pays(found, OTHER)
    assert won_back is not None
    assert (won_back.access, won_back.runs) == ("line", 3)  # 10 s at 4 s a run
    assert best(found) == OTHER


def test_it_never_pays_where_nothing_is_gained() -> None:
    found = results_of(cell(NOW, LINE, 1.0), cell(OTHER, LINE, 1.0))
    assert pays(found, OTHER) is None
    assert best(found) is None


def test_it_is_not_known_without_the_time_of_repacking() -> None:
    found = results_of(cell(NOW, LINE, 5.0), cell(OTHER, LINE, 1.0), repack_s=None)
    assert pays(found, OTHER) is None
    assert best(found) == OTHER


def test_readers_are_not_compared_with_each_other() -> None:
    found = results_of(cell(NOW, LINE, 5.0), cell(OTHER, LINE, 1.0, "chunkwise"))
    assert pays(found, OTHER) is None
    assert best(found) is None


def test_all_of_it_is_printed_and_lines_are_whole() -> None:
    found = results_of(cell(NOW, LINE, 5.0), cell(OTHER, LINE, 1.0))
    console = Console(width=80, record=True, force_terminal=False)
    with console.capture() as captured:
        show_layouts(found, console)
    printed = captured.get().splitlines()
    lines = [fix.text for fix in remedies(found, OTHER)]
    assert {fix.tool for fix in remedies(found, OTHER)} == {"chunkwise", "nccopy", "h5repack"}
    for line in lines:
        assert f"  {line}" in printed
    assert max(len(line) for line in printed if line.strip() not in lines) <= 80
    (row,) = [line for line in printed if line.startswith(str(OTHER))]
    assert row.split()[-5:] == ["10.0", "s", "3", "x", "line"]
