"""Which table stands below a plot?

One row for each value, today's beside the paper's.  If that would be long, and the series are
few, one row for each place along the plot, and one column for each series.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from chunkwise.words import format_speed
from chunkwise_lab.report.labels import (
    column_title,
    error_text,
    figure_text,
    phrase,
    sources_text,
    value_text,
    where_phrase,
)
from chunkwise_lab.report.model import Table
from chunkwise_lab.report.scales import number
from chunkwise_lab.report.values import Drawing, Value
from chunkwise_lab.studies.figures import FIGURES
from chunkwise_lab.studies.study import Plot

# A table with more rows is folded, if that makes no more columns than these.
_LONG: Final = 30
_WIDE: Final = 6


@dataclass(frozen=True)
class Line:
    """One thing, as it was measured and as it was published."""

    of: Value  # What tells where it stands: today's, else the paper's
    # As the table has them; empty for nothing.
    today: str
    error: str
    paper: str
    ratio: str
    source: str


def table(
    plot: Plot, values: list[Value], printed: list[Value], dims: list[str], drawing: Drawing
) -> Table:
    """Put what was measured and what was published into rows, those of one thing together."""
    beside: set[int] = set()
    lines = []
    for value in values:
        fitting = [p for p in printed if _measures(value, p, (plot.x, *dims))]
        beside.update(map(id, fitting))
        lines.append(_line(plot, value, fitting, drawing))
    lines += [_line(plot, None, [p], drawing) for p in printed if id(p) not in beside]
    if plot.kind == "line":
        lines = _in_order(plot, lines, dims)
    caption, title = plot.title, FIGURES[plot.figure].title
    if title not in caption:
        caption += f": {title}"
    if plot.relative is not None:
        caption += f", relative to {where_phrase(plot.relative, drawing.libraries)}"
    series = {tuple(line.of.point.get(name) for name in dims) for line in lines}
    if len(lines) > _LONG and 1 < len(series) <= _WIDE:
        return _folded(caption, plot, lines, dims, drawing)
    return _whole(caption, plot, lines, dims, drawing)


def _whole(
    caption: str, plot: Plot, lines: list[Line], dims: list[str], drawing: Drawing
) -> Table:
    names = (plot.x, *dims)
    rows = [
        (
            *(value_text(n, line.of.point.get(n, ""), drawing.libraries) for n in names),
            line.today or ("no counterpart" if line.of.elsewhere else "not measured"),
            line.error,
            line.paper,
            line.ratio,
            line.source,
        )
        for line in lines
    ]
    width = len(names)
    columns = [*map(column_title, names)]
    columns += ["today", "standard error", "published", "today / published", "source"]
    shown = [n for n in range(len(columns)) if n <= width or any(row[n] for row in rows)]
    return Table(
        caption,
        tuple(columns[n] for n in shown),
        tuple(width <= n < width + 4 for n in shown),
        tuple(tuple(row[n] for n in shown) for row in rows),
    )


def _folded(
    caption: str, plot: Plot, lines: list[Line], dims: list[str], drawing: Drawing
) -> Table:
    series = dict.fromkeys(phrase(line.of.point, dims, drawing.libraries) for line in lines)
    rows: dict[str, dict[str, str]] = {}
    for line in lines:
        place = value_text(plot.x, line.of.point[plot.x], drawing.libraries)
        text = f"{line.today} {line.error}".strip()
        if line.paper:
            beside = f" ({line.ratio})" if line.ratio else ""
            text = "; ".join(filter(None, (text, f"paper {line.paper}{beside}")))
        rows.setdefault(place, {})[phrase(line.of.point, dims, drawing.libraries)] = text
    return Table(
        caption,
        (column_title(plot.x), *series),
        (False, *(True for _ in series)),
        tuple((place, *(row.get(name, "") for name in series)) for place, row in rows.items()),
    )


def _in_order(plot: Plot, lines: list[Line], dims: Sequence[str]) -> list[Line]:
    """Put the lines of each series into the order in which they are drawn."""
    series = list(dict.fromkeys(tuple(line.of.point.get(n) for n in dims) for line in lines))

    def place(line: Line) -> tuple[int, float]:
        value = number(line.of.point[plot.x])
        which = series.index(tuple(line.of.point.get(n) for n in dims))
        return which, -math.inf if value is None else value

    return sorted(lines, key=place)


def _measures(value: Value, printed: Value, names: Iterable[str]) -> bool:
    """Whether a value is today's of a published one; what that does not say fits all."""
    return not printed.elsewhere and all(
        printed.point.get(n, value.point.get(n)) == value.point.get(n) for n in names
    )


def _line(plot: Plot, value: Value | None, printed: Sequence[Value], drawing: Drawing) -> Line:
    def text(of: Value) -> str:
        return figure_text(FIGURES[plot.figure], of.middle, relative=plot.relative is not None)

    of = value or printed[0]
    paper = ", ".join(map(text, printed))
    source = "; ".join(sources_text(p.sources) for p in printed)
    if value is None:
        return Line(of, "", "", paper, "", source)
    # With less data there are fewer seconds and bytes for that reason alone.
    compare = not (drawing.reduced and FIGURES[plot.figure].unit in ("s", "bytes"))
    compare |= plot.relative is not None
    ratios = [format_speed(value.middle / p.middle) for p in printed if compare and p.middle]
    return Line(
        value,
        f"{'~ ' if value.estimated else ''}{text(value)}",
        error_text(value.middle, value.low, value.high),
        paper,
        ", ".join(ratios),
        source,
    )
