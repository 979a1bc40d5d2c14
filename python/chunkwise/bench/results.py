"""What did the trials of one run show: which figures, and were the bytes equal?"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from chunkwise.bench.access import Access
from chunkwise.bench.pagecache import PageCache
from chunkwise.bench.target import Target
from chunkwise.bench.trial import Measurement
from chunkwise.bench.variants import Variant


@dataclass(frozen=True)
class Spread:
    """The middle and the ends of the repeats of one figure.

    Attributes
    ----------
    median, lowest, highest : float
        Of all repeats.
    trimmed_mean : float
        The mean without the best and the worst, as in paper 001 (section 2.2, of ten
        runs); of fewer than three repeats, of all.
    """

    median: float
    lowest: float
    highest: float
    trimmed_mean: float


def spread(values: Sequence[float]) -> Spread:
    """Sum up the repeats of one figure; there must be one at least."""
    kept = sorted(values)[1:-1] or values
    return Spread(statistics.median(values), min(values), max(values), statistics.fmean(kept))


@dataclass(frozen=True)
class Cell:
    """All repeats of one combination of pattern, driver and cache.

    Attributes
    ----------
    access : Access
        The pattern.
    driver : str
        The driver's name.
    cache_nbytes : int or None
        The cache asked for; None for the default.
    measurements : tuple of Measurement
        In the order in which they were made; at least one.
    page_cache : str
        ``warm`` or ``cold``.
    variant : Variant or None
        How the data that was read is stored.
    """

    access: Access
    driver: str
    cache_nbytes: int | None
    measurements: tuple[Measurement, ...]
    page_cache: PageCache = "warm"
    variant: Variant | None = None

    @property
    def succeeded(self) -> tuple[Measurement, ...]:
        """The repeats that gave figures."""
        return tuple(m for m in self.measurements if m.status == "ok")

    @property
    def problem(self) -> Measurement | None:
        """The first repeat that gave none, if no repeat gave any."""
        return None if self.succeeded else self.measurements[0]

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

    @property
    def total_s(self) -> float | None:
        """Median seconds for the whole pattern."""
        spread = self.spread(lambda m: m.total_s)
        return spread.median if spread else None


@dataclass(frozen=True)
class Mismatch:
    """Two trials of one pattern that read different bytes.

    Attributes
    ----------
    access : str
        The pattern's name.
    operations : int
        The first reads that were compared.
    first, second : str
        The drivers.
    """

    access: str
    operations: int
    first: str
    second: str

    def __str__(self) -> str:
        return (
            f"{self.first} and {self.second} read different bytes in the first "
            f"{self.operations:,} reads of '{self.access}'"
        )


@dataclass(frozen=True)
class Results:
    """A finished run.

    Attributes
    ----------
    target : Target
        The dataset.
    cells : tuple of Cell
        In the order in which they were asked for.
    seconds : float
        The budget.
    elapsed_s : float
        What the run took, everything included.
    sampled : int or None
        Indexes of the slowest dimension that a sample of the data has; None where all of
        it was read.
    """

    target: Target
    cells: tuple[Cell, ...]
    seconds: float
    elapsed_s: float
    sampled: int | None = None

    @property
    def variants(self) -> list[Variant | None]:
        """How the data was stored, in order; the first is what the others are measured by."""
        return list(dict.fromkeys(cell.variant for cell in self.cells))

    @property
    def records(self) -> list[dict[str, Any]]:
        """One flat row for each trial, as `Measurement.to_record` gives it."""
        return [m.to_record() for cell in self.cells for m in cell.measurements]

    @property
    def mismatches(self) -> list[Mismatch]:
        """Pairs of trials that read different bytes; empty if all agree."""
        return [bad for group in self.patterns() for bad in compare(group)]

    @property
    def compared(self) -> int:
        """How many trials had their bytes compared with another's."""
        groups = ([m for c in g for m in c.succeeded if m.checksums] for g in self.patterns())
        return sum(len(group) for group in groups if len(group) > 1)

    def patterns(self) -> list[list[Cell]]:
        """Return the cells grouped by pattern, in order."""
        groups: dict[Access, list[Cell]] = {}
        for cell in self.cells:
            groups.setdefault(cell.access, []).append(cell)
        return list(groups.values())

    def speed(self, cell: Cell) -> float | None:
        """Return how many times faster a cell is than the first one of its pattern.

        By total time, median against median; None where either has no figure.
        """
        base = self._base(cell)
        if base.total_s is None or not cell.total_s:
            return None
        return base.total_s / cell.total_s

    def speed_is_estimated(self, cell: Cell) -> bool:
        """Tell whether one of the two times behind `speed` is extrapolated."""
        return cell.extrapolated or self._base(cell).extrapolated

    def _base(self, cell: Cell) -> Cell:
        return next(other for other in self.cells if other.access == cell.access)

    def summary(self) -> list[dict[str, Any]]:
        """Return one row for each pattern, driver and cache: medians, spread, speed."""
        return [self._summarise(cell) for cell in self.cells]

    def _summarise(self, cell: Cell) -> dict[str, Any]:
        total = cell.spread(lambda m: m.total_s)
        first = cell.spread(lambda m: m.first_s)
        each = cell.spread(lambda m: m.mean_s)
        problem = cell.problem
        return {
            "access": cell.access.name,
            "block": list(cell.access.block),
            "order": cell.access.order and list(cell.access.order),
            "seed": cell.access.seed,
            "limit": cell.access.limit,
            "driver": cell.driver,
            "chunks": cell.variant and cell.variant.chunks and list(cell.variant.chunks),
            "filters": cell.variant and cell.variant.filters,
            "cache_nbytes": cell.cache_nbytes,
            "page_cache": next((m.page_cache for m in cell.succeeded), cell.page_cache),
            "repeats": len(cell.measurements),
            "operations": cell.operations,
            "total_operations": cell.total_operations,
            "extrapolated": cell.extrapolated,
            "first_s": first and first.median,
            "mean_s": each and each.median,
            "total_s": total and total.median,
            "total_lowest_s": total and total.lowest,
            "total_highest_s": total and total.highest,
            "total_trimmed_mean_s": total and total.trimmed_mean,
            "cpu_s": _median(cell, lambda m: m.cpu_s),
            "storage_nbytes": _median(cell, lambda m: m.storage_nbytes),
            "speed": self.speed(cell),
            "speed_is_estimated": self.speed_is_estimated(cell),
            "status": problem.status if problem else "ok",
            "error": problem.error if problem else None,
        }


def _median(cell: Cell, figure: Callable[[Measurement], float | None]) -> float | None:
    found = cell.spread(figure)
    return None if found is None else found.median


def compare(cells: Sequence[Cell]) -> list[Mismatch]:
    """Compare the bytes of all trials of one pattern with those of the first.

    Two trials may have ended at different points: they are compared at the
    greatest number of operations for which both have a checksum.
    """
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
    cache = "" if trial.cache_nbytes is None else f" (cache {trial.cache_nbytes:,} bytes)"
    return trial.driver + cache
