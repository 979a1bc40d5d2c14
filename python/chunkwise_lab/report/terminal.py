"""What does a study print at its end, on a terminal of 80 columns?"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from chunkwise.grammar import format_size
from chunkwise.measure.tables import WIDTH, plain_table
from chunkwise.names import printable, shell_word
from chunkwise.words import counted
from chunkwise_lab.report.model import Block, Chart, Table
from chunkwise_lab.report.studies import FALLBACK, OVERSUBSCRIBED, OWN, QUESTION, section
from chunkwise_lab.report.verdicts import VERDICTS
from chunkwise_lab.studies.figures import FIGURES
from chunkwise_lab.studies.results import Outcome, StudyResults
from chunkwise_lab.studies.rules import tally
from chunkwise_lab.studies.study import SCALES, Experiment, Plot, Study
from chunkwise_lab.studies.wording import differing

# A larger table is none on a terminal; the report has them all.
_MOST_ROWS: Final = 20
_MOST_COLUMNS: Final = 8
_NO_ROOM: Final = "source"
# What `--list` prints.
_LISTED: Final = ("Paper", "Then")


def show(study: Study, results: StudyResults, folder: Path, console: Console) -> None:
    """Print what a run has shown."""
    experiments = (_drawn(one, results.outcomes.get(one.id)) for one in study.experiments)
    whole = section(results, replace(study, experiments=tuple(experiments)), "run")
    for title, text in whole.facts:
        if title in OWN:
            _say(console, f"{title}: {text}")
    for block in whole.blocks:
        _show_block(block, console)
    words = [found.word for block in whole.blocks for found in block.findings]
    if words:
        _say(console, f"Of {counted(len(words), 'claim')}: {tally(words)}.", "bold")
    advice = dict.fromkeys((found.word, found.advice) for found in whole.advice)
    for word, look in VERDICTS.items():
        for text in (text for of, text in advice if of == word):
            _say(console, f"{look.ascii} {look.of_advice}: {text}", look.style)
    for text in whole.missing:
        _say(console, text, "yellow")
    for title, text in whole.facts:
        if title not in (*OWN, *_LISTED):
            _say(console, f"{title}: {text}")
    console.print()
    # Never wrapped: they are there to be copied.
    for line in (
        f"Results: {printable(str(folder / 'results.json.gz'))}",
        f"Report:  chunkwise report {shell_word(str(folder))} -o report.html",
    ):
        console.print(Text(line), soft_wrap=True)


def _drawn(experiment: Experiment, outcome: Outcome | None) -> Experiment:
    """Add plots of what is published or judged and not drawn, for their tables."""
    rows = [] if outcome is None else outcome.rows()
    drawn = {plot.figure for plot in experiment.plots}
    named = [one.figure for one in experiment.published]
    named += [one.figure for one in experiment.claims]
    plots = list(experiment.plots)
    for figure in dict.fromkeys(named if drawn or named else ["total_s"]):
        points = [row.point for row in rows if row.values(figure)]
        if points and figure not in drawn:
            along = [*differing(points), *points[0]][0]
            plots.append(Plot(FIGURES[figure].title, along, figure, kind="bar"))
    return replace(experiment, plots=tuple(plots))


def _show_block(block: Block, console: Console) -> None:
    name = block.id.partition("-")[2]
    _say(console, f"{name}: {block.title} ({block.source})", "bold")
    for title, text in block.texts:
        if title in (OVERSUBSCRIBED, FALLBACK):
            _say(console, f"{title}: {text}", "yellow")
        elif title == QUESTION:
            _say(console, text)
    for chart, table in block.pictures:
        _show_table(chart, table, console)
    if block.findings:
        console.print()
    for found in block.findings:
        look = VERDICTS[found.word]
        _say(console, f"{look.ascii} {found.says}.", look.style)
        _say(console, f"  {found.word}: {found.sentence}")
    for n, text in enumerate(block.alerts):
        _say(console, text, "bold red" if n < len(block.wrong) else "")
    console.print()


def _show_table(chart: Chart | None, table: Table, console: Console) -> None:
    """Print a table; of one that has no room what is drawn, or how large it is."""
    console.print()
    shown = [n for n, title in enumerate(table.columns) if title != _NO_ROOM]
    if len(table.rows) > _MOST_ROWS or len(shown) > _MOST_COLUMNS:
        rows = counted(len(table.rows), "row")
        _say(console, chart.alt if chart else f"{table.caption}: {rows}, which the report has")
        return
    made = plain_table()
    for n in shown:
        justify: Any = "right" if table.numbers[n] else "left"
        made.add_column(table.columns[n], justify=justify, overflow="fold")
    for row in table.rows:
        made.add_row(*(Text(row[n]) for n in shown))
    _say(console, table.caption)
    console.print(made, highlight=False)


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
