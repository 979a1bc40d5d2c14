"""Where does each value of a plot stand, and what is its series called?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from chunkwise.words import counted, format_speed
from chunkwise_lab.report import scales
from chunkwise_lab.report.labels import (
    Libraries,
    axis_title,
    column_title,
    error_text,
    figure_text,
    phrase,
    sources_text,
    value_phrase,
    value_text,
    where_phrase,
    with_library,
)
from chunkwise_lab.report.model import Axis, Chart, Point, Series, Table, Tick
from chunkwise_lab.report.scales import Scale, number
from chunkwise_lab.report.values import (
    FAMILY,
    Drawing,
    Value,
    by_model,
    distinguished,
    measured,
    published,
)
from chunkwise_lab.studies.figures import FIGURES
from chunkwise_lab.studies.study import Plot, Statistic, matches
from chunkwise_lab.studies.wording import beside, in_print, plain

# A table with more rows is folded, if that makes no more columns than these.
_LONG: Final = 30
_WIDE: Final = 6


# What stands in a row beside the places of axes; columns without a text in any row are left out.
_TODAY: Final = "today"
_COLUMNS: Final = (_TODAY, "standard error", "model", "published", "today / published", "source")
# What says where a row stands (today's value, else the paper's), and its texts.
Line = tuple[Value, dict[str, str]]


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
    series = {tuple(of.point.get(name) for name in dims) for of, _ in lines}
    if len(lines) > _LONG and 1 < len(series) <= _WIDE:
        return _folded(caption, plot, lines, dims, drawing)
    return _whole(caption, plot, lines, dims, drawing)


def _whole(
    caption: str, plot: Plot, lines: list[Line], dims: list[str], drawing: Drawing
) -> Table:
    names = (plot.x, *dims)
    shown = [n for n in _COLUMNS if n == _TODAY or any(texts[n] for _, texts in lines)]
    rows = []
    for of, texts in lines:
        point = with_library(of.point, drawing.libraries)
        place = (value_text(n, point.get(n, ""), drawing.libraries) for n in names)
        no_value = "no counterpart" if of.elsewhere else "not measured"
        rows.append((*place, *(texts[n] or (no_value if n == _TODAY else "") for n in shown)))
    numbers = (*(False for _ in names), *(n != "source" for n in shown))
    return Table(caption, (*map(column_title, names), *shown), numbers, tuple(rows))


def _folded(
    caption: str, plot: Plot, lines: list[Line], dims: list[str], drawing: Drawing
) -> Table:
    series = dict.fromkeys(phrase(of.point, dims, drawing.libraries) for of, _ in lines)
    rows: dict[str, dict[str, str]] = {}
    for of, texts in lines:
        today, error, model, paper, ratio, _ = texts.values()
        beside = f" ({ratio})" if ratio else ""
        text = "; ".join(
            part
            for part in (
                f"{today} {error}".strip(),
                f"model {model}" if model else "",
                f"paper {paper}{beside}" if paper else "",
            )
            if part
        )
        place = value_text(plot.x, of.point[plot.x], drawing.libraries)
        rows.setdefault(place, {})[phrase(of.point, dims, drawing.libraries)] = text
    return Table(
        caption,
        (column_title(plot.x), *series),
        (False, *(True for _ in series)),
        tuple((place, *(row.get(name, "") for name in series)) for place, row in rows.items()),
    )


def _in_order(plot: Plot, lines: list[Line], dims: Sequence[str]) -> list[Line]:
    """Put the lines of each series into the order in which they are drawn."""
    series = list(dict.fromkeys(tuple(of.point.get(n) for n in dims) for of, _ in lines))

    def place(line: Line) -> tuple[int, float]:
        point = line[0].point
        value = number(point[plot.x])
        which = series.index(tuple(point.get(n) for n in dims))
        return which, -math.inf if value is None else value

    return sorted(lines, key=place)


def _measures(value: Value, printed: Value, names: Iterable[str]) -> bool:
    """Whether a value is today's of a published one; what that does not say fits all."""
    return not printed.elsewhere and all(
        printed.point.get(n, value.point.get(n)) == value.point.get(n) for n in names
    )


def _line(plot: Plot, value: Value | None, printed: Sequence[Value], drawing: Drawing) -> Line:
    def text(of: Value) -> str:
        return _text(plot, of, drawing)

    of = value or printed[0]
    model = ", ".join(text(one) for one in printed if one.modelled)
    printed = [one for one in printed if not one.modelled]
    paper = ", ".join(map(text, printed))
    source = "; ".join(sources_text(p.sources) for p in printed)
    if value is None:
        texts = ("", "", model, paper, "", source)
        return of, dict(zip(_COLUMNS, texts, strict=True))
    # With less data there are fewer seconds and bytes for that reason alone.
    compare = not (drawing.reduced and FIGURES[plot.figure].unit in ("s", "bytes"))
    compare |= plot.relative is not None
    ratios = [format_speed(value.middle / p.middle) for p in printed if compare and p.middle]
    today = f"{'~ ' if value.estimated else ''}{text(value)}"
    error = error_text(value.middle, value.low, value.high)
    texts = (today, error, model, paper, ", ".join(ratios), source)
    return of, dict(zip(_COLUMNS, texts, strict=True))


def _text(plot: Plot, value: Value, drawing: Drawing) -> str:
    """Write a value: a paper's as it is printed, and today's beside it in the same unit."""
    figure = FIGURES[plot.figure]
    if plot.relative is not None:
        return f"{plain(value.middle)}x"
    if value.published and not value.modelled:
        return in_print(value.middle, figure.unit)
    if _beside_papers(plot, drawing):
        return beside(value.middle, figure.unit)
    return figure_text(figure, value.middle)


def _beside_papers(plot: Plot, drawing: Drawing) -> bool:
    """Whether a paper printed values of the figure that is drawn."""
    return any(one.figure == plot.figure for one in drawing.published)


_STATISTICS: Final[dict[Statistic, str]] = {
    "mean": "mean",
    "trimmed-mean": "mean without best and worst",
    "median": "median",
}
_BYTES: Final = ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))
# In a chart of dots: between series of one row, in rows; and what all of them may take.
_OFFSET: Final = 0.24
_ROW: Final = 0.8
# In a key, beside values of axes: what a published value is of that nothing today measures.
_ELSEWHERE: Final = "of"
# ... and what a model says.
_MODELLED: Final = ("model", "yes")
Key = tuple[tuple[str, str], ...]


def draw(id_: str, plot: Plot, drawing: Drawing) -> tuple[Chart | None, Table] | None:
    """Make a plot and its table; None if there is nothing to show."""
    values = measured(plot, drawing.rows, drawing.statistic)
    printed = published(plot, drawing.published, drawing.rows) + by_model(plot, drawing)
    values = [value for value in values if plot.x in value.point]
    if not values and not printed:
        return None
    by = (*plot.by, FAMILY) if plot.split else plot.by
    dims = distinguished([*values, *printed], plot.x, by)
    beside = table(plot, values, printed, dims, drawing)
    # Along another figure each row has a place of its own, and needs no series of its own.
    shown = [name for name in dims if name in by] if plot.x in FIGURES else dims
    plot = replace(plot, by=tuple(dict.fromkeys((*by, *dims))))
    return _chart(id_, plot, values, printed, shown, drawing), beside


def _chart(
    id_: str,
    plot: Plot,
    values: list[Value],
    printed: list[Value],
    dims: list[str],
    drawing: Drawing,
) -> Chart | None:
    log = "y" in plot.log
    everything = [v for v in (*values, *printed) if v.middle > 0 or not log]
    if not everything:
        return None
    notes = []
    hidden = len(values) + len(printed) - len(everything)
    if hidden:
        notes.append(f"{counted(hidden, 'value')} of 0 cannot stand on a logarithmic axis.")
    factor, unit = _unit(plot, everything, drawing)
    texts = [value.point[plot.x] for value in everything]

    def label(text: str) -> str:
        return value_text(plot.x, text, drawing.libraries)

    def whole_label(text: str) -> str:
        # Rows of a chart of dots have no title that would say of what they are values.
        return value_phrase(plot.x, text, drawing.libraries)

    scale = scales.numbers(texts, "x" in plot.log, label)
    if scale.of_words or plot.kind == "bar":
        scale = scales.words(texts, whole_label)
    kept = set(map(id, everything))
    groups = _groups([v for v in (*values, *printed) if id(v) in kept], dims, drawing.libraries)
    gaps = _gaps(plot, dims, scale, drawing)
    # Between values that nearly coincide, such as chunks of 790 and 791, lines would hide marks.
    joined = not (scale.of_words or scale.crowded or plot.x in FIGURES)
    series = []
    for group in groups:
        shift = group.slot if scale.of_words else 0.0
        points = [
            _point(plot, value, scale.places[value.point[plot.x]] + shift, factor, log, drawing)
            for value in group.members
        ]
        broken = [*scale.breaks, *(() if group.published else gaps.get(group.key, ()))]
        runs = _runs(points, broken, joined=joined)
        series.append(Series(group.name, group.style, group.published, runs))
    if any(v.estimated for v in everything):
        notes.append("Hollow marks are estimates: not all of the operations were done.")
    if scale.breaks:
        notes.append("Left of the dotted line, values have no place among the numbers.")
    figure = FIGURES[plot.figure]
    if drawing.reduced and any(not value.modelled for value in printed):
        notes.append(
            "Measured on less data than the paper: compare how values change, not the values."
        )
    title = f"{figure.title[:1].upper()}{figure.title[1:]}{unit}"
    if plot.relative is not None:
        title = f"{title}, relative to {where_phrase(plot.relative, drawing.libraries)}"
    along = f"{plot.split[:1].upper()}{plot.split[1:]}" or axis_title(plot.x)
    if plot.x == "chunk" and not scale.of_words:
        along += ", by its number of elements"
    return Chart(
        id_,
        plot.title,
        "dots" if scale.of_words else "lines",
        Axis(along, False, scale.ticks, scale.breaks, _marks(plot, scale)),
        Axis(title, log),
        tuple(series),
        _alt(plot, title, along, groups, drawing),
        tuple(notes),
    )


def _marks(plot: Plot, scale: Scale) -> tuple[Tick, ...]:
    """Place marks along an axis of numbers; between words there are none."""
    found = ((scales.number(text), name) for text, name in plot.marks.items())
    log = "x" in plot.log
    return tuple(
        Tick(math.log10(value) if log else value, name)
        for value, name in found
        if value is not None and value > 0 and not scale.of_words
    )


def _unit(plot: Plot, values: Iterable[Value], drawing: Drawing) -> tuple[float, str]:
    """Return the factor from bytes to the axis, and its unit."""
    unit = FIGURES[plot.figure].unit
    if unit != "bytes" or plot.relative is not None:
        is_said = unit != "MB/s" or unit in FIGURES[plot.figure].title
        return 1.0, "" if is_said else f" ({unit})"
    if _beside_papers(plot, drawing):
        return 1e-6, " (MB)"
    most = max(value.middle for value in values)
    nbytes, unit = next(((n, u) for n, u in _BYTES if most >= n), (1, "bytes"))
    return 1 / nbytes, f" ({unit})"


def _key(value: Value, dims: Sequence[str]) -> Key:
    key = tuple((name, value.point[name]) for name in dims if name in value.point)
    if value.modelled:
        return (*key, _MODELLED)
    return (*key, (_ELSEWHERE, value.label or value.note or "else")) if value.elsewhere else key


@dataclass
class _Group:
    """The values of a series."""

    key: Key
    published: bool
    name: str
    members: list[Value] = field(default_factory=list)
    # As of a `Series`; and where its marks are in a row of words.
    style: int | None = None
    slot: float = 0.0


def _groups(values: Iterable[Value], dims: Sequence[str], libraries: Libraries) -> list[_Group]:
    """Put values into series, each published one beside the only measured one it can be of."""
    found: dict[tuple[Key, bool], _Group] = {}
    for value in values:
        key, is_published = _key(value, dims), value.published
        group = found.get((key, is_published))
        if group is None:
            name = _name(key, dims, libraries, published=is_published)
            group = found[key, is_published] = _Group(key, is_published, name)
        group.members.append(value)
    mine = [group for group in found.values() if not group.published]
    alone, beside = [], []
    for group in found.values():
        if group.published:
            fitting = [one for one in mine if set(group.key) - {_MODELLED} <= set(one.key)]
            if len(fitting) == 1:
                beside.append((group, fitting[0]))
            else:
                alone.append(group)
    # One below the other in a row; of several that stand beside none, each has a style of its own.
    order = [*mine, *alone]
    step = min(_OFFSET, _ROW / len(order)) if order else 0.0
    for n, group in enumerate(order):
        group.slot = (n - (len(order) - 1) / 2) * step
        group.style = n if not group.published or len(alone) > 1 else None
    for group, partner in beside:
        group.style, group.slot = partner.style, partner.slot
    return list(found.values())


def _name(key: Key, dims: Sequence[str], libraries: Libraries, *, published: bool) -> str:
    text = phrase(dict(key), (*dims, _ELSEWHERE), libraries)
    if _MODELLED in key:
        return f"model: {text}" if text else "the model"
    if published:
        return f"paper: {text}" if text else "the paper"
    return text or "today"


def _gaps(
    plot: Plot, dims: Sequence[str], scale: Scale, drawing: Drawing
) -> dict[Key, list[float]]:
    """Return the places at which a series was to have a value, and has none."""
    found: dict[Key, list[float]] = {}
    for row in drawing.rows:
        if matches(row.point, plot.where) and not row.values(plot.figure):
            key = tuple((name, row.point[name]) for name in dims if name in row.point)
            place = scale.places.get(row.point.get(plot.x, ""))
            if place is not None:
                found.setdefault(key, []).append(place)
    return found


def _runs(
    points: list[Point], broken: Sequence[float], *, joined: bool
) -> tuple[tuple[Point, ...], ...]:
    """Put points in order; those between which nothing is broken make a run."""
    points = sorted(points, key=lambda point: point.at)
    if not joined:
        return tuple((point,) for point in points)
    runs = [[points[0]]]
    for before, point in pairwise(points):
        if any(before.at < place < point.at for place in broken):
            runs.append([])
        runs[-1].append(point)
    return tuple(map(tuple, runs))


def _point(
    plot: Plot, value: Value, at: float, factor: float, log: bool, drawing: Drawing
) -> Point:
    drawn = value.scaled(factor)
    # An error as large as the value would reach to 0, which a logarithmic axis has not.
    low = max(drawn.low, drawn.middle / 10) if log else drawn.low
    details = _details(plot, value, drawing)
    return Point(at, drawn.middle, low, drawn.high, details, value.estimated)


def _details(plot: Plot, value: Value, drawing: Drawing) -> tuple[str, ...]:
    """Write all that is known of a value, a line each."""
    text = _text(plot, value, drawing)
    names = [n for n in (plot.x, *plot.by) if n in value.point]
    where = phrase(value.point, names, drawing.libraries)
    if value.modelled:
        return f"{text} by the model", where, value.label
    if value.published:
        return tuple(
            line
            for line in (
                f"{text} in the paper",
                where,
                value.label,
                sources_text(value.sources),
                value.note,
            )
            if line
        )
    error = error_text(value.middle, value.low, value.high)
    kind = _STATISTICS[drawing.statistic]
    lines = [f"{text} {error}".strip(), where, f"{kind} of {counted(value.repeats, 'repeat')}"]
    if error:
        lines[-1] += "; ± is the standard error"
    if value.estimated:
        lines.append("estimated: not all of the operations were done")
    return (*lines, *value.versions)


def _alt(plot: Plot, figure: str, along: str, groups: Iterable[_Group], drawing: Drawing) -> str:
    """Say in words what is drawn."""
    parts = [f"{plot.title}. {figure}, by: {along[:1].lower()}{along[1:]}."]
    for group in groups:
        least = min(group.members, key=lambda value: value.middle)
        most = max(group.members, key=lambda value: value.middle)
        texts = [
            f"{_text(plot, v, drawing)} at "
            f"{value_text(plot.x, v.point[plot.x], drawing.libraries)}"
            for v in (least, most)
        ]
        parts.append(f"{group.name}: {' to '.join(dict.fromkeys(texts))}.")
    return " ".join(parts)
