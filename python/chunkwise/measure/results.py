"""What did the trials of one run show: which figures, and were the bytes equal?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from typing import Any, Final

from chunkwise.measure.axes import AXES
from chunkwise.measure.space import Point
from chunkwise.measure.target import Target
from chunkwise.measure.variants import Variant
from chunkwise.measure.verdict import Spread, spread
from chunkwise.patterns.pattern import Access
from chunkwise.trials.pagecache import PageCache
from chunkwise.trials.trial import Measurement, Operation, Trial
from chunkwise.words import counted

JSON_VERSION: Final = 2
# Figures of a measurement of which a summary has the median.
_MEDIANS: Final = (
    "create_s", "flush_s", "close_s", "sync_s", "written_s", "put_off_s", "file_nbytes",
    "peak_rss_nbytes", "first_s", "mean_s", "cpu_s", "storage_nbytes",
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """All repeats of one combination."""

    access: Access  # The pattern
    trial: Trial  # What was done each time, but for its bounds
    measurements: tuple[Measurement, ...]  # In the order in which they were made; at least one
    # Its value on each axis, as text (`chunkwise.measure.axes`)
    point: Point = field(default_factory=dict)

    @property
    def reader(self) -> str:
        """The reader's name."""
        return self.trial.reader

    @property
    def operation(self) -> Operation:
        """``read`` or ``write``."""
        return self.trial.operation

    @property
    def cache_nbytes(self) -> int | None:
        """The requested cache; None for the default."""
        return self.trial.cache_nbytes

    @property
    def page_cache(self) -> PageCache:
        """``warm`` or ``cold``, as requested."""
        return self.trial.page_cache

    @property
    def variant(self) -> Variant:
        """How the data is stored."""
        return Variant(self.trial.chunks, self.trial.filters, self.trial.format)

    @property
    def pattern(self) -> tuple[Operation, Access]:
        """What is done: cells of one pattern are compared with each other."""
        return self.operation, self.access

    @property
    def succeeded(self) -> tuple[Measurement, ...]:
        """The repeats that gave figures."""
        return tuple(m for m in self.measurements if m.status == "ok")

    @property
    def problem(self) -> Measurement | None:
        """The first repeat that gave none, if no repeat gave any."""
        return None if self.succeeded else self.measurements[0]

    @property
    def fallback(self) -> str | None:
        """Why libhdf5 did it in the place of chunkwise; None if it did not."""
        return next((m.fallback for m in self.succeeded if m.fallback), None)

    @property
    def extrapolated(self) -> bool:
        """Whether the total is an estimate."""
        return any(m.extrapolated for m in self.succeeded)

    @property
    def operations(self) -> int:
        """The fewest reads that a repeat did."""
        return min((m.operations or 0 for m in self.succeeded), default=0)

    @property
    def total_operations(self) -> int | None:
        """How many reads the whole pattern has."""
        return next((m.total_operations for m in self.succeeded), None)

    def spread(self, figure: Callable[[Measurement], float | None]) -> Spread | None:
        """Return median, lowest and highest of a figure over the repeats that gave one."""
        values = [v for v in map(figure, self.succeeded) if v is not None]
        return spread(values) if values else None

    def median(self, figure: Callable[[Measurement], float | None]) -> float | None:
        """Return the median of a figure over the repeats that gave one."""
        found = self.spread(figure)
        return found.median if found else None

    @property
    def total_s(self) -> float | None:
        """Median seconds for the whole pattern."""
        return self.median(lambda m: m.total_s)

    @property
    def worked_s(self) -> list[float]:
        """What is judged of the repeats: seconds without the waiting for a processor."""
        return [m.total_s * m.judged_share for m in self.succeeded if m.total_s]


@dataclass(frozen=True)
class Mismatch:
    """Two trials of one pattern that read, or wrote, different bytes."""

    access: str  # The pattern's name
    operations: int  # The first reads that were compared
    first: str  # The readers
    second: str

    def __str__(self) -> str:
        return (
            f"{self.first} and {self.second} read different bytes in the first "
            f"{counted(self.operations, 'selection')} of '{self.access}'"
        )


@dataclass(frozen=True)
class Advice:
    """The answer of a run.

    Attributes
    ----------
    why : str
        One sentence.
    fix : str or None
        A line of Python or a shell command, or a command and the line that its
        output is to be opened with; None if nothing needs to be done.
    effect : str or None
        What the fix changes, and whether that was measured or computed.
    in_c : str or None
        Lines of C that do what `fix` does in Python; None if `fix` is a command, or has no
        like in C.
    """

    why: str
    fix: str | None = None
    effect: str | None = None
    in_c: str | None = None


@dataclass(frozen=True)
class Results:
    """A finished run.

    Attributes
    ----------
    target : Target
        The dataset, as the first way of storing it that was read has it.
    cells : tuple of Cell
        In the order of the request.
    seconds : float
        The budget.
    elapsed_s : float
        Seconds of the whole run.
    sampled : int or None
        Indexes of the slowest dimension that a sample of the data has; None if all of
        it was read.
    design : str
        How the parameters were combined (`chunkwise.measure.space.Space`).
    original : Target or None
        The dataset as the file has it, where `target` is another way of storing it.
    advice : Advice or None
        Why the slow pattern is slow, and what helps; None if nothing is to be said.
    """

    target: Target
    cells: tuple[Cell, ...]
    seconds: float
    elapsed_s: float
    sampled: int | None = None
    design: str = "product"
    original: Target | None = None
    advice: Advice | None = None

    @property
    def file(self) -> Target:
        """The dataset as the file has it."""
        return self.original or self.target

    @property
    def variants(self) -> list[Variant]:
        """How the data was stored, in order; the first is what the others are measured by."""
        return list(dict.fromkeys(cell.variant for cell in self.cells))

    @property
    def varied(self) -> list[str]:
        """The axes with several measured values, in their order."""
        return [
            name
            for name in AXES
            if len({cell.point[name] for cell in self.cells if name in cell.point}) > 1
        ]

    @property
    def records(self) -> list[dict[str, Any]]:
        """One flat row for each trial (docs/bench.md lists its keys)."""
        return [m.to_record() for cell in self.cells for m in cell.measurements]

    @property
    def mismatches(self) -> list[Mismatch]:
        """Pairs of trials that read different bytes; empty if all agree."""
        return [bad for group in self.patterns() for bad in compare(group)]

    @property
    def wrong(self) -> list[str]:
        """The first wrong element of each trial that read one, in words."""
        found = [m for cell in self.cells for m in cell.measurements if m.wrong]
        return [str(measurement.error) for measurement in found]

    @property
    def compared(self) -> int:
        """How many trials had their bytes compared with another's."""
        groups = ([m for c in g for m in c.succeeded if m.checksums] for g in self.patterns())
        return sum(len(group) for group in groups if len(group) > 1)

    def as_dict(self) -> dict[str, Any]:
        """Return the run as ``--json`` prints it (docs/bench.md)."""
        advice = self.advice
        return {
            "format": "chunkwise-bench",
            "version": JSON_VERSION,
            "target": asdict(self.target),
            "design": self.design,
            "varied": self.varied,
            "seconds": self.seconds,
            "elapsed_s": self.elapsed_s,
            "bytes_equal": not self.mismatches if self.compared else None,
            "mismatches": [str(mismatch) for mismatch in self.mismatches],
            "wrong": self.wrong,
            "advice": asdict(advice) if advice else None,
            "summary": self.summary(),
            "records": self.records,
        }

    def patterns(self) -> list[list[Cell]]:
        """Return the cells grouped by operation and access pattern, in order."""
        groups: dict[tuple[Operation, Access], list[Cell]] = {}
        for cell in self.cells:
            groups.setdefault(cell.pattern, []).append(cell)
        return list(groups.values())

    def speed(self, cell: Cell) -> float | None:
        """Return how many times faster a cell is than the first one of its pattern."""
        base = standard_of(self, cell)
        if base.total_s is None or not cell.total_s:
            return None
        return base.total_s / cell.total_s

    def speed_is_estimated(self, cell: Cell) -> bool:
        """Return whether one of the two times behind `speed` is extrapolated."""
        return cell.extrapolated or standard_of(self, cell).extrapolated

    def summary(self) -> list[dict[str, Any]]:
        """Return one row for each pattern, reader and cache: medians, spread, speed."""
        return [self._summarise(cell) for cell in self.cells]

    def _summarise(self, cell: Cell) -> dict[str, Any]:
        total = cell.spread(lambda m: m.total_s)
        problem = cell.problem
        return {
            **{name.replace("-", "_"): text for name, text in cell.point.items()},
            "operation": cell.operation,
            "access": cell.access.name,
            "block": list(cell.access.block),
            "order": cell.access.order and list(cell.access.order),
            "seed": cell.access.seed,
            "limit": cell.access.limit,
            "reader": cell.reader,
            "chunks": cell.trial.chunks and list(cell.trial.chunks),
            "filters": cell.trial.filters,
            "cache_nbytes": cell.cache_nbytes,
            "page_cache": next((m.page_cache for m in cell.succeeded), cell.page_cache),
            "repeats": len(cell.measurements),
            "operations": cell.operations,
            "total_operations": cell.total_operations,
            "extrapolated": cell.extrapolated,
            **{name: cell.median(attrgetter(name)) for name in _MEDIANS},
            "total_s": total and total.median,
            "total_lowest_s": total and total.lowest,
            "total_highest_s": total and total.highest,
            "total_trimmed_mean_s": total and total.trimmed_mean,
            "speed": self.speed(cell),
            "speed_is_estimated": self.speed_is_estimated(cell),
            "status": problem.status if problem else "ok",
            "error": problem.error if problem else None,
        }


def standard_of(results: Results, cell: Cell) -> Cell:
    """Return the trial that others of its pattern are compared with."""
    return next(other for other in results.cells if other.pattern == cell.pattern)


def compare(cells: Sequence[Cell]) -> list[Mismatch]:
    """Compare the bytes of all trials of one pattern with those of the first."""
    done = [m for cell in cells for m in cell.succeeded if m.checksums]
    found: dict[Mismatch, None] = {}
    for other in done[1:]:
        first = done[0]
        common = max(first.checksums.keys() & other.checksums.keys())
        if first.checksums[common] != other.checksums[common]:
            found[Mismatch(first.trial.access, common, _label(first), _label(other))] = None
    return list(found)


def _label(measurement: Measurement) -> str:
    trial = measurement.trial
    cache = "" if trial.cache_nbytes is None else f" (cache {counted(trial.cache_nbytes, 'byte')})"
    return trial.reader + cache
