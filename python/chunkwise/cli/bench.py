"""Time access patterns on a file, from the command line."""

from __future__ import annotations

import json
import signal
import sys
from typing import TYPE_CHECKING, cast

import click
from rich.console import Console

from chunkwise import bench
from chunkwise.bench import render
from chunkwise.bench.drivers import DRIVERS, WITH_LIBRARY_CACHE
from chunkwise.bench.run import DEFAULT_REPEAT, DEFAULT_SECONDS
from chunkwise.errors import UsageError
from chunkwise.grammar import parse_size

if TYPE_CHECKING:
    from chunkwise.bench.pagecache import PageCache

EXAMPLES = """\b
Examples:
  chunkwise bench data.nc
  chunkwise bench data.h5 /group/name --access line=365x1x1 --access all
  chunkwise bench data.h5 name --access row=1x1x717 --cache default,16MiB
  chunkwise bench data.h5 name --access line:0 --access line:0@random
  chunkwise bench data.h5 name --access random:1000 --access '[::10, :, 5]'
  chunkwise bench data.h5 name --chunk stored,1x30x9x717 --filter stored,none
  chunkwise bench data.h5 name --page-cache warm,cold
  chunkwise bench data.h5 name --budget 600 --repeat 10 --save trials.jsonl
  chunkwise bench data.h5 name --driver libhdf5,chunkwise --json > run.json
"""


@click.command(epilog=EXAMPLES)
@click.argument("file", type=click.Path())
@click.argument("dataset", required=False)
@click.option(
    "--access",
    "patterns",
    multiple=True,
    metavar="[NAME=]PATTERN",
    help="Read blocks such as 1x1x717, one after the other; or 'all', 'line:0', 'plane:1', "
    "'random:1000', an index '[::2, 5]', a union '[0:5] | [10:20]', 'list:FILE'. Behind a block "
    "its order: @f, @1,0,2, @random. May be repeated.  [default: one step, one line along the "
    "slowest dimension, all]",
)
@click.option(
    "--cache",
    "caches",
    metavar="SIZE,...",
    help="libhdf5's chunk cache: 'default', or a size such as 16MiB. chunkwise has its own."
    "  [default: default]",
)
@click.option(
    "--driver",
    "drivers",
    default="h5py,chunkwise-py",
    metavar="NAME,...",
    help="libhdf5, netcdf4 and chunkwise are called from Rust, h5py and chunkwise-py from Python."
    "  [default: h5py,chunkwise-py]",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=DEFAULT_REPEAT,
    show_default=True,
    help="Measure each combination so often, as far as the seconds last.",
)
@click.option(
    "--save",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Append each trial to this file as it is done; run again, go on where it was.",
)
@click.option(
    "--seconds",
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULT_SECONDS,
    show_default=True,
    help="Time for the whole run; what would take longer is estimated and marked ~.",
)
@click.option(
    "--chunk",
    "chunks",
    default="stored",
    metavar="SHAPE,...",
    help="Compare with other chunk shapes, written to scratch files: such as 1x30x9x717, auto, "
    "contiguous, stored.  [default: stored]",
)
@click.option(
    "--filter",
    "filters",
    default="stored",
    metavar="FILTERS,...",
    help="Compare with other filters: such as none, deflate:1, shuffle+deflate:6, szip:nn:32, "
    "stored.  [default: stored]",
)
@click.option(
    "--sample",
    default="1GiB",
    show_default=True,
    help="Of a larger dataset, write a sample of so many bytes: whole slabs of chunks.",
)
@click.option("--scratch", metavar="FOLDER", help="Where to write them.  [default: the system's]")
@click.option(
    "--page-cache",
    "pages",
    default="warm",
    metavar="warm,cold",
    help="Whether the file's bytes are in memory before each trial, or are dropped from it.  "
    "[default: warm]",
)
@click.option("--json", "as_json", is_flag=True, help="Print every measurement as JSON.")
def command(
    file: str,
    dataset: str | None,
    patterns: tuple[str, ...],
    caches: str | None,
    drivers: str,
    repeat: int,
    seconds: float,
    chunks: str,
    filters: str,
    sample: str,
    scratch: str | None,
    pages: str,
    save: str | None,
    as_json: bool,
) -> int:
    """Time access patterns on FILE, and say why they cost what they cost.

    With nothing else said: three patterns on the largest chunked dataset, read
    by h5py and by chunkwise at their defaults, within 30 seconds.
    """
    names = _listed(drivers)
    if caches is not None and names and set(names) <= set(DRIVERS) - WITH_LIBRARY_CACHE:
        raise UsageError(
            "--cache concerns libhdf5 and h5py, which --driver leaves out: chunkwise has a "
            "cache of its own; add one of the two, or leave --cache out"
        )
    texts = _listed("default" if caches is None else caches)
    sizes = [None if text == "default" else parse_size(text) for text in texts]
    # As Ctrl-C does: what was written for the run goes, and its worker ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    progress = Console(stderr=True)
    with progress.status("warming the page cache") as status:
        results = bench.run(
            file,
            dataset,
            patterns or None,
            names,
            sizes,
            repeat,
            seconds,
            progress=status.update if progress.is_terminal else None,
            page_caches=cast("list[PageCache]", _listed(pages)),
            save=save,
            chunks=_listed(chunks),
            filters=_listed(filters),
            sample_nbytes=parse_size(sample),
            scratch=scratch,
        )
    if as_json:
        click.echo(json.dumps(render.as_json(results), indent=1))
    else:
        render.show(results, Console(width=None if sys.stdout.isatty() else render.WIDTH))
    for mismatch in results.mismatches:
        click.echo(f"chunkwise: {mismatch}; do not trust either before you know why", err=True)
    nothing = all(cell.problem is not None for cell in results.cells)
    return 1 if results.mismatches or nothing else 0


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
