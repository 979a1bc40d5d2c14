"""Write a report of saved results, from the command line."""

from __future__ import annotations

from pathlib import Path

import click

from chunkwise.cli.echo import echo
from chunkwise.names import printable
from chunkwise_lab.report.build import report, save

EXAMPLES = """\b
Examples:
  chunkwise report studies/cris-quick
  chunkwise report studies/* -o report.html
  chunkwise report studies/cris-quick -o cris.md
"""


@click.command(epilog=EXAMPLES)
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    default="report.html",
    show_default=True,
    help="A page (.html) or Markdown (.md).",
)
def command(results: tuple[Path, ...], output: Path) -> None:
    """Show saved RESULTS as one page: plots, tables, verdicts.

    RESULTS are what `chunkwise study` wrote (a file or its folder). Nothing is
    measured.
    """
    save(report(results), output)
    echo(printable(str(output)))
