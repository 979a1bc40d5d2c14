"""Which options does `chunkwise fix` take, and what does it print?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from chunkwise.cli import batches
from chunkwise.cli.batches import showing
from chunkwise.cli.echo import echo, echo_json
from chunkwise.cli.signals import Ending, ending, leaving
from chunkwise.cli.values import DURATION, Renamed, for_option
from chunkwise.errors import UsageError
from chunkwise.names import printable
from chunkwise.repacking.options import Options
from chunkwise.verdicts import worst

if TYPE_CHECKING:
    from chunkwise.fixing.run import FixRequest
    from chunkwise.repacking.folder import FileResult

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
  2    wrong usage, or it failed; nothing to fix, and OUT is of an earlier run
  3    something cannot be done here: a filter or another HDF5 is needed
  4    the file is open for writing, or it changed: try later
  130  interrupted
  Of several files, the first of 1, 2, 3, 4 that one of them has.
  After all but 0 the source did not change and no target was made, unless a
  line says that the new file is complete and in place.
"""


@click.command(epilog=EXAMPLES)
@click.argument("arguments", nargs=-1, metavar="FILE|FOLDER|GLOB... [OUT]")
@click.option(
    "--access",
    multiple=True,
    metavar="PATTERN",
    help="A pattern that will be read, such as 1x600x600 or line:0; may be repeated.  [default: "
    "those that inspect looks at]",
)
@click.option(
    "--budget",
    "seconds",
    cls=Renamed,
    former="--seconds",
    type=DURATION,
    help="Time for measuring before and after, as in 40s or 5min.  [default: 30s; for many "
    "files, no measuring]",
)
@click.option(
    "--advise",
    "advise_s",
    metavar="TIME",
    type=DURATION,
    help="Measure layouts for the largest datasets for this time, as in 60s or 5min, and take "
    "the best.  [default: the model chooses]",
)
@click.option("--no-measure", is_flag=True, help="Do not measure the gain.")
@for_option("Make no change that PROGRAM cannot read")
@batches.options
def command(
    arguments: tuple[str, ...],
    access: tuple[str, ...],
    seconds: float | None,
    advise_s: float | None,
    no_measure: bool,
    readers: tuple[str, ...],
    verify: str,
    merge: bool,
    resume: bool,
    memory: int | None,
    threads: int | None,
    **given: Any,
) -> int:
    """Give a file a better layout, and measure the gain.

    Inspects the file, chooses chunks, filters and pages, writes a new file with the same
    contents, verifies it, and times the changed datasets before and after. If there is
    nothing to fix, it says so and does not change the file.

    For several files, a FOLDER (searched through all levels for HDF5 files) or a GLOB,
    each file is fixed separately.
    """
    from chunkwise.fixing.run import DEFAULT_SECONDS, FixRequest
    from chunkwise.patterns import read
    from chunkwise.repacking.api import using_threads

    chosen = batches.choose("fix", batches.Chosen(arguments, **given), several=True)
    for option, value in (("--budget", seconds), ("--advise", advise_s)):
        if (chosen.jobs or 1) > 1 and value is not None:
            raise UsageError(
                f"--jobs and {option}: files at the same time cannot be measured; give one"
            )
    if no_measure and seconds is not None:
        raise UsageError("--no-measure and --budget: give one of them")
    request = FixRequest(
        read(access),
        merge,
        Options(
            memory_nbytes=chosen.memory_of(memory),
            verify=verify,  # type: ignore[arg-type]
            readers=readers,
        ),
        0.0 if no_measure else seconds or (0.0 if chosen.many else DEFAULT_SECONDS),
        resume,
        advise_s or 0.0,
    )
    with using_threads(threads), ending() as ends, leaving():
        if chosen.many:
            return _many(chosen, request, ends)
        return _one(chosen, request, ends)


def _one(chosen: batches.Chosen, request: FixRequest, ends: Ending) -> int:
    from chunkwise.fixing.folder import inspect_apart
    from chunkwise.fixing.render import lines
    from chunkwise.fixing.run import Doing, mend, plan
    from chunkwise.newfile.target import choose

    (file,), out, in_place = chosen.arguments, chosen.out, chosen.in_place
    named = out is not None or in_place
    place = choose(file, out, in_place=in_place, force=chosen.force) if named else None
    with showing(chosen.as_json, ends) as watch:
        do = Doing(inspect_apart, watch.announce, watch)
        if chosen.dry_run or place is None:
            fixed = plan(file, request, do, place)
        else:
            fixed = mend(file, place, request, do)
    if chosen.as_json:
        echo_json(fixed.as_dict(), indent=2)
    else:
        for line in lines(fixed):
            echo(line)
    wrote_nothing = fixed.outcome == "nothing to mend" and not chosen.dry_run
    if wrote_nothing and place and not place.in_place and place.target.exists():
        # The user would take what lies there for this run's result.
        raise UsageError(
            f"{printable(place.said)} is of an earlier run, and {printable(file)} needs no other "
            "file: it was left as it was; remove it, or read the source"
        )
    return 0


def _many(chosen: batches.Chosen, request: FixRequest, ends: Ending) -> int:
    from chunkwise.fixing.folder import work_of
    from chunkwise.fixing.render import file_line

    def record(result: FileResult) -> dict[str, Any]:
        found = {**result.as_dict(), "format": "chunkwise-fix-file"}
        found["fixed"] = None if result.summary is None else result.summary.as_dict()
        del found["summary"]
        return found

    work = work_of(request, chosen.kept)
    results = batches.do_each(chosen, work, ends, file_line, record)
    return worst(result.exit_code for result in results)
