"""Is all measured that an answer must not lose to?"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from chunkwise.advice import goals
from chunkwise.advice.verifying import Part, Proof, Timing
from chunkwise.advice.work import _REPEATED, Work
from chunkwise.measure.target import Target
from chunkwise.model.layout import Layout
from chunkwise.model.search import Problem, Ranking, search
from tests.advising.test_verifying import PRESENT, SHAPE, problem, requested

PATTERNS = ("map=1x40x60", "series=400x1x1")
PART = Part("a.nc", "/t", (0, 0, 0), SHAPE, True)


class Measured:
    """In the place of measuring: made-up seconds, and what was asked for."""

    def __init__(self, fast: tuple[int, ...] | None) -> None:
        self.fast = fast
        self.rounds: list[list[Layout]] = []

    def proof(self, layouts: Sequence[Layout], repeat: int) -> Proof:
        """Make times up: one shape is fast, all others are as slow."""
        timings = {}
        for layout in layouts:
            s = 0.5 if layout.chunks == self.fast else 1.0 if layout == FIRST else 1.5
            timings[layout] = {name: Timing(s, s, s, repeat) for name in ("map", "series")}
        return Proof(PART, timings)

    def __call__(self, _: Part, layouts: Sequence[Layout], *__: Any, **how: Any) -> Proof:
        """As `Work._measured`."""
        self.rounds.append(list(layouts))
        return self.proof(layouts, how["repeat"])


OF: Problem = problem(*PATTERNS)
FOUND: Ranking = search(OF)
FIRST: Layout = next(one.layout for one in FOUND.ranked if not one.names)


def refined(
    measure: Callable[..., Proof], monkeypatch: pytest.MonkeyPatch, left_s: float = 1e6
) -> Proof:
    target = Target(
        "a.nc", "a.nc", "/t", SHAPE, "<f4", 4, True, PRESENT.chunks, PRESENT.filters,
        OF.outcome(PRESENT).nbytes, 521, 1 << 20, 0.75,
    )  # fmt: skip
    now = time.monotonic()
    goal = goals.read("balanced", None)
    work = Work(target, requested(*PATTERNS), True, goal, now, now + left_s, None, None)
    monkeypatch.setattr(work, "_measured", measure)
    return work._refined(PART, Measured(None).proof([PRESENT, FIRST], 1), OF, FOUND, 1.0)


def named(filters: str) -> set[Layout]:
    return {
        one.layout
        for one in FOUND.ranked
        if one.names and one.layout.filters == filters and OF.fits(one)
    }


def test_rules_of_thumb_are_measured_last(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = Measured(None)
    proof = refined(measured, monkeypatch)
    assert named(FIRST.filters) <= set(proof.timings)
    # Nothing but the best and the present one is measured twice.
    all_of_them = [layout for layouts in measured.rounds for layout in layouts]
    twice = {layout for layout in all_of_them if all_of_them.count(layout) > 1}
    assert twice <= {FIRST, PRESENT}


def test_a_rule_of_thumb_that_is_better_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # The one of which the model thinks least.
    last = [one.layout for one in FOUND.ranked if one.layout in named(FIRST.filters)][-1]
    proof = refined(Measured(last.chunks), monkeypatch)
    best = min(proof.timings, key=lambda layout: proof.timings[layout]["map"].median)
    assert best.chunks == last.chunks
    # What is near it was measured after it.
    assert proof.timings[best]["map"].repeats > 1


def test_nothing_is_measured_without_time(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = Measured(None)
    proof = refined(measured, monkeypatch, left_s=1.5)
    assert not measured.rounds
    assert set(proof.timings) == {PRESENT, FIRST}


@pytest.mark.parametrize("left_s", [3.0, 20.0, 60.0])
@pytest.mark.parametrize("took_s", [1.0, 1.1])
def test_refining_ends_with_its_seconds(
    left_s: float, took_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each layout takes what the first ones took, or a tenth more."""
    begun = now = time.monotonic()
    measured = Measured(None)

    def slowly(part: Part, layouts: Sequence[Layout], *words: Any, **how: Any) -> Proof:
        nonlocal now
        now += took_s * len(layouts) / (1 if how["repeat"] > 1 else _REPEATED)
        return measured(part, layouts, *words, **how)

    monkeypatch.setattr("chunkwise.advice.work.time.monotonic", lambda: now)
    refined(slowly, monkeypatch, left_s)
    assert measured.rounds
    assert now - begun <= 1.15 * left_s
