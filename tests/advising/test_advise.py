"""One command says how a dataset should be stored, and proves it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest

from chunkwise.advice import concluding, goals, work
from chunkwise.advice.answer import Advice
from chunkwise.advice.api import advise
from chunkwise.advice.verifying import Part, Proof, Timing
from chunkwise.errors import UsageError
from chunkwise.model.layout import Layout
from chunkwise.remedy.records import Present, under_filters
from chunkwise.remedy.writers import writers
from chunkwise.words import format_ratio
from tests.advising.conftest import write_daily
from tests.support.golden import assert_golden, mistakes, steady
from tests.support.processes import interrupted, ran

MAP, SERIES = "map=1x40x60", "series=400x1x1"


def run(*words: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = ran([Path(sys.executable).with_name("chunkwise"), "advise", *words], timeout=120)
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Advice, Path]:
    """Ask once, with measurements: for them a busy machine leaves half of the seconds."""
    path = write_daily(tmp_path_factory.mktemp("proved"))
    return advise(path, "t2m", (MAP, SERIES), reader="libhdf5-1.10", budget_s=10), path


@pytest.mark.slow
def test_what_is_slow_is_found_and_the_better_layout_is_measured(
    proved: tuple[Advice, Path],
) -> None:
    advice, _ = proved
    assert advice.verified
    assert not advice.leave
    assert advice.present == Layout((1, 40, 60), "shuffle+deflate:4")
    assert advice.best.chunks is not None
    assert advice.best.chunks[0] > 1
    series = next(one for one in advice.patterns if one.name == "series")
    assert series.present is not None
    assert series.best is not None
    # Each read decodes 400 chunks, and a 1 MiB cache holds a quarter of them.
    assert series.present.median > 3 * series.best.median
    assert series.best.lowest <= series.best.median <= series.best.highest
    assert advice.present_read_s is not None
    assert advice.present_read_s > 2 * advice.best_read_s
    assert any(one.layout == advice.best for one in advice.front)


@pytest.mark.slow
def test_the_answer_is_plain_json(proved: tuple[Advice, Path]) -> None:
    record = json.loads(json.dumps(proved[0].as_dict()))
    assert record["format"] == "chunkwise-advise"
    assert record["best"]["chunks"] == list(proved[0].best.chunks or ())
    assert record["patterns"][1]["gain"] > 3
    assert record["rules"][:2] == ["--chunk", f"/t2m:{proved[0].best.chunk_word}"]


@pytest.mark.slow
def test_each_line_is_for_the_best_layout(proved: tuple[Advice, Path]) -> None:
    """Tests of remedies run such lines as pasted."""
    advice, path = proved
    own = Present("shuffle+deflate:4", (1, 40, 60), (400, 40, 60), 4)
    chunks = None if advice.best.chunks == own.chunks else advice.best.chunks
    (copy,) = under_filters(str(path), "/t2m", advice.best.filters, own, chunks)
    (ours,) = [fix for fix in advice.fixes if fix.repacks]
    assert ours.layout is not None
    (dataset,) = ours.layout.datasets
    assert (dataset.path, dataset.chunk) == ("/t2m", advice.best.chunks)
    assert dataset.filters in (None, advice.best.filters)
    assert {fix.text for fix in writers(copy)} < {fix.text for fix in advice.fixes}
    assert {fix.tool for fix in advice.fixes if not fix.writing} == {
        "chunkwise", "h5repack", "nccopy",
    }  # fmt: skip
    assert ("h5py" in {fix.tool for fix in advice.open_fixes}) == (
        advice.cache is not None and advice.cache.nbytes is not None
    )
    assert "chunkwise" in {fix.tool for fix in advice.open_fixes}


@pytest.mark.slow
def test_the_line_of_xarray_gives_the_layout(
    proved: tuple[Advice, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    xarray = pytest.importorskip("xarray")
    advice, path = proved
    monkeypatch.chdir(tmp_path)
    with h5py.File(path) as file:
        values = file["t2m"][...]
    (line,) = [fix.text for fix in advice.fixes if fix.tool == "xarray"]
    exec(line, {"ds": xarray.Dataset({"t2m": (tuple("tyx"), values)})})
    (written,) = tmp_path.glob("*_rechunked.nc")
    with h5py.File(written) as file:
        assert file["t2m"].chunks == advice.best.chunks


@pytest.mark.parametrize(("others_s", "left"), [(1.0, True), (0.95, True), (0.5, False)])
def test_a_layout_that_suits_is_left(
    others_s: float, left: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "suits.h5"
    values = np.random.default_rng(0).integers(0, 50, (200, 200, 20)).astype("i4")
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=(20, 200, 20), compression=1, shuffle=True)
    present = Layout((20, 200, 20), "shuffle+deflate:1")

    def measured(part: Part, layouts: Sequence[Layout], *_: Any, **__: Any) -> Proof:
        """What the present layout takes is a second, and what others do is stated."""
        proof = Proof(part)
        for one in layouts:
            seconds = 1.0 if one == present else others_s
            repeats = (seconds, 0.98 * seconds, 1.02 * seconds)
            proof.timings[one] = {"20x200x20": Timing(*repeats, repeats=3)}
            proof.samples[one] = {"20x200x20": repeats}
        return proof

    monkeypatch.setattr(work, "measure", measured)
    advice = advise(path, "x", ("20x200x20",), objective="read", budget_s=20)
    assert advice.verified
    assert advice.leave == left
    assert (advice.best == present) == left
    assert advice.reason.startswith("Leave it") == left
    assert bool(advice.fixes) != left


def test_what_is_near_the_best_is_measured_until_nothing_is_better(
    daily: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is measured later is faster, whatever the model thinks: something better is left.
    known: dict[Layout, float] = {}
    rounds: list[list[Layout]] = []
    repeats = [0]

    def measured(part: Part, layouts: Sequence[Layout], *_: Any, **options: Any) -> Proof:
        # Those that are measured once come one by one.
        if options["repeat"] == 1 == repeats[-1]:
            rounds[-1] += layouts
        else:
            rounds.append(list(layouts))
        repeats.append(options["repeat"])
        proof = Proof(part)
        for one in layouts:
            seconds = known.setdefault(one, 1 / (1 + len(known)))
            timing = Timing(seconds, seconds, seconds, repeats=options["repeat"])
            proof.timings[one] = {"map": timing, "series": timing}
            proof.samples[one] = dict.fromkeys(("map", "series"), (seconds,) * options["repeat"])
        return proof

    monkeypatch.setattr(work, "measure", measured)
    advice = advise(daily, "t2m", (MAP, SERIES), objective="read", budget_s=60)
    present = Layout((1, 40, 60), "shuffle+deflate:4")
    # First all once, then the best beside the present one, then from each best to the next.
    assert len(rounds) > 2
    assert [present in layouts for layouts in rounds[:3]] == [True, True, False]
    # What is not near the best is measured once, without it.
    for number, layouts in enumerate(rounds[1:], 1):
        earlier = {one for former in rounds[:number] for one in former}
        assert layouts[0] in earlier or not earlier & set(layouts)
    assert known[advice.best] < min(known[one] for one in rounds[0])
    assert advice.verified


def test_without_time_the_answer_is_the_models_and_says_so(daily: Path) -> None:
    advice = advise(daily, "t2m", (MAP, SERIES), reader="libhdf5-1.10", budget_s=0.5)
    assert not advice.verified
    assert not advice.leave
    assert "not proved" in advice.reason
    assert advice.fixes
    assert advice.patterns[1].best is None
    assert advice.patterns[1].best_s > 0
    # What it says is the ratio of the times in its table, each as often as its weight says.
    sums = [sum(one.weight * (getattr(one, side) or 0.0) for one in advice.patterns)
            for side in ("present_s", "best_s")]  # fmt: skip
    assert f" {format_ratio(sums[0] / sums[1])} as fast" in advice.reason
    # Nothing in its own table is better in all.
    (best,) = (one for one in advice.front if one.layout == advice.best)
    for one in advice.front:
        better = (
            one.read_s <= best.read_s,
            one.write_s <= best.write_s,
            one.nbytes <= best.nbytes,
        )
        assert one is best or not all(better)


def test_the_usual_patterns_are_meant_where_none_is_stated(daily: Path) -> None:
    advice = advise(daily, "t2m", budget_s=0.5)
    assert not advice.stated
    assert "No pattern was stated" in " ".join(advice.notes)
    names = {one.name for one in advice.patterns}
    assert names == {"line-along-0", "line-along-1", "line-along-2", "step"}


def test_a_checksum_stays(tmp_path: Path) -> None:
    path = tmp_path / "checked.h5"
    values = np.arange(400 * 40 * 60, dtype="i4").reshape(400, 40, 60)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=(1, 40, 60), fletcher32=True, compression=4)
    advice = advise(path, "x", (SERIES,), reader="libhdf5-1.10", budget_s=0.5)
    assert "fletcher32" in advice.best.filters


def test_what_may_round_values_again_is_given_to_no_other_chunks(tmp_path: Path) -> None:
    path = tmp_path / "rounded.h5"
    values = np.random.default_rng(0).normal(size=(400, 40, 60)).astype("f4")
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=(1, 40, 60), scaleoffset=2)
    options: dict[str, Any] = {"reader": "libhdf5-1.10", "budget_s": 0.5, "objective": "read"}
    advice = advise(path, "x", (SERIES,), **options)
    assert advice.present is not None
    assert "scaleoffset" in advice.present.filters
    assert "scaleoffset" not in advice.best.filters


def test_programs_are_named_that_lose_access_and_others_are_kept_to(daily: Path) -> None:
    ours = advise(daily, "t2m", (SERIES,), reader="chunkwise", objective="read", budget_s=0.5)
    plugin = {"bitshuffle", "zstd", "lz4"} & set(ours.best.filters.replace(":", "+").split("+"))
    assert any("Who can read it" in note for note in ours.notes) == bool(plugin)
    for name in ("zarr", "matlab"):
        theirs = advise(daily, "t2m", (SERIES,), reader=name, budget_s=0.5)
        assert not any("Who can read it" in note for note in theirs.notes)
        assert "deflate" in theirs.best.filters


def test_contiguous_data_is_advised_on(tmp_path: Path) -> None:
    path = tmp_path / "plain.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.random.default_rng(0).integers(0, 9, (2000, 500)).astype("i4")
    advice = advise(path, "x", ("2000x1",), budget_s=0.5)
    assert advice.present == Layout(None, "none")
    assert advice.best.chunks is not None
    assert advice.cache is not None
    assert advice.cache.nbytes is None


# --- the command -----------------------------------------------------------------------------


def test_the_command_prints_80_columns_and_lines_to_paste(daily: Path) -> None:
    words = (daily, "t2m", "--access", f"{MAP} weight 3", "--access", SERIES)
    said = run(*words, "--budget", "0.5", "--for", "libhdf5-1.10").stdout
    for line in said.splitlines():
        assert len(line) <= 80 or line.startswith("    "), line
    assert "chunkwise repack --chunk /t2m:" in said
    assert "weight 3" in said
    assert "not proved" in said
    more = run(*words, "--budget", "0.5", "--for", "libhdf5-1.10", "--tool", "ALL").stdout
    for line in ("ds.to_netcdf(", "H5Pset_chunk(", "h5pset_chunk_f(", "file.createVariable("):
        assert line in more


def test_the_command_prints_json(daily: Path) -> None:
    said = run(daily, "t2m", "--access", SERIES, "--budget", "0.5", "--json").stdout
    record = json.loads(said)
    assert record["format"] == "chunkwise-advise"
    assert record["verified"] is False


@pytest.fixture
def odd(daily: Path) -> Path:
    """Add what cannot be stored otherwise, or tells nothing."""
    with h5py.File(daily, "r+") as file:
        file["scalar"] = 3
        file["words"] = np.array(["a", "b"] * 5000, dtype=h5py.string_dtype())
        file.create_dataset("empty", (0, 10), "f4", maxshape=(None, 10))
        file.create_dataset("unwritten", (1000, 100), "f4", chunks=(10, 100))
        file.create_dataset("zeros", data=np.zeros((1000, 100), "f4"), chunks=(10, 100))
        file["tiny"] = np.arange(5)
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((1500,))
        h5py.h5d.create(file.id, b"compact", h5py.h5t.NATIVE_DOUBLE, space, dcpl)
        layout = h5py.VirtualLayout((400, 40, 60), "f4")
        layout[...] = h5py.VirtualSource(".", "t2m", (400, 40, 60))
        file.create_virtual_dataset("virtual", layout)
    return daily


ACCESSES = ("1x2", "500x1x1", "row weight none", "row weight 0", "random:5 write")


def test_the_page_before_there_is_a_file() -> None:
    words = "--shape 120x400x600 --type f4 --access line:0 --for libhdf5-1.14"
    answer, choices, _ = run(*words.split()).stdout.partition("the choices there are")
    assert choices
    # The machine's speed decides on the level.
    assert_golden("advise", steady(re.sub(r"deflate:\d", "deflate:N", answer)))


def test_mistakes_are_one_line(odd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(odd.parent)
    names = "none scalar compact virtual words empty unwritten zeros tiny"
    options = """
t2m --access row --access row
t2m --budget soon
t2m --objective speed
"""
    words = [*(f"t2m --access '{access}'" for access in ACCESSES), *options.strip().splitlines()]
    commands = [f"advise --budget 0.5s daily.nc {one}" for one in (*words, *names.split())]
    assert_golden("advise-mistakes", mistakes("\n".join(commands)))


def test_a_budget_of_nothing_is_refused(daily: Path) -> None:
    with pytest.raises(UsageError, match="no time"):
        advise(daily, "t2m", budget_s=0)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_scratch_files_go_when_it_is_interrupted(
    daily: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    scratch = tmp_path / "scratch"
    words = ["advise", daily, "t2m", "--access", SERIES, "--scratch", scratch]
    assert interrupted(words, scratch, number) == code


def test_the_file_is_not_changed(daily: Path) -> None:
    before = daily.read_bytes()
    advise(daily, "t2m", (SERIES,), budget_s=0.5)
    assert daily.read_bytes() == before


@pytest.mark.parametrize(("read_s", "nbytes", "left"), [(0.85, 120.0, True), (0.85, 105.0, False),
                                                        (0.5, 120.0, False)])  # fmt: skip
def test_much_larger_for_a_little_is_left(read_s: float, nbytes: float, left: bool) -> None:
    present, best = Layout((10,), "shuffle+deflate:4"), Layout((10,), "shuffle+deflate:1")
    figures = {present: (1.0, 1.0, 100.0), best: (read_s, 1.0, nbytes)}
    case: Any = SimpleNamespace(
        present=present,
        figures=figures.get,
        timings={},
        goal=goals.read("balanced", None),
        problem=SimpleNamespace(most_nbytes=None, score=min),
    )
    assert concluding._within_noise(case, best) is left
