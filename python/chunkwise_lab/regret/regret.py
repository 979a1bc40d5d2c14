"""How much slower is what was advised than the best layout that there is?

For each case the advice is asked for, with a budget.  Of a grid of chunk shapes, those that are
the best by the model, or by counts of chunks and bytes, are read beside what was advised, the
present layout and what rules of thumb would take: single reads in no order, by h5py or chunkwise,
in turns, in processor time.  Of each layout only the chunks that these reads touch are written.
Regret is the time of what was advised over that of the best, less 1.
"""

from __future__ import annotations

import itertools
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np

import chunkwise
from chunkwise.advice import wishes
from chunkwise.advice.api import advise
from chunkwise.advice.patterns import Asked
from chunkwise.advice.work import Work
from chunkwise.measure.schedule import Step
from chunkwise.model.chunk_shape import divisors
from chunkwise.model.cost import Shape
from chunkwise.model.layout import Layout
from chunkwise.model.nominal import memory_load_s, nominal_s
from chunkwise.model.search import Problem
from chunkwise.trials.unions import Index
from chunkwise_lab.regret.cases import Case
from chunkwise_lab.regret.reading import by_chunkwise, by_h5py, selections
from chunkwise_lab.regret.thumbs import rules

CLAIMED: Final = 0.15
_LEAST_NBYTES: Final = 8 << 10
_MOST_NBYTES: Final = 16 << 20
# Layouts of the grid that are measured: the best by the model, and the best by counts.
_FINAL: Final = 3
# Reads of each pattern, and turns.
_READS: Final = 5
_TURNS: Final = 5
# What takes so many times as long as the fastest is read once.
_FAR: Final = 2.0
# Less is what repeats of the same differ by.
_SLOWER: Final = 0.95
# A run that is only bounded by what it measures.
_LONG_S: Final = 1e5


@dataclass(frozen=True)
class Regret:
    """What one case showed."""

    name: str  # Of the case
    advised: str  # The layouts, in words
    best: str
    advised_s: float  # Processor seconds of one read of each pattern, as often as its weight says
    best_s: float
    present_s: float
    others_s: dict[str, float] = field(default_factory=dict)  # Of what rules of thumb would take
    regret: float = 0.0  # Of the advice: how much slower than the best, 0.1 for a tenth
    left: bool = False  # Whether the advice was to leave it
    layouts: int = 0  # How many were measured
    advice_s: float = 0.0  # What the advice took
    sides: int = 0  # How fine the grid was, and seconds for the advice
    budget_s: float = 0.0


def run(
    cases: Sequence[Case], *, sides: int, budget_s: float, say: Callable[[str], None]
) -> Iterator[Regret]:
    """Try the advice on cases, one after another."""
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="chunkwise-") as folder:
            path = Path(folder) / "case.h5"
            say(f"{case.name}: writing")
            case.write(path)
            yield of_file(case, path, sides=sides, budget_s=budget_s, say=say)


def of_file(
    case: Case, path: Path, *, sides: int, budget_s: float, say: Callable[[str], None]
) -> Regret:
    """Try the advice on the file of one case."""

    def follow(step: Step) -> None:
        say(f"{case.name}: {step.text}")

    options: dict[str, Any] = {"reader": case.reader, "budget_s": budget_s, "progress": follow}
    advice = advise(path, "x", case.access, **options)
    wanted = wishes.read("balanced", case.reader)
    work = Work.of(path, "x", case.access, wanted, begun=0.0, budget_s=_LONG_S)
    with tempfile.TemporaryDirectory(prefix="chunkwise-") as folder:
        problem, _ = work.modelled(folder, calibrate=False)
    target, present = work.target, Layout(work.target.chunks, work.target.filters)
    filters = advice.best.filters
    thumbs = rules(target.shape, target.itemsize, target.maxshape)
    others = {text: Layout(chunks, filters) for text, chunks in thumbs.items()}
    grid = [one for one in _grid(problem, sides) if one.filters == filters]
    likely = [
        one
        for rank in (lambda one: problem.outcome(one).read_s, lambda one: _counted_s(problem, one))
        for one in sorted(grid, key=rank)[:_FINAL]
    ]
    final = list(dict.fromkeys([advice.best, *likely, present, *others.values()]))
    seconds = _measured(path, final, work.asked, by_chunkwise if case.reader else by_h5py(), say)
    # No rule of thumb is of the grid, but each is a layout that there is.
    winner = min(final, key=lambda layout: seconds[layout])
    return Regret(
        case.name,
        str(advice.best),
        str(winner),
        seconds[advice.best],
        seconds[winner],
        seconds[present],
        {text: seconds[one] for text, one in others.items()},
        seconds[advice.best] / seconds[winner] - 1,
        advice.leave,
        len(final),
        advice.elapsed_s,
        sides,
        budget_s,
    )


def _counted_s(problem: Problem, layout: Layout) -> float:
    """Rate a layout by its counts alone, for bytes in memory."""
    filtered = layout.filters != "none"
    return nominal_s(
        problem.shape,
        problem.itemsize,
        layout.chunks,
        problem.patterns,
        problem.reader,
        filtered=filtered,
        load_s=memory_load_s(filtered=filtered),
    )


def _measured(
    path: Path,
    layouts: Sequence[Layout],
    asked: Sequence[Asked],
    opened: Callable[[Path], Any],
    say: Callable[[str], None],
) -> dict[Layout, float]:
    """Measure layouts in turns: one read of each pattern, as often as its weight says."""
    with h5py.File(path) as file:
        values = file["x"][...]
    reads = [selections(one.access, values.shape)[:_READS] for one in asked]
    weights = [one.pattern.weight * one.pattern.reads for one in asked]
    best = dict.fromkeys(itertools.product(layouts, range(len(asked))), math.inf)
    with tempfile.TemporaryDirectory(prefix="chunkwise-", dir=path.parent) as folder:
        files = {layout: Path(folder, f"{n}.h5") for n, layout in enumerate(layouts)}
        for layout, file in files.items():
            say(f"writing {layout}")
            _write(file, values, layout, [index for each in reads for index in each])
        for turn, (layout, place) in itertools.product(range(_TURNS), best):
            fastest_s = min(best[one, place] for one in layouts)
            if turn and best[layout, place] > _FAR * fastest_s:
                continue
            took_s = _read_s(files[layout], opened, reads[place])
            best[layout, place] = min(best[layout, place], took_s)
    return {
        layout: sum(weight * best[layout, place] for place, weight in enumerate(weights))
        for layout in layouts
    }


def _write(path: Path, values: Any, layout: Layout, reads: Sequence[Index]) -> None:
    """Write the chunks that reads touch, and no others."""
    chunks = layout.chunks or values.shape
    filters = None if layout.filters == "none" else layout.filters
    with chunkwise.open(path, "w") as file:
        made = file.create_dataset(
            "x", values.shape, values.dtype, chunks=layout.chunks, filters=filters
        )
        boxes = {_around(index, values.shape, chunks) for index in reads}
        for box in boxes:
            part = tuple(slice(*bounds) for bounds in box)
            made[part] = values[part]


def _around(index: Index, shape: Shape, chunks: Shape) -> tuple[tuple[int, int], ...]:
    """Return where the chunks begin and end that a block touches."""
    assert isinstance(index, tuple)  # The cases read blocks.
    return tuple(
        (one.start // c * c, min(n, -(-one.stop // c) * c))
        for one, n, c in zip(index, shape, chunks, strict=True)
    )


def _read_s(path: Path, opened: Callable[[Path], Any], reads: Sequence[Index]) -> float:
    """Return the processor seconds of one read, when the file is open."""
    chunkwise.cache_clear()
    with opened(path) as file:
        found = file["x"]
        begun = time.process_time()
        for index in reads:
            found[index]
        return (time.process_time() - begun) / len(reads)


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
