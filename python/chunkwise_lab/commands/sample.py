"""Which options does `chunkwise sample` take, and what does it print?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn

from chunkwise.cli.echo import echo
from chunkwise.cli.progress import bar
from chunkwise.cli.signals import ending, leaving
from chunkwise.errors import UsageError
from chunkwise.grammar import Pipeline, format_shape, format_size, parse_shape
from chunkwise.names import printable
from chunkwise_lab.sample import SAMPLES, Written, find, write
from chunkwise_lab.sample.spec import Sample

_EPILOG = """\b
Examples:
  chunkwise sample --list
  chunkwise sample cris -o cris.h5
  chunkwise sample cris plain.h5 --filter none
  chunkwise sample cube small.h5 --shape 60x200x200
  chunkwise sample cube series.h5 --chunk 365x20x20 --filter shuffle+zstd:3
  chunkwise sample occam quarter.h5 --resolution 1/4
"""


def _print_list(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the samples and end, with any other arguments."""
    if not wanted:
        return
    for sample in SAMPLES.values():
        echo(f"{sample.name:13} {sample.summary}")
        for line in (_storage(sample), sample.stands_for):
            echo(click.wrap_text(line, 80, " " * 14, " " * 14))
        echo()
    echo("chunkwise sample NAME OUT writes one; shape, chunk and filters are defaults.")
    context.exit()


def _storage(sample: Sample) -> str:
    """Describe a sample's defaults in one line."""
    count = f"{len(sample.datasets)} x " if len(sample.datasets) > 1 else ""
    return (
        f"{count}{format_shape(sample.shape)} {_type(sample)}, "
        f"chunk {format_shape(sample.chunk)}, {sample.filters}"
    )


def _type(sample: Sample) -> str:
    """Name the type of the elements, with an unusual byte order."""
    order = "big-endian " if sample.dtype.startswith(">") else ""
    return order + sample.dtype[1:]


@click.command(epilog=_EPILOG)
@click.argument("name")
@click.argument("target", metavar="OUT", required=False, type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", "out", type=click.Path(path_type=Path), help="The new file, as OUT."
)
@click.option("--shape", help="Shape of the array, as in 60x200x200.")
@click.option("--chunk", help="Shape of a chunk, or auto (about 1 MiB), or contiguous.")
@click.option("--filter", "filters", help="Filters, as in none, deflate:6, shuffle+zstd:3.")
@click.option("--resolution", help="For occam: 1, 1/4 or 1/12 (of a degree).")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed, other data.")
@click.option("--force", is_flag=True, help="Replace OUT if it exists.")
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_list,
    help="Print the samples and what they stand for.",
)
def command(
    name: str,
    target: Path | None,
    out: Path | None,
    shape: str | None,
    chunk: str | None,
    filters: str | None,
    **given: Any,
) -> None:
    """Write sample NAME to the new HDF5 file OUT.

    The same name, shape and seed always give the same values.  OUT appears when
    it is complete, or not at all.
    """
    named = [path for path in (target, out) if path is not None]
    if len(named) != 1:
        raise UsageError("name the new file once, as in: chunkwise sample cube -o cube.h5")
    (out,) = named
    lengths = None if shape is None else parse_shape(shape)
    if isinstance(lengths, str):
        raise UsageError(
            f"--shape {lengths}: give lengths, as in {format_shape(find(name).shape)}"
        )
    columns = (
        "{task.description}",
        BarColumn(),
        DownloadColumn(binary_units=True),
        TimeRemainingColumn(),
    )
    hidden = not sys.stderr.isatty()
    with leaving(), ending() as end, bar(*columns, hidden=hidden) as shown:
        task = shown.add_task(f"writing {out.name}", total=None)

        def follow(done: int, total: int) -> None:
            end.check()
            shown.update(task, completed=done, total=total)

        written = write(
            name,
            out,
            shape=lengths,
            chunk=None if chunk is None else parse_shape(chunk),
            filters=None if filters is None else Pipeline.parse(filters),
            **given,
            progress=follow,
        )
    _print_written(out, written)


def _print_written(out: Path, written: Written) -> None:
    """Say what was made, in three lines."""
    sample, layout = written.sample, written.layout
    names = sample.datasets
    which = names[0] if len(names) == 1 else f"{len(names)} datasets, {names[0]} to {names[-1]}"
    chunk = f"chunk {format_shape(layout.chunk)}" if layout.chunk else "contiguous"
    echo(f"{printable(str(out))}: {which}")
    echo(f"  {format_shape(layout.shape)} {_type(sample)}, {chunk}, {layout.pipeline}")
    echo(
        f"  {format_size(written.nbytes)} of data stored in "
        f"{format_size(written.stored_nbytes)} (ratio {written.ratio:.2f})"
    )
