"""What does a study print at its end, on a terminal of 80 columns?

An experiment's question, its figures beside the published ones, and the verdict on each of
the paper's claims; then which of its advice still holds, and where the results are.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from chunkwise.grammar import format_shape, format_size
from chunkwise.measure.printing import WIDTH, plain_table
from chunkwise.names import printable, shell_word
from chunkwise.words import counted, format_seconds, joined
from chunkwise_lab.studies.claims import Judged, judge_all
from chunkwise_lab.studies.iotest.known import oversubscribed, said_of
from chunkwise_lab.studies.results import StudyResults
from chunkwise_lab.studies.rules import Word
from chunkwise_lab.studies.study import SCALES, Experiment, Study
from chunkwise_lab.studies.tables import tables_of

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
    for known in said_of(outcome.rows()):
        _say(console, known, "yellow")
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
