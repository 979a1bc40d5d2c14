"""Which words does `chunkwise inspect` take, and what does it print?"""

from __future__ import annotations

import json

import click
from rich.console import Console

EXAMPLES = """\b
Examples:
  chunkwise inspect model.nc                  the whole file, as a tree
  chunkwise inspect model.nc temperature      one dataset, a fact a line
  chunkwise inspect model.nc --json | jq -r '.objects[].path'
"""


@click.command(epilog=EXAMPLES)
@click.argument("file", type=click.Path())
@click.argument("dataset", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the facts as one JSON object.")
def command(file: str, dataset: str | None, as_json: bool) -> None:
    """Show what decides a file's speed: layout, chunks, filters, ratio.

    FILE is an HDF5 or netCDF-4 file; DATASET a path in it, such as
    /group/temperature.  No data is read.
    """
    # Imported here, so that `--help` need not wait for h5py.
    from chunkwise.inspect import inspect
    from chunkwise.inspect.render import print_facts

    facts = inspect(file, dataset)
    if as_json:
        click.echo(json.dumps(facts.as_dict(), indent=2))
    else:
        print_facts(facts, Console(), single=dataset is not None)
