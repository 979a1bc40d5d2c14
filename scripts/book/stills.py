"""How is a chart of a report drawn as a still picture, for the site?"""

from __future__ import annotations

import io
import textwrap
from typing import TYPE_CHECKING, Final

from chunkwise_lab.report.model import Chart, Point, Series
from chunkwise_lab.report.plots import CLOSE_DECADES, Style, decades, ends, point_places, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH_IN: Final = 6.5
_HEIGHT_IN: Final = 3.6
_ROW_IN: Final = 0.26
_SERIES_IN: Final = 0.13
_GRID: Final = "#dfe3e7"
_BAND: Final = "#f1f3f5"
_INK: Final = "#1b1f24"
_LABEL: Final = 26
_SETTINGS: Final = {
    "font.size": 10.0,
    "font.family": "sans-serif",
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": "#6b747d",
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    # Text as text: names in results are no formulas, and equal charts are equal files.
    "text.parse_math": False,
    "svg.hashsalt": "chunkwise",
}
# Matplotlib's names of the palette's marks.
_MARKS: Final = {
    "circle": "o",
    "square": "s",
    "triangle-up": "^",
    "diamond": "D",
    "triangle-down": "v",
    "pentagon": "p",
    "x": "X",
    "cross": "P",
    "star": "*",
}


def still(chart: Chart) -> bytes:
    """Draw a chart as SVG."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_SETTINGS):  # type: ignore[arg-type]
        figure = Figure(figsize=(_WIDTH_IN, _height(chart)), layout="constrained")
        axes = figure.add_subplot()
        lying = chart.kind == "dots"
        for series in chart.series:
            _draw(axes, series, lying)
        _dress(axes, chart, lying)
        axes.set_title(chart.title, loc="left", fontsize=11, fontweight="bold")
        if len(chart.series) > 1 or chart.series[0].name != "today":
            names = [series.name for series in chart.series]
            columns = 1 if max(map(len, names)) > 40 else 2 if max(map(len, names)) > 20 else 3
            figure.legend(loc="outside lower left", ncols=columns, frameon=False, fontsize=9)
        stream = io.BytesIO()
        # A date would make each drawing another file.
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


def _height(chart: Chart) -> float:
    legend = 0.2 * len(chart.series)
    if chart.kind == "lines":
        return _HEIGHT_IN + legend
    slots = max(len(point_places(chart, tick.at)) for tick in chart.along.ticks)
    return 1.2 + legend + len(chart.along.ticks) * (_ROW_IN + _SERIES_IN * slots)


def _draw(axes: Axes, series: Series, lying: bool) -> None:
    look = style(series.style, published=series.published)
    label: str | None = series.name
    for run in series.runs:
        at, value = [p.at for p in run], [p.value for p in run]
        ends = [[p.value - p.low for p in run], [p.high - p.value for p in run]]
        bars = {"xerr" if lying else "yerr": ends} if any(map(_has_error, run)) else {}
        axes.errorbar(
            value if lying else at,
            at if lying else value,
            **bars,  # type: ignore[arg-type]
            color=look.colour,
            linestyle="none" if lying else _line(look),
            marker=_MARKS[look.mark],
            markersize=6,
            linewidth=1.4,
            elinewidth=1.0,
            capsize=2,
            label=label,
        )
        label = None
        hollow = [p for p in run if p.estimated]
        if hollow:
            # Estimates are drawn again, empty.
            axes.plot(
                [p.value if lying else p.at for p in hollow],
                [p.at if lying else p.value for p in hollow],
                linestyle="none",
                marker=_MARKS[look.mark],
                markersize=6,
                markeredgecolor=look.colour,
                markerfacecolor="white",
                zorder=5,
            )


def _line(look: Style) -> str | tuple[int, tuple[int, ...]]:
    """Write a dash such as ``7px,3px`` as Matplotlib has it."""
    if look.dash == "solid":
        return "-"
    return 0, tuple(int(part.removesuffix("px")) for part in look.dash.split(","))


def _has_error(point: Point) -> bool:
    return point.high > point.low


def _dress(axes: Axes, chart: Chart, lying: bool) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    along, figure = (axes.yaxis, axes.xaxis) if lying else (axes.xaxis, axes.yaxis)
    width = _LABEL if lying else 12
    texts = ["\n".join(textwrap.wrap(t.text, width)) or t.text for t in chart.along.ticks]
    along.set_ticks([tick.at for tick in chart.along.ticks], texts)
    title = textwrap.fill(chart.figure.title, 46)
    if lying:
        axes.set_ylim(len(chart.along.ticks) - 0.5, -0.5)
        axes.set_xlabel(title)
    else:
        axes.set_xlabel(textwrap.fill(chart.along.title, 70))
        axes.set_ylabel(title)
        if sum(len(tick.text) for tick in chart.along.ticks) > 60:
            axes.tick_params(axis="x", rotation=45)
    for at in chart.along.breaks:
        (axes.axhline if lying else axes.axvline)(at, color="#6b747d", linestyle=":", linewidth=1)
    for mark in chart.along.marks:
        axes.axvline(mark.at, color=_INK, linestyle=":", linewidth=1)
        place = axes.get_xaxis_transform()
        axes.text(mark.at, 0.99, f" {mark.text}", va="top", transform=place, fontsize=8)
    if lying:
        for row in range(0, len(chart.along.ticks), 2):
            axes.axhspan(row - 0.5, row + 0.5, color=_BAND, linewidth=0, zorder=0)
        axes.tick_params(axis="y", length=0)
    if chart.figure.log:
        (axes.set_xscale if lying else axes.set_yscale)("log")
        near = decades(ends(chart)) < CLOSE_DECADES
        figure.set_major_locator(
            LogLocator(subs=(1.0, 2.0, 5.0), numticks=50) if near else LogLocator()
        )
        figure.set_minor_formatter(NullFormatter())
    elif lying:
        axes.set_xlim(left=-0.02 * axes.get_xlim()[1])
    else:
        axes.set_ylim(bottom=0.0)
    figure.set_major_formatter(lambda value, _: f"{value:,g}")
    figure.grid(True, color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
