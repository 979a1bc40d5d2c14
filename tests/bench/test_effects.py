"""Do the plot and the closing words say what the figures say?

The truth is made up: seconds for each combination, a factor for each value.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from rich.console import Console

from chunkwise.measure.closing import closing
from chunkwise.measure.effects import best, effects, single_changes, worst
from chunkwise.measure.planning import spell_out, trial_of
from chunkwise.measure.plot import effects_plot
from chunkwise.measure.results import Cell, Results
from chunkwise.measure.space import Point, Space
from chunkwise.measure.target import Target, look
from chunkwise.patterns import parse
from chunkwise.trials.trial import Measurement

Truth = Callable[[Point], float]
FACTORS = {"cache": {"1MiB": 8.0, "4MiB": 2.0}, "w0": {"0": 1.05, "1": 1.0}}


@pytest.fixture
def target(tmp_path: Path) -> Target:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.zeros((40, 30), "i4"), chunks=(10, 30), compression=1)
    return look(path, "x")


def made_up(target: Target, space: Space, truth: Truth, repeats: int = 5) -> Results:
    """Give results in which each combination takes what the truth says."""
    cells = []
    for one in spell_out(target, space).planned:
        trial = trial_of(target, one.access, **one.parameters)
        seconds = truth(one.point)
        measurements = tuple(
            Measurement(
                trial,
                "ok",
                repeat=number,
                total_s=seconds * (1 + 0.01 * number),
                elapsed_s=seconds,
                operations=4,
                total_operations=4,
                first_s=0.1,
                environment={"hdf5": "1.0"},
            )
            for number in range(repeats)
        )
        cells.append(Cell(one.access, trial, measurements, one.point))
    return Results(target, tuple(cells), 30.0, 1.0, design=space.design)


def by_factors(point: Point) -> float:
    factor = math.prod(FACTORS[axis].get(point[axis], 1.0) for axis in FACTORS)
    return factor * (10.0 if point["access"] == "line:0" else 1.0)


def shown(results: Results) -> str:
    stream = io.StringIO()
    plot = effects_plot(results)
    assert plot is not None
    Console(file=stream, width=80).print(plot)
    return stream.getvalue()


SPACE = Space.of(
    access=["all", "line:0"], reader=["libhdf5"], cache=["1MiB", "4MiB", "64MiB"], w0=["0", "1"]
)


def test_effects_are_the_factors(target: Target) -> None:
    found = effects(made_up(target, SPACE, by_factors))
    assert list(found) == ["cache", "w0"]
    assert [e.value for e in found["cache"]] == ["1MiB", "4MiB", "64MiB"]
    assert [e.speed for e in found["cache"]] == pytest.approx([1.0, 4.0, 8.0])
    # Two patterns and two values of w0 make four pairs.
    assert [e.pairs for e in found["cache"]] == [0, 4, 4]
    assert found["w0"][1].speed == pytest.approx(1.05)


def test_an_effect_has_its_ends(target: Target) -> None:
    """The cache helps one pattern, and harms the other."""

    def truth(point: Point) -> float:
        if point["cache"] == "1MiB":
            return 1.0
        return 0.25 if point["access"] == "all" else 4.0

    results = made_up(target, replace(SPACE, design="product"), truth)
    small = effects(results)["cache"][1]
    assert (small.lowest, small.highest) == pytest.approx((0.25, 4.0))
    assert small.speed == pytest.approx(1.0)


def test_what_failed_makes_no_pair(target: Target) -> None:
    results = made_up(target, SPACE, by_factors)
    cells = tuple(
        replace(c, measurements=(Measurement(c.trial, "failed", "no luck"),))
        if c.point["cache"] == "4MiB"
        else c
        for c in results.cells
    )
    found = effects(replace(results, cells=cells))
    assert [e.value for e in found["cache"]] == ["1MiB", "64MiB"]


def test_one_at_a_time_pairs_with_the_standard(target: Target) -> None:
    found = effects(made_up(target, replace(SPACE, design="each"), by_factors))
    assert [(e.value, e.pairs) for e in found["cache"]] == [
        ("1MiB", 0), ("4MiB", 1), ("64MiB", 1),
    ]  # fmt: skip


def test_single_changes_are_those_of_the_slowest(target: Target) -> None:
    results = made_up(target, SPACE, by_factors)
    slowest = worst(results.cells)
    assert (slowest.point["access"], slowest.point["cache"]) == ("line:0", "1MiB")
    assert best(results.cells).point["access"] == "all"
    changes = single_changes(results, slowest)
    assert [(c.axis, c.cell.point["cache"]) for c in changes] == [
        ("cache", "64MiB"), ("w0", "1MiB"),
    ]  # fmt: skip
    assert changes[0].speed == pytest.approx(8.0)


def test_the_closing_says_what_helps_and_what_does_not(target: Target) -> None:
    (said,) = closing(made_up(target, SPACE, by_factors))
    assert said.startswith("Slowest: 'line:0' read by libhdf5, cache 1 MiB, w0 0: ")
    assert "cache 64 MiB, w0 1: 10.2 s, 8.40 times as fast." in said
    assert "One change to the slowest alone makes it: a cache of 64 MiB 8.00 times" in said
    assert said.endswith("W0 alone: no difference that the spread allows to tell.")


def test_too_few_repeats_are_said_to_be_too_few(target: Target) -> None:
    """A factor of two, measured once, is not called no difference."""

    def truth(point: Point) -> float:
        return {"1MiB": 2.0, "4MiB": 1.0}[point["cache"]]

    space = Space.of(access=["all"], reader=["libhdf5"], cache=["1MiB", "4MiB"])
    (once,) = closing(made_up(target, space, truth, repeats=1))
    assert "Measured too rarely to be certain: a cache of 4 MiB seems 2.00 times" in once
    assert "no difference" not in once
    (often,) = closing(made_up(target, space, truth, repeats=3))
    assert "a cache of 4 MiB 2.00 times as fast" in often


def test_patterns_and_readers_alone_need_no_closing(target: Target) -> None:
    space = Space.of(access=["all", "line:0"], reader=["libhdf5", "h5py"])
    results = made_up(target, space, lambda _: 1.0)
    assert closing(results) == []
    assert effects_plot(results) is None


def test_noise_makes_no_long_bar(target: Target) -> None:
    def truth(point: Point) -> float:
        return 1.01 if point["cache"] == "1MiB" else 1.0

    assert "██" not in shown(made_up(target, SPACE, truth))


def test_estimates_are_marked_in_the_plot(target: Target) -> None:
    results = made_up(target, SPACE, by_factors)
    cells = tuple(
        replace(c, measurements=tuple(replace(m, extrapolated=True) for m in c.measurements))
        for c in results.cells
    )
    assert "~8.00x" in shown(replace(results, cells=cells))


# --- a real run -----------------------------------------------------------------------------


def test_a_pattern_is_compared_with_itself(target: Target) -> None:
    """Writes are not measured by reads, nor one pattern by another."""
    space = Space.of(operation=["read", "write"], access=["all", "line:0"], reader=["libhdf5"])
    results = made_up(target, space, lambda p: 3.0 if p["operation"] == "write" else 1.0)
    assert [results.speed(cell) for cell in results.cells] == [1.0] * 4
    assert parse("all", target.shape, 4, "").block == target.shape
