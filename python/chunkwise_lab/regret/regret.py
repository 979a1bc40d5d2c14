"""How much slower is what was advised than the best layout that there is?

For each case the advice is asked for, with a budget; then every layout of a grid of chunk shapes
and filters is measured; then the best of those, what was advised, the present layout and what
rules of thumb would take are measured together, in turns: for libhdf5 by h5py, as people read.
Regret is the time of what was advised over that of the best, less 1.
"""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np

from chunkwise.advice import wishes
from chunkwise.advice.api import advise
from chunkwise.advice.patterns import Asked
from chunkwise.advice.verifying import Part, Proof, measure, weighed
from chunkwise.advice.work import Work
from chunkwise.measure.schedule import Step
from chunkwise.model.chunk_shape import divisors
from chunkwise.model.layout import Layout
from chunkwise.model.readers import CHUNKWISE
from chunkwise.model.search import Problem
from chunkwise_lab.regret.cases import Case
from chunkwise_lab.regret.thumbs import rules

CLAIMED: Final = 0.15
_LEAST_NBYTES: Final = 8 << 10
_MOST_NBYTES: Final = 16 << 20
_AT_ONCE: Final = 12
_FINAL: Final = 3
_FINAL_REPEATS: Final = 3
# Less is what repeats of the same differ by.
_SLOWER: Final = 0.95
# A run that is only bounded by what it measures.
_LONG_S: Final = 1e5
_TRIAL_S: Final = 0.3


@dataclass(frozen=True)
class Regret:
    """What one case showed."""

    name: str  # Of the case
    advised: str  # The layouts, in words
    best: str
    advised_s: float  # Seconds of all patterns
    best_s: float
    present_s: float
    others_s: dict[str, float] = field(default_factory=dict)  # Of what rules of thumb would take
    regret: float = 0.0  # Of the advice: how much slower than the best, 0.1 for a tenth
    left: bool = False  # Whether the advice was to leave it
    layouts: int = 0  # How many were measured
    advice_s: float = 0.0  # What the advice took
    sides: int = 0  # How fine the grid was, and seconds for the advice
    budget_s: float = 0.0
    # The model's error for each pattern of each layout of the grid, by the calibration of this
    # machine: predicted over measured seconds, less 1.
    model: list[float] = field(default_factory=list)


def run(
    cases: Sequence[Case], *, sides: int, budget_s: float, say: Callable[[str], None]
) -> Iterator[Regret]:
    """Try the advice on cases, one after another."""
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="chunkwise-") as folder:
            path = Path(folder) / "case.h5"
            say(f"{case.name}: writing")
            case.write(path)
            yield of_file(
                case.name, str(path), "x", case.access, case.reader,
                sides=sides, budget_s=budget_s, say=say,
            )  # fmt: skip


def of_file(
    name: str,
    path: str,
    dataset: str,
    access: Sequence[str],
    reader: str | None,
    *,
    sides: int,
    budget_s: float,
    say: Callable[[str], None],
) -> Regret:
    """Try the advice on one dataset."""

    def follow(step: Step) -> None:
        say(f"{name}: {step.text}")

    advice = advise(path, dataset, access, reader=reader, budget_s=budget_s, progress=follow)
    wanted = wishes.read("balanced", reader)
    work = Work.of(path, dataset, access, wanted, begun=0.0, budget_s=_LONG_S)
    with tempfile.TemporaryDirectory(prefix="chunkwise-") as folder:
        problem, _ = work.modelled(folder, calibrate=False)
    target = work.target
    part = Part.all_of(target)
    present = Layout(target.chunks, target.filters)
    grid = [one for one in _grid(problem, sides) if problem.fits(problem.outcome(one))]
    seconds: dict[Layout, float] = {}
    errors: list[float] = []
    for first in range(0, len(grid), _AT_ONCE):
        few = grid[first : first + _AT_ONCE]
        say(f"{name}: layouts {first + 1} to {first + len(few)} of {len(grid)}")
        proof = _measured(part, few, work.asked, problem, 1)
        seconds |= _sums(proof, work.asked)
        errors += _errors(proof, work.asked, problem)
    best = sorted(seconds, key=lambda layout: seconds[layout])[:_FINAL]
    thumbs = rules(target.shape, target.itemsize, target.maxshape)
    filters = present.filters if present.chunks is not None else advice.best.filters
    others = {text: Layout(chunks, filters) for text, chunks in thumbs.items()}
    final = list(dict.fromkeys([advice.best, *best, present, *others.values()]))
    say(f"{name}: the last {len(final)}, in turns")
    last = _sums(_measured(part, final, work.asked, problem, _FINAL_REPEATS), work.asked)
    able = [one for one in last if one == advice.best or problem.fits(problem.outcome(one))]
    winner = min(able, key=lambda layout: last[layout])
    return Regret(
        name,
        str(advice.best),
        str(winner),
        last[advice.best],
        last[winner],
        last[present],
        {text: last[one] for text, one in others.items() if one in last},
        last[advice.best] / last[winner] - 1,
        advice.leave,
        len(seconds),
        advice.elapsed_s,
        sides,
        budget_s,
        errors,
    )


def _measured(
    part: Part, layouts: Sequence[Layout], asked: Sequence[Asked], problem: Problem, repeat: int
) -> Proof:
    trials = len(layouts) * len(asked) * repeat
    if problem.reader_name != CHUNKWISE:
        problem = replace(problem, reader_name="h5py")
    return measure(part, layouts, asked, problem, repeat=repeat, seconds=trials * (0.9 + _TRIAL_S))


def _errors(proof: Proof, asked: Sequence[Asked], problem: Problem) -> list[float]:
    return [
        seconds / timings[one.pattern.name].median - 1
        for layout, timings in proof.timings.items()
        for one, seconds in zip(asked, problem.outcome(layout).pattern_s, strict=True)
    ]


def _sums(proof: Proof, asked: Sequence[Asked]) -> dict[Layout, float]:
    return {
        layout: weighed(timings, asked, writes=False)[0]
        for layout, timings in proof.timings.items()
    }


def _grid(problem: Problem, sides: int) -> list[Layout]:
    """List every layout of a grid: some lengths a dimension, the shortest and the longest too."""
    along = []
    for axis, extent in enumerate(problem.shape):
        known = divisors(extent, {pattern.block[axis] for pattern in problem.patterns})
        places = np.linspace(0, len(known) - 1, min(sides, len(known)))
        along.append(sorted({known[round(place)] for place in places}))
    found = []
    for chunks in itertools.product(*along):
        nbytes = math.prod(chunks) * problem.itemsize
        if _LEAST_NBYTES <= nbytes <= _MOST_NBYTES:
            found += [Layout(chunks, filters) for filters in problem.codecs]
    return found


def lines(found: Sequence[Regret]) -> Iterator[str]:
    """Write a table, and what is claimed."""
    yield f"{'case':32} {'regret':>7} {'now':>7} {'layouts':>8}  advised"
    for one in found:
        gain = one.present_s / one.advised_s
        yield (
            f"{one.name:32} {one.regret:7.0%} {gain:6.1f}x {one.layouts:8,}  "
            f"{one.advised}{' (left)' if one.left else ''}"
        )
    if found:
        regrets = np.array([one.regret for one in found])
        yield ""
        median, worst = np.median(regrets), regrets.max()
        yield f"regret: median {median:.0%}, worst {worst:.0%} (claimed: {CLAIMED:.0%} at most)"
        off = np.abs([error for one in found for error in one.model])
        if off.size:
            yield (
                f"the model, on this machine: {off.size} predictions, error median "
                f"{np.median(off):.0%}, 9 of 10 below {np.quantile(off, 0.9):.0%}"
            )
        yield ""
        yield from table(found)


def table(found: Sequence[Regret]) -> Iterator[str]:
    """Write how many times as fast the advice was as rules of thumb, as docs/advise.md has it."""
    cases = f"as fast ({len(found)} cases), median"
    yield f"| rule | {cases} | at the worst | at the best | slower in |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for text in dict.fromkeys(name for one in found for name in one.others_s):
        times = [one.others_s[text] / one.advised_s for one in found if text in one.others_s]
        slower = sum(ratio < _SLOWER for ratio in times)
        yield (
            f"| {text} | {np.median(times):.3g}x | {min(times):.3g}x | {max(times):.3g}x | "
            f"{slower} |"
        )
