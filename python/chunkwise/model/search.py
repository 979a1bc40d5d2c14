"""Which chunk shape and filters suit a mix of patterns best, by the model?

For every pipeline the search starts from each reference, the present layout and the best of a
coarse grid, and goes step by step to cheaper shapes.  All shapes it has seen make the front of
reading, writing and size.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations, product
from typing import Any, Final, Literal

from chunkwise.model.chunk_shape import are_too_small, divisors
from chunkwise.model.cost import Stored
from chunkwise.model.layout import Layout
from chunkwise.model.readers import Reader
from chunkwise.model.references import Shape, references
from chunkwise.model.seconds import Codec, Machine, Storage, parts
from chunkwise.model.traffic import Pattern, Traffic, contiguous_traffic, reader_of, traffic

Objective = Literal["read", "write", "size", "balanced"]
OBJECTIVES: Final = ("read", "write", "size", "balanced")
# How much each counts where all count: of a product, so that it does not matter in which unit.
BALANCE: Final[Mapping[str, float]] = {"read": 0.8, "write": 0.1, "size": 0.1}
# Decides between layouts that are equal by the objective.
_TIE: Final = 0.02
# Chunks beyond this need more memory than a reader should be advised to have.
MOST_CHUNK_NBYTES: Final = 16 << 20
# Bytes of the index: a B-tree's leaf is half full, and a chunk's header takes bytes, too.
INDEX_NBYTES: Final = 64
# A file of more chunks is slow to open for anyone.
MOST_CHUNKS: Final = 20_000_000
_STEPS: Final = 40
# The factor by which a leap makes a side longer or shorter.
_LEAPS: Final = (1 / 8, 1 / 4, 1 / 2, 2, 4, 8)
# A coarse grid has about this many shapes, and this many of the best are starts.
_COARSE: Final = 125
_SPREAD: Final = 5
# One in this many measured layouts is a reference.
_REFERENCES: Final = 4
# A layout may be better than the model says by so much in its score, which is a logarithm.
DOUBTED: Final = math.log(1.6)
# Chunks this many times as large are of another size.
_OTHER_SIZE: Final = 4
# Doublings and halvings of sides between two chunk shapes that are unlike, or near each other.
_UNLIKE: Final = 1.0
_NEAR: Final = 1.6
# This many points of a front are shown, none slower than this many times the fastest.
_MOST_SHOWN: Final = 12
_SLOW: Final = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a layout costs, by the model."""

    layout: Layout
    pattern_s: tuple[float, ...]  # Seconds of each pattern, in their order
    # Seconds of all that is read, and written, each pattern as often as its weight says.
    read_s: float
    write_s: float
    nbytes: int  # Bytes in the file
    names: tuple[str, ...] = ()  # What it is called, where it is a reference

    @property
    def figures(self) -> tuple[float, float, float]:
        """Reading, writing and size; the smaller, the better."""
        return self.read_s, self.write_s, float(self.nbytes)


@dataclass(frozen=True)
class Problem:
    """The question, and all that the model needs to answer it."""

    shape: Shape  # Of the dataset, in elements, and bytes of one
    itemsize: int
    patterns: tuple[Pattern, ...]  # What is read and written
    reader: Reader  # Whose cache and whose time
    reader_name: str  # As bench and the rates call it
    machine: Machine  # What was measured; a codec for each pipeline that may be chosen
    codecs: Mapping[str, Codec]
    present: Layout | None = None  # How it is stored; None before there is a file
    objective: Objective = "balanced"  # What the choice minimizes
    most_nbytes: int | None = None  # The most bytes in the file; None for any number
    maxshape: tuple[int | None, ...] | None = None  # As h5py has it
    storage: Storage | None = None  # Where bytes come from; None for memory
    barred: frozenset[str] = frozenset()  # Pipelines that only the present layout may have
    # The chunks that everything but a measurement chooses (`chunk_shape.default_chunk`)
    usual: Shape | None = None
    known: dict[Layout, Outcome] = field(default_factory=dict, compare=False)
    # Seconds by layout and place of the pattern: they do not depend on the weights.
    timed: dict[tuple[Layout, int], float] = field(default_factory=dict, compare=False)
    # Counts by what they follow from.
    counted: dict[Any, tuple[Pattern, Traffic]] = field(default_factory=dict, compare=False)

    def outcome(self, layout: Layout) -> Outcome:
        """Predict the cost of a layout, once for each layout."""
        found = self.known.get(layout)
        if found is None:
            found = self.known[layout] = self._predicted(layout)
        return found

    def _predicted(self, layout: Layout) -> Outcome:
        codec = self.codecs.get(layout.filters) or Codec(layout.filters)
        pattern_s = tuple(self._timed_s(layout, place) for place in range(len(self.patterns)))
        read_s = sum(
            s * p.weight for s, p in zip(pattern_s, self.patterns, strict=True) if not p.writes
        )
        write_s = sum(
            s * p.weight for s, p in zip(pattern_s, self.patterns, strict=True) if p.writes
        )
        if not any(pattern.writes for pattern in self.patterns):
            # Nobody said how it is written: once, chunk by chunk, as a copy is.
            block = layout.chunks or self.shape
            write_s = self.pattern_s(layout, Pattern("", block, writes=True))
        chunks = layout.chunks or self.shape
        grid = [-(-n // c) for n, c in zip(self.shape, chunks, strict=True)]
        whole = math.prod(grid) * math.prod(chunks) * self.itemsize
        nbytes = round(whole * codec.ratio(chunks))
        if layout.chunks is not None:
            nbytes += INDEX_NBYTES * math.prod(grid)
        return Outcome(layout, pattern_s, read_s, write_s, nbytes)

    def _timed_s(self, layout: Layout, place: int) -> float:
        found = self.timed.get((layout, place))
        if found is None:
            found = self.timed[layout, place] = self.pattern_s(layout, self.patterns[place])
        return found

    def pattern_s(self, layout: Layout, pattern: Pattern) -> float:
        """Predict the seconds of one pattern."""
        return sum(self.parts(layout, pattern).values())

    def traffic(self, layout: Layout, pattern: Pattern) -> Traffic:
        """Count the work of a pattern, once for all filters that compress."""
        filtered = layout.filters != "none"
        # A long list of selections is found faster by what it is than by what is in it.
        which = pattern if pattern.selections is None else id(pattern)
        key = (self.shape, self.itemsize, self.reader, layout.chunks, filtered, which)
        found = self.counted.get(key)
        if found is None:
            # Kept with the pattern, so that no other one gets its identity.
            found = self.counted[key] = (pattern, self._counted(layout, pattern))
        return found[1]

    def _counted(self, layout: Layout, pattern: Pattern) -> Traffic:
        reader = reader_of(pattern, self.reader)
        if layout.chunks is None:
            return contiguous_traffic(self.shape, self.itemsize, pattern, reader)
        stored = Stored(self.shape, layout.chunks, self.itemsize, layout.filters != "none")
        return traffic(stored, pattern, reader)

    def parts(self, layout: Layout, pattern: Pattern) -> dict[str, float]:
        """Predict the seconds of one pattern, by their parts (`seconds.parts`)."""
        return parts(
            self.traffic(layout, pattern),
            layout.chunks or self.shape,
            self.itemsize,
            self.codecs.get(layout.filters) or Codec(layout.filters),
            self.machine,
            self.reader_name,
            writing=pattern.writes,
            storage=self.storage,
        )

    def score(self, figures: Sequence[float]) -> float:
        """Rate reading, writing and size by the objective: the smaller the better."""
        read_s, write_s, nbytes = (max(1e-12, figure) for figure in figures)
        logs = {"read": math.log(read_s), "write": math.log(write_s), "size": math.log(nbytes)}
        if self.objective == "balanced":
            score = sum(BALANCE[name] * value for name, value in logs.items())
        else:
            score = logs[self.objective] + _TIE * sum(logs.values())
        if self.most_nbytes is not None and nbytes > self.most_nbytes:
            score += 10 + math.log(nbytes / self.most_nbytes)
        return score

    def fits(self, outcome: Outcome) -> bool:
        """Whether a layout is within the most bytes that it may take."""
        return self.most_nbytes is None or outcome.nbytes <= self.most_nbytes


@dataclass(frozen=True, slots=True)
class Ranking:
    """What a search found."""

    # Layouts, the best first; all references and the present one are among them.
    ranked: tuple[Outcome, ...]
    # Those to which no other is better in reading, writing and size, by reading seconds.
    front: tuple[Outcome, ...]
    looked_at: int  # How many layouts were


def search(problem: Problem, is_late: Callable[[], bool] = lambda: False) -> Ranking:
    """Search layouts for the patterns of a problem; when it is late, only the starts."""
    named = dict(_named(problem))
    starts = list(named)
    steps = _Steps(problem)
    spread: dict[bool, list[Shape]] = {}
    for one in problem.codecs:
        if one in problem.barred:
            continue
        # The best places to begin depend little on the filter.
        also = spread.setdefault(one == "none", [])
        if not also:
            also += steps.spread(one)
        for start in (*starts, *also):
            if is_late():
                steps.score(start, one)
            else:
                steps.descend(start, one)
    if problem.present is not None:
        problem.outcome(problem.present)
    outcomes = [
        Outcome(o.layout, o.pattern_s, o.read_s, o.write_s, o.nbytes, _called(o.layout, named))
        for o in problem.known.values()
    ]
    ranked = sorted(outcomes, key=lambda one: (problem.score(one.figures), str(one.layout)))
    return Ranking(tuple(ranked), front(ranked), len(outcomes))


def front(outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """Return those to which no other is better in reading, writing and size at once."""
    kept: list[tuple[Outcome, float, float]] = []
    for one in sorted(outcomes, key=lambda o: o.figures):
        # Those before it read at least as fast.
        _, write_s, nbytes = one.figures
        if not any(w <= write_s and n <= nbytes for _, w, n in kept):
            kept.append((one, write_s, nbytes))
    return tuple(one for one, _, _ in kept)


def worth_a_look(found: Sequence[Outcome], problem: Problem) -> tuple[Outcome, ...]:
    """Choose the points of a front that somebody would consider: a dozen, none very slow."""
    able = [one for one in found if problem.fits(one)] or list(found)
    fastest = min(one.read_s for one in able)
    able = [one for one in able if one.read_s <= _SLOW * fastest]
    if len(able) > _MOST_SHOWN:
        step = (len(able) - 1) / (_MOST_SHOWN - 1)
        able = [able[round(i * step)] for i in range(_MOST_SHOWN)]
    return tuple(able)


def _called(layout: Layout, named: Mapping[Shape, list[str]]) -> tuple[str, ...]:
    return () if layout.chunks is None else tuple(named.get(layout.chunks, ()))


def _named(problem: Problem) -> Iterator[tuple[Shape, list[str]]]:
    """Give the shapes to start from, with their names."""
    found: dict[Shape, list[str]] = {}
    if problem.present is not None and problem.present.chunks is not None:
        found[problem.present.chunks] = ["the present one"]
    if problem.usual is not None:
        found.setdefault(problem.usual, []).append("chunkwise's own")
    blocks = [pattern.block for pattern in problem.patterns]
    weights = [pattern.weight for pattern in problem.patterns]
    shapes = references(problem.shape, problem.itemsize, blocks, weights, problem.maxshape)
    for name, shape in shapes:
        names = found.setdefault(shape, [])
        if name not in names:
            names.append(name)
    yield from found.items()


class _Steps:
    """Chunk shapes made of lengths that divide the array nearly evenly."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        along = zip(*(pattern.block for pattern in problem.patterns), strict=True)
        self.sides = [
            divisors(extent, set(blocks))
            for extent, blocks in zip(problem.shape, along, strict=True)
        ]

    def descend(self, start: Shape, filters: str) -> None:
        """Go from a shape to what costs less, until nothing near does."""
        self.score(start, filters)
        places = tuple(
            min(len(sides) - 1, bisect_left(sides, side))
            for sides, side in zip(self.sides, start, strict=True)
        )
        best = self.score(self.shape(places), filters)
        for _ in range(_STEPS):
            # Leaps where no step is better.
            for moves in (self.neighbours, self.leaps):
                about = [(self.score(self.shape(one), filters), one) for one in moves(places)]
                score, moved = min(about, default=(math.inf, places))
                if score < best:
                    break
            else:
                break
            best, places = score, moved

    def spread(self, filters: str) -> list[Shape]:
        """Give the best of a coarse grid, unlike each other: steps alone may miss one far away."""
        number = max(2, round(_COARSE ** (1 / len(self.sides))))
        along = [_thinned(sides, number) for sides in self.sides]
        scored = sorted((self.score(shape, filters), shape) for shape in product(*along))
        kept: list[Shape] = []
        for score, shape in scored:
            if len(kept) == _SPREAD or score == math.inf:
                break
            if all(_apart(shape, other) >= _UNLIKE for other in kept):
                kept.append(shape)
        return kept

    def neighbours(self, places: Shape) -> Iterator[Shape]:
        """Give shapes with one side longer or shorter, or one longer for another shorter."""
        ranks = range(len(places))
        moved = [_moved(places, axis, step) for axis in ranks for step in (-2, -1, 1, 2)]
        moved += [
            _moved(_moved(places, i, longer), j, -shorter)
            for i, j in permutations(ranks, 2)
            for longer, shorter in ((1, 1), (1, 2), (2, 1))
        ]
        for one in moved:
            if all(0 <= place < len(self.sides[axis]) for axis, place in enumerate(one)):
                yield one

    def leaps(self, places: Shape) -> Iterator[Shape]:
        """Give shapes with one side much longer or shorter, or traded for another."""
        found = set()
        for axis in range(len(places)):
            for factor in _LEAPS:
                one = self.stretched(places, axis, factor)
                found.add(one)
                found |= {
                    self.stretched(one, j, 1 / factor) for j in range(len(places)) if j != axis
                }
        yield from sorted(found - {places})

    def stretched(self, places: Shape, axis: int, factor: float) -> Shape:
        """Give the shape whose side along one dimension is nearest to this many times as long."""
        sides = self.sides[axis]
        place = bisect_left(sides, round(sides[places[axis]] * factor))
        return (*places[:axis], min(len(sides) - 1, place), *places[axis + 1 :])

    def shape(self, places: Shape) -> Shape:
        return tuple(sides[place] for sides, place in zip(self.sides, places, strict=True))

    def score(self, chunks: Shape, filters: str) -> float:
        """Rate a layout; infinity for one that no file should have."""
        problem = self.problem
        nbytes = math.prod(chunks) * problem.itemsize
        count = math.prod(-(-n // c) for n, c in zip(problem.shape, chunks, strict=True))
        if count > MOST_CHUNKS or (nbytes > MOST_CHUNK_NBYTES and math.prod(chunks) > 1):
            return math.inf
        if are_too_small(count, nbytes):
            # `inspect` says so to the user.
            return math.inf
        return problem.score(problem.outcome(Layout(chunks, filters)).figures)


def _thinned(sides: Sequence[int], number: int) -> list[int]:
    """Keep some of ascending sides, evenly, with the shortest and the longest."""
    last = len(sides) - 1
    parts = max(1, min(number, len(sides)) - 1)
    return sorted({sides[round(i * last / parts)] for i in range(parts + 1)})


def _moved(places: Shape, axis: int, step: int) -> Shape:
    return (*places[:axis], places[axis] + step, *places[axis + 1 :])


def by_rule(found: Ranking, problem: Problem) -> Outcome:
    """Return the layout to take if nothing was measured, the same on every machine."""
    able = [one for one in found.ranked if problem.fits(one)] or list(found.ranked)
    usual = [one for one in able if one.layout.chunks == problem.usual]
    return (usual or able)[0]


def chosen(found: Ranking, problem: Problem, number: int, present: Layout | None) -> list[Outcome]:
    """Choose the layouts that are worth a measurement: the best, unlike each other, of each size.

    The model is more often wrong about a filter, or the size of chunks, than about one length.
    """
    # The choices of others are worth a look even if the model ranks them lower.
    able = [one for one in found.ranked if one.layout != present and problem.fits(one)]
    others = [one for one in able if one.names][: number // _REFERENCES]
    first = by_rule(found, problem)
    kept = [first] if first.layout != present else []
    for one in by_size(able, problem):
        if len(kept) >= number - len(others):
            break
        if is_new(one.layout, [other.layout for other in kept]):
            kept.append(one)
    kept += [one for one in others if one not in kept]
    return sorted(kept, key=lambda one: problem.score(one.figures))


def by_size(ranked: Sequence[Outcome], problem: Problem) -> list[Outcome]:
    """Sort layouts: the best with chunks of each size first, then the next best."""
    most = DOUBTED + min((problem.score(one.figures) for one in ranked), default=0.0)
    tried_sizes: Counter[int] = Counter()

    def place(rank: int, one: Outcome) -> tuple[bool, int, int]:
        nbytes = math.prod(one.layout.chunks or problem.shape) * problem.itemsize
        size = round(math.log(nbytes, _OTHER_SIZE))
        tried_sizes[size] += 1
        return problem.score(one.figures) > most, tried_sizes[size], rank

    places = {one.layout: place(rank, one) for rank, one in enumerate(ranked)}
    return sorted(ranked, key=lambda one: places[one.layout])


def near(found: Ranking, problem: Problem, best: Layout, number: int) -> list[Outcome]:
    """Choose the best by the model of the layouts near a measured one."""
    about = [
        one
        for one in found.ranked
        if one.layout != best and _away(one.layout, best) <= _NEAR and problem.fits(one)
    ]
    return about[:number]


def is_new(one: Layout, kept: Sequence[Layout]) -> bool:
    """Whether a layout is unlike all of some others."""
    return all(_away(one, other) >= _UNLIKE for other in kept)


def _away(one: Layout, other: Layout) -> float:
    if one.filters != other.filters or one.chunks is None or other.chunks is None:
        return math.inf
    return _apart(one.chunks, other.chunks)


def _apart(one: Shape, other: Shape) -> float:
    """Count doublings and halvings of sides from one shape to another."""
    return sum(abs(math.log2(a / b)) for a, b in zip(one, other, strict=True))
