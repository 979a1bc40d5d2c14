"""Run a program unchanged, with the engine under its HDF5."""

from __future__ import annotations

import os
import shlex
import sys

import click

from chunkwise.cli.echo import echo
from chunkwise.cli.values import COUNT, SIZE, Renamed
from chunkwise.errors import UsageError
from chunkwise.names import printable
from chunkwise.running import environment, program

EXAMPLES = """\b
Examples:
  chunkwise run -- cdo timmean in.nc out.nc
  chunkwise run --report -- ncdump -v t2m in.nc
  chunkwise run --threads 4 --keep 2GiB -- ./model namelist.nml
  eval "$(chunkwise run --env)"       # in a batch script
"""


@click.command(epilog=EXAMPLES, context_settings={"allow_interspersed_args": False})
@click.option("--threads", type=COUNT, metavar="N", help="Use at most N threads for a read.")
@click.option(
    "--keep",
    "cache",
    cls=Renamed,
    former="--cache --memory",
    type=SIZE,
    metavar="SIZE",
    help="Keep at most SIZE of decoded chunks for later reads, as in 1GiB.  [default: 256MiB]",
)
@click.option(
    "--report", is_flag=True, help="Say at the end which reads chunkwise did, and which HDF5."
)
@click.option(
    "--report-to",
    type=click.Path(dir_okay=False),
    help="Append the report to this file instead of standard error.",
)
@click.option("--env", is_flag=True, help="Print the variables for a shell, and run nothing.")
@click.argument("words", metavar="[--] PROGRAM [ARGUMENTS]", nargs=-1, type=click.UNPROCESSED)
def command(
    threads: int | None,
    cache: int | None,
    report: bool,
    report_to: str | None,
    env: bool,
    words: tuple[str, ...],
) -> None:
    """Run a program that uses HDF5 or netCDF-4 without changing it.

    chunkwise does the reads that the program makes with HDF5's C library (from Python, C,
    Fortran, R, CDO, NCO, ...). It decodes each chunk once, on all cores, whatever the program's
    chunk cache is. It encodes chunks that the program writes completely, on all cores. The
    program's own HDF5 does the rest.

    The program replaces this command: exit code, signals and terminal are the program's.
    Programs that it starts run in the same way.
    """
    to = os.path.abspath(report_to) if report_to else "-" if report else None  # noqa: PTH100
    variables = environment.variables(threads=threads, cache_nbytes=cache, report=to)
    if env:
        if words:
            raise UsageError("--env runs nothing: leave the program out")
        for name, value in variables.items():
            echo(f"export {name}={shlex.quote(value)}")
        return
    if not words:
        raise UsageError("which program? as in: chunkwise run -- cdo timmean in.nc out.nc")
    found = program.find(words[0])
    if found.obstacle:
        echo(
            f"chunkwise: warning: {printable(words[0])} runs without chunkwise: {found.obstacle}",
            err=True,
        )
    given = dict(os.environ)
    # By this number a process knows that it is meant, and reports if it made no call of HDF5.
    given.pop("CHUNKWISE_RUN", None)
    if not found.harms:
        given |= variables
    if not found.obstacle:
        given["CHUNKWISE_RUN"] = str(os.getpid())
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(found.path, list(words), given)
    except OSError as error:
        raise UsageError(f"{printable(str(found.path))}: {error.strerror}") from None
