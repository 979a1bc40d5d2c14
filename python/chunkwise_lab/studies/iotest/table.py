"""How is a walk written as a CSV file with the columns of hdf5-iotest's?"""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from chunkwise.errors import UsageError
from chunkwise_lab.studies.iotest.measure import PHASES, Clock
from chunkwise_lab.studies.iotest.settings import Settings
from chunkwise_lab.studies.iotest.walk import COLUMNS, Combination

# Of hdf5-iotest, as it prints them.
HEADER: Final = (
    "steps", "arrays", "rows", "cols", "scaling", "proc-rows", "proc-cols", "slowdim", "rank",
    "version", "alignment-increment", "alignment-threshold", "meta-block-size", "layout", "fill",
    "fmt", "io", " async", " wall [s]", "fsize [B]", "write-phase-min [s]",
    "write-phase-max [s]", "creat-min [s]", "creat-max [s]", "write-min [s]", "write-max [s]",
    "read-phase-min [s]", "read-phase-max [s]", "read-min [s]", "read-max [s]",
)  # fmt: skip
# Ours, of walks with filters: what the row's datasets have, and raw bytes by the file's.
OURS: Final = ("filters", "ratio")


@dataclass(frozen=True)
class Row:
    """One combination that was measured."""

    combination: Combination
    filters: str  # That its datasets have
    wall_s: float  # On rank 0
    file_nbytes: int
    raw_nbytes: int  # Of all values
    least: tuple[float, ...]  # Over the ranks, of each of `PHASES`: seconds
    most: tuple[float, ...]

    def figures(self) -> dict[str, float]:
        """Return the seconds, by hdf5-iotest's names without units."""
        found = {"wall": self.wall_s}
        for name, least, most in zip(PHASES, self.least, self.most, strict=True):
            found |= {f"{name}-min": least, f"{name}-max": most}
        return found

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, by the columns' names; seconds and bytes as numbers."""
        values: dict[str, Any] = {"number": self.combination.number, **self.combination.point()}
        values |= {f"{name}_s": seconds for name, seconds in self.figures().items()}
        return {
            **values,
            "file_nbytes": self.file_nbytes,
            "raw_nbytes": self.raw_nbytes,
            "filters": self.filters,
        }


def row(
    one: Combination, filters: str, clocks: Sequence[Clock], file_nbytes: int, raw_nbytes: int
) -> Row:
    """Sum up one combination over its ranks; the first is rank 0."""
    each = list(zip(*(clock.phases() for clock in clocks), strict=True))
    least, most = tuple(map(min, each)), tuple(map(max, each))
    return Row(one, filters, clocks[0].wall, file_nbytes, raw_nbytes, least, most)


def header(settings: Settings) -> str:
    """Return the first line of the CSV file."""
    return ",".join((*HEADER, *(OURS if settings.filters.filters else ())))


def line(settings: Settings, version: str, one: Row) -> str:
    """Return the line of one combination, numbers as hdf5-iotest writes them."""
    known: Mapping[str, object] = {
        **one.combination.point(),
        **_shape(settings),
        "scaling": settings.scaling,
        "version": f'"{version}"',
        " async": "false",
        "fsize [B]": one.file_nbytes,
        **{name: f"{s:.4f}" for name, s in _named(one).items()},
        "filters": one.filters,
        "ratio": f"{one.raw_nbytes / one.file_nbytes:.3f}" if one.file_nbytes else "",
    }
    return ",".join(str(known[name]) for name in header(settings).split(","))


def _shape(settings: Settings) -> dict[str, str]:
    """Return the columns that say how large all combinations of a walk are."""
    values = {
        "steps": settings.steps,
        "arrays": settings.arrays,
        "rows": settings.rows,
        "cols": settings.columns,
        "proc-rows": settings.process_rows,
        "proc-cols": settings.process_columns,
    }
    return {name: str(value) for name, value in values.items()}


def _named(one: Row) -> dict[str, float]:
    figures = {f"{name} [s]": seconds for name, seconds in one.figures().items()}
    return {(f" {name}" if name == "wall [s]" else name): s for name, s in figures.items()}


def done(text: str, settings: Settings, combinations: Sequence[Combination]) -> int:
    """Return how many combinations a CSV file has, to go on after them."""
    lines = text.split("\n")[:-1]
    if not lines:
        return 0
    if lines[0] != header(settings):
        raise UsageError("its columns are not those of this walk: name another file (--csv)")
    found = list(csv.DictReader(io.StringIO("\n".join(lines))))
    if len(found) > len(combinations):
        raise UsageError("it has more rows than this walk: name another file (--csv)")
    for number, (has, one) in enumerate(zip(found, combinations, strict=False), 2):
        for name, value in (one.point() | _shape(settings)).items():
            if has[name] != value:
                raise UsageError(
                    f"line {number} has {name} {has[name]}, where this walk has {value}: name "
                    "another file (--csv)"
                )
    return len(found)


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
            wall, nbytes = map(statistics.geometric_mean, (walls, sizes))
            ends = min(walls), max(walls)
            yield Effect(name, values[0], value, wall, nbytes, *ends, len(pairs))
