"""What does `chunkwise` do, and how do its errors reach the terminal?"""

from __future__ import annotations

import importlib
import io
import os
import sys
import warnings
from typing import Any, NoReturn

import click

from chunkwise import system
from chunkwise._native import __version__
from chunkwise._startup import measure_h5py_as_it_is
from chunkwise.cli.echo import echo
from chunkwise.errors import CannotJudgeError, ChunkwiseError, UsageError, notes_of
from chunkwise.names import printable_lines
from chunkwise.settings import HELP, check_environment
from chunkwise.verdicts import Exit
from chunkwise.words import joined

# Subcommands are imported when used, so that `chunkwise --help` stays instant.
COMMANDS = {
    "inspect": "Show what is wrong with a file, and what decides its speed.",
    "view": "Show a file's chunks in the browser: what reads cost, and what would help.",
    "bench": "Time access patterns on a file, and explain the times.",
    "advise": "Find the best chunks, filters and cache for a dataset, and prove it.",
    "hstest": "Read complex selections of a file, check every element, and time it.",
    "compare": "Compare saved runs of bench: what is slower, and what is only noise?",
    "fix": "Find what is wrong with a file, write a better one, and measure the gain.",
    "repack": "Copy a file with other chunks and filters, on all cores.",
    "run": "Run any program unchanged, with chunkwise reading in place of its HDF5.",
    "trace": "Run a program, and show what it reads or writes, and how long that takes.",
    "study": "Repeat the measurements of five papers on this machine.",
    "report": "Show saved results as one page: plots, tables, verdicts.",
    "verify": "Check every chunk and all metadata of files for damage.",
    "index": "Write down where a file's chunks are, for zarr, xarray and chunkwise.open.",
    "sample": "Generate one of the papers' datasets.",
    "mpi-check": "Show the MPI and HDF5 in use, and their known problems.",
    "mpi-model": "Predict the time and the limit of a parallel write on many ranks.",
}
# Found by their entry points: those of the package chunkwise_lab, which need not be there.
OF_THE_LAB = ("hstest", "study", "report", "sample", "mpi-check", "mpi-model")
# What the ranks of an MPI program do together: they fail and end as one.
OF_MANY_RANKS = ("mpi-check", "repack", "study iotest")
# What no system but Linux can do, and what Windows cannot.
OF_LINUX = ("run", "trace")
NOT_OF_WINDOWS = ("mpi-check",)
# What takes URLs, or programs with any arguments.
OF_URLS = ("index", "inspect", "run", "trace", "verify", "view")


class ReaderGoneError(Exception):
    """Whatever read our output has seen enough: ``chunkwise bench data.nc | head``."""


class LazyGroup(click.Group):
    """A group whose commands live in `chunkwise.cli.<name>` as `command`, or elsewhere."""

    def list_commands(self, _: click.Context) -> list[str]:
        """Names in the order in which a user meets them."""
        return list(COMMANDS)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module, or None for a name that is not ours."""
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in OF_LINUX and not system.LINUX:
            raise CannotJudgeError(
                f"{cmd_name}: works on Linux only: elsewhere nothing can stand between a program "
                "and its HDF5"
            )
        if cmd_name in NOT_OF_WINDOWS and not system.FORKS:
            raise CannotJudgeError(
                f"{cmd_name}: does not work on Windows; use it on Linux or macOS"
            )
        if cmd_name in OF_THE_LAB:
            command = _from_the_lab(cmd_name)
        else:
            module = importlib.import_module(f"chunkwise.cli.{cmd_name.replace('-', '_')}")
            command = module.command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; distinguish a closed pipe from other errors."""
        # Click and rich, which come next, both end the process with code 1.
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as wrong:
            raise _as_now_spelled(wrong) from None
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


def _as_now_spelled(wrong: click.NoSuchOption) -> click.UsageError:
    """Offer the present spelling of an option where a former one comes near."""
    # Imported where it is needed, as other commands need not wait for it.
    from chunkwise.cli.values import Renamed

    params = wrong.ctx.command.params if wrong.ctx is not None else []
    now = {name: one.opts[-1] for one in params if isinstance(one, Renamed) for name in one.former}
    offered = dict.fromkeys(repr(now.get(name, name)) for name in wrong.possibilities or ())
    hint = f" Did you mean {joined(list(offered), 'or')}?" if offered else ""
    return click.UsageError(wrong.message + hint, wrong.ctx)


def _from_the_lab(name: str) -> click.Command:
    """Load a command that another package has registered."""
    # Imported where it is needed, as other commands need not wait for it.
    from importlib.metadata import entry_points

    for found in entry_points(group="chunkwise.commands", name=name):
        try:
            command: click.Command = found.load()
        except ModuleNotFoundError as missing:
            if missing.name == found.module.partition(".")[0]:
                break
            raise
        return command
    raise UsageError(
        f"{name} is in the package chunkwise_lab, which is not installed: install chunkwise "
        "again (pip install --force-reinstall chunkwise, or make install in its sources)"
    )


@click.group(cls=LazyGroup, epilog=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="chunkwise")
def cli() -> None:
    """Measure, explain and fix slow HDF5 and netCDF-4 input and output."""


def _format_warning(message: Warning | str, *_: object, **__: object) -> str:
    """Write a warning of the library's as the command line's own."""
    return f"chunkwise: warning: {printable_lines(str(message))}\n"


def _unexpected(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Print an error that nobody expected, as Python does, without secrets of URLs."""
    import traceback

    echo("".join(traceback.format_exception(kind, error, trace)), err=True, nl=False)


def main() -> None:
    """Run the command line; every expected error is one line and its exit code."""
    measure_h5py_as_it_is()
    for stream in (sys.stdout, sys.stderr):
        # A terminal or pipe that cannot show a name gets it escaped, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    warnings.formatwarning = _format_warning
    sys.excepthook = _unexpected
    if _of_many_ranks():
        from chunkwise.mpi.ranks import as_one_program

        as_one_program(_run, _exit_message)
        return
    try:
        _run()
    except BaseException as error:
        exit_message = _exit_message(error)
        if exit_message is None:
            raise
        text, code = exit_message
        echo(text, err=True, nl=False)
        sys.exit(code)


def _of_many_ranks() -> bool:
    """Whether this process is one of several that do the command's work together."""
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    if not {" ".join(words[:1]), " ".join(words[:2])} & {*OF_MANY_RANKS}:
        return False
    # Imported where it is needed, as other commands need not wait for it.
    from chunkwise.mpi.ranks import under_mpi

    return under_mpi()


def _run() -> NoReturn:
    check_environment()
    if "://" in " ".join(sys.argv) and sys.argv[1] not in OF_URLS:
        # Imported where it is needed, as other commands need not wait for it.
        from chunkwise.files.opening import refuse_url

        for word in sys.argv[2:]:
            refuse_url(word)
            refuse_url(word.partition("=")[2])
    code = cli.main(standalone_mode=False, prog_name="chunkwise")
    sys.exit(code if isinstance(code, int) else 0)


def _exit_message(error: BaseException) -> tuple[str, int] | None:
    """Return what an expected error prints, and the exit code; None for any other error."""
    found = _message_alone(error)
    notes = "".join(f"chunkwise: {one}\n" for one in notes_of(error))
    return None if found is None else (found[0] + notes, found[1])


def _message_alone(error: BaseException) -> tuple[str, int] | None:
    """As `_exit_message`, without what was noted on the error."""
    if isinstance(error, SystemExit):
        # By a signal, once a result was in place; any other is on its way out already.
        return ("", error.code) if notes_of(error) and isinstance(error.code, int) else None
    if isinstance(error, click.exceptions.Exit):
        return "", error.exit_code
    if isinstance(error, click.ClickException):
        text = io.StringIO()
        error.show(text)
        return text.getvalue(), Exit.FAILED
    if isinstance(error, ChunkwiseError):
        return f"chunkwise: {error}\n", error.exit_code
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return "chunkwise: interrupted\n", Exit.INTERRUPTED
    if isinstance(error, ReaderGoneError):
        # Not an error.  What is still buffered goes nowhere, also not at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return "", 0
    return None
