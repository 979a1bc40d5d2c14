"""Test and time complex selections, from the command line."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from chunkwise.cli.echo import echo, echo_json
from chunkwise.cli.progress import following
from chunkwise.cli.terminal import for_results
from chunkwise.cli.values import COUNT, DURATION, Renamed, listed
from chunkwise.errors import CorruptDataError
from chunkwise_lab import hstest

EXAMPLES = """\b
Examples:
  chunkwise hstest data.h5
  chunkwise hstest data.h5 /group/name -k 20 --count 100 --seed 7
  chunkwise hstest data.h5 name -k 2
  chunkwise hstest data.h5 name --reader libhdf5 \\
      --libhdf5 default,/usr/lib/libhdf5.so
  chunkwise hstest data.h5 name --reader chunkwise --json > run.json
"""


option = partial(click.option, show_default=True)


@click.command(epilog=EXAMPLES)
@click.argument("file", type=click.Path())
@click.argument("dataset", required=False)
@option(
    "-k",
    "--planes",
    type=click.IntRange(min=2),
    default=20,
    help="Random planes that cut each dimension: 2 make boxes, 20 complex shapes.",
)
@option(
    "--count",
    type=COUNT,
    default=hstest.COUNT,
    help="Selections, each a union of cells between the planes.",
)
@option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    help="Seed of the random selections; the same on every machine.",
)
@option(
    "--reader",
    metavar="NAME,...",
    default=",".join(hstest.READERS),
    help="The programs that read.",
)
@click.option(
    "--libhdf5",
    cls=Renamed,
    former="--library",
    metavar="LIBRARY,...",
    default="default",
    help="Through which libhdf5: 'default' (h5py's), a libhdf5.so for the readers libhdf5 and "
    "chunkwise, that of a wheel such as h5py==3.8.0, or another Python that has h5py.",
)
@click.option("--reopen", is_flag=True, help="Open the file for each selection.")
@click.option("--repeat", type=COUNT, default=1, help="How often to repeat everything.")
@click.option(
    "--budget",
    "seconds",
    cls=Renamed,
    former="--seconds",
    type=DURATION,
    help="Time for all of it, as in 40s or 5min; then not all selections may be read.",
)
@click.option(
    "--scratch", metavar="FOLDER", help="Where the known elements are kept during the run."
)
@click.option("--json", "as_object", is_flag=True, help="Print every measurement as JSON.")
def command(
    file: str, dataset: str | None, reader: str, libhdf5: str, as_object: bool, **options: Any
) -> int:
    """Read complex selections of FILE, check every element, and say how long it took.

    DATASET is by default the largest chunked one, or without any the largest.  Exit code 1
    means that a reader gave another value than the element has, or could not read it.
    """
    options |= {"readers": listed(reader), "libhdf5": listed(libhdf5)}
    with following() as progress:
        try:
            results = hstest.run(file, dataset, progress=progress, **options)
        except CorruptDataError as wrong:
            # This command exists to find what cannot be read.
            echo(f"chunkwise: {wrong}", err=True)
            return 1
    if as_object:
        echo_json(results.as_dict(), indent=1)
    else:
        hstest.show(results, for_results())
    return 1 if hstest.failed(results) else 0
