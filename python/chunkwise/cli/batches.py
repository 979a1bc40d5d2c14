"""Which options do commands share that write many files, and how is each file's result shown?"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chunkwise.cli.echo import echo
from chunkwise.cli.moments import PATH_WIDTH, showing
from chunkwise.cli.signals import Ending
from chunkwise.cli.values import Command, Count, Renamed
from chunkwise.errors import UsageError
from chunkwise.words import counted

if TYPE_CHECKING:
    from chunkwise.repacking.folder import FileResult
    from chunkwise.repacking.gathering import Batch
    from chunkwise.repacking.progress import Watch

    # Gets a function that hears of each file, and one to call several times a second.
    Survey = Callable[[Callable[[int, Path], Watch], Callable[[], object]], Iterator[FileResult]]


files_from_option = click.option(
    "--files-from",
    metavar="FILE|-",
    help="Take the names of files from FILE, or from standard input, a line each.",
)


def options(command: Command) -> Command:
    """Add the options that choose among many files."""
    for option in (
        files_from_option,
        click.option(
            "--jobs",
            type=Count(),
            help="Files at the same time, each with its share of threads and memory.  "
            "[default: 1]",
        ),
        click.option(
            "--task",
            metavar="I/N",
            help="Take part I of the files, for N runs as in a Slurm array: 3/8.",
        ),
    ):
        command = option(command)
    return command


@dataclass(frozen=True)
class Many:
    """What was said of many files."""

    arguments: tuple[str, ...]  # Files, folders and patterns
    files_from: str | None  # A list of further ones; None for none
    out: Path | None  # The folder of results; None in place
    jobs: int  # How many at a time
    task: str | None  # The part that this run has; None for all

    def batch(self) -> Batch:
        """Find the files."""
        from chunkwise.repacking.gathering import gather, read_list

        listed = () if self.files_from is None else read_list(self.files_from)
        found = gather(self.arguments, self.out, listed)
        return found if self.task is None else found.task(self.task)


def out_option(about: str) -> Callable[[Command], Command]:
    """The option that names the result."""
    return click.option(
        "-o", "--output", "out", metavar="OUT", cls=Renamed, former="--out", help=about
    )


def in_and_out(
    arguments: tuple[str, ...], out: str | None, others: bool
) -> tuple[tuple[str, ...], str | None]:
    """Take the second of two names for OUT, as `cp` does, unless an option says where it goes."""
    if out is None and not others and len(arguments) == 2:
        return arguments[:1], arguments[1]
    return arguments, out


def is_folder(out: str | None) -> bool:
    """Whether a result is meant to go into a folder, which may not be there yet."""
    return out is not None and (out.endswith(os.sep) or Path(out).is_dir())


def are_many(arguments: Sequence[str], files_from: str | None) -> bool:
    """Whether more than one file is meant."""
    from chunkwise.inspection.folder import one_file

    if files_from is not None:
        return True
    return any(one_file((argument,)) is None for argument in arguments)


def require_many(jobs: int | None, task: str | None) -> None:
    """Refuse, of one file, what is for many."""
    for option, value in (("--jobs", jobs), ("--task", task)):
        if value is not None:
            raise UsageError(f"{option} is for many files: name a folder, or give --files-from")


def tell_each(
    batch: Batch,
    survey: Survey,
    line: Callable[[FileResult], str],
    *,
    jobs: int,
    as_json: bool,
    ends: Ending,
) -> tuple[list[FileResult], float]:
    """Print each file's result as it comes, and show the progress of the one at work."""
    from chunkwise.repacking.render import batch_lines, shortened

    results: list[FileResult] = []
    begin = time.monotonic()
    count = len(batch.pairs)
    try:
        with showing(as_json, ends, count) as watch:

            def at(number: int, path: Path) -> Watch:
                watch.file = f"{number + 1:,} of {count:,}, {shortened(path.name, PATH_WIDTH)}: "
                return watch

            def several() -> None:
                watch.tell(f"{len(results):,} of {counted(count, 'file')}, {jobs} at a time")

            for result in survey(at, several):
                results.append(result)
                watch.say(line(result))
                ends.check()
    finally:
        if not as_json:
            for said in batch_lines(results, time.monotonic() - begin):
                echo(said)
    return results, time.monotonic() - begin
