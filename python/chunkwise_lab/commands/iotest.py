"""Walk HDF5's parameters as hdf5-iotest does, from the command line."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from typing import Any, Final

import click

from chunkwise.cli.echo import echo, echo_json
from chunkwise.cli.progress import following
from chunkwise.cli.signals import ending
from chunkwise.cli.terminal import for_results
from chunkwise.cli.values import COUNT, listed
from chunkwise.errors import UsageError, WrongValueError
from chunkwise.grammar import Pipeline
from chunkwise.mpi.ranks import under_mpi
from chunkwise.names import printable
from chunkwise_lab.studies.iotest import beside as besides
from chunkwise_lab.studies.iotest import ini, launching, render
from chunkwise_lab.studies.iotest.run import walk
from chunkwise_lab.studies.iotest.settings import DRIVERS, SCALINGS, Settings
from chunkwise_lab.studies.iotest.world import world

# Options of the paper's questions, too: any other option means a walk.
_SHARED: Final = {"--only", "--ranks", "--repeat", "--json"}
# As in hdf5-iotest's example of a small machine.
_QUICK: Final = {"steps": 2, "arrays": 4, "rows": 32, "columns": 128}

EXAMPLES = """\b
Examples:
  mpirun -n 2 chunkwise study iotest
  mpirun -n 4 chunkwise study iotest --quick --grid 2x2
  mpirun -n 2 chunkwise study iotest --ini hdf5_iotest.ini --csv ours.csv
  mpirun -n 2 chunkwise study iotest --filter shuffle+deflate:1 --only layout=chunked
  mpirun -n 2 chunkwise study iotest --scaling strong --rows 1000 --columns 2000
  chunkwise study iotest --quick --driver core --json
  chunkwise study iotest --beside ./hdf5_iotest --quick
  chunkwise study iotest
  chunkwise study iotest --ranks 1,2,4 --only scaling --repeat 5
"""


def is_walk(arguments: list[str]) -> bool:
    """Whether arguments of `chunkwise study` ask for a walk, or for its help."""
    if arguments[:1] != ["iotest"]:
        return False
    given = {text.partition("=")[0] for text in arguments[1:]}
    own = {text for one in command.params for text in one.opts} - _SHARED
    return under_mpi() or bool(given & {*own, "--help", "-h"})


def _grid(text: str | None) -> dict[str, int]:
    if text is None:
        return {}
    found = re.fullmatch(r"([0-9]{1,9})x([0-9]{1,9})", text, re.ASCII)
    if found is None:
        raise UsageError(f"--grid {printable(text)}: write ROWSxCOLUMNS, such as 2x1")
    return {"process_rows": int(found[1]), "process_columns": int(found[2])}


@click.command(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--ini", "ini_file", metavar="FILE", help="Settings, as hdf5-iotest reads them.")
@click.option(
    "--csv", "csv_file", metavar="FILE", help="Results: one row each, in hdf5-iotest's columns."
)
@click.option(
    "--hdf5-file", metavar="FILE", help="The file to write and read.  [default: hdf5_iotest.h5]"
)
@click.option("--quick", is_flag=True, help="2 steps, 4 arrays of 32x128: a second or two.")
@click.option(
    "--steps", type=click.IntRange(1), help="Steps; each writes the arrays.  [default: 4]"
)
@click.option("--arrays", type=click.IntRange(1), help="Arrays in each step.  [default: 50]")
@click.option(
    "--rows", type=click.IntRange(2), help="Rows of a rank's tile, or (strong) of an array."
)
@click.option(
    "--columns", type=click.IntRange(2), help="Columns, as for --rows.  [default: 100x200]"
)
@click.option(
    "--grid", metavar="ROWSxCOLUMNS", help="Grid of ranks.  [default: all in one column]"
)
@click.option(
    "--scaling",
    type=click.Choice(SCALINGS),
    help="Do arrays grow with the ranks?  [default: weak]",
)
@click.option("--filter", "filters", metavar="CHAIN", help="shuffle+deflate:1, szip:nn:8 ...")
@click.option(
    "--driver",
    "single_process",
    type=click.Choice(DRIVERS),
    help="Driver of a single process.  [default: posix]",
)
@click.option(
    "--only",
    multiple=True,
    metavar="COLUMN=VALUE,...",
    help="Walk the combinations with these values: rank=4,layout=chunked,io=collective.",
)
@click.option(
    "--case", "one_case", type=click.IntRange(1), help="Walk one combination, by its number."
)
@click.option("--restart", is_flag=True, help="Continue after the last row of the CSV file.")
@click.option(
    "--beside", metavar="PROGRAM", help="Start hdf5-iotest too, in turns; rows side by side."
)
@click.option("--ranks", type=COUNT, default=2, help="With --beside: ranks.  [default: 2]")
@click.option(
    "--repeat", type=COUNT, default=1, help="With --beside: number of runs.  [default: 1]"
)
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON.")
def command(
    ini_file: str | None,
    quick: bool,
    grid: str | None,
    only: tuple[str, ...],
    beside: str | None,
    ranks: int,
    repeat: int,
    as_json: bool,
    **named: Any,
) -> int:
    """Walk HDF5's parameters under MPI, as hdf5-iotest does.

    A program writes a few arrays in each of its steps, each rank a tile of every array.  All
    combinations of dataset rank, layout, fill values, file format and collective or independent
    operations are written, closed, read again, and every value is compared.  Started by mpirun
    or mpiexec, with an h5py for MPI (make mpi); with one process, without.

    Without mpirun and without these options it asks the questions of paper 002, starts as many
    ranks as they need by itself, and says which claims hold (options of `chunkwise study`, and
    --ranks).
    """
    chosen = tuple(part for text in only for part in listed(text))
    given: dict[str, Any] = dict(_QUICK) if quick else {}
    if named["filters"] is not None:
        named["filters"] = Pipeline.parse(named["filters"])
    named["restart"] = named["restart"] or None
    own = {name: value for name, value in named.items() if value is not None} | _grid(grid)
    if beside is not None:
        return _beside(beside, ini_file, given, own, chosen, ranks, repeat, as_json)
    driver = named["single_process"]
    needs_mpi = driver == "mpi-io-uni"
    found = world(needs_mpi) if ini_file is None else None
    ignored: list[str] = []
    if found is None:
        # The file may name the driver of a single process that MPI is needed for.
        found = world(under_mpi())
        path = str(ini_file)
        values, ignored = found.on_first(lambda: ini.read(path))
        if values.get("single_process") == "mpi-io-uni" and found.comm is None and driver is None:
            found = world(True)
        given |= values
    settings = replace(Settings(), **{**given, **own})
    if ignored and found.rank == 0:
        text = "walked anyway, as by hdf5-iotest: to walk a part, give --only"
        echo(f"chunkwise: {printable(str(ini_file))}: {', '.join(ignored)}: {text}", err=True)
    try:
        if found.rank:
            with ending():
                walk(found, settings, chosen)
            return 0
        with following() as progress:
            walked = walk(found, settings, chosen, progress)
    except WrongValueError as wrong:
        echo(f"chunkwise: {wrong}", err=True)
        return 1
    if as_json:
        echo_json(walked.to_json(), indent=1)
    else:
        render.show(walked, for_results())
    return 0


def _beside(
    program: str,
    ini_file: str | None,
    given: dict[str, Any],
    own: dict[str, Any],
    only: tuple[str, ...],
    ranks: int,
    repeat: int,
    as_json: bool,
) -> int:
    """Run hdf5-iotest and our walk, and print their rows side by side."""
    if under_mpi() or only:
        raise UsageError("--beside starts the ranks itself, for the whole walk: without mpirun "
                         "and --only")  # fmt: skip
    launching.require()
    given |= {} if ini_file is None else ini.read(ini_file)[0]
    settings = replace(Settings(), **{**given, **own})
    with following() as progress:
        rows = besides.walk(program, settings, ranks, repeat, progress)
    if as_json:
        echo_json([asdict(one) for one in rows], indent=1)
    else:
        besides.show(rows, for_results())
    return 0
