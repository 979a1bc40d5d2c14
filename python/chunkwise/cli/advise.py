"""Say how a dataset should be stored, from the command line."""

from __future__ import annotations

import click

from chunkwise.cli.echo import echo_json
from chunkwise.cli.progress import following
from chunkwise.cli.terminal import for_results
from chunkwise.cli.values import listed
from chunkwise.errors import UsageError

EXAMPLES = """\b
Examples:
  chunkwise advise data.nc t2m
  chunkwise advise data.nc t2m --access map=1x721x1440 --access series=8760x1x1
  chunkwise advise data.nc t2m --access 'map=1x721x1440 weight 3' \\
      --access 'random:1000:8760x1x1'
  chunkwise advise data.nc t2m --access row --objective size --max-size 500MB
  chunkwise advise data.nc t2m --access row --keep filter --for libhdf5-1.10
  chunkwise advise data.h5 frames --access plane:0 --access 'step=1x2167x2070 append'
  chunkwise advise data.nc t2m --access row --tool all --json
"""
TOOLS = ("chunkwise", "h5repack", "nccopy", "h5py", "netCDF4", "xarray", "C", "Fortran", "all")


@click.command(epilog=EXAMPLES)
@click.argument("file", type=click.Path())
@click.argument("dataset", required=False)
@click.option(
    "--access",
    multiple=True,
    metavar="[NAME=]PATTERN [weight W]",
    help="What is read: a pattern as bench takes it, such as 1x721x1440, line:0 or random:1000; "
    "behind it how often beside the others (weight 3), and whether it is written instead "
    "(write, append). May be repeated.  [default: a line along each dimension, and a step]",
)
@click.option(
    "--objective",
    metavar="read|write|size|balanced",
    default="balanced",
    show_default=True,
    help="What is to be small. Balanced: reading counts most; a compressed dataset grows by a "
    "tenth at most.",
)
@click.option("--keep", metavar="chunk|filter", help="What of the present layout stays as it is.")
@click.option(
    "--lossless/--no-lossless",
    default=True,
    help="Only filters that keep each value. Others are never proposed; one that the dataset has "
    "may stay.  [default: --lossless]",
)
@click.option(
    "--max-size",
    metavar="SIZE|+N%",
    help="The most that the dataset may take in the file: 500MB, or +10% more than now.",
)
@click.option(
    "--for",
    "reader",
    metavar="READER",
    help="Who reads: libhdf5-1.10, libhdf5-2, netcdf-c or chunkwise.  [default: the libhdf5 here]",
)
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="Seconds that the answer may take. Too few for measurements: the model's word alone.",
)
@click.option(
    "--calibrate", is_flag=True, help="Measure this machine again, whatever is known of it."
)
@click.option(
    "--tool",
    "tools",
    multiple=True,
    type=click.Choice(TOOLS),
    help="Whose lines are printed. May be repeated.  [default: commands that copy the file]",
)
@click.option("--scratch", metavar="FOLDER", help="Where to write them.  [default: the system's]")
@click.option("--json", "as_object", is_flag=True, help="Print all of it as JSON.")
def command(
    file: str,
    dataset: str | None,
    access: tuple[str, ...],
    objective: str,
    keep: str | None,
    lossless: bool,
    max_size: str | None,
    reader: str | None,
    budget: float,
    calibrate: bool,
    tools: tuple[str, ...],
    scratch: str | None,
    as_object: bool,
) -> None:
    """Say how DATASET of FILE should be stored for what is read of it, and prove it.

    The machine is measured once, then a sample of the data; a model compares thousands of
    layouts, and the best few are written from the data and measured beside the present one.
    The file is not changed.
    """
    from chunkwise.advising import text
    from chunkwise.advising.api import advise

    if dataset is None:
        raise UsageError(f"name a dataset of {file}: chunkwise advise FILE DATASET")
    with following() as progress:
        advice = advise(
            file,
            dataset,
            access,
            objective=objective,
            keep=listed(keep),
            lossless=lossless,
            max_size=max_size,
            reader=reader,
            budget_s=budget,
            calibrate=calibrate,
            scratch=scratch,
            progress=progress,
        )
    if as_object:
        echo_json(advice.as_dict(), indent=1)
    else:
        text.show(advice, for_results(), tools)
