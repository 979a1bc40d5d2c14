"""Do the benches of the advice say what they measure?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkwise.advice import patterns
from chunkwise.model.chunk_shape import default_chunk
from chunkwise.model.geometry import touched_along
from chunkwise_lab.regret import cases, model, regret, thumbs, trials


@pytest.mark.slow
def test_the_model_is_held_against_trials_that_it_has_not_seen() -> None:
    # Hyperslabs of the paper's size take most of a minute to count, and those of the quick run go
    # the same way.
    saved = {*trials.STUDIES.glob("*.json.gz")} - {trials.STUDIES / "hyperslabs-paper.json.gz"}
    found = trials.trials(sorted(saved))
    assert len({one.key for one in found}) == len(found) > 500
    halves = model.other_half(found)
    assert not any(model.is_fitted(one.trial) for one in halves)
    # Trials from a tenth of a millisecond to minutes; a model of nothing would be far off.
    seconds = [one.trial.measured_s for one in halves]
    assert max(seconds) > 1e5 * min(seconds)
    errors = {one.name: one for one in model.errors(halves)}
    for operation, (median, high) in model.CLAIMED.items():
        assert errors[f"{operation}s"].median <= median
        assert errors[f"{operation}s"].high <= high
    off = model.counted(found)
    assert len(off) > 200
    assert max(off) < 0.3
    # Of a few random blocks the model counts what is to be expected.
    ordered = [one for one in found if one.kinds["walk"] != "random blocks"]
    assert max(model.counted(ordered)) < 0.05
    assert sum(one < 0.01 for one in off) > 0.95 * len(off)
    studies = model.other_studies(found)
    assert {one.trial.key for one in studies} == {one.trial.key for one in halves}
    text = "\n".join(model.lines(found, halves, studies))
    assert "netcdf4, writes" in text
    assert all(len(line) <= 140 for line in text.splitlines())


def test_repeats_are_one_trial_and_other_data_are_another() -> None:
    record = {
        "status": "ok", "block": [4], "access": "all", "total_s": 1.0, "shape": [4],
        "itemsize": 4, "filters": "none", "operation": "read", "reader": "libhdf5",
        "total_operations": 1, "operations": 1, "point": {"data": "smooth"},
    }  # fmt: skip
    others: tuple[dict[str, Any], ...] = (
        {}, {"total_s": 2.0, "repeat": 1}, {"point": {"data": "rough"}}, {"chunks": [2]}
    )  # fmt: skip
    records = [{**record, **other} for other in others]
    assert all(map(trials.is_known, records))
    assert len({trials.key_of("s", one) for one in records}) == 3
    one = trials.trial("s", records[:2])
    assert (one.measured_s, one.repeats) == (1.5, 2)


def test_of_a_bounded_trial_what_was_run_counts() -> None:
    record = {
        "status": "ok", "block": [1], "access": "points", "total_s": 100.0, "elapsed_s": 3.0,
        "shape": [1000], "itemsize": 4, "filters": "none", "operation": "read",
        "reader": "libhdf5", "total_operations": 1000, "operations": 30, "extrapolated": True,
    }  # fmt: skip
    assert trials.is_known(record)
    one = trials.trial("s", [record])
    assert one.measured_s == 3.0
    assert one.counts[1] == 30


def test_there_are_40_cases_and_each_can_be_written(tmp_path: Path) -> None:
    known = list(cases.cases())
    assert len({case.name for case in known}) == len(known) == 40
    case = next(one for one in known if one.name.startswith("rows,"))
    small = type(case)(**{**vars(case), "shape": (400, 20), "chunks": (400, 1)})
    small.write(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        assert (file["x"].shape, file["x"].chunks) == ((400, 20), (400, 1))


def test_cases_are_drawn_alike_each_time() -> None:
    some = list(cases.drawn(3, 6))
    assert some == list(cases.drawn(3, 6)) != list(cases.drawn(4, 6))
    for case in some:
        nbytes = math.prod(case.shape) * np.dtype(case.dtype).itemsize
        assert 20e6 < nbytes < 100e6
        requested = patterns.read(case.access, case.shape, 4, "x")
        assert all(one.pattern.scattered and one.pattern.of_one_read for one in requested)


def test_the_grid_has_the_longest_and_the_shortest_sides() -> None:
    requested = patterns.read(["365x1x1", "1x600x600"], (365, 600, 600), 4, "x")
    grid = regret.grid_of((365, 600, 600), 4, requested, 4)
    assert len(grid) == len(set(grid)) > 20
    assert all(8 << 10 <= math.prod(one) * 4 <= 16 << 20 for one in grid)
    assert {365, 1} <= {one[0] for one in grid}


@pytest.mark.parametrize("case", list(cases.drawn(11, 12)), ids=lambda case: case.name)
def test_what_is_chosen_without_measuring_is_near_the_best_of_a_grid(case: cases.Case) -> None:
    """By what h5py took for a call, for each chunk and for its bytes, on one machine."""
    itemsize = np.dtype(case.dtype).itemsize
    requested = patterns.read(case.access, case.shape, itemsize, "x")

    def took_s(chunks: tuple[int, ...]) -> float:
        each_s = 4e-5 + math.prod(chunks) * itemsize / 400e6
        lengths = [zip(case.shape, one.pattern.block, chunks, strict=True) for one in requested]
        touched = [math.prod(touched_along(*one)[0] for one in each) for each in lengths]
        return sum(15e-6 + each_s * number for number in touched)

    chosen = default_chunk(case.shape, itemsize, None, [one.pattern for one in requested])
    best = min(took_s(chunks) for chunks in regret.grid_of(case.shape, itemsize, requested, 4))
    assert took_s(chosen) <= 1.2 * best


def test_the_rule_is_measured_beside_the_best_of_a_grid() -> None:
    access = ("1x60x50", "60x1x1")
    case = cases.Case("maps", (60, 60, 50), "f4", "smooth", None, cases.DEFLATE, access)
    found = regret.of_rule(case, sides=2, say=lambda _: None)
    assert found.layouts > 1
    assert found.rule_s >= found.best_s > 0


def test_regrets_are_summed_up() -> None:
    found = [
        regret.Regret("a", "x", "y", "z", 1.1, 1.0, 1.3, 5.0, {"h5py's guess": 2.2}),
        regret.Regret("b", "x", "x", "x", 1.0, 1.0, 1.0, 1.0, {"h5py's guess": 1.0}, True),
    ]
    text = "\n".join(regret.lines(found))
    assert "Advised: 5% slower than the best in the median, 10% at the most; 0 of 2" in text
    assert "Without measuring: 15% slower than the best in the median, 30% at the most; 1" in text
    assert "| h5py's guess | 1.5x | 1x | 2x | 0 |" in text
    assert "(left)" in text


@settings(max_examples=50, deadline=None)
@given(
    shape=st.lists(st.integers(1, 5000), min_size=1, max_size=4).map(tuple),
    itemsize=st.sampled_from([1, 2, 4, 8]),
)
def test_rules_of_thumb_give_chunks_within_the_data(shape: tuple[int, ...], itemsize: int) -> None:
    for name, chunks in thumbs.rules(shape, itemsize).items():
        assert len(chunks) == len(shape), name
        assert all(1 <= c <= n for c, n in zip(chunks, shape, strict=True)), name


@pytest.mark.parametrize(
    ("shape", "itemsize"),
    [((8760, 721, 1440), 4), ((1000, 500, 500), 8), ((4000, 300, 200, 300), 2)],
)
def test_balanced_chunks_serve_series_and_maps_alike(
    shape: tuple[int, ...], itemsize: int
) -> None:
    chunks = thumbs.balanced(shape, itemsize)
    number = [math.ceil(n / c) for n, c in zip(shape, chunks, strict=True)]
    along, across = number[0], math.prod(number[1:])
    assert 0.7 < along / across < 1.4
    assert 0.7 < math.prod(chunks) * itemsize / (1 << 20) < 1.4


def test_balanced_chunks_of_a_row_are_of_a_mebibyte() -> None:
    assert thumbs.balanced((1 << 20,), 8) == (1 << 17,)
    assert thumbs.balanced((100,), 8) == (100,)


def test_the_40_cases_have_a_row_for_each_rule() -> None:
    found = [
        regret.Regret(
            str(n), "x", "y", "z", 1.0, 1.0, 1.0, 5.0, dict.fromkeys(thumbs.rules((9, 9), 4), n)
        )
        for n in (1, 2, 0.5)
    ]
    rows = list(regret.table(found))
    assert [row.split(" | ")[0].strip("| ") for row in rows[2:]] == list(thumbs.rules((9, 9), 4))
    assert rows[2].endswith("| 1x | 0.5x | 2x | 1 |")
