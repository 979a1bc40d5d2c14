"""Which options do commands share that write many files, and how is each file's result shown?"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chunkwise.cli.echo import echo
from chunkwise.cli.signals import Ending
from chunkwise.cli.values import COUNT, DURATION, SIZE, Command, Renamed
from chunkwise.errors import UsageError
from chunkwise.grammar import format_size
from chunkwise.names import json_text, printable
from chunkwise.repacking.options import VERIFICATIONS
from chunkwise.verdicts import Exit
from chunkwise.words import counted, format_seconds

if TYPE_CHECKING:
    from rich.progress import Progress

    from chunkwise.repacking.folder import FileResult, Unchanged, Work
    from chunkwise.repacking.gathering import Wanted
    from chunkwise.repacking.progress import Moment, Watch

# Beside a bar and figures, in a terminal of 80 columns.
PATH_WIDTH = 20
_BAR_WIDTH = 10
_WORDS_WIDTH = 60


class Unshown:
    """Shows no progress, because nobody would see it, but ends on request."""

    def __init__(self, ends: Ending) -> None:
        self.file = ""
        self._ends = ends

    def __call__(self, _: Moment) -> None:
        """Take note of a moment of the repack."""
        self._ends.check()

    def say(self, line: str) -> None:
        """Print a result."""
        echo(line)

    def announce(self, _: str) -> None:
        """Say what is done next, unless it is the repack itself."""
        self._ends.check()


class Shown(Unshown):
    """Progress on a terminal: a line for the dataset, and one for the file."""

    def __init__(self, bar: Progress, ends: Ending) -> None:
        super().__init__(ends)
        self._bar = bar
        self._total = bar.add_task("", total=None, said="")
        self._dataset = bar.add_task("", total=None, said="")

    def __call__(self, moment: Moment) -> None:
        """Show a moment of the repack."""
        from chunkwise.repacking.render import shortened

        self._ends.check()
        rate, left = moment.nbytes_per_s, moment.left_s
        said = f"{format_size(moment.total_done_nbytes)} of {format_size(moment.total_nbytes)}"
        if rate and left is not None:
            said += f", {format_size(round(rate))}/s, {format_seconds(left)} left"
        self._bar.update(
            self._total,
            description=f"{self.file}{moment.phase}",
            total=moment.total_nbytes or None,
            completed=moment.total_done_nbytes,
            said=said if moment.total_nbytes else "",
        )
        within = ""
        if moment.path:
            within = f"{format_size(moment.done_nbytes)} of {format_size(moment.of_nbytes)}"
            if rate:
                dataset_left = (moment.of_nbytes - moment.done_nbytes) / rate
                within += f", {format_seconds(dataset_left)} left"
        self._bar.update(
            self._dataset,
            description=shortened(moment.path, PATH_WIDTH),
            total=moment.of_nbytes or None,
            completed=moment.done_nbytes,
            said=within,
            visible=bool(moment.path),
        )

    def announce(self, text: str) -> None:
        """Say what is done next, unless it is the repack itself."""
        self._ends.check()
        words = f"{self.file}{printable(text)}"[:_WORDS_WIDTH]
        self._bar.update(self._total, description=words, total=None, completed=0, said="")
        self._bar.update(self._dataset, description="", visible=False)

    def say(self, line: str) -> None:
        """Print a result without tearing the bars apart."""
        from chunkwise.cli.progress import say_beside

        say_beside(self._bar, line)


@contextmanager
def showing(as_json: bool, ends: Ending, files: int = 1) -> Iterator[Unshown]:
    """Show progress while the block runs, on a terminal only."""
    if not sys.stderr.isatty() or (as_json and sys.stdout.isatty() and files > 1):
        yield Unshown(ends)
        return
    # Here, as it takes a twentieth of a second.
    from rich.progress import BarColumn, TextColumn

    from chunkwise.cli.progress import bar

    said = TextColumn("{task.fields[said]}", markup=False)
    words = TextColumn("{task.description}", markup=False)
    with bar(words, BarColumn(bar_width=_BAR_WIDTH), said) as shown:
        yield Shown(shown, ends)


files_from_option = click.option(
    "--files-from",
    metavar="FILE|-",
    help="Take the names of files from FILE, or from standard input, a line each.",
)


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON; for many files, one line each."
)
_WANTED = (
    click.option(
        "--exclude",
        multiple=True,
        metavar="PATTERN",
        help="Leave out files and folders of this name, or with this path below the folder, such "
        "as '*.tmp' or 'raw/*'.  May be repeated.",
    ),
    click.option(
        "--quiet-for",
        type=DURATION,
        help="Skip files written within this time, as in 10min; a later run takes them.",
    ),
    click.option(
        "--baseline",
        metavar="FILE",
        help="The --json output of an earlier run: ignore problems that it has reported.",
    ),
)


def wanted_options(command: Command) -> Command:
    """Add the options that choose among many files."""
    for option in reversed(_WANTED):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "-o",
        "--output",
        "out",
        metavar="OUT",
        cls=Renamed,
        former="--out",
        help="The new file, as OUT; for many files, a folder.",
    ),
    click.option(
        "--in-place", is_flag=True, help="Replace the source when the result is verified."
    ),
    click.option("--dry-run", is_flag=True, help="Say what would be done, and write nothing."),
    click.option(
        "--unchanged",
        type=click.Choice(["copy", "link", "skip"]),
        help="For many files: what to do with those that need no change.  [default: copy; in "
        "place: skip]",
    ),
    click.option(
        "--verify",
        metavar="|".join(VERIFICATIONS),
        default="proof",
        show_default=True,
        help="Compare the finished result with the source as a reader sees both, or do not.",
    ),
    click.option("--merge", is_flag=True, help="Make virtual and external datasets real data."),
    click.option("--force", is_flag=True, help="Replace a target that exists."),
    click.option(
        "--resume",
        is_flag=True,
        help="Go on with a run that was killed; if this one is stopped, leave what it has done.",
    ),
    click.option(
        "--memory",
        type=SIZE,
        help="Use at most SIZE of memory for data; under MPI, in each rank.  "
        "[default: a quarter of free memory]",
    ),
    click.option("--threads", type=int, help="Threads that decode and encode.  [default: all]"),
    files_from_option,
    click.option(
        "--jobs",
        type=COUNT,
        help="Files at the same time, each with its share of threads and memory.  [default: 1]",
    ),
    click.option(
        "--task",
        metavar="I/N",
        help="Take part I of the files, for N runs as in a Slurm array: 3/8.",
    ),
    json_option,
)


def options(command: Command) -> Command:
    """Add the options of commands that rewrite one file or many."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return wanted_options(command)


@dataclass(frozen=True)
class Chosen:
    """Which files a command is for, where results go, and how they are shown."""

    arguments: tuple[str, ...]  # Files, folders and patterns; of one file, its name
    out: str | None  # The new file, or the folder of results; None in place, and for none
    in_place: bool
    dry_run: bool  # Whether nothing is written
    unchanged: Unchanged | None  # What becomes of files that need no change; None for the usual
    force: bool  # Whether what is there is replaced
    files_from: str | None  # A list of further ones; None for none
    jobs: int | None  # How many at a time; None if nothing is said
    task: str | None  # The part of many that this run has; None for all
    as_json: bool
    exclude: tuple[str, ...] = ()  # Which of many are left out
    quiet_for: float | None = None  # Seconds for which a file must not have changed
    baseline: str | None = None  # What an earlier run printed; None for none
    many: bool = False  # Whether several files are meant, or any in a folder

    @property
    def kept(self) -> Unchanged:
        """What becomes of files of many that need no change."""
        return self.unchanged or ("skip" if self.in_place else "copy")

    @property
    def wanted(self) -> Wanted:
        """Which of many are taken."""
        from chunkwise.repacking.gathering import Wanted

        return Wanted(self.exclude, self.quiet_for or 0.0)

    def memory_of(self, memory: int | None) -> int | None:
        """The bytes for the data of each file; None for the usual."""
        if not self.many or self.jobs is None:
            return memory
        # Imported where it is needed, as other commands need not wait for it.
        from chunkwise.memory import default_budget

        return (default_budget() if memory is None else memory) // self.jobs


def choose(command: str, given: Chosen, *, several: bool) -> Chosen:
    """Decide which files are meant, and what OUT is."""
    # With `several` files may be named, and not only found in folders.
    arguments, out, in_place = given.arguments, given.out, given.in_place
    if not arguments and given.files_from is None:
        raise UsageError(f"name a file, as in: chunkwise {command} IN OUT")
    elsewhere = out is not None or in_place or given.files_from is not None
    both = several and given.dry_run and not elsewhere and Path(arguments[-1]).exists()
    if len(arguments) == 2 and not elsewhere and not both:
        # As `cp` takes the second of two names.
        arguments, out = arguments[:1], arguments[-1]
    named = len(arguments) > 1 and (several or out is not None)
    many = named or are_many(arguments, given.files_from) or is_folder(out)
    if not many:
        require_many(
            jobs=given.jobs,
            task=given.task,
            exclude=given.exclude,
            quiet_for=given.quiet_for,
            baseline=given.baseline,
        )
    if in_place and (out is not None or (len(arguments) > 1 and not many)):
        raise UsageError("--in-place takes no OUT: it replaces IN")
    if len(arguments) > 1 and not many:
        raise UsageError(
            f"{counted(len(arguments), 'file')}: give IN and OUT, or -o FOLDER for many files"
        )
    if out is None and not in_place and not given.dry_run:
        raise UsageError(
            "name OUT for the result (or give -o OUT; for many files, a folder), or --in-place to "
            "replace IN"
        )
    if given.unchanged is not None and (in_place or not many):
        if several or not in_place:
            more = " with -o" if several else " and --in-place; OUT is always written"
            raise UsageError(f"--unchanged is for many files{more}")
        if given.unchanged == "link":
            raise UsageError("--unchanged link is for -o; in place, write skip or copy")
    return replace(given, arguments=arguments, out=out, many=many)


def require_many(**given: object) -> None:
    """Refuse options of many files where one is named."""
    for name, value in given.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is for many files: name a folder, or give --files-from")


def read_baseline(path: str | None) -> list[dict[str, Any]]:
    """Read the records that an earlier run printed, a line each."""
    if path is None:
        return []
    try:
        return [dict(json.loads(line)) for line in Path(path).read_text("utf-8").splitlines()]
    except OSError as wrong:
        raise UsageError(f"--baseline {printable(path)}: {wrong.strerror}") from None
    except (ValueError, TypeError):
        raise UsageError(
            f"--baseline {printable(path)}: is not what a run over many files prints with --json"
        ) from None


def is_folder(out: str | None) -> bool:
    """Whether a result is meant to go into a folder, which may not be there yet."""
    return out is not None and (out.endswith(os.sep) or Path(out).is_dir())


def are_many(arguments: Sequence[str], files_from: str | None) -> bool:
    """Whether more than one file is meant."""
    from chunkwise.inspection.folder import one_file

    if files_from is not None:
        return True
    return any(one_file((argument,)) is None for argument in arguments)


def do_each(
    chosen: Chosen,
    work: Work,
    ends: Ending,
    line: Callable[[FileResult], str],
    record: Callable[[FileResult], dict[str, Any]],
) -> list[FileResult]:
    """Do the work on each file, print its result, and show the progress of the one at work."""
    from chunkwise.repacking.folder import check, survey
    from chunkwise.repacking.gathering import gather, not_kept, read_list
    from chunkwise.repacking.render import batch_lines, shortened

    force, dry_run, as_json = chosen.force, chosen.dry_run, chosen.as_json
    listed = () if chosen.files_from is None else read_list(chosen.files_from)
    known = {(one.get("source"), one.get("reason")) for one in read_baseline(chosen.baseline)}
    batch = gather(chosen.arguments, chosen.out, listed, chosen.wanted)
    batch = batch if chosen.task is None else batch.task(chosen.task)
    check(batch, work, force=force, dry_run=dry_run)
    results: list[FileResult] = []
    begin, count, jobs = time.monotonic(), len(batch.pairs), chosen.jobs or 1
    try:
        with showing(as_json, ends, count) as watch:

            def at(number: int, path: Path) -> Watch:
                watch.file = f"{number + 1:,} of {count:,}, {shortened(path.name, PATH_WIDTH)}: "
                return watch

            def going_on() -> None:
                watch.announce(f"{len(results):,} of {counted(count, 'file')}, {jobs} at a time")

            for result in survey(
                batch, work, force=force, watch=at, jobs=jobs, going_on=going_on, dry_run=dry_run
            ):
                if result.reason is not None and (result.source, result.reason) in known:
                    result = replace(result, exit_code=Exit.DONE)
                results.append(result)
                watch.say(json_text(record(result)) if as_json else line(result))
                ends.check()
    finally:
        if not as_json:
            for said in batch_lines(results, time.monotonic() - begin):
                echo(said)
            if (left := not_kept(batch)) is not None:
                echo(f"not kept as it is: {left}")
    return results
