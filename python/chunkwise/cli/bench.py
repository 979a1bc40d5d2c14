"""Time access patterns on a file, from the command line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from chunkwise import measure
from chunkwise.cli.echo import echo, echo_json
from chunkwise.cli.progress import following
from chunkwise.cli.terminal import for_results
from chunkwise.cli.traced import followed, trace_option
from chunkwise.cli.values import Count, Duration, Renamed, listed, shapes_listed
from chunkwise.errors import UsageError
from chunkwise.grammar import parse_size
from chunkwise.measure import render, spec
from chunkwise.measure.axes import AXES, PROPERTY_AXES
from chunkwise.measure.results import as_csv
from chunkwise.measure.run import DEFAULT_REPEAT, DEFAULT_SECONDS
from chunkwise.measure.space import DESIGNS, Space
from chunkwise.measure.together import Together, show_together
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
  chunkwise bench data.h5 name --operation append,update --access 1x721x1440
  chunkwise bench data.h5 name --page-cache warm,cold
  chunkwise bench data.h5 t2m u10 v10 --access line:0 --cache default,64MiB
  chunkwise bench data.h5 name --reader libhdf5 \\
      --libhdf5 default,/usr/lib/libhdf5.so
  chunkwise bench data.h5 name --reader libhdf5 --design each \\
      --cache 1MiB,16MiB --set sieve=64KiB,1MiB
  chunkwise bench data.h5 name --budget 10min --repeat 10 --save trials.jsonl
  chunkwise bench data.h5 name --reader libhdf5,chunkwise --json > run.json
  chunkwise bench --plan study.toml
  chunkwise bench --shape 8760x721x1440 --type f4 --compress 3x \\
      --access 1x721x1440 --access 8760x1x1 --chunk stored,1x721x1440
  chunkwise bench --shape 8760x721x1440 --type f4 --like sample.nc
"""


def _properties() -> str:
    return "; ".join(f"{name}: {AXES[name].about}" for name in PROPERTY_AXES)


@click.command(epilog=EXAMPLES)
@click.argument("file", type=click.Path(), required=False)
@click.argument("datasets", nargs=-1, metavar="[DATASET]...")
@click.option(
    "--shape", metavar="SHAPE", help="Data that has no file yet, in place of FILE: its shape."
)
@click.option("--type", "dtype", metavar="TYPE", help="Its type, as NumPy writes it: f4, >i2.")
@click.option("--like", metavar="FILE[:DATASET]", help="Data like that which it will hold.")
@click.option(
    "--compress", metavar="TIMES", help="Or how many times smaller filters make it, as in 3x."
)
@click.option(
    "--access",
    multiple=True,
    metavar="[NAME=]PATTERN",
    help="Read blocks such as 1x1x717, one after the other; or 'all', 'line:0', 'plane:1', "
    "'random:1000', names 'time=all,y=1', 'roi:200x200:1000', 'csr:INDPTR', "
    "'events:DATASET', an index '[::2, 5]', a union '[0:5] | [10:20]', 'list:FILE'. Behind a "
    "block its order: @f, @1,0,2, @random. May be repeated.  [default: one step, one line along "
    "the slowest dimension, all]",
)
@trace_option
@click.option(
    "--operation",
    metavar="OPERATION,...",
    help="read; write: the same data to new files, read back and compared; append: to a dataset "
    "that grows; update: other values into copies that are full already.  [default: read]",
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
    metavar="PATH|PYTHON,...",
    help="Which libhdf5 is measured: 'default' (h5py's), a libhdf5.so for the readers libhdf5 "
    "and chunkwise, or another Python that has h5py.",
)
@click.option("--threads", metavar="N,...", help="Threads that chunkwise may use.")
@click.option(
    "--chunk",
    metavar="SHAPE,...",
    help="Compare with other chunk shapes, written to scratch files: such as 1x30x9x717, "
    "time=365,lat=20 (names; others whole), auto, whole (one chunk), contiguous, stored.  "
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
    help="Every value with every other, or one axis at a time from a standard trial, which has "
    "the first value of each.  [default: product]",
)
@click.option(
    "--plan",
    type=click.Path(dir_okay=False),
    metavar="TOML",
    help="Read all of this from a file; what is given here as well replaces it.",
)
@click.option(
    "--repeat",
    type=Count(),
    help=f"Measure each combination this often, if the time is enough.  [default: "
    f"{DEFAULT_REPEAT}]",
)
@click.option(
    "--budget",
    "seconds",
    cls=Renamed,
    former="--seconds",
    type=Duration(),
    help="Time for the whole run, as in 40s or 5min; what would take longer is estimated and "
    "marked ~.  "
    f"[default: {DEFAULT_SECONDS:g}s]",
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
@click.option("--json", "as_text", flag_value="json", help="Print every measurement as JSON.")
@click.option("--csv", "as_text", flag_value="csv", help="Print a row a trial as CSV.")
def command(
    file: str | None,
    datasets: tuple[str, ...],
    shape: str | None,
    dtype: str | None,
    like: str | None,
    compress: str | None,
    access: tuple[str, ...],
    trace: str | None,
    properties: tuple[str, ...],
    design: str | None,
    plan: str | None,
    repeat: int | None,
    seconds: float | None,
    save: str | None,
    sample: str | None,
    scratch: str | None,
    as_text: str | None,
    **axes: str | None,
) -> int:
    """Time access patterns on FILE, and explain the times.

    By default: three patterns on the largest chunked dataset, read
    by h5py and by chunkwise at their defaults, within 30 seconds. Several DATASETs
    are measured one after another, and summed up for each setting.
    """
    asked = spec.read(plan) if plan else spec.Spec(Space())
    if trace is not None:
        if len(datasets) > 1:
            raise UsageError("--trace is for one dataset; name one")
        named = datasets[0] if datasets else asked.dataset
        named, access = followed(trace, file or asked.file, named, access)
        datasets = () if named is None else (named,)
    given = {"access": access} if access else {}
    given |= {
        name.replace("_", "-"): (shapes_listed if name == "chunk" else listed)(text)
        for name, text in axes.items()
        if text is not None
    }
    given |= dict(_property(text) for text in properties)
    space = replace(
        asked.space, axes={**asked.space.axes, **given}, design=design or asked.space.design
    )
    path = file or asked.file
    _check_described(path, shape, dtype, {"--type": dtype, "--like": like, "--compress": compress})
    sample_nbytes = parse_size(sample) if sample else asked.sample_nbytes
    with following() as progress:
        options: dict[str, Any] = {
            "repeat": repeat or asked.repeat or DEFAULT_REPEAT,
            "seconds": seconds or asked.seconds or DEFAULT_SECONDS,
            "progress": progress,
            "save": save,
            "scratch": scratch,
        }
        if shape is not None:
            results = measure.run_new(
                shape, str(dtype), space, like=like, compress=compress,
                sample_nbytes=sample_nbytes, **options,
            )  # fmt: skip
        else:
            assert path is not None
            options |= {"sample_nbytes": sample_nbytes or SAMPLE_NBYTES, "repacking": True}
            if len(datasets) > 1:
                several = measure.run_together(path, datasets, space, **options)
                return _print_several(several, as_text)
            dataset = datasets[0] if datasets else asked.dataset
            results = measure.run(path, dataset, space, **options)
    if as_text == "json":
        echo_json(results.as_dict(), indent=1)
    elif as_text == "csv":
        echo(as_csv(results), nl=False)
    else:
        render.show(results, for_results())
    for mismatch in results.mismatches:
        echo(f"chunkwise: {mismatch}; do not trust either before you know why", err=True)
    nothing = all(cell.problem is not None for cell in results.cells)
    return 1 if results.mismatches or nothing else 0


def _print_several(found: Together, as_text: str | None) -> int:
    """Print what was measured of several datasets; return the exit code."""
    if as_text == "json":
        echo_json(found.as_dict(), indent=1)
    elif as_text == "csv":
        echo(as_csv(*found.results), nl=False)
    else:
        show_together(found, for_results())
    for mismatch in found.mismatches:
        echo(f"chunkwise: {mismatch}; do not trust either before you know why", err=True)
    nothing = all(cell.problem is not None for one in found.results for cell in one.cells)
    return 1 if found.mismatches or nothing else 0


def _check_described(
    path: str | None, shape: str | None, dtype: str | None, words: dict[str, str | None]
) -> None:
    """Raise UsageError if neither a file nor data without one is named, or both are."""
    if shape is None:
        for name, value in words.items():
            if value is not None:
                raise UsageError(f"{name} describes data that has no file yet: add --shape")
        if path is None:
            raise UsageError(
                "name a file to measure, here or in the plan: chunkwise bench FILE; or describe "
                "data that has none yet: --shape"
            )
    elif path is not None:
        raise UsageError("--shape describes data that has no file yet: leave FILE out")
    elif dtype is None:
        raise UsageError("--shape needs --type, such as f4")


def _property(text: str) -> tuple[str, tuple[str, ...]]:
    name, equals, values = text.partition("=")
    if not equals or name not in PROPERTY_AXES:
        raise UsageError(
            f"--set {text}: write NAME=VALUE,... with a name of {', '.join(PROPERTY_AXES)}"
        )
    return name, listed(values)
