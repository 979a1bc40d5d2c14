"""Run the papers' studies from the command line."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from chunkwise.cli.echo import echo, echo_json
from chunkwise.cli.progress import following
from chunkwise.cli.terminal import for_results
from chunkwise.cli.values import COUNT, DURATION, Renamed, listed
from chunkwise.errors import UsageError
from chunkwise.mpi.ranks import launched
from chunkwise.names import printable
from chunkwise.words import counted
from chunkwise_lab.commands import iotest
from chunkwise_lab.report import terminal
from chunkwise_lab.report.build import report, save
from chunkwise_lab.studies import published
from chunkwise_lab.studies.claims import judge_all
from chunkwise_lab.studies.folder import Folder
from chunkwise_lab.studies.iotest import launching
from chunkwise_lab.studies.load import NAMES, load
from chunkwise_lab.studies.own_data import study_of
from chunkwise_lab.studies.pace import rounds
from chunkwise_lab.studies.results import StudyResults
from chunkwise_lab.studies.run import Options, run
from chunkwise_lab.studies.study import SCALES, Study

EXAMPLES = """\b
Examples:
  chunkwise study --list
  chunkwise study --all
  chunkwise study cris --list
  chunkwise study cris
  chunkwise study cris --reader libhdf5,chunkwise --repeat 5
  chunkwise study cris --file mine.nc --dataset /t2m
  chunkwise study hyperslabs --scale paper --trial-seconds 10
  chunkwise study netcdf4 --scale paper --repeat 3 -o results
  chunkwise study netcdf4 --scale paper --repeat 3 -o results --resume
  chunkwise study netcdf4 -o results --resume --undecided 12
  chunkwise study iotest --ranks 1,2
  mpirun -n 2 chunkwise study iotest --quick
  chunkwise study ./my-study
  chunkwise report studies/cris-quick -o report.html
"""

# At the quick scale a trial takes less than a second, and few repeats leave much open.
OFTEN = 12


class Studies(click.Command):
    """The command; a walk of `iotest`, which several processes share, has options of its own."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Read the arguments, by the walk's options or by the study's."""
        if iotest.is_walk(args):
            if {"--help", "-h"} & {*args} and launched()[0]:
                # Help is printed once.
                raise click.exceptions.Exit(0)
            return iotest.command.make_context("study iotest", args[1:], parent=parent)
        return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the one of the two to which the context belongs."""
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)


@click.command(cls=Studies, epilog=EXAMPLES)
@click.argument("name", required=False)
@click.option(
    "--list",
    "listing",
    is_flag=True,
    help="Say which studies there are and what they need; with NAME, what its experiments ask.",
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Run every study, each into DIR/NAME-SCALE, and write DIR/report.html.",
)
@click.option(
    "--scale",
    type=click.Choice(SCALES),
    default="quick",
    show_default=True,
    help="Everything at reduced size, in half a minute to nine minutes; or the paper's sizes and "
    "repeats.",
)
@click.option("--only", metavar="EXPERIMENT,...", help="These experiments alone.")
@click.option("--reader", "readers", metavar="NAME,...", help="These readers alone.")
@click.option(
    "--libhdf5",
    cls=Renamed,
    former="--library",
    metavar="LIBRARY,...",
    help="Further libraries, if an experiment compares them: a libhdf5.so, or that of a wheel, "
    "such as h5py==3.8.0. The system's are found.",
)
@click.option(
    "--repeat",
    type=COUNT,
    help="Measure everything this often.  [default: the study's own number]",
)
@click.option(
    "--undecided",
    type=COUNT,
    metavar="COUNT",
    help="Afterwards repeat what decides the undecided claims, and nearly undecided ones, up to "
    "COUNT times.  "
    f"[default: {OFTEN} at the quick scale without --repeat]",
)
@click.option(
    "--trial-seconds",
    "seconds",
    cls=Renamed,
    former="--seconds",
    type=DURATION,
    help="Time for the reads or writes of each trial, as in 10s or 2min; what takes "
    "longer is estimated.",
)
@click.option(
    "-o",
    "--output",
    "out",
    cls=Renamed,
    former="--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where trials and results go.  [default: studies/NAME-SCALE]",
)
@click.option(
    "--ranks",
    metavar="N,...",
    help="For iotest: numbers of MPI processes, one after another.  [default: 1,2,4]",
)
@click.option("--file", metavar="FILE", help="Measure this file instead of the study's data.")
@click.option("--dataset", metavar="PATH", help="Its dataset.  [default: the largest chunked]")
@click.option(
    "--resume", is_flag=True, help="Continue in that folder: no trial in it is repeated."
)
@click.option("--show", is_flag=True, help="Measure nothing: print what is in that folder.")
@click.option("--table", metavar="NAME", help="With --show: this table of the paper's alone.")
@click.option("--json", "as_json", is_flag=True, help="Print results and verdicts as JSON.")
def command(
    name: str | None,
    listing: bool,
    every: bool,
    out: Path | None,
    show: bool,
    table: str | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Measure again, on this machine, what a paper has measured.

    NAME is one of those that --list prints, or a folder with a study.toml in it.  Under mpirun,
    iotest has options of its own: chunkwise study iotest --help.  Prints today's figures beside
    the published ones, and which of the paper's claims still hold.  Ends with code 1 if a
    reader gave wrong values or nothing could be measured.
    """
    console = for_results()
    if every:
        if name is not None or show or any(given[key] for key in ("only", "file", "dataset")):
            raise UsageError("--all runs every study whole: name none, and no part of one")
        return _all(out or Path("studies"), given, console, as_json)
    if name is None:
        terminal.list_studies([load(known) for known in NAMES], console)
        return 0
    study = load(name)
    if listing:
        terminal.list_experiments(study, console)
        return 0
    file = given["file"]
    own = "" if file is None else f"-{Path(file).stem}"
    folder = Folder(out or Path("studies") / f"{study.name}-{given['scale']}{own}")
    if show:
        results = StudyResults.read(folder.results)
        if results.study != study.name:
            raise UsageError(
                f"{folder.name}: holds results of {printable(results.study)}, not of {study.name}"
            )
        return _say(study, results, folder, console, as_json, table)
    if given["dataset"] is not None and file is None:
        raise UsageError("--dataset names a dataset of --file: add that")
    if table is not None:
        raise UsageError("--table draws results that are there already: add --show")
    source = "" if name in NAMES else str(Path(name).resolve())
    options = _options(study, folder, source, given)
    if launching.starts_ranks(study):
        launching.require()
    return _say(study, _measured(study, options), folder, console, as_json)


def _all(parent: Path, given: dict[str, Any], console: Console, as_json: bool) -> int:
    """Run every study that can be run here, and write their report."""
    found: list[tuple[Study, Options]] = []
    for study in map(load, NAMES):
        folder = Folder(parent / f"{study.name}-{given['scale']}")
        ranks = None
        if launching.starts_ranks(study):
            ranks = given["ranks"]
            try:
                launching.require()
            except UsageError as missing:
                echo(f"chunkwise: {study.name} is left out: {missing}", err=True)
                continue
        found.append((study, _options(study, folder, "", {**given, "ranks": ranks})))
    # The second half of the repeats comes after the first one of all studies.
    for study, options in found:
        first = rounds(options.repeat or study.repeat[options.scale])[0].until
        if _repeats_in(options) < first:
            _measured(study, replace(options, repeat=first, undecided=None))
    codes = {}
    for study, options in found:
        results = _measured(study, replace(options, resume=True))
        codes[options.out] = _say(study, results, Folder(options.out), console, as_json)
    save(report([*codes]), parent / "report.html")
    return max(codes.values())


def _repeats_in(options: Options) -> int:
    """Say how often everything in a folder was to be measured; 0 if no run goes on in it."""
    results = Folder(options.out).results
    return StudyResults.read(results).repeat if options.resume and results.exists() else 0


def _options(study: Study, folder: Folder, source: str, given: dict[str, Any]) -> Options:
    given = given | {key: listed(given[key]) for key in ("only", "readers", "libhdf5")}
    given["ranks"] = launching.numbers(given["ranks"], study)
    if given["scale"] == "quick" and given["repeat"] is None and given["undecided"] is None:
        given["undecided"] = OFTEN
    theirs = study.repeat["paper"]
    if given["scale"] == "paper" and given["repeat"] is not None and given["repeat"] < theirs:
        often = counted(given["repeat"], "repeat")
        echo(
            f"chunkwise: {often}, where this scale has {theirs}: more verdicts will be "
            "'cannot tell'",
            err=True,
        )
    return Options(out=folder.path, source=source, **given)


def _say(
    study: Study,
    results: StudyResults,
    folder: Folder,
    console: Console,
    as_json: bool,
    table: str | None = None,
) -> int:
    """Print results, and return the exit code that they deserve."""
    study = study_of(study, results)
    if as_json:
        verdicts = [one.to_json() for one in judge_all(study, results)]
        echo_json({**results.to_json(), "verdicts": verdicts}, indent=1)
    elif table is not None:
        for line in published.draw(study, results, table):
            echo(line)
    else:
        terminal.show(study, results, folder.path, console)
    outcomes = results.outcomes.values()
    wrong = [text for outcome in outcomes for text in outcome.mismatches]
    for text in wrong:
        echo(f"chunkwise: {text}; do not trust either", err=True)
    measured = any(record["status"] == "ok" for one in outcomes for record in one.records)
    return 1 if wrong or not measured else 0


def _measured(study: Study, options: Options) -> StudyResults:
    """Run a study; when it is stopped, say how to continue."""
    with following() as progress:
        try:
            return run(study, options, progress)
        except (KeyboardInterrupt, SystemExit):
            echo(
                f"chunkwise: stopped; what was measured is in {printable(str(options.out))}: go "
                f"on with\n  {_resuming()}",
                err=True,
            )
            raise


def _resuming() -> str:
    """Return the command that was given, to be given again."""
    given = [argument for argument in sys.argv[1:] if argument != "--resume"]
    return shlex.join(["chunkwise", *given, "--resume"])
