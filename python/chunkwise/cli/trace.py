"""Run a program, and say what it has read from which dataset."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import click

from chunkwise.cli.echo import echo
from chunkwise.cli.values import Renamed
from chunkwise.errors import UsageError
from chunkwise.names import json_text, printable
from chunkwise.running import environment, finding, program, render, trace

EXAMPLES = """\b
Examples:
  chunkwise trace -- cdo timmean in.nc out.nc
  chunkwise trace -o reads.json -- python analysis.py
  chunkwise trace --observe-only -- ./model namelist.nml
  chunkwise trace -o t.json -- python analysis.py; chunkwise view model.nc --trace t.json
"""


@click.command(epilog=EXAMPLES, context_settings={"allow_interspersed_args": False})
@click.option(
    "-o",
    "--output",
    "out",
    cls=Renamed,
    former="--out",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write the whole record as JSON.",
)
@click.option(
    "--observe-only",
    is_flag=True,
    help="Let the program's HDF5 do everything, to see the times without chunkwise.",
)
@click.argument("words", metavar="[--] PROGRAM [ARGUMENTS]", nargs=-1, type=click.UNPROCESSED)
def command(out: str | None, observe_only: bool, words: tuple[str, ...]) -> None:
    """Run a program that uses HDF5 or netCDF-4, and say what it reads and writes.

    At the end, standard error shows the datasets that took most of the time, what the program
    read of them or wrote and in which order, what is wrong with that, and the lines that help.
    As in 'chunkwise run', chunkwise carries the calls out where it can.

    The exit code is the program's.
    """
    if not words:
        raise UsageError("which program? as in: chunkwise trace -- cdo timmean in.nc out.nc")
    found = program.find(words[0])
    if found.obstacle:
        raise UsageError(f"{printable(words[0])} cannot be traced: {found.obstacle}")
    if out is not None and not Path(out).absolute().parent.is_dir():
        raise UsageError(f"{printable(out)}: there is no such folder")
    with tempfile.TemporaryDirectory(prefix="chunkwise-trace-") as folder:
        given = dict(os.environ) | environment.variables() | {"CHUNKWISE_TRACE": folder}
        if observe_only:
            given["CHUNKWISE_OBSERVE"] = "1"
        sys.stdout.flush()
        # Ctrl-C is for the program, which also gets it; its reads are still reported.
        former = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            process = subprocess.Popen(
                list(words),
                executable=found.path,
                env=given,
                preexec_fn=lambda: signal.signal(signal.SIGINT, former),
            )
            status = process.wait()
        except OSError as error:
            raise UsageError(f"{printable(str(found.path))}: {error.strerror}") from None
        finally:
            signal.signal(signal.SIGINT, former)
        seen = trace.collected(Path(folder))
    wrong = finding.first(seen)
    for line in render.lines(seen, wrong):
        echo(line, err=True)
    if out is not None:
        record = seen.record() | {"found": wrong and asdict(wrong)}
        Path(out).write_text(json_text(record, 1) + "\n", encoding="utf-8")
    # As a shell says it, of a program that a signal has ended.
    sys.exit(status if status >= 0 else 128 - status)
