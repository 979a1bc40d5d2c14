"""Run the papers' studies from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console

from chunkwise.bench.schedule import Step
from chunkwise.cli.progress import showing
from chunkwise.cli.signals import ending
from chunkwise.errors import UsageError
from chunkwise.studies import published
from chunkwise.studies.load import NAMES, load
from chunkwise.studies.own import study_of
from chunkwise.studies.results import StudyResults
from chunkwise.studies.run import RESULTS, Options, run
from chunkwise.studies.study import SCALES, Scale, Study

EXAMPLES = """\b
Examples:
  chunkwise study --list
  chunkwise study cris
  chunkwise study occam --only cache-size,chunk-size
  chunkwise study cris --file mine.nc --dataset /t2m --out mine
  chunkwise study netcdf4 --scale paper --repeat 3 --out results --resume
"""


@click.command(epilog=EXAMPLES)
@click.argument("name", required=False)
@click.option("--list", "listing", is_flag=True, help="Say which there are, and what they need.")
@click.option(
    "--scale",
    type=click.Choice(SCALES),
    default="quick",
    show_default=True,
    help="Everything at reduced size, in about two minutes; or the paper's sizes and repeats.",
)
@click.option("--only", metavar="EXPERIMENT,...", help="These experiments alone.")
@click.option("--driver", metavar="NAME,...", help="These drivers alone.")
@click.option("--libhdf5", metavar="PATH,...", help="Further libraries to compare.")
@click.option("--repeat", type=click.IntRange(min=1), help="Measure everything so often.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where results go.  [default: studies/NAME-SCALE]",
)
@click.option("--file", metavar="FILE", help="Measure this file in the place of the study's data.")
@click.option("--dataset", metavar="PATH", help="Its dataset.  [default: the largest chunked]")
@click.option("--resume", is_flag=True, help="Go on with a run that was stopped.")
@click.option("--show", is_flag=True, help="Measure nothing: print what is in DIR.")
@click.option("--source", metavar="TABLE", help="With --show: this published table alone.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def command(
    name: str | None,
    listing: bool,
    scale: Scale,
    only: str | None,
    driver: str | None,
    libhdf5: str | None,
    repeat: int | None,
    out: Path | None,
    file: str | None,
    dataset: str | None,
    resume: bool,
    show: bool,
    source: str | None,
    as_json: bool,
) -> int:
    """Measure again what a paper has measured, on this machine.

    NAME is one of occam, netcdf4, hyperslabs and cris.
    """
    if listing or name is None:
        for known in NAMES:
            click.echo(known)
        return 0
    if dataset is not None and file is None:
        raise UsageError("--dataset names a dataset of --file: add that")
    study = load(name)
    own = "" if file is None else f"-{Path(file).stem}"
    folder = out or Path("studies") / f"{name}-{scale}{own}"
    if show:
        return _say(study, StudyResults.read(folder / RESULTS), source, as_json)
    options = Options(
        scale,
        folder,
        _listed(only),
        _listed(driver),
        _listed(libhdf5),
        repeat,
        resume,
        file,
        dataset,
    )
    with ending() as end, showing(Console(stderr=True)) as bar:

        def progress(step: Step) -> None:
            end.check()
            if bar is not None:
                bar(step)

        results = run(study, options, progress)
    code = _say(study, results, None, as_json)
    if not as_json:
        click.echo(f"{folder / RESULTS}")
    return code


def _say(study: Study, results: StudyResults, source: str | None, as_json: bool) -> int:
    """Print results; the exit code tells whether all bytes were right."""
    if as_json:
        click.echo(json.dumps(results.to_json(), indent=1))
    else:
        for line in published.draw(study_of(study, results), results, source):
            click.echo(line)
    wrong = [text for outcome in results.outcomes.values() for text in outcome.mismatches]
    return 1 if wrong else 0


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


__all__ = ["UsageError", "command"]
