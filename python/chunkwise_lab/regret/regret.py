"""How much slower is what was advised than the best layout that there is?

Of a grid of chunk shapes, those that are best by the model, or by counts of chunks and bytes, are
read beside the advice, the present layout and rules of thumb: single reads in no order, in turns;
chunkwise without its cache, which would hold all of so small a dataset.  Of each layout only the
chunks that these reads touch are written.  Regret is the time of the advice over that of the best
which is not larger than the advice may be, less 1.
"""

from __future__ import annotations

import itertools
import math
import pickle
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

import chunkwise
from chunkwise.advice import goals, patterns
from chunkwise.advice.api import advise
from chunkwise.advice.patterns import Requested
from chunkwise.advice.work import Work
from chunkwise.measure.process import python
from chunkwise.measure.schedule import Step
from chunkwise.model.chunk_shape import default_chunk, divisors
from chunkwise.model.cost import Shape, Stored
from chunkwise.model.layout import Layout
from chunkwise.model.nominal import nominal_s
from chunkwise.model.readers import Reader, this_process
from chunkwise.trials.unions import Index
from chunkwise_lab.regret.cases import Case
from chunkwise_lab.regret.reading import SLOWER, by_chunkwise, by_h5py, selections, succeeded
from chunkwise_lab.regret.thumbs import rules

CLAIMED: Final = 0.15
_LEAST_NBYTES: Final = 8 << 10
_MOST_NBYTES: Final = 16 << 20
# Grid layouts to measure: the best by the model, and by counts at such a time for a load.
_FINAL: Final = 3
_LOADS_S: Final = (5e-6, 2e-5, 1e-4)
_FILTERS: Final = "shuffle+deflate:4"
# Reads of each pattern: more of small ones, which take less time than an opened file's index.
_FEWEST_READS: Final = 8
_MOST_READS: Final = 256
_READ_NBYTES: Final = 1 << 20
_TURNS: Final = 5
# A layout that is slow is read for no longer in a turn.
_TURN_S: Final = 1.0
# Processes in each turn that read once.
_ONCE: Final = 3
_READS_ONCE: Final = """
import pickle, sys, time
from chunkwise_lab.regret.reading import by_chunkwise
path, read = pickle.load(sys.stdin.buffer)
with by_chunkwise(path) as file:
    found, begun = file["x"], time.perf_counter()
    found[read]
    print(time.perf_counter() - begun)
"""
_ELSEWHERE: Final = np.ones(128 << 20, np.uint8)
# What takes this many times as long as the fastest is read twice.
_FAR: Final = 2.0
# A run that is only bounded by what it measures.
_LONG_S: Final = 1e5


@dataclass(frozen=True)
class Regret:
    """What one case showed."""

    name: str  # Of the case
    advised: str  # The layouts, in words
    best: str
    rule: str
    advised_s: float  # Seconds of one read of each pattern, as often as its weight says
    best_s: float
    rule_s: float
    present_s: float
    others_s: dict[str, float] = field(default_factory=dict)  # Of what rules of thumb would take
    left: bool = False  # Whether the advice was to leave it
    layouts: int = 0  # How many were measured
    advice_s: float = 0.0  # What the advice took
    sides: int = 0  # How fine the grid was, and seconds for the advice
    budget_s: float = 0.0

    @property
    def regret(self) -> float:
        """How much slower the advice is than the best, 0.1 for a tenth."""
        return self.advised_s / self.best_s - 1

    @property
    def rule_regret(self) -> float:
        """The same of the chunks that are chosen without measuring."""
        return self.rule_s / self.best_s - 1


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
    wanted = goals.read("balanced", case.reader)
    work = Work.of(path, "x", case.access, wanted, begun=0.0, budget_s=_LONG_S)
    with tempfile.TemporaryDirectory(prefix="chunkwise-") as folder:
        problem, _ = work.modelled(folder, calibrate=False)
    target, present = work.target, Layout(work.target.chunks, work.target.filters)
    filters = advice.best.filters
    assert problem.usual is not None
    rule = Layout(problem.usual, filters)
    thumbs = rules(target.shape, target.itemsize, target.maxshape)
    others = {text: Layout(chunks, filters) for text, chunks in thumbs.items()}
    grid = grid_of(target.shape, target.itemsize, work.requested, sides)
    modelled = sorted(
        (Layout(chunks, filters) for chunks in grid), key=lambda one: problem.outcome(one).read_s
    )[:_FINAL]
    likely = _likely(grid, target.shape, target.itemsize, work.requested, wanted.reader, filters)
    final = [advice.best, rule, *modelled, *likely, present, *others.values()]
    opened = by_chunkwise if case.reader else by_h5py()
    made = {present: path}
    seconds = _measured(case.values(), final, work.requested, opened, path.parent, say, made)
    # Rules of thumb are not of the grid; a file may not grow beyond its limit.
    able = [one for one in seconds if one == advice.best or problem.fits(problem.outcome(one))]
    winner = min(able, key=lambda layout: seconds[layout])
    return Regret(
        case.name,
        str(advice.best),
        str(winner),
        str(rule),
        seconds[advice.best],
        seconds[winner],
        seconds[rule],
        seconds[present],
        {text: seconds[one] for text, one in others.items()},
        advice.leave,
        len(seconds),
        advice.elapsed_s,
        sides,
        budget_s,
    )


def of_rule(case: Case, *, sides: int, say: Callable[[str], None]) -> Regret:
    """Try what is chosen for a case without measuring, by h5py."""
    values, itemsize = case.values(), np.dtype(case.dtype).itemsize
    requested = patterns.read(case.access, case.shape, itemsize, case.name)
    rule = Layout(
        default_chunk(case.shape, itemsize, None, [one.pattern for one in requested]), _FILTERS
    )
    grid = grid_of(case.shape, itemsize, requested, sides)
    likely = _likely(grid, case.shape, itemsize, requested, this_process(), _FILTERS)
    with tempfile.TemporaryDirectory(prefix="chunkwise-") as folder:
        seconds = _measured(values, [rule, *likely], requested, by_h5py(), Path(folder), say)
    winner = min(seconds, key=lambda layout: seconds[layout])
    return Regret(
        case.name,
        str(rule),
        str(winner),
        str(rule),
        seconds[rule],
        seconds[winner],
        seconds[rule],
        math.nan,
        layouts=len(seconds),
        sides=sides,
    )


def _likely(
    grid: Sequence[Shape],
    shape: Shape,
    itemsize: int,
    requested: Sequence[Requested],
    reader: Reader,
    filters: str,
) -> list[Layout]:
    """Choose layouts that may be the best, by their counts alone, for bytes in memory."""
    meant = [one.pattern for one in requested]
    found = []
    for load_s in _LOADS_S:
        seconds = [
            nominal_s(
                Stored(shape, one, itemsize, filters != "none"), meant, reader, load_s=load_s
            )
            for one in grid
        ]
        found += [Layout(grid[n], filters) for n in np.argsort(seconds, kind="stable")[:_FINAL]]
    return found


def _measured(
    values: Any,
    layouts: Sequence[Layout],
    requested: Sequence[Requested],
    opened: Callable[[Path], Any],
    scratch: Path,
    say: Callable[[str], None],
    made: Mapping[Layout, Path] = MappingProxyType({}),
) -> dict[Layout, float]:
    """Measure layouts in turns: one read of each pattern, as often as its weight says."""
    # All are written as `chunkwise repack` encodes them, but for files that are there already.
    layouts, made = list(dict.fromkeys(layouts)), dict(made)
    nbytes = [math.prod(one.pattern.block) * values.itemsize for one in requested]
    reads = [
        selections(one.access, values.shape)[
            : max(_FEWEST_READS, min(_MOST_READS, _READ_NBYTES // each))
        ]
        for one, each in zip(requested, nbytes, strict=True)
    ]
    weights = [one.pattern.weight * one.pattern.reads for one in requested]
    best = dict.fromkeys(itertools.product(layouts, range(len(requested))), math.inf)
    with tempfile.TemporaryDirectory(prefix="chunkwise-", dir=scratch) as folder:
        files = {layout: Path(folder, f"{n}.h5") for n, layout in enumerate(layouts)} | made
        for layout in files.keys() - made.keys():
            say(f"writing {layout}")
            _write(files[layout], values, layout, [index for each in reads for index in each])
        for turn, (layout, place) in itertools.product(range(_TURNS), best):
            fastest_s = min(best[one, place] for one in layouts)
            # At first the system also maps the file.
            if turn > 1 and best[layout, place] > _FAR * fastest_s:
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


def _once_s(path: Path, read: Index) -> float:
    """Return the seconds of the only read of a process, by chunkwise."""
    return float(succeeded(python(_READS_ONCE), given=pickle.dumps((path, read))).out)


def _each_s(found: Any, reads: Sequence[Index]) -> float:
    """Return the seconds of one read, by as many as there is time for."""
    begun, took_s, number = time.perf_counter(), 0.0, 0
    while number < len(reads) and took_s < _TURN_S:
        found[reads[number]]
        number += 1
        took_s = time.perf_counter() - begun
    return took_s / number


def _read_s(path: Path, opened: Callable[[Path], Any], reads: list[Index]) -> float:
    """Return the seconds of one read, when others were made before: mapped pages are there."""
    if opened is by_chunkwise and len(reads) == 1:
        return min(_once_s(path, reads[0]) for _ in range(_ONCE))
    chunkwise.cache_clear()
    with chunkwise.settings(cache_nbytes=0), opened(path) as file:
        found = file["x"]
        others = reads if opened is by_chunkwise else [(-1,) * found.ndim]
        _each_s(found, others)
        # Places that follow no order are in no cache of the processor.
        _ELSEWHERE.sum()
        return _each_s(found, reads)


def grid_of(
    shape: Shape, itemsize: int, requested: Sequence[Requested], sides: int
) -> list[Shape]:
    """List the chunks of a grid: some lengths a dimension, the shortest and the longest too."""
    along = []
    for axis, extent in enumerate(shape):
        known = divisors(extent, {one.pattern.block[axis] for one in requested})
        places = np.linspace(0, len(known) - 1, min(sides, len(known)))
        along.append(sorted({known[round(place)] for place in places}))
    return [
        chunks
        for chunks in itertools.product(*along)
        if _LEAST_NBYTES <= math.prod(chunks) * itemsize <= _MOST_NBYTES
    ]


def lines(found: Sequence[Regret]) -> Iterator[str]:
    """Write the tables of docs/advise.md, and what is claimed."""
    yield "| case | advised | regret | without measuring | regret | now |"
    yield "| --- | --- | ---: | --- | ---: | ---: |"
    for one in found:
        left = " (left)" if one.left else ""
        yield (
            f"| {one.name} | {one.advised}{left} | {one.regret:.0%} | {one.rule} | "
            f"{one.rule_regret:.0%} | {one.present_s / one.advised_s:.3g}x |"
        )
    for what, each in (
        ("Advised", np.array([one.regret for one in found])),
        ("Without measuring", np.array([one.rule_regret for one in found])),
    ):
        yield ""
        yield (
            f"{what}: {np.median(each):.0%} slower than the best in the median, {each.max():.0%} "
            f"at the most; {sum(each > CLAIMED)} of {len(found)} above {CLAIMED:.0%}."
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
        slower = sum(ratio < SLOWER for ratio in times)
        yield (
            f"| {text} | {np.median(times):.3g}x | {min(times):.3g}x | {max(times):.3g}x | "
            f"{slower} |"
        )
