"""Which options does `chunkwise fix` take, and what does it print?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chunkwise.cli import batches
from chunkwise.cli.echo import echo, echo_json
from chunkwise.cli.moments import showing
from chunkwise.cli.signals import Ending, ending, leaving
from chunkwise.cli.values import Duration, Renamed, Size, for_option
from chunkwise.errors import UsageError
from chunkwise.names import json_text
from chunkwise.repacking.options import VERIFICATIONS, Options
from chunkwise.verdicts import worst

if TYPE_CHECKING:
    from chunkwise.fixing.run import Wish
    from chunkwise.repacking.folder import FileResult
    from chunkwise.repacking.progress import Watch

EXAMPLES = """\b
Examples:
  chunkwise fix model.nc --dry-run              what it would do, and gain
  chunkwise fix model.nc model_fixed.nc
  chunkwise fix model.nc --in-place
  chunkwise fix model.nc -o maps.nc --access 1x721x1440
  chunkwise fix model.nc -o fast.nc --access line:0 --budget 2min
  chunkwise fix model.nc -o fast.nc --access line:0 --advise 60s
  chunkwise fix model.nc -o model_fixed.nc --json > fixed.json
  chunkwise fix archive/ --dry-run
  chunkwise fix archive/ --in-place --jobs 4
  chunkwise fix archive/ -o fixed/ --task 3/8

\b
Exit code:
  0    done, or there was nothing to fix and the file did not change
  1    the file is damaged, or OUT was not what it is
  2    wrong usage, or it failed
  3    something cannot be done here: a filter or another HDF5 is needed
  4    the file is open for writing, or it changed: try later
  130  interrupted
  Of several files, the first of 1, 2, 3, 4 that one of them has.
  After all but 0 the source did not change and no target was made, unless a
  line says that the new file is complete and in place.
"""


@click.command(epilog=EXAMPLES)
@click.argument("arguments", nargs=-1, metavar="FILE|FOLDER|GLOB... [OUT]")
@batches.out_option("The new file; for many files, a folder.")
@click.option("--in-place", is_flag=True, help="Replace FILE when the result is verified.")
@click.option(
    "--access",
    multiple=True,
    metavar="PATTERN",
    help="A pattern that will be read, such as 1x600x600 or line:0; may be repeated.  [default: "
    "those that inspect looks at]",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done and gained; write nothing.")
@click.option("--merge", is_flag=True, help="Make virtual and external datasets real data.")
@click.option(
    "--budget",
    "seconds",
    cls=Renamed,
    former="--seconds",
    type=Duration(),
    help="Time for measuring before and after, as in 40s or 5min.  [default: 30s; for many "
    "files, no measuring]",
)
@click.option(
    "--advise",
    "advise_s",
    metavar="TIME",
    type=Duration(),
    help="Measure layouts for the largest datasets for this time, as in 60s or 5min, and take "
    "the best.  [default: the model chooses]",
)
@click.option("--no-measure", is_flag=True, help="Do not measure the gain.")
@click.option(
    "--verify",
    metavar="|".join(VERIFICATIONS),
    default="proof",
    show_default=True,
    help="Compare the finished result with IN as a reader sees both, or do not.",
)
@click.option("--force", is_flag=True, help="Replace a target that exists.")
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with a run that was killed; if this one is stopped, leave what it has done.",
)
@click.option(
    "--memory", type=Size(), help="Most bytes for data.  [default: a quarter of free memory]"
)
@click.option("--threads", type=int, help="Threads that decode and encode.  [default: all]")
@click.option(
    "--unchanged",
    type=click.Choice(["copy", "link", "skip"]),
    help="For many files with -o: what to do with files that need no fix.  [default: copy]",
)
@for_option("Make no change that PROGRAM cannot read")
@batches.options
@click.option("--json", "as_json", is_flag=True, help="Print JSON; for many files, one line each.")
def command(
    arguments: tuple[str, ...],
    out: str | None,
    in_place: bool,
    access: tuple[str, ...],
    dry_run: bool,
    merge: bool,
    seconds: float | None,
    advise_s: float | None,
    no_measure: bool,
    verify: str,
    force: bool,
    resume: bool,
    memory: int | None,
    threads: int | None,
    unchanged: str | None,
    readers: tuple[str, ...],
    files_from: str | None,
    jobs: int | None,
    task: str | None,
    as_json: bool,
) -> int:
    """Give a file a better layout, and measure the gain.

    Inspects the file, chooses chunks, filters and pages, writes a new file with the same
    contents, verifies it, and times the changed datasets before and after. If there is
    nothing to fix, it says so and does not change the file.

    For several files, a FOLDER (searched through all levels for HDF5 files) or a GLOB,
    each file is fixed separately.
    """
    from chunkwise.fixing.run import DEFAULT_SECONDS, Wish
    from chunkwise.mpi.machine import default_budget
    from chunkwise.repacking.api import using_threads

    if not arguments and files_from is None:
        raise UsageError("name a file, as in: chunkwise fix FILE OUT")
    elsewhere = in_place or files_from is not None or (dry_run and Path(arguments[-1]).exists())
    arguments, out = batches.in_and_out(arguments, out, elsewhere)
    many = len(arguments) > 1 or batches.are_many(arguments, files_from) or batches.is_folder(out)
    if not many:
        batches.require_many(jobs, task)
        if unchanged is not None:
            raise UsageError("--unchanged is for many files with -o")
    elif unchanged is not None and out is None:
        raise UsageError("--unchanged is for -o; without, such files are left alone")
    if (jobs or 1) > 1 and seconds is not None:
        raise UsageError(
            "--jobs and --budget: files at the same time cannot be measured; give one"
        )
    if (jobs or 1) > 1 and advise_s:
        raise UsageError(
            "--jobs and --advise: files at the same time cannot be measured; give one"
        )
    if no_measure and seconds is not None:
        raise UsageError("--no-measure and --budget: give one of them")
    if out is not None and in_place:
        raise UsageError("--in-place takes no OUT: it replaces FILE")
    if out is None and not in_place and not dry_run:
        raise UsageError(
            "name OUT for the result (or give -o OUT), --in-place to replace FILE, or --dry-run "
            "to see what would be done"
        )
    if many and jobs is not None:
        memory = (default_budget() if memory is None else memory) // jobs
    wish = Wish(
        access,
        merge,
        Options(memory_nbytes=memory, verify=verify, readers=readers),  # type: ignore[arg-type]
        0.0 if no_measure else seconds or (0.0 if many else DEFAULT_SECONDS),
        resume,
        advise_s or 0.0,
    )
    with using_threads(threads), ending() as ends, leaving():
        if not many:
            return _one(arguments[0], out, wish, in_place, force, dry_run, as_json, ends)
        folder = None if out is None else Path(out)
        asked = batches.Many(arguments, files_from, folder, jobs or 1, task)
        return _many(asked, wish, unchanged or "copy", force, dry_run, as_json, ends)


def _one(
    file: str,
    out: str | None,
    wish: Wish,
    in_place: bool,
    force: bool,
    dry_run: bool,
    as_json: bool,
    ends: Ending,
) -> int:
    from chunkwise.fixing.folder import inspect_apart
    from chunkwise.fixing.render import lines
    from chunkwise.fixing.run import Doing, mend, plan
    from chunkwise.newfile.target import choose

    named = out is not None or in_place
    place = choose(file, out, in_place=in_place, force=force) if named else None
    with showing(as_json, ends) as watch:
        do = Doing(inspect_apart, watch.tell, watch)
        if dry_run or place is None:
            fixed = plan(file, wish, do, place)
        else:
            fixed = mend(file, place, wish, do)
    if as_json:
        echo_json(fixed.as_dict(), indent=2)
    else:
        for line in lines(fixed):
            echo(line)
    return 0


def _many(
    asked: batches.Many,
    wish: Wish,
    unchanged: str,
    force: bool,
    dry_run: bool,
    as_json: bool,
    ends: Ending,
) -> int:
    from chunkwise.fixing.folder import plans, survey
    from chunkwise.fixing.render import file_line
    from chunkwise.repacking.folder import check
    from chunkwise.repacking.rules import Rules

    batch = asked.batch()
    if not dry_run:
        check(batch, Rules(), force=force, resume=wish.resume)

    def fixed(
        at: Callable[[int, Path], Watch], going_on: Callable[[], object]
    ) -> Iterator[FileResult]:
        if dry_run:
            return plans(batch, wish, at)
        return survey(
            batch,
            wish,
            unchanged=unchanged,  # type: ignore[arg-type]
            force=force,
            watch=at,
            jobs=asked.jobs,
            going_on=going_on,
        )

    def line(result: FileResult) -> str:
        if not as_json:
            return file_line(result)
        record = {**result.as_dict(), "format": "chunkwise-fix-file"}
        record["fixed"] = None if result.summary is None else result.summary.as_dict()
        del record["summary"]
        return json_text(record)

    results, _ = batches.tell_each(batch, fixed, line, jobs=asked.jobs, as_json=as_json, ends=ends)
    return worst(result.exit_code for result in results)
