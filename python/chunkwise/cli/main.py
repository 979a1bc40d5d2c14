"""What does `chunkwise` do, and how do its errors reach the terminal?"""

from __future__ import annotations

import importlib
import io
import os
import sys
import warnings
from typing import Any

import click

from chunkwise._native import __version__
from chunkwise._startup import measure_h5py_as_it_is
from chunkwise.cli.echo import echo
from chunkwise.errors import ChunkwiseError
from chunkwise.names import printable_lines
from chunkwise.settings import HELP, check_environment

# Subcommands are imported when used, so that `chunkwise --help` stays instant.
COMMANDS = {
    "inspect": "Show what is wrong with a file, and what decides its speed.",
    "bench": "Time access patterns on a file, and say why they cost what they cost.",
    "hstest": "Read complex selections of a file, check every element, and time it.",
    "compare": "Compare saved runs of bench: what is slower, and what is only noise?",
    "repack": "Write a file anew with other chunks and filters, as fast as the machine.",
    "study": "Measure again, on this machine, what the papers measured.",
    "report": "Show saved results of study and bench as one page: plots, tables, verdicts.",
    "sample": "Write one of the papers' datasets, generated deterministically.",
}
# What reads or writes data with the engine, and so by its settings.
BY_SETTINGS = ("inspect", "bench", "hstest", "repack", "study")


class ReaderGoneError(Exception):
    """Whatever read our output has seen enough: ``chunkwise bench data.nc | head``."""


class LazyGroup(click.Group):
    """A group whose commands live in `chunkwise.cli.<name>` as `command`."""

    def list_commands(self, _: click.Context) -> list[str]:
        """Names in the order in which a user meets them."""
        return list(COMMANDS)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module, or None for a name that is not ours."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"chunkwise.cli.{cmd_name}")
        command: click.Command = module.command
        if cmd_name in BY_SETTINGS and HELP not in (command.epilog or ""):
            command.epilog = f"{command.epilog or ''}\n{HELP}"
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a closed pipe is told from other errors here.

        Click and rich, which come next, both end the process with code 1.
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise ReaderGoneError from None
        except SystemExit as leave:
            if isinstance(leave.__context__, BrokenPipeError):
                raise ReaderGoneError from None
            raise

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, epilog=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="chunkwise")
def cli() -> None:
    """Measure, explain and fix slow HDF5 and netCDF-4 input and output."""


def _format_warning(message: Warning | str, *_: object, **__: object) -> str:
    """Write a warning of the library's as the command line's own."""
    return f"chunkwise: warning: {printable_lines(str(message))}\n"


def main() -> None:
    """Run the command line; every expected error is one line and exit code 2."""
    measure_h5py_as_it_is()
    for stream in (sys.stdout, sys.stderr):
        # A terminal or pipe that cannot show a name gets it escaped, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    warnings.formatwarning = _format_warning
    try:
        check_environment()
        code = cli.main(standalone_mode=False, prog_name="chunkwise")
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Exit as leave:
        sys.exit(leave.exit_code)
    except click.ClickException as wrong:
        told = io.StringIO()
        wrong.show(told)
        echo(told.getvalue(), err=True, nl=False)
        sys.exit(2)
    except ChunkwiseError as wrong:
        echo(f"chunkwise: {wrong}", err=True)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        echo("chunkwise: interrupted", err=True)
        sys.exit(130)
    except ReaderGoneError:
        # Not an error.  What is still buffered goes nowhere, also not at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
