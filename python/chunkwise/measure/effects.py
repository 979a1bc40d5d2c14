"""What was each setting worth, and what would have helped the slowest trial most?

Two trials that differ only on one axis show what its values are worth there.  The geometric mean
of the ratios of all such pairs sums up a run.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from chunkwise.measure.axes import AXES
from chunkwise.measure.results import Cell, Results

# Two times are called alike up to this ratio.
ABOUT_AS_FAST = 1.15
# What is done, not how: two of these are never compared with each other.
_WHAT = ("operation", "access")


@dataclass(frozen=True)
class Effect:
    """What one value of an axis was worth against the axis' first value."""

    # As in `Cell.point`.
    axis: str
    value: str
    pairs: int  # Pairs of trials that differ in nothing else
    speed: float  # How many times as fast as the first value: the geometric mean over the pairs
    # The ends of these ratios.
    lowest: float
    highest: float
    estimated: bool = False  # Whether a trial of these pairs is extrapolated


@dataclass(frozen=True)
class Change:
    """A single change to one trial, as measured."""

    axis: str  # What was changed
    cell: Cell  # The trial with the change
    speed: float  # How many times as fast it was


def how(results: Results) -> list[str]:
    """Name the axes that vary how things are done, in their order."""
    return [name for name in results.varied if name not in _WHAT]


def effects(results: Results) -> dict[str, list[Effect]]:
    """Return what the values of each axis that was varied were worth.

    The first value of an axis comes first, with a speed of 1.  Values without a single
    pair of trials that gave figures are left out.
    """
    cells = [cell for cell in results.cells if cell.total_s]
    found: dict[str, list[Effect]] = {}
    for axis in how(results):
        values = list(dict.fromkeys(cell.point[axis] for cell in results.cells))
        first = values[0]
        worth = [Effect(axis, first, 0, 1.0, 1.0, 1.0)]
        for value in values[1:]:
            pairs = [
                (base, cell)
                for cell in cells
                if cell.point[axis] == value
                for base in cells
                if base.point[axis] == first and _differ_only_in(axis, base, cell)
            ]
            if pairs:
                ratios = [_speed(base, cell) for base, cell in pairs]
                mean = statistics.geometric_mean(ratios)
                about = any(cell.extrapolated for pair in pairs for cell in pair)
                worth.append(
                    Effect(axis, value, len(pairs), mean, min(ratios), max(ratios), about)
                )
        if len(worth) > 1:
            found[axis] = worth
    return found


def worst(cells: Sequence[Cell]) -> Cell:
    """Return the trial that takes longest; one must have a figure."""
    return max((cell for cell in cells if cell.total_s), key=lambda cell: cell.total_s or 0.0)


def best(cells: Sequence[Cell]) -> Cell:
    """Return the trial that takes the least time; one must have a figure."""
    return min((cell for cell in cells if cell.total_s), key=lambda cell: cell.total_s or math.inf)


def single_changes(results: Results, start: Cell) -> list[Change]:
    """Return what one change would have made of a trial, the best of each axis first."""
    found = []
    for axis in how(results):
        others = [
            cell
            for cell in results.cells
            if cell.total_s
            and cell.point[axis] != start.point[axis]
            and _differ_only_in(axis, start, cell)
        ]
        if others:
            # The first of those that are about as fast: caches are given smallest first.
            enough = ABOUT_AS_FAST * (best(others).total_s or 0.0)
            cell = next(c for c in others if (c.total_s or 0.0) <= enough)
            found.append(Change(axis, cell, _speed(start, cell)))
    return sorted(found, key=lambda change: -change.speed)


def _differ_only_in(axis: str, one: Cell, other: Cell) -> bool:
    """Whether two trials are alike in all other axes, as far as those concern both."""
    return all(
        name == axis
        or one.point[name] == other.point[name]
        or not (_concerned(name, one) and _concerned(name, other))
        for name in AXES
        if name in one.point
    )


def _concerned(name: str, cell: Cell) -> bool:
    return AXES[name].concerns(cell.point)


def _speed(base: Cell, other: Cell) -> float:
    return (base.total_s or 0.0) / (other.total_s or math.inf)
