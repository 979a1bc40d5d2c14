"""How do an experiment's rows stand beside the published ones, in 80 columns?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from rich.table import Table
from rich.text import Text

from chunkwise.measure.printing import plain_table
from chunkwise.names import printable
from chunkwise.words import counted
from chunkwise_lab.studies.comparing import Sample, samples
from chunkwise_lab.studies.figures import FIGURES
from chunkwise_lab.studies.libraries import build_of
from chunkwise_lab.studies.published import tables
from chunkwise_lab.studies.results import Outcome, Row
from chunkwise_lab.studies.study import Experiment, Plot, Statistic, matches
from chunkwise_lab.studies.wording import differing, quantity, shown

# More rows than this are no table on a terminal; the report has them all.
MOST_ROWS: Final = 20
_MOST_COLUMNS: Final = 6
_MOST_FIGURES: Final = 3
_MOST_SERIES: Final = 6


def figures_of(experiment: Experiment) -> list[str]:
    """Return the figures that are shown: those that are published, drawn or judged."""
    named = [*(p.figure for p in experiment.published), *(p.figure for p in experiment.plots)]
    named += [claim.figure for claim in experiment.claims]
    return list(dict.fromkeys(named))[:_MOST_FIGURES] or ["total_s"]


def tables_of(
    experiment: Experiment, outcome: Outcome, statistic: Statistic
) -> Iterator[str | Text | Table]:
    """Draw one table a figure; of too many rows the published ones, and the extremes."""
    rows = outcome.rows()
    for figure in figures_of(experiment):
        with_figure = [row for row in rows if row.values(figure) or row.problem]
        columns = differing([row.point for row in with_figure])
        ours = [one for one in experiment.published if one.figure == figure]
        # Values that have names of their own stand in the paper's own tables.
        named = any(one.label for one in ours)
        if not named and len(with_figure) <= MOST_ROWS and len(columns) <= _MOST_COLUMNS:
            if with_figure:
                yield _table(experiment, figure, with_figure, statistic)
            continue
        if ours:
            narrowed = replace(experiment, published=tuple(ours))
            yield Text("\n".join(tables(narrowed, outcome, statistic)))
        if not named:
            yield from _extremes(experiment, figure, with_figure, statistic)


def _table(
    experiment: Experiment, figure: str, rows: Sequence[Row], statistic: Statistic
) -> Table:
    columns = differing([row.point for row in rows])[:_MOST_COLUMNS]
    published = [_published(experiment, figure, row) for row in rows]
    table = plain_table()
    for name in columns:
        table.add_column(name, overflow="fold")
    table.add_column(FIGURES[figure].title, justify="right", overflow="fold")
    if any(published):
        table.add_column("paper", justify="right", no_wrap=True)
    for row, values in zip(rows, published, strict=True):
        cells = [Text(_value(row.point, name, _version(row))) for name in columns]
        cells.append(_today(row, figure, statistic))
        if any(published):
            cells.append(Text(" or ".join(values)))
        table.add_row(*cells)
    return table


def _value(point: Mapping[str, str], name: str, hdf5: object) -> str:
    """Write a value of an axis as short as it can be told from others."""
    text = point.get(name, "-")
    if name == "access" and "=" in text:
        text = text.partition("=")[0]
    if name == "libhdf5" and hdf5 is not None:
        text = f"{hdf5} ({build_of(text)})"
    return printable(text)


def _version(row: Row) -> object:
    return next((r["hdf5"] for r in row.records if r.get("hdf5")), None)


def _today(row: Row, figure: str, statistic: Statistic) -> Text:
    summed = samples([row], figure, statistic)
    if not summed:
        return Text(row.records[0]["status"], style="bold red")
    found, unit = summed[0], FIGURES[figure].unit
    text = f"{'~' if found.estimated else ''}{quantity(found.middle, unit)}"
    if found.error:
        text += f" ± {quantity(found.error, unit)}"
    return Text(text)


def _published(experiment: Experiment, figure: str, row: Row) -> list[str]:
    """Return what the paper has for a row, in the same unit."""
    return [
        quantity(one.value, FIGURES[figure].unit)
        for one in experiment.published
        if one.figure == figure and not one.elsewhere and matches(row.point, one.where)
    ]


def _extremes(
    experiment: Experiment, figure: str, rows: Sequence[Row], statistic: Statistic
) -> Iterator[str]:
    """Say the lowest and the highest of each series of the figure's first plot."""
    plot = next((one for one in experiment.plots if one.figure == figure), None)
    if plot is None:
        return
    drawn = [row for row in rows if matches(row.point, plot.where)]
    found = samples(drawn, figure, statistic, plot.over, plot.total)
    if not found:
        return
    lines: dict[str, list[Sample]] = {}
    for sample in found:
        hdf5 = ", ".join(text.removeprefix("HDF5 ") for text in sample.versions) or None
        name = ", ".join(_value(sample.point, by, hdf5) for by in plot.by)
        lines.setdefault(name, []).append(sample)
    number = counted(len(found), "row")
    yield f"{plot.title}: {FIGURES[figure].title}, lowest and highest of {number}"
    for name, group in list(lines.items())[:_MOST_SERIES]:
        yield f"  {name + ': ' if name else ''}{_ends(plot, group)}"
    if len(lines) > _MOST_SERIES:
        yield f"  and {len(lines) - _MOST_SERIES} more series, which the report draws"


def _ends(plot: Plot, group: Sequence[Sample]) -> str:
    low, high = (pick(group, key=lambda sample: sample.middle) for pick in (min, max))
    if low is high:
        return f"{shown(low, plot.figure)} at {_at(plot, low)}"
    return (
        f"{shown(low, plot.figure)} at {_at(plot, low)}, {shown(high, plot.figure)} at "
        f"{_at(plot, high)}"
    )


def _at(plot: Plot, sample: Sample) -> str:
    return f"{plot.x} {_value(sample.point, plot.x, None)}"
