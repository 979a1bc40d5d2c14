"""How is a chart drawn on the page?  By plotly; the style sheet gives the colours."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from chunkwise_lab.report.model import Axis, Chart, Point, Series


@dataclass(frozen=True)
class Style:
    """How a series looks, by plotly's names."""

    colour: str
    mark: str
    dash: str


_COLOURS: Final = ("#0077b8", "#d55e00", "#009068", "#b4649a", "#a07800", "#7a72d0")
_MARKS: Final = ("circle", "square", "triangle-up", "diamond", "triangle-down", "pentagon")
_DASHES: Final = (
    *("solid", "7px,3px", "3px,3px", "9px,3px,2px,3px", "12px,4px"),
    "6px,2px,2px,2px,2px,2px",
)
# What a paper printed: crosses and stars, joined by dots, in the colour of what they stand beside.
_PUBLISHED_MARKS: Final = ("x", "cross", "star")
PUBLISHED_DASH: Final = "2px,3px"
PUBLISHED_COLOUR: Final = "#7d7d7d"


def style(index: int | None, *, published: bool = False) -> Style:
    """Return the style of a series; beyond six, colours come again with other marks."""
    colour = PUBLISHED_COLOUR if index is None else _COLOURS[index % 6]
    if published or index is None:
        return Style(colour, _PUBLISHED_MARKS[(index or 0) % 3], PUBLISHED_DASH)
    turn = index // 6
    return Style(colour, _MARKS[(index + turn) % 6], _DASHES[(index + turn) % 6])


# The height of plotly's buttons above the points.
TOP: Final = 36
_HEIGHT: Final = 406
_MARK: Final = 9
# Sizes of a chart of dots: a row, what each series adds, and what is above and below.
_ROW: Final = 22
_SERIES: Final = 13
_AROUND: Final = 100
_LINE: Final = 17
# Labels of rows break at this many characters, for which a phone has room.
_LABEL: Final = 18
_BAND: Final = "rgba(128,128,128,0.1)"
# From this many powers of ten on, a logarithmic axis names only these, and at most this many.
CLOSE_DECADES: Final = 2.2
_MOST_TICKS: Final = 8
# Millions in full, and no zeros at the end.
_NUMBERS: Final = ",.9~g"


def figure(chart: Chart) -> dict[str, Any]:
    """Return a chart as ``data`` and ``layout``; checked by plotly."""
    from plotly import graph_objects as go

    lying = chart.kind == "dots"
    traces = [go.Scatter(_trace(series, lying)) for series in chart.series]
    made = go.Figure(traces, _layout(chart, lying)).to_plotly_json()
    # Its standard template is for a white page, and larger than most plots.
    made["layout"].pop("template", None)
    return {"data": [dict(trace) for trace in made["data"]], "layout": made["layout"]}


def _trace(series: Series, lying: bool) -> dict[str, Any]:
    look = style(series.style, published=series.published)
    # None between two runs breaks the line.
    points: list[Point | None] = []
    for run in series.runs:
        points += [*run, None]
    points = points[:-1]
    at = [point and point.at for point in points]
    value = [point and point.value for point in points]
    error = {
        "array": [point and point.high - point.value for point in points],
        "arrayminus": [point and point.value - point.low for point in points],
        "symmetric": False,
        "color": look.colour,
        "thickness": 1.4,
        "width": 3,
    }
    shown = any(point.high > point.low for point in series.points)
    return {
        "name": _text(series.name),
        "mode": "markers" if lying else "lines+markers",
        "x": value if lying else at,
        "y": at if lying else value,
        **({"error_x" if lying else "error_y": error} if shown else {}),
        "text": ["" if p is None else "<br>".join(map(_folded, p.details)) for p in points],
        # A mark at an end of the axis is seen whole.
        "cliponaxis": False,
        "hovertemplate": f"<b>{_text(series.name)}</b><br>%{{text}}<extra></extra>",
        "line": {"color": look.colour, "dash": look.dash, "width": 1.8},
        "marker": {
            "color": look.colour,
            "size": _MARK,
            "symbol": [_symbol(look, point) for point in points],
            "line": {"color": look.colour, "width": 1.6},
        },
    }


def _symbol(look: Style, point: Point | None) -> str:
    return f"{look.mark}-open" if point is not None and point.estimated else look.mark


def _layout(chart: Chart, lying: bool) -> dict[str, Any]:
    value = _value(chart.figure, ends(chart))
    along = _along(chart.along) if chart.along.ticks else _value(chart.along, _places(chart))
    rows = len(chart.along.ticks)
    height = _HEIGHT
    if lying:
        along |= {"range": [rows - 0.5, -0.5], "title": None, "showgrid": False, "ticklen": 0}
        along["ticktext"] = [_folded(tick.text, _LABEL) for tick in chart.along.ticks]
        most = max(len(point_places(chart, tick.at)) for tick in chart.along.ticks)
        lines = max(text.count("<br>") + 1 for text in along["ticktext"])
        height = round(_AROUND + rows * max(_ROW + _SERIES * most, _LINE * lines + 10))
    edge = {"xref": "paper", "x0": 0, "x1": 1} if lying else {"yref": "paper", "y0": 0, "y1": 1}
    here = ("y0", "y1") if lying else ("x0", "x1")
    # Every other row has a ground of its own.
    bands = [
        {**edge, "type": "rect", "y0": row - 0.5, "y1": row + 0.5, "layer": "below",
         "fillcolor": _BAND, "line": {"width": 0}}
        for row in range(0, rows if lying else 0, 2)
    ]  # fmt: skip
    dotted = {"type": "line", "line": {"dash": "dot", "width": 1}, "name": "break"}
    marked = [
        {**dotted, **edge, "name": "mark", here[0]: mark.at, here[1]: mark.at}
        for mark in chart.along.marks
    ]
    said = [
        {"xref": "x", "yref": "paper", "x": mark.at, "y": 1, "yanchor": "bottom",
         "text": _text(mark.text), "showarrow": False}
        for mark in chart.along.marks
    ]  # fmt: skip
    return {
        "height": height,
        "xaxis": value if lying else along,
        "yaxis": along if lying else value,
        "shapes": bands
        + [{**dotted, **edge, here[0]: at, here[1]: at} for at in chart.along.breaks]
        + marked,
        **({"annotations": said} if said else {}),
        # Above the points there is room for plotly's buttons.
        "margin": {"l": 8, "r": 14, "t": TOP, "b": 8},
        "modebar": {"bgcolor": "rgba(0,0,0,0)"},
        "showlegend": False,
        "hovermode": "closest",
        "hoverlabel": {"align": "left", "font": {"size": 13}},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13},
    }


def point_places(chart: Chart, row: float) -> set[float]:
    """Return the places that are used around a row of a chart of dots."""
    return {at for at in _places(chart) if abs(at - row) < 0.5}


def _places(chart: Chart) -> set[float]:
    return {point.at for series in chart.series for point in series.points}


def ends(chart: Chart) -> list[float]:
    """Return all values of a chart, with the ends of their error bars."""
    points = (point for series in chart.series for point in series.points)
    return [value for point in points for value in (point.low, point.high)]


def _along(axis: Axis) -> dict[str, Any]:
    return {
        **_both(axis.title),
        "tickmode": "array",
        "tickvals": [tick.at for tick in axis.ticks],
        "ticktext": [_text(tick.text) for tick in axis.ticks],
    }


def _value(axis: Axis, values: Iterable[float]) -> dict[str, Any]:
    if axis.log:
        span = decades(values)
        every = math.ceil(span / _MOST_TICKS) if span >= CLOSE_DECADES else "D2"
        return {**_both(axis.title), "type": "log", "tickformat": _NUMBERS, "dtick": every}
    return {**_both(axis.title), "rangemode": "tozero", "tickformat": _NUMBERS}


def decades(values: Iterable[float]) -> float:
    """Return how many powers of ten values span, those of 0 left out."""
    known = [value for value in values if value > 0] or [1.0]
    return math.log10(max(known) / min(known))


def _both(title: str) -> dict[str, Any]:
    text = _folded(title, 44)
    return {
        "title": {"text": text, "standoff": 10, "font": {"size": 13}},
        "automargin": True,
        "zeroline": False,
        "showline": True,
        "ticks": "outside",
        "ticklen": 4,
    }


def _text(text: str) -> str:
    """Escape for plotly, which reads some HTML in texts, and formulas between dollars."""
    return html.escape(text, quote=False).replace("$", "&#36;")


def _folded(text: str, width: int = 48) -> str:
    return "<br>".join(_text(part) for part in textwrap.wrap(text, width)) or _text(text)
