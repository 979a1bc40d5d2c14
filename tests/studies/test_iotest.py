"""Does a walk write what it says, where it says, and in hdf5-iotest's words?  Without MPI."""

import csv
import json
import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from chunkwise.errors import AlreadyExistsError, LibraryError, UsageError, WrongValueError
from chunkwise.grammar import Pipeline
from chunkwise_lab.commands.study import command
from chunkwise_lab.studies.iotest import beside, ini, table
from chunkwise_lab.studies.iotest.launching import surroundings
from chunkwise_lab.studies.iotest.lists import lists
from chunkwise_lab.studies.iotest.measure import Clock, measure
from chunkwise_lab.studies.iotest.pattern import Geometry, Values
from chunkwise_lab.studies.iotest.run import walk
from chunkwise_lab.studies.iotest.settings import Settings
from chunkwise_lab.studies.iotest.table import effects
from chunkwise_lab.studies.iotest.walk import Combination, chosen, combinations
from chunkwise_lab.studies.iotest.world import World
from chunkwise_lab.studies.load import load
from tests.support.golden import assert_golden, mistakes, refused

QUICK = Settings(steps=2, arrays=3, rows=4, columns=6)
# As hdf5-iotest (179b5af) prints it.
THEIRS = (
    "steps,arrays,rows,cols,scaling,proc-rows,proc-cols,slowdim,rank,version,"
    "alignment-increment,alignment-threshold,meta-block-size,layout,fill,fmt,io, async, wall [s],"
    "fsize [B],write-phase-min [s],write-phase-max [s],creat-min [s],creat-max [s],"
    "write-min [s],write-max [s],read-phase-min [s],read-phase-max [s],read-min [s],read-max [s]"
)


@st.composite
def grids(draw: st.DrawFn) -> Settings:
    """Small patterns on up to 6 ranks."""
    rows, columns = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    strong = draw(st.booleans())
    height, width = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    return Settings(
        steps=draw(st.integers(1, 3)),
        arrays=draw(st.integers(1, 3)),
        rows=height * rows if strong else height,
        columns=width * columns if strong else width,
        process_rows=rows,
        process_columns=columns,
        scaling="strong" if strong else "weak",
    ).on(rows * columns)


ways = st.builds(
    Combination,
    rank=st.sampled_from([2, 3, 4]),
    slowest=st.sampled_from(["step", "array"]),
    layout=st.sampled_from(["contiguous", "chunked"]),
)


def everything(settings: Settings) -> NDArray[np.float64]:
    """All values as (steps, arrays, rows, columns), put together from the ranks' tiles."""
    rows, columns = settings.tile
    whole = np.full((settings.steps, settings.arrays, *settings.plane), np.nan)
    for rank in range(settings.ranks):
        row, column = divmod(rank, settings.process_columns or 1)
        part = np.s_[row * rows : (row + 1) * rows, column * columns : (column + 1) * columns]
        values = Values(settings, rank)
        for step in range(settings.steps):
            for array in range(settings.arrays):
                values.fill(whole[(step, array, *part)], step, array)
    return whole


def expected(settings: Settings, one: Combination, name: str) -> NDArray[np.float64]:
    """What a dataset of that name must hold."""
    whole = everything(settings)
    numbers = dict(part.split("=") for part in name.split("/") if "=" in part)
    if one.rank == 4 and one.slowest == "array":
        return whole.swapaxes(0, 1)
    if "array" in numbers:
        whole = whole[:, int(numbers["array"])]
    if "step" in numbers:
        whole = whole[int(numbers["step"])]
    return whole


@given(grids(), ways)
def test_tiles_make_up_all_datasets(settings: Settings, one: Combination) -> None:
    geometry = Geometry(settings, one)
    found: dict[str, NDArray[np.float64]] = {}
    for rank in range(settings.ranks):
        values = Values(settings, rank)
        for tile in geometry.tiles(rank):
            dataset = found.setdefault(tile.dataset, np.full(geometry.shape, np.nan))
            part = tuple(
                slice(at, at + n) for at, n in zip(tile.start, geometry.block, strict=True)
            )
            assert np.isnan(dataset[part]).all(), "written twice"
            values.fill(dataset[part].reshape(settings.tile), tile.step, tile.array)
    for name, dataset in found.items():
        np.testing.assert_array_equal(dataset, expected(settings, one, name))
    assert sum(dataset.size for dataset in found.values()) * 8 == settings.nbytes


@given(grids(), ways)
def test_datasets_are_made_once_and_not_left_open(settings: Settings, one: Combination) -> None:
    tiles = list(Geometry(settings, one).tiles(0))
    assert [t.dataset for t in tiles if t.new] == list(dict.fromkeys(t.dataset for t in tiles))
    for before, after in pairwise(tiles):
        assert before.last == after.first
        assert after.first or before.dataset == after.dataset
    assert tiles[0].first
    assert tiles[-1].last
    assert [(t.step, t.array) for t in tiles] == [
        (s, a) for s in range(settings.steps) for a in range(settings.arrays)
    ]


@given(grids(), st.data())
def test_every_element_is_compared(settings: Settings, data: st.DataObject) -> None:
    values = Values(settings, data.draw(st.integers(0, settings.ranks - 1)))
    step, array = data.draw(st.integers(0, settings.steps - 1)), settings.arrays - 1
    tile = np.empty(settings.tile)
    values.fill(tile, step, array)
    assert values.wrong(tile, step, array) is None
    assert values.wrong(tile, step, array + 1) is not None
    at = tuple(data.draw(st.integers(0, n - 1)) for n in tile.shape)
    was = float(tile[at])
    tile[at] = data.draw(st.sampled_from([np.nan, 0.5, np.nextafter(was, 9)]))
    wrong = values.wrong(tile, step, array)
    assert wrong is not None
    assert (wrong[0], wrong[2]) == (at, was)
    np.testing.assert_equal(wrong[1], tile[at])


def test_the_walk_is_that_of_hdf5_iotest() -> None:
    found = list(combinations(QUICK, 2))
    assert len(found) == 96
    assert [one.number for one in found] == list(range(1, 97))
    points = [one.point() for one in found]
    names = ("slowdim", "rank", "layout", "fill", "fmt", "io")
    assert [tuple(point[name] for name in names) for point in points[:5]] == [
        ("step", "2", "contiguous", "true", "earliest", "independent"),
        ("step", "2", "contiguous", "true", "earliest", "collective"),
        ("step", "2", "contiguous", "true", "latest", "independent"),
        ("step", "2", "contiguous", "true", "latest", "collective"),
        ("step", "2", "contiguous", "false", "earliest", "independent"),
    ]
    assert tuple(points[-1][name] for name in names) == (
        "array", "4", "chunked", "false", "latest", "collective",
    )  # fmt: skip
    assert len(list(combinations(QUICK, 1))) == 48
    both = replace(QUICK, alignment_increment=65536, meta_block_size=65536)
    found = list(combinations(both, 2))
    assert len(found) == 384
    sizes = [(one.alignment_increment, one.meta_block_size) for one in found[:16:4]]
    assert sizes == [(1, 2048), (1, 65536), (65536, 2048), (65536, 65536)]


def test_a_part_of_the_walk_keeps_its_numbers() -> None:
    found = chosen(QUICK, 2, ["rank=4", "layout=chunked", "io=collective", "rank=3"])
    assert {one.rank for one in found} == {3, 4}
    assert [one.number for one in found] == sorted(one.number for one in found)
    assert found[0].number == 42
    assert [one.number for one in chosen(replace(QUICK, one_case=17), 2)] == [17]


LINES = (
    "stepps = 3;steps = many;steps = -1;steps;version = 1;async = 1;szip = 4, 8;"
    "delay = soon;gzip = 12"
)
SETTINGS: list[tuple[dict[str, Any], int]] = [
    ({"process_rows": 4, "process_columns": 1}, 2),
    ({"process_rows": 3}, 4),
    ({"rows": 33, "scaling": "strong"}, 2),
    ({"steps": 0}, 1),
    ({"rows": 1}, 1),
    ({"single_process": "ram"}, 1),
    ({"steps": 2**20, "arrays": 2**20}, 1),
]


def test_what_is_refused() -> None:
    """Settings that make no sense, lines of a file, and parts of the walk that are none."""
    assert_golden(
        "iotest-refused",
        refused(lambda one: replace(QUICK, **one[0]).on(one[1]), SETTINGS),
        refused(lambda line: ini.parse(f"[DEFAULT]\n{line}\n", "a.ini"), LINES.split(";")),
        refused(
            lambda part: chosen(QUICK, 2, [part]), ["layuot=chunked", "layout=compact", "rank"]
        ),
    )


def test_an_ini_file_of_hdf5_iotest_is_read() -> None:
    text = """
[DEFAULT]
version = 0
steps = 20
arrays=500
process-rows : 2
# a comment
scaling = weak   ; another
hdf5-file = out.#.h5
dataset-rank = 4
delay = 500 ms
[CUSTOM]
steps = 3
szip = H5_SZIP_NN_OPTION_MASK, 8
"""
    values, ignored = ini.parse(text)
    assert ignored == ["dataset-rank"]
    assert values == {
        "steps": 3,
        "arrays": 500,
        "process_rows": 2,
        "scaling": "weak",
        "hdf5_file": "out.#.h5",
        "delay_s": 0.5,
        "filters": Pipeline.parse("szip:nn:8"),
    }
    assert ini.parse("gzip = 6\nfilters = shuffle+deflate:1")[0]["filters"] == Pipeline.parse(
        "shuffle+deflate:1"
    )


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        values, _ = ini.parse(text)
    except UsageError:
        return
    assert isinstance(values, dict)


def test_columns_are_those_of_hdf5_iotest() -> None:
    assert table.header(QUICK) == THEIRS
    assert table.header(replace(QUICK, filters=Pipeline.parse("shuffle"))) == (
        f"{THEIRS},filters,ratio"
    )


def test_a_row_is_written_as_by_hdf5_iotest() -> None:
    clocks = [Clock(0.4, 0.38, 0.37, 0.01, 0.0103, 0.004), Clock(9, 0.39, 0.36, 0.02, 0.0103, 0.1)]
    one = Combination(2, 2, "step", "contiguous", "true", 1, 0, 2048, "earliest", "collective")
    settings = Settings().on(2)
    row = table.row(one, "none", clocks, 64081976, settings.nbytes)
    assert table.line(settings, "1.10.8", row) == (
        '4,50,100,200,weak,2,1,step,2,"1.10.8",1,0,2048,contiguous,true,earliest,collective,false,'
        "0.4000,64081976,0.3800,0.3900,0.3600,0.3700,0.0100,0.0200,0.0103,0.0103,0.0040,0.1000"
    )
    filtered = replace(settings, filters=Pipeline.parse("deflate:1"))
    assert table.line(filtered, "1.10.8", row).endswith(",0.1000,none,0.999")


def alone(one: Combination, settings: Settings, file: Path) -> Clock:
    geometry = Geometry(settings, one)
    told = lists(geometry, settings.filters, None)
    return measure(World(), geometry, told, Values(settings, 0), str(file))


@pytest.mark.parametrize("driver", ["posix", "core"])
@pytest.mark.parametrize("filters", ["none", "shuffle+deflate:1"])
@pytest.mark.slow
def test_files_hold_what_they_must(tmp_path: Path, driver: str, filters: str) -> None:
    settings = replace(QUICK, single_process=driver, filters=Pipeline.parse(filters)).on(1)
    for one in combinations(settings, 1):
        clock = alone(one, settings, tmp_path / "a.h5")
        assert all(seconds > 0 for seconds in (clock.wall, *clock.phases()))
        assert clock.wall >= clock.write_phase >= clock.write
        assert stored(tmp_path / "a.h5", settings, one, filters) * 8 == settings.nbytes


def stored(path: Path, settings: Settings, one: Combination, filters: str) -> int:
    """Compare all datasets of a file, and count their elements."""
    seen = []

    def look(name: str, found: h5py.HLObject) -> None:
        if isinstance(found, h5py.Dataset):
            seen.append(found.size)
            np.testing.assert_array_equal(found[()], expected(settings, one, name))
            assert found.chunks == Geometry(settings, one).chunk
            made = found.id.get_create_plist()
            has = filters if one.layout == "chunked" else "none"
            assert str(Pipeline.from_dcpl(made)) == has
            assert (made.get_fill_time() == h5py.h5d.FILL_TIME_NEVER) == (one.fill == "false")

    with h5py.File(path) as file:
        file.visititems(look)
    return sum(seen)


def test_a_wrong_value_is_met(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = QUICK.on(1)
    right = Values.fill

    def spoil(self: Values, tile: NDArray[np.float64], step: int, array: int) -> None:
        right(self, tile, step, array)
        if tile is not self._expected and (step, array) == (1, 2):
            tile[3, 5] += 2**-24

    monkeypatch.setattr(Values, "fill", spoil)
    with pytest.raises(WrongValueError, match=r"rank 0: step 1, array 2, row 3, column 5"):
        alone(Combination(io="posix"), settings, tmp_path / "a.h5")


def test_a_walk_of_one_process(tmp_path: Path) -> None:
    settings = replace(QUICK, hdf5_file=str(tmp_path / "a.h5"), csv_file=str(tmp_path / "a.csv"))
    walked = walk(World(), settings, ["rank=2", "rank=4"])
    assert len(walked.rows) == 32
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert lines[0] == THEIRS
    rows = list(csv.DictReader(lines))
    assert [row["rank"] for row in rows] == ["2"] * 16 + ["4"] * 16
    assert {row["io"] for row in rows} == {"posix"}
    assert all(int(row["fsize [B]"]) >= settings.on(1).nbytes for row in rows)
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
    found = {effect.parameter: effect for effect in effects(walked.rows)}
    assert {name: one.pairs for name, one in found.items()} == {
        "slowdim": 16, "rank": 16, "layout": 16, "fill": 16, "fmt": 16,
    }  # fmt: skip


def test_a_walk_goes_on_after_its_rows(tmp_path: Path) -> None:
    settings = replace(QUICK, hdf5_file=str(tmp_path / "a.h5"), csv_file=str(tmp_path / "a.csv"))
    walk(World(), settings, ["rank=2"])
    path = tmp_path / "a.csv"
    whole = path.read_text().splitlines()
    with pytest.raises(AlreadyExistsError, match="--restart"):
        walk(World(), settings, ["rank=2"])
    # Ended in the middle of a line.
    path.write_text("\n".join(whole[:6]) + "\n" + whole[6][:20])
    again = walk(World(), replace(settings, restart=True), ["rank=2"])
    assert again.kept == 5
    assert len(again.rows) == 11
    now = path.read_text().splitlines()
    assert [line.split(",")[:18] for line in now] == [line.split(",")[:18] for line in whole]
    with pytest.raises(UsageError, match=r"a\.csv: line 2 has steps 2, where this walk has 3"):
        walk(World(), replace(settings, restart=True, steps=3), ["rank=2"])


def test_a_file_of_the_user_is_not_overwritten(tmp_path: Path) -> None:
    mine = tmp_path / "a.h5"
    mine.write_text("mine")
    with pytest.raises(AlreadyExistsError, match="would be overwritten"):
        walk(World(), replace(QUICK, hdf5_file=str(mine)))
    assert mine.read_text() == "mine"


def test_one_file_each_is_removed_after_it(tmp_path: Path) -> None:
    seen = []

    def look(_: object) -> None:
        seen.append(sorted(path.name for path in tmp_path.iterdir()))

    walk(World(), replace(QUICK, hdf5_file=str(tmp_path / "a#.h5")), ["rank=4"], look)
    assert seen == [[]] * 16
    assert list(tmp_path.iterdir()) == []


def test_a_walk_that_is_ended_leaves_no_file(tmp_path: Path) -> None:
    def end(step: Any) -> None:
        if step.done == 3:
            assert (tmp_path / "a.h5").exists()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        walk(World(), replace(QUICK, hdf5_file=str(tmp_path / "a.h5")), (), end)
    assert list(tmp_path.iterdir()) == []


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.ini").write_text("[DEFAULT]\nsteps = 1\narrays = 2\nrows = 4\ncolumns = 8\n")
    runner = CliRunner()
    done = runner.invoke(
        command,
        ["iotest", "--ini", "a.ini", "--steps", "2", "--csv", "a.csv", "--json",
         "--filter", "deflate:1", "--only", "rank=4,layout=chunked"],
        standalone_mode=False,
    )  # fmt: skip
    assert done.exception is None, done.output
    told = json.loads(done.stdout)
    assert (told["steps"], told["arrays"], told["ranks"]) == (2, 2, 1)
    assert [one["number"] for one in told["combinations"]] == [37, 38, 39, 40, 45, 46, 47, 48]
    assert {one["filters"] for one in told["combinations"]} == {"deflate:1"}
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 9
    text = runner.invoke(command, ["iotest", "--quick"], standalone_mode=False).output
    assert "48 combinations: 2 steps, 4 arrays of 32x128, 1 rank (1x1)" in text
    assert "layout chunked, not contiguous" in text


def test_mistakes_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = mistakes("""
study iotest --quick --grid 2
study iotest --quick --grid 2x1
study iotest --ini nonesuch.ini
study iotest --quick --filter squash
study iotest --quick --case 49
""")
    assert_golden("iotest-mistakes", said)
    assert list(tmp_path.iterdir()) == []


def test_the_page_says_what_there_is() -> None:
    page = (Path(__file__).parents[2] / "docs" / "iotest.md").read_text("utf-8")
    assert f"\n    {THEIRS}\n" in page
    context = command.make_context("study", ["iotest", "--quick"])
    options = {name for one in context.command.params for name in one.opts if name[:2] == "--"}
    assert [name for name in options - {"--help"} if name not in page] == []
    assert [one.id for one in load("iotest").experiments if f"| `{one.id}` |" not in page] == []
    words = [*ini._READ, *ini.WALKED[:3:2], "version", "split", "async", "libver-bound-high"]
    assert [word for word in words if f"`{word}" not in page] == []


def test_ranks_beyond_the_processors_give_them_away_while_they_wait() -> None:
    processors = os.cpu_count() or 1
    assert "OMPI_MCA_mpi_yield_when_idle" not in surroundings(processors)
    assert surroundings(processors + 1)["OMPI_MCA_mpi_yield_when_idle"] == "1"


# --- beside hdf5-iotest's own rows -------------------------------------------------------


BESIDE = Settings(steps=2, arrays=3, rows=4, columns=6)


def rows(settings: Settings, wall_s: float, nbytes: int) -> beside.Rows:
    names = table.header(settings).split(",")
    return [
        dict(zip(names, table.line(settings, "1.10.8", row).split(","), strict=True))
        for one in combinations(settings, 2)
        for row in [table.row(one, "none", [Clock(wall_s)], nbytes, settings.nbytes)]
    ]


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "hdf5_iotest"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_rows_stand_side_by_side(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    walls = {"theirs": iter((0.1, 0.2, 0.3)), "ours": iter((0.6, 0.4, 0.5))}

    def run(command: Any, settings: Settings, _: int) -> beside.Rows:
        who = "theirs" if command[0] == program else "ours"
        return rows(settings, next(walls[who]), 5000 if who == "ours" else 4000)

    monkeypatch.setattr(beside, "_run", run)
    found = beside.walk(program, BESIDE, 2, 3)
    assert len(found) == 96
    assert found[0].wall_s == {"theirs": 0.2, "ours": 0.5}
    assert found[0].file_nbytes == {"theirs": 4000, "ours": 5000}
    assert found[0].ratio == 2.5


def test_another_walk_is_refused(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: Any, settings: Settings, _: int) -> beside.Rows:
        return rows(replace(settings, steps=3) if command[0] == program else settings, 1, 1)

    monkeypatch.setattr(beside, "_run", run)
    with pytest.raises(LibraryError, match="other combinations"):
        beside.walk(program, BESIDE, 2, 1)
    with pytest.raises(UsageError, match="is no program"):
        beside.walk(f"{program}-none", BESIDE, 2, 1)
    with pytest.raises(UsageError, match="without filters"):
        beside.walk(program, replace(BESIDE, filters=Pipeline.parse("deflate:1")), 2, 1)


def test_both_read_the_same_settings() -> None:
    settings = replace(BESIDE, alignment_increment=65536, scaling="strong").on(2)
    values, ignored = ini.parse(beside._ini(settings))
    assert ignored == []
    kept = {"hdf5_file": settings.hdf5_file, "csv_file": settings.csv_file}
    assert replace(Settings(), **{**values, **kept}) == settings
