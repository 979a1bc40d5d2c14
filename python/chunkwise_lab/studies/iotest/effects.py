"""What does each parameter of a walk do to its figures?

Rows that differ in one parameter alone are compared in pairs: the geometric mean over all
pairs is the effect of that parameter, here, in this walk.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chunkwise_lab.studies.iotest.table import Row
from chunkwise_lab.studies.iotest.walk import COLUMNS


@dataclass(frozen=True)
class Effect:
    """One parameter's second value against its first."""

    parameter: str
    first: str
    second: str
    # How many times the wall time, and the file's bytes, with `second` as with `first`.
    wall: float
    nbytes: float
    least: float  # Of the wall time, over the pairs
    most: float
    pairs: int


def effects(rows: Sequence[Row]) -> Iterator[Effect]:
    """Give each parameter's effect, in the order of the columns; of the first value on all."""
    points = [row.combination.point() for row in rows]
    for name in COLUMNS.values():
        values = list(dict.fromkeys(point[name] for point in points))
        groups: dict[tuple[str, ...], dict[str, Row]] = {}
        for row, point in zip(rows, points, strict=True):
            rest = tuple(value for key, value in point.items() if key != name)
            groups.setdefault(rest, {})[point[name]] = row
        for value in values[1:]:
            pairs = [
                (g[values[0]], g[value]) for g in groups.values() if {values[0], value} <= {*g}
            ]
            if not pairs:
                continue
            walls = [two.wall_s / max(one.wall_s, 1e-9) for one, two in pairs]
            sizes = [two.file_nbytes / one.file_nbytes for one, two in pairs]
            yield Effect(
                name,
                values[0],
                value,
                statistics.geometric_mean(walls),
                statistics.geometric_mean(sizes),
                min(walls),
                max(walls),
                len(pairs),
            )
