"""Is the advice true?  The proposed layouts are written from the data, and measured.

Of a large dataset a part is measured.  It is first cut along dimensions in which the patterns
read a short extent, so that a read touches as many chunks as before.  If it has to be cut
further, the model's ratio scales the seconds of the part to the whole.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

from chunkwise.advice.patterns import Requested
from chunkwise.files.opening import find_dataset, open_h5
from chunkwise.grammar import format_size
from chunkwise.measure.results import Cell, Results
from chunkwise.measure.run import run
from chunkwise.measure.schedule import Step
from chunkwise.measure.space import Space
from chunkwise.measure.target import Target
from chunkwise.measure.variants import Variant
from chunkwise.model.chunk_cache import hash_slots
from chunkwise.model.cost import Shape, Stored
from chunkwise.model.layout import Layout
from chunkwise.model.readers import CHUNKWISE, Reader
from chunkwise.model.search import Outcome, Problem
from chunkwise.model.traffic import is_alone
from chunkwise.patterns import Access
from chunkwise.trials.trial import Measurement

# Bytes of a part for each second of the budget.
_NBYTES_PER_S: Final = 3 << 19
_LEAST_NBYTES: Final = 4 << 20
_MOST_NBYTES: Final = 256 << 20
# A part keeps this many times the reach of a pattern, if there is room.
_KEPT_BLOCKS: Final = 8
_KEPT_ELEMENTS: Final = 32
_COPIED_NBYTES: Final = 32 << 20


@dataclass(frozen=True)
class Part:
    """What is measured in the place of a dataset."""

    file: str  # Where it is
    dataset: str
    start: Shape  # The box of the dataset that it holds, in elements
    shape: Shape
    whole: bool  # Whether that is all of it

    @classmethod
    def all_of(cls, target: Target) -> Part:
        """Return all of a dataset."""
        return cls(target.file, target.dataset, (0,) * len(target.shape), target.shape, True)

    def __str__(self) -> str:
        if self.whole:
            return "the whole dataset"
        ends = (a + n for a, n in zip(self.start, self.shape, strict=True))
        box = ", ".join(f"{a}:{b}" for a, b in zip(self.start, ends, strict=True))
        return f"the part [{box}]"


@dataclass(frozen=True)
class Timing:
    """Seconds of one pattern, as they were measured.

    Attributes
    ----------
    median, lowest, highest
        Of all repeats, in seconds for the whole pattern on the whole dataset.
    repeats
        How many there were.
    estimated
        Whether not all of it was measured: a part of the dataset, or of the reads.
    """

    median: float
    lowest: float
    highest: float
    repeats: int = 1
    estimated: bool = False

    def of(self, reads: int) -> Timing:
        """Return the same for one of this many reads."""
        return Timing(
            self.median / reads,
            self.lowest / reads,
            self.highest / reads,
            self.repeats,
            self.estimated,
        )


@dataclass
class Proof:
    """What was measured."""

    part: Part  # Of which data
    # For each layout and pattern name; of layouts that failed, nothing.
    timings: dict[Layout, dict[str, Timing]] = field(default_factory=dict)
    # What the judge counts of each repeat.
    samples: dict[Layout, dict[str, tuple[float, ...]]] = field(default_factory=dict)
    # What chunkwise takes for each pattern of the present layout.
    ours: dict[str, Timing] = field(default_factory=dict)
    failed: dict[Layout, str] = field(default_factory=dict)  # Why layouts could not be measured
    ours_samples: dict[str, tuple[float, ...]] = field(default_factory=dict)  # As `samples`


def part_nbytes(budget_s: float) -> int:
    """Return how large a part a budget has time for."""
    return int(min(_MOST_NBYTES, max(_LEAST_NBYTES, budget_s * _NBYTES_PER_S)))


@contextmanager
def cut(
    target: Target,
    requested: Sequence[Requested],
    most_nbytes: int,
    folder: str,
    say: Callable[[str], None],
) -> Iterator[Part]:
    """Write a part of a dataset to a file, where the whole is too large to be measured."""
    # A part is at most about half of it: for less than twice as much, all of it is measured.
    if target.nbytes < 2 * most_nbytes:
        yield Part.all_of(target)
        return
    shape = part_shape(
        target.shape, target.itemsize, [a.pattern.block for a in requested], most_nbytes
    )
    start = tuple((n - s) // 2 for n, s in zip(target.shape, shape, strict=True))
    if target.chunks is not None:
        # From where a chunk begins, so that no chunk is decoded for a sliver of it.
        pairs = zip(start, target.chunks, strict=True)
        start = tuple(a // c * c for a, c in pairs)
    path = str(Path(folder) / "part.h5")
    say(f"reading a part of {format_size(math.prod(shape) * target.itemsize)}")
    _copy(target, path, start, shape)
    yield Part(path, "/part", start, shape, False)
    Path(path).unlink(missing_ok=True)


def part_shape(shape: Shape, itemsize: int, blocks: Sequence[Shape], most_nbytes: int) -> Shape:
    """Choose a part's extents: cut first dimensions of which patterns read a short extent."""
    reach = [max(block[axis] for block in blocks) for axis in range(len(shape))]
    kept = [
        min(n, max(_KEPT_BLOCKS * b, _KEPT_ELEMENTS)) for n, b in zip(shape, reach, strict=True)
    ]
    sides = list(shape)
    for least in (kept, [min(n, _KEPT_BLOCKS) for n in shape], [1] * len(shape)):
        while math.prod(sides) * itemsize > most_nbytes:
            able = [axis for axis, side in enumerate(sides) if side > least[axis]]
            if not able:
                break
            # The side that was cut least so far; among equals, the longest.
            axis = max(able, key=lambda a: (sides[a] / shape[a], sides[a]))
            sides[axis] = max(least[axis], -(-sides[axis] // 2))
    return tuple(sides)


def _copy(target: Target, path: str, start: Shape, shape: Shape) -> None:
    with open_h5(target.file) as source, h5py.File(path, "w") as file:
        dataset = find_dataset(source, target.dataset)
        datatype = h5t.TypeID.copy(dataset.id.get_type())
        dcpl = h5p.create(h5p.DATASET_CREATE)
        dcpl.set_alloc_time(h5d.ALLOC_TIME_EARLY)
        made = h5d.create(file.id, b"part", datatype, h5s.create_simple(shape), dcpl)
        row_nbytes = math.prod(shape[1:]) * target.itemsize
        unit = target.chunks[0] if target.chunks else 1
        rows = max(1, _COPIED_NBYTES // max(1, row_nbytes) // unit) * unit
        for first in range(0, shape[0], rows):
            number = min(rows, shape[0] - first)
            box = (number, *shape[1:])
            values = np.empty(box, dataset.dtype)
            begin = (start[0] + first, *start[1:])
            slices = tuple(slice(a, a + n) for a, n in zip(begin, box, strict=True))
            dataset.read_direct(values, slices)
            space = made.get_space()
            space.select_hyperslab((first, *(0 for _ in shape[1:])), box)
            made.write(h5s.create_simple(box), space, values, datatype)


def measure(
    part: Part,
    layouts: Sequence[Layout],
    requested: Sequence[Requested],
    problem: Problem,
    *,
    repeat: int,  # How often each is measured, as far as the seconds last
    seconds: float,
    ours_too: Layout | None = None,  # The present layout, measured with chunkwise as well
    scratch: str | None = None,
    progress: Callable[[Step], None] | None = None,
) -> Proof:
    """Measure layouts of a part, each pattern on each, in turns."""
    proof = Proof(part)
    trials: list[Mapping[str, str]] = []
    cells: list[tuple[Layout, Requested, bool]] = []
    for one in requested:
        for layout in layouts:
            trials.append(_trial(part, layout, one, problem, problem.reader_name))
            cells.append((layout, one, False))
            if layout == ours_too and problem.reader_name != CHUNKWISE:
                trials.append(_trial(part, layout, one, problem, CHUNKWISE))
                cells.append((layout, one, True))
    accesses = {one.access.name: access_on(part, one) for one in requested}

    def heard(step: Step) -> None:
        # A budget that bench warns of is no budget that the user has set.
        if progress is not None and not step.warning:
            progress(step)

    # `chunkwise repack` would write the advice; others have written the present layout.
    present = None if ours_too is None else on_part(part, ours_too)
    results = run(
        part.file,
        part.dataset,
        Space({}, "list", tuple(trials), accesses),
        repacked={_variant(here) for one in layouts if (here := on_part(part, one)) != present},
        repeat=repeat,
        seconds=seconds,
        progress=heard,
        # All of it: the part is the sample.
        sample_nbytes=1 << 62,
        scratch=scratch,
    )
    for layout, one, is_ours in cells:
        cell = _cell(results, part, layout, one, CHUNKWISE if is_ours else problem.reader_name)
        samples = () if cell is None else _samples(cell, part, layout, one, problem)
        timing = None if cell is None else _timing(cell, part, [total_s for total_s, _ in samples])
        judged = tuple(judged_s for _, judged_s in samples)
        if timing is None:
            if cell is not None and cell.problem is not None:
                proof.failed[layout] = str(cell.problem.error)
        elif is_ours:
            proof.ours[one.pattern.name] = timing
            proof.ours_samples[one.pattern.name] = judged
        else:
            proof.timings.setdefault(layout, {})[one.pattern.name] = timing
            proof.samples.setdefault(layout, {})[one.pattern.name] = judged
    # A layout without a pattern's figures has no answer.
    for layout in list(proof.timings):
        if len(proof.timings[layout]) < len(requested):
            proof.timings.pop(layout)
            proof.failed.setdefault(layout, "not all patterns were measured")
    return proof


def on_part(part: Part, layout: Layout) -> Layout:
    """Return a layout with chunks that are no longer than the part."""
    if layout.chunks is None or part.whole:
        return layout
    chunks = tuple(min(c, n) for c, n in zip(layout.chunks, part.shape, strict=True))
    return Layout(chunks, layout.filters)


def _variant(here: Layout) -> Variant:
    return Variant(here.chunks, here.filters if here.chunks is not None else "none")


def _trial(
    part: Part, layout: Layout, one: Requested, problem: Problem, reader: str
) -> dict[str, str]:
    here = on_part(part, layout)
    point = {
        "operation": "write" if one.pattern.writes else "read",
        "access": one.access.name,
        "reader": reader,
        "chunk": here.chunk_word,
        "filter": _variant(here).filters,
    }
    if is_alone(one.pattern, reader):
        point["engine-cache"] = "0"
    if reader != CHUNKWISE and here.chunks is not None:
        cache = _cache(part, layout, here, one, problem)
        point["cache"] = str(cache.cache_nbytes)
        if cache.nslots is not None:
            point["nslots"] = str(cache.nslots)
    return point


def access_on(part: Part, one: Requested) -> Access:
    """Return a pattern for a part of the dataset: its blocks cut to it, as many as before."""
    meant = one.access
    if part.whole:
        return meant
    block = tuple(min(b, n) for b, n in zip(meant.block, part.shape, strict=True))
    if meant.slabs is not None or meant.cells is not None:
        # Boxes of the same shape, anywhere.
        number = min(one.pattern.operations or 1, 1000)
        return Access(meant.name, block, seed=0, limit=number)
    return replace(meant, block=block)


def _cache(part: Part, layout: Layout, here: Layout, one: Requested, problem: Problem) -> Reader:
    """Return the stated reader, with a cache as much smaller as its walk touches fewer chunks."""
    reader = problem.reader
    nbytes = reader.cache_nbytes
    if not part.whole and one.pattern.selections is None and layout.chunks and here.chunks:
        block = tuple(min(b, n) for b, n in zip(one.pattern.block, part.shape, strict=True))
        all_of_it = Stored(problem.shape, layout.chunks, problem.itemsize)
        of_part = Stored(part.shape, here.chunks, problem.itemsize)
        order = one.pattern.order
        held = max(all_of_it.walk(one.pattern.block, order).footprints())
        held_here = max(of_part.walk(block, order).footprints())
        if one.pattern.scattered:
            held, held_here = math.prod(all_of_it.grid), math.prod(of_part.grid)
        share = held_here * of_part.chunk_nbytes / (held * all_of_it.chunk_nbytes)
        nbytes = round(nbytes * min(1.0, share))
        # A chunk that fits the whole cache fits this one.
        if all_of_it.chunk_nbytes <= reader.cache_nbytes:
            nbytes = max(nbytes, of_part.chunk_nbytes)
        slots = hash_slots(max(1, nbytes // of_part.chunk_nbytes))
        return replace(reader, cache_nbytes=nbytes, nslots=slots)
    return reader


def _cell(
    results: Results, part: Part, layout: Layout, one: Requested, reader: str
) -> Cell | None:
    variant = _variant(on_part(part, layout))
    operation = "write" if one.pattern.writes else "read"
    wanted = (variant, reader, operation, access_on(part, one))
    for cell in results.cells:
        if (cell.variant, cell.reader, cell.operation, cell.access) == wanted:
            return cell
    return None


def _samples(
    cell: Cell, part: Part, layout: Layout, one: Requested, problem: Problem
) -> list[tuple[float, float]]:
    """Return the seconds of each repeat for the pattern on the whole dataset, and those judged."""
    scale = 1.0 if part.whole else _scale(part, layout, one, problem)
    alone = is_alone(one.pattern, cell.reader)
    found = [(_of_one(m) if alone else m.total_s, m.judged_share) for m in cell.succeeded]
    return [(s * scale, s * scale * share) for s, share in found if s is not None]


def _of_one(measured: Measurement) -> float | None:
    """Return the seconds of all reads, if each takes as long as the later ones."""
    # Before those, an index is read, and pages are mapped: once, however many reads there are.
    if measured.later_s is None or measured.total_operations is None:
        return None
    return measured.later_s * measured.total_operations


def _timing(cell: Cell, part: Part, samples: Sequence[float]) -> Timing | None:
    if not samples:
        return None
    estimated = cell.extrapolated or not part.whole
    return Timing(
        statistics.median(samples), min(samples), max(samples), len(cell.succeeded), estimated
    )


def _scale(part: Part, layout: Layout, one: Requested, problem: Problem) -> float:
    """Return how many times as long a pattern takes on the whole dataset, by the model."""
    pattern = one.pattern
    block = tuple(min(b, n) for b, n in zip(pattern.block, part.shape, strict=True))
    cut_pattern = replace(pattern, block=block)
    if pattern.selections is not None:
        cut_pattern = replace(
            cut_pattern, selections=None, scattered=True,
            operations=min(pattern.operations or 1, 1000),
        )  # fmt: skip
    here = on_part(part, layout)
    reader = problem.reader
    if here.chunks is not None and problem.reader_name != CHUNKWISE:
        reader = _cache(part, layout, here, one, problem)
    small = replace(
        problem,
        shape=part.shape,
        patterns=(cut_pattern,),
        reader=reader,
        known={},
        timed={},
        present=None,
        storage=None,
    )
    return problem.pattern_s(layout, pattern) / max(1e-12, small.pattern_s(here, cut_pattern))


def weighed(
    timings: Mapping[str, Timing], requested: Sequence[Requested], *, writes: bool
) -> tuple[float, float, float]:
    """Add up the patterns, each as often as its weight says: median, lowest and highest."""
    chosen: list[Any] = [
        (one.pattern.weight, timings[one.pattern.name])
        for one in requested
        if one.pattern.writes is writes and one.pattern.name in timings
    ]
    return (
        sum(w * t.median for w, t in chosen),
        sum(w * t.lowest for w, t in chosen),
        sum(w * t.highest for w, t in chosen),
    )


def figures(
    outcome: Outcome, proof: Proof, requested: Sequence[Requested]
) -> tuple[float, float, float]:
    """Return reading, writing and size of a layout, measured as far as they were."""
    read_s, write_s, nbytes = outcome.figures
    timings = proof.timings.get(outcome.layout)
    if timings is not None:
        if any(not one.pattern.writes for one in requested):
            read_s = weighed(timings, requested, writes=False)[0]
        if any(one.pattern.writes for one in requested):
            write_s = weighed(timings, requested, writes=True)[0]
    return read_s, write_s, nbytes


def sums(known: Mapping[str, Sequence[float]], requested: Sequence[Requested]) -> list[float]:
    """Add up the patterns that read, repeat by repeat, each as often as its weight says."""
    chosen = [
        (one.pattern.weight, known.get(one.pattern.name, ()))
        for one in requested
        if not one.pattern.writes
    ]
    repeats = min((len(samples) for _, samples in chosen), default=0)
    return [sum(weight * samples[i] for weight, samples in chosen) for i in range(repeats)]
