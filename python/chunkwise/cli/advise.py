"""Say how a dataset should be stored, from the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from chunkwise.cli.echo import echo_json
from chunkwise.cli.progress import following
from chunkwise.cli.terminal import for_results
from chunkwise.cli.values import DURATION, followed, for_option, tool_option, trace_option
from chunkwise.errors import UsageError

if TYPE_CHECKING:
    from chunkwise.advice.answer import Advice

EXAMPLES = """\b
Examples:
  chunkwise advise data.nc t2m
  chunkwise advise era5.nc t2m --access 1x721x1440 --access 8760x1x1
  chunkwise advise data.nc t2m --access 'map=1x721x1440 weight 3' \\
      --access 'random:1000:8760x1x1'
  chunkwise advise data.nc t2m --access row --objective size
  chunkwise advise data.nc t2m --access row --for libhdf5-1.10
  chunkwise advise x.h5 frames --access plane:0 --access '1x2167x2070 append'
  chunkwise advise data.nc t2m --access row --tool all --json
  chunkwise advise --shape 8760x721x1440 --type f4 --like sample.nc \\
      --access map=1x721x1440 --access series=8760x1x1
"""


@click.command(epilog=EXAMPLES)
@click.argument("file", type=click.Path(), required=False)
@click.argument("dataset", required=False)
@click.option(
    "--access",
    multiple=True,
    metavar="[NAME=]PATTERN [weight W]",
    help="What you read: a pattern as in bench, such as 1x721x1440, line:0 or random:1000; then "
    "how often, compared with the others (weight 3), and whether it is written instead "
    "(write, append). May be repeated.  [default: a line along each dimension, and a step]",
)
@trace_option
@click.option(
    "--objective",
    metavar="read|write|size|balanced",
    default="balanced",
    show_default=True,
    help="What to make small. Balanced: reading counts most; a compressed dataset grows by at "
    "most a tenth, or by half for patterns that you state.",
)
@for_option("The program that reads: its chunk cache and filters count", multiple=False)
@click.option(
    "--budget",
    type=DURATION,
    default=60.0,
    help="Time for the answer, as in 40s or 5min. If it is too short for measurements, the "
    "answer comes from the model alone, after 1 to 3s at the least.  [default: 60s]",
)
@click.option(
    "--calibrate", is_flag=True, help="Measure this machine again, even if it was measured."
)
@tool_option("Print the lines for this tool. May be repeated.  [default: commands that copy]")
@click.option("--shape", metavar="SHAPE", help="Before there is a file: its shape.")
@click.option("--type", "dtype", metavar="TYPE", help="Its type, as NumPy writes it: f4, >i2.")
@click.option("--like", metavar="FILE[:DATASET]", help="A file with similar data.")
@click.option(
    "--scratch", metavar="FOLDER", help="Where samples are written.  [default: the system's]"
)
@click.option("--json", "as_object", is_flag=True, help="Print the whole answer as JSON.")
def command(
    file: str | None,
    dataset: str | None,
    access: tuple[str, ...],
    trace: str | None,
    as_object: bool,
    tools: tuple[str, ...],
    **words: Any,
) -> None:
    """Say how DATASET of FILE should be stored for what you read, and prove it.

    Measures the machine once, then a sample of the data. A model compares thousands of
    layouts; the best few are written to scratch files and measured beside the present one.
    Never changes the file.
    """
    dataset, access = followed(trace, file, dataset, access)
    with following() as progress:
        found = _found(file, dataset, access, **words, progress=progress)
    if as_object:
        echo_json(found.as_dict(), indent=1)
        return
    from chunkwise.advice.text import show

    show(found, for_results(), tools)


def _found(
    file: str | None,
    dataset: str | None,
    access: tuple[str, ...],
    *,
    shape: str | None,
    dtype: str | None,
    like: str | None,
    budget: float,
    **common: Any,
) -> Advice:
    """Find the answer, for a dataset of a file or for one that is described."""
    if shape is not None:
        if file is not None:
            raise UsageError("--shape describes a dataset before there is a file: leave FILE out")
        if dtype is None:
            raise UsageError("--shape needs --type, such as f4")
        from chunkwise.advice.before import advise_new

        return advise_new(shape, dtype, access, like=like, budget_s=budget, **common)
    for given, name in ((dtype, "--type"), (like, "--like")):
        if given is not None:
            raise UsageError(f"{name} describes a dataset before there is a file: add --shape")
    if file is None or dataset is None:
        raise UsageError(
            "name a file and a dataset: chunkwise advise FILE DATASET, or describe it: --shape"
        )
    from chunkwise.advice.api import advise

    return advise(file, dataset, access, budget_s=budget, **common)
