"""Time access patterns on a file, from the command line."""

from __future__ import annotations

import click

from chunkwise import measure
from chunkwise.cli import values
from chunkwise.cli.echo import echo, echo_json
from chunkwise.cli.progress import following
from chunkwise.cli.terminal import for_results
from chunkwise.errors import UsageError
from chunkwise.grammar import parse_size
from chunkwise.measure import render
from chunkwise.measure.axes import AXES, PROPERTY_AXES
from chunkwise.measure.run import DEFAULT_REPEAT, DEFAULT_SECONDS
from chunkwise.measure.space import DESIGNS, Space
from chunkwise.measure.variants import SAMPLE_NBYTES
from chunkwise.trials.formats import FORMATS

EXAMPLES = """\b
Examples:
  chunkwise bench data.nc
  chunkwise bench data.h5 /group/name --access line=365x1x1 --access all
  chunkwise bench data.h5 name --access row=1x1x717 --cache default,16MiB
  chunkwise bench data.h5 name --access line:0 --access line:0@random
  chunkwise bench data.h5 name --access random:1000 --access '[::10, :, 5]'
  chunkwise bench data.h5 name --chunk stored,1x30x9x717 --filter stored,none
  chunkwise bench data.h5 name --operation write --filter none,deflate:1
  chunkwise bench data.h5 name --page-cache warm,cold
  chunkwise bench data.h5 name --reader libhdf5 \\
      --libhdf5 default,/usr/lib/libhdf5.so
  chunkwise bench data.h5 name --reader libhdf5 --design each \\
      --cache 1MiB,16MiB --set sieve=64KiB,1MiB
  chunkwise bench data.h5 name --budget 10min --repeat 10 --save trials.jsonl
  chunkwise bench data.h5 name --reader libhdf5,chunkwise --json > run.json
"""


def _properties() -> str:
    return "; ".join(f"{name}: {AXES[name].about}" for name in PROPERTY_AXES)


@click.command(epilog=EXAMPLES)
@click.argument("file", type=click.Path())
@click.argument("dataset", required=False)
@click.option(
    "--access",
    multiple=True,
    metavar="[NAME=]PATTERN",
    help="Read blocks such as 1x1x717, one after the other; or 'all', 'line:0', 'plane:1', "
    "'random:1000', names 'time=all,y=1', an index '[::2, 5]', a union '[0:5] | [10:20]', "
    "'list:FILE'. Behind a block its order: @f, @1,0,2, @random. May be repeated.  [default: one "
    "step, one line along the slowest dimension, all]",
)
@values.trace_option
@click.option(
    "--operation",
    metavar="OPERATION,...",
    help="read; write: the same data to new files, read back and compared.  [default: read]",
)
@click.option(
    "--cache",
    metavar="SIZE,...",
    help="libhdf5's chunk cache: 'default', 0, or a size such as 16MiB. chunkwise has its own."
    "  [default: default]",
)
@click.option("--nslots", metavar="N,...", help="Slots of the chunk cache's hash table.")
@click.option("--w0", metavar="W,...", help="The chunk cache's preemption policy, 0 to 1.")
@click.option(
    "--reader",
    metavar="NAME,...",
    help="libhdf5, netcdf4 and chunkwise are called from Rust, h5py and chunkwise-py from Python."
    "  [default: h5py,chunkwise-py]",
)
@click.option(
    "--libhdf5",
    cls=values.Renamed,
    former="--library",
    metavar="LIBRARY,...",
    help="Which libhdf5 is measured: 'default' (h5py's), a libhdf5.so for the readers libhdf5 "
    "and chunkwise, that of a wheel such as h5py==3.8.0, or another Python that has h5py.",
)
@click.option("--threads", metavar="N,...", help="Threads that chunkwise may use.")
@click.option(
    "--chunk",
    metavar="SHAPE,...",
    help="Compare with other chunk shapes, written to scratch files: such as 1x30x9x717, "
    "time=365,lat=20 (names; others whole), auto, all (one chunk), contiguous, stored.  "
    "[default: stored]",
)
@click.option(
    "--filter",
    metavar="FILTERS,...",
    help="Compare with other filters: such as none, deflate:1, shuffle+deflate:6, szip:nn:32, "
    "stored.  [default: stored]",
)
@click.option(
    "--format",
    metavar="FORMAT,...",
    help=f"File formats of the reader netcdf4: {', '.join(FORMATS)}; those of netCDF-3 are "
    "written to scratch files.  [default: netcdf4]",
)
@click.option(
    "--page-cache",
    metavar="warm,cold",
    help="Whether the file's bytes are in memory before each trial, or are dropped from it.  "
    "[default: warm]",
)
@click.option(
    "--set",
    "properties",
    multiple=True,
    metavar="NAME=VALUE,...",
    help=f"Properties of libhdf5. May be repeated. {_properties()}.",
)
@click.option(
    "--design",
    type=click.Choice(DESIGNS[:2]),
    default="product",
    show_default=True,
    help="Every value with every other, or one axis at a time from a standard trial, which has "
    "the first value of each.",
)
@click.option(
    "--repeat",
    type=values.COUNT,
    default=DEFAULT_REPEAT,
    show_default=True,
    help="Measure each combination this often, if the time is enough.",
)
@click.option(
    "--budget",
    "seconds",
    cls=values.Renamed,
    former="--seconds",
    type=values.DURATION,
    default=f"{DEFAULT_SECONDS:g}s",
    show_default=True,
    help="Time for the whole run, as in 40s or 5min; what would take longer is estimated and "
    "marked ~.",
)
@click.option(
    "--save",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Append each trial to this file as it is done; run again, go on where it was.",
)
@click.option(
    "--sample",
    metavar="SIZE",
    help="For a larger dataset, write a sample of this size: whole slabs of chunks.  "
    "[default: 1GiB]",
)
@click.option("--scratch", metavar="FOLDER", help="Where to write them.  [default: the system's]")
@click.option("--json", "as_json", is_flag=True, help="Print every measurement as JSON.")
def command(
    file: str,
    dataset: str | None,
    access: tuple[str, ...],
    trace: str | None,
    properties: tuple[str, ...],
    design: str,
    repeat: int,
    seconds: float,
    save: str | None,
    sample: str | None,
    scratch: str | None,
    as_json: bool,
    **axes: str | None,
) -> int:
    """Time access patterns on FILE, and explain the times.

    By default: three patterns on the largest chunked dataset (without any, the largest), read
    by h5py and by chunkwise at their defaults, within 30 seconds.
    """
    if trace is not None:
        dataset, access = values.followed(trace, file, dataset, access)
    given = {"access": access} if access else {}
    given |= {
        name.replace("_", "-"): (values.shapes_listed if name == "chunk" else values.listed)(text)
        for name, text in axes.items()
        if text is not None
    }
    given |= dict(_property(text) for text in properties)
    with following() as progress:
        results = measure.run(
            file,
            dataset,
            Space(given, design),
            repeat=repeat,
            seconds=seconds,
            progress=progress,
            save=save,
            sample_nbytes=parse_size(sample) if sample else SAMPLE_NBYTES,
            scratch=scratch,
        )
    if as_json:
        echo_json(results.as_dict(), indent=1)
    else:
        render.show(results, for_results())
    for mismatch in results.mismatches:
        echo(f"chunkwise: {mismatch}; do not trust either before you know why", err=True)
    nothing = all(cell.problem is not None for cell in results.cells)
    return 1 if results.mismatches or nothing else 0


def _property(text: str) -> tuple[str, tuple[str, ...]]:
    name, equals, listed = text.partition("=")
    if not equals or name not in PROPERTY_AXES:
        raise UsageError(
            f"--set {text}: write NAME=VALUE,... with a name of {', '.join(PROPERTY_AXES)}"
        )
    return name, values.listed(listed)
