"""What does a study print at its end, on a terminal of 80 columns?

An experiment's question, its figures beside the published ones, and the verdict on each of
the paper's claims; then which of its advice still holds, and where the results are.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from chunkwise.grammar import format_shape, format_size
from chunkwise.measure.tables import WIDTH, plain_table
from chunkwise.names import printable, shell_word
from chunkwise.words import counted, format_seconds, joined
from chunkwise_lab.studies.claims import Judged, judge_all
from chunkwise_lab.studies.comparing import Sample, samples
from chunkwise_lab.studies.figures import FIGURES
from chunkwise_lab.studies.libraries import build_of
from chunkwise_lab.studies.published import tables
from chunkwise_lab.studies.results import Outcome, Row, StudyResults
from chunkwise_lab.studies.rules import Word
from chunkwise_lab.studies.study import SCALES, Experiment, Plot, Statistic, Study, matches
from chunkwise_lab.studies.wording import differing, oversubscribed, quantity, shown

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
        name = ", ".join(_value(sample.point, by, sample.numbers) for by in plot.by)
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


# Read well also if there are no colours, and no letters but ASCII's.
_MARKS: Final[dict[Word, tuple[str, str]]] = {
    "holds": ("+", "green"),
    "weaker": ("<", "green"),
    "no longer holds": ("-", "yellow"),
    "reversed": ("!", "bold red"),
    "cannot tell": ("?", "cyan"),
    "not measured": (".", "dim"),
}
_COUNTED: Final[dict[Word, tuple[str, str]]] = {
    "holds": ("holds", "hold"),
    "weaker": ("holds by less", "hold by less"),
    "no longer holds": ("no longer holds", "no longer hold"),
    "reversed": ("is reversed", "are reversed"),
    "cannot tell": ("cannot be told", "cannot be told"),
    "not measured": ("was not measured", "were not measured"),
}
_ADVICE: Final[dict[str, tuple[Word, ...]]] = {
    "Advice that still stands:": ("holds",),
    "Advice that stands, but gains less than in the paper:": ("weaker",),
    "Advice that no longer does:": ("no longer holds", "reversed"),
    "Advice of which this run cannot tell:": ("cannot tell", "not measured"),
}


def show(study: Study, results: StudyResults, folder: Path, console: Console) -> None:
    """Print what a run has shown."""
    judged = judge_all(study, results)
    if results.target is not None:
        for line in _asked_of(results.target, results.values):
            _say(console, line)
        console.print()
    for experiment in study.experiments:
        if experiment.id in results.outcomes:
            _show_experiment(study, experiment, results, judged, console)
    for line, style in _closing(study, results, judged):
        _say(console, line, style)
    console.print()
    # Never wrapped: they are there to be copied.
    for line in (
        f"Results: {printable(str(folder / 'results.json.gz'))}",
        f"Report:  chunkwise report {shell_word(str(folder))} -o report.html",
    ):
        console.print(Text(line), soft_wrap=True)


def _asked_of(target: Mapping[str, Any], values: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Say which dataset of the user's was measured, and with what."""
    shape, chunks = (format_shape(tuple(target[name])) for name in ("shape", "chunks"))
    yield printable(
        f"Measured on {target['file']}: {target['dataset']}, {shape} {target['dtype']}, chunks "
        f"{chunks}, {target['filters']}."
    )
    yield "In the place of the study's values stand here:"
    for axis, texts in values.items():
        pairs = [f"{ours}: {theirs}" for ours, theirs in texts.items() if ours != theirs]
        if pairs:
            yield f"  * {axis} {', '.join(pairs)}"


def _show_experiment(
    study: Study,
    experiment: Experiment,
    results: StudyResults,
    judged: Sequence[Judged],
    console: Console,
) -> None:
    outcome = results.outcomes[experiment.id]
    _say(console, f"{experiment.id}: {experiment.title} ({experiment.source})", "bold")
    _say(console, experiment.question)
    for part in tables_of(experiment, outcome, study.statistic):
        if isinstance(part, str):
            _say(console, part)
        else:
            console.print()
            console.print(part, highlight=False)
    verdicts = [one for one in judged if one.experiment is experiment]
    if verdicts:
        console.print()
    for one in verdicts:
        mark, style = _MARKS[one.verdict.word]
        _say(console, f"{mark} {one.claim.says}", style)
        _say(console, f"  {one.verdict.word}: {one.verdict.sentence}")
    for reason in outcome.skipped:
        _say(console, f"Not measured: {printable(reason)}")
    for why, often in Counter(row.fallback for row in outcome.rows() if row.fallback).items():
        rows = f"{often:,} row{'' if often == 1 else 's'}"
        _say(console, f"Done by libhdf5 in chunkwise's place, {rows}: {printable(why)}")
    if crowded := oversubscribed(outcome.rows(), results.environment.get("cpu_count")):
        _say(console, crowded, "yellow")
    failed = [row for row in outcome.rows() if not row.refused]
    for problem in dict.fromkeys(row.problem for row in failed if row.problem):
        _say(console, f"Failed: {printable(problem)}")
    for mismatch in outcome.mismatches:
        _say(console, f"WRONG VALUES: {printable(mismatch)}", "bold red")
    if not outcome.complete:
        _say(console, "This experiment was stopped before its end.", "yellow")
    console.print()


def _closing(
    study: Study, results: StudyResults, judged: Sequence[Judged]
) -> Iterator[tuple[str, str]]:
    counts = Counter(one.verdict.word for one in judged)
    if judged:
        parts = [
            f"{counts[word]} {many if counts[word] > 1 else one}"
            for word, (one, many) in _COUNTED.items()
            if counts[word]
        ]
        yield f"Of {counted(len(judged), 'claim')}, {joined(parts)}.", "bold"
    for title, words in _ADVICE.items():
        advice = [one.claim.advice for one in judged if one.verdict.word in words]
        if any(advice):
            yield title, ""
        for text in dict.fromkeys(text for text in advice if text):
            yield f"  * {text}", ""
    left = [one.id for one in study.experiments if one.id not in results.outcomes]
    if left:
        yield f"Not run: {', '.join(left)}.", ""
    if results.busy:
        yield results.busy, "yellow"
    yield _how(study, results), ""


def _how(study: Study, results: StudyResults) -> str:
    """Say how often, how long, and on which machine all of it was measured."""
    theirs = study.repeat["paper"]
    counts = [len(row.records) for one in results.outcomes.values() for row in one.rows()]
    least = min(counts, default=results.repeat)
    # If the time was up before all repeats were made, as in bench.
    often = "once" if results.repeat == 1 else f"{results.repeat} times"
    often = f"{least} to {often}" if least < results.repeat else often
    paper = "" if results.repeat >= theirs else f" (at the scale paper it is {theirs})"
    size = "reduced size" if results.scale == "quick" else "the paper's size"
    on = results.environment
    machine = (
        f", on {on['cpu']}, {counted(int(on['cpu_count']), 'CPU')}, {on['system']}, with "
        f"{_libraries(results)}"
        if on
        else ""
    )
    return printable(
        f"Measured {often}{paper}, at {size}, in {format_seconds(results.elapsed_s)}{machine}."
    )


def _libraries(results: StudyResults) -> str:
    on = results.environment
    found = list(results.libraries.values()) or [f"HDF5 {on['hdf5']}"]
    return joined([*found, f"zlib {on['zlib']}", f"chunkwise {on['chunkwise']}"])


def _say(console: Console, line: str, style: str = "") -> None:
    """Print a line, folded, with what follows indented as far as its first word."""
    start = len(line) - len(line.lstrip(" *+-!?."))
    for part in textwrap.wrap(line, WIDTH, subsequent_indent=" " * start, break_on_hyphens=False):
        console.print(part, highlight=False, markup=False, style=style)


def list_studies(studies: Sequence[Study], console: Console) -> None:
    """Print which studies there are, and what they need."""
    table = plain_table(2)
    table.add_column("study", no_wrap=True)
    table.add_column("of", overflow="fold")
    table.add_column("experiments", overflow="fold")
    for scale in SCALES:
        table.add_column(scale, no_wrap=True)
    for study in studies:
        table.add_row(
            study.name,
            Text(f"{study.paper}\n"),
            Text(", ".join(one.id for one in study.experiments)),
            *(
                f"{_minutes(study.minutes[s])}\n{format_size(study.disk_nbytes[s])}"
                for s in SCALES
            ),
        )
    console.print(table, highlight=False, width=WIDTH)
    _say(console, "Times are about those of two processors; sizes are of temporary files.")
    _say(console, "What one asks in detail: chunkwise study NAME --list")


def list_experiments(study: Study, console: Console) -> None:
    """Print what the experiments of one study ask."""
    _say(console, f"{study.name}: {study.paper}", "bold")
    _say(console, study.about.strip())
    for experiment in study.experiments:
        console.print()
        _say(console, f"{experiment.id}: {experiment.title} ({experiment.source})", "bold")
        _say(console, f"  {experiment.question}")
    console.print()
    needs = (
        f"{_minutes(study.minutes[scale])} and {format_size(study.disk_nbytes[scale])} at "
        f"--scale {scale}"
        for scale in SCALES
    )
    _say(console, f"All of it takes about {', '.join(needs)}.")


def _minutes(minutes: float) -> str:
    return f"{minutes:g} min" if minutes < 120 else f"{minutes / 60:.3g} h"
