"""Write a report of saved results, from the command line."""

from __future__ import annotations

from pathlib import Path

import click

from chunkwise.cli.echo import echo
from chunkwise.cli.values import listed
from chunkwise.names import printable
from chunkwise.words import counted
from chunkwise_lab.report.build import report
from chunkwise_lab.report.write import save, save_stills

EXAMPLES = """\b
Examples:
  chunkwise report studies/cris-quick
  chunkwise report studies/* -o report.html
  chunkwise report before.json after.json -o times.html
  chunkwise advise data.nc t2m --json > t2m.json; chunkwise report t2m.json
  chunkwise trace -o reads.json -- ./model; chunkwise report reads.json
  chunkwise report studies/cris-quick -o cris.md --stills pictures
  chunkwise report studies/occam-paper --stills slides --stills-format svg
"""


@click.command(epilog=EXAMPLES)
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A page (.html) or Markdown (.md).  [default: report.html, unless --stills]",
)
@click.option(
    "--stills",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write each plot as a still picture, for papers and slides.",
)
@click.option(
    "--stills-format",
    "formats",
    default="png",
    show_default=True,
    metavar="png,svg",
    help="As which kinds of picture.",
)
def command(
    results: tuple[Path, ...], output: Path | None, stills: Path | None, formats: str
) -> int:
    """Show saved RESULTS as one page: plots, tables, verdicts.

    RESULTS are what `chunkwise study` wrote (a file or its folder), what
    `chunkwise bench` wrote (--json or --save), answers of `chunkwise advise`
    (--json), and what `chunkwise trace` wrote (-o). Nothing is measured.
    """
    made = report(results)
    pictures: dict[str, Path] = {}
    if stills is not None:
        kinds = listed(formats)
        pictures = save_stills(made, stills, kinds)
        echo(
            f"{printable(str(stills))}: {counted(len(list(made.charts)), 'plot')} as "
            f"{' and '.join(kinds)}"
        )
    if output is not None or stills is None:
        path = output or Path("report.html")
        save(made, path, pictures)
        echo(printable(str(path)))
    return 0
