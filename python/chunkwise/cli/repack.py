"""Which options does `chunkwise repack` take, and what does it print?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chunkwise.cli import batches
from chunkwise.cli.batches import showing
from chunkwise.cli.echo import echo, echo_json
from chunkwise.cli.signals import Ending, ending, leaving
from chunkwise.cli.values import SIZE, for_option
from chunkwise.errors import UsageError
from chunkwise.repacking.options import BOUNDS, Options
from chunkwise.verdicts import Exit, worst

if TYPE_CHECKING:
    from chunkwise.newfile.target import Place
    from chunkwise.repacking.run import Job
    from chunkwise.repacking.work import Executor

EXAMPLES = """\b
Examples:
  chunkwise repack in.nc out.nc --chunk t2m:365x20x20 --filter shuffle+zstd:3
  chunkwise repack in.nc out.nc --chunk auto --access line:0 --dry-run
  chunkwise repack in.h5 out.h5 --filter none           decompress everything
  chunkwise repack in.h5 out.h5 --filter zstd:3 --filter mask:stored
  chunkwise repack in.h5 --in-place --chunk '/a/*:auto'
  chunkwise repack in.nc cloud.nc --paged 4MiB          for object storage
  chunkwise repack archive/ packed/ --filter shuffle+deflate:4
  chunkwise repack archive/ packed/ --filter shuffle+deflate:4 --resume
  chunkwise repack archive/ --in-place --chunk t2m:auto --jobs 4
  chunkwise repack --files-from list.txt -o out/ --filter zstd:3 --task 3/8
  mpirun -n 4 chunkwise repack in.nc out.nc --chunk t2m:365x20x20

\b
Rules:
  A rule is [PATTERN:]SETTING; without a pattern it is for all datasets.  A
  name (t2m) matches datasets of this name in any group, a path (/a/t2m) one
  dataset; * and ? match characters, ** groups.  The last matching rule wins.
  A named dataset that cannot take the change is an error; a pattern skips
  such datasets, and says so.

\b
Exit code:
  0    done
  1    IN is damaged, or OUT was not what IN is; or --salvage lost something
  2    wrong usage, or it failed
  3    something cannot be done here: a filter or another HDF5 is needed
  4    IN is open for writing, or it changed: try later
  130  interrupted
  Of several files, the first of 1, 2, 3, 4 that one of them has.
  After all but 0 and --salvage the source did not change and no target was
  made, unless a line says that the new file is complete and in place.
"""


@click.command(epilog=EXAMPLES)
@click.argument("arguments", nargs=-1, metavar="IN [OUT]")
@click.option(
    "--chunk",
    "chunks",
    multiple=True,
    metavar="RULE",
    help="[PATTERN:]SHAPE, as in t2m:365x20x20, or by names, as in t2m:time=365,lat=20; or all "
    "(one chunk), auto, contiguous, stored.  May be repeated.",
)
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="RULE",
    help="[PATTERN:]FILTERS, as in shuffle+zstd:3; or none, stored; deflate:fast is the fastest.",
)
@click.option(
    "--access",
    multiple=True,
    metavar="PATTERN",
    help="A pattern that auto chunks are for: 1x600x600.",
)
@click.option("--min-size", type=SIZE, default=0, help="Leave smaller datasets as they are.")
@click.option("--salvage", is_flag=True, help="Continue if chunks cannot be read.")
@click.option("--low", type=click.Choice(BOUNDS), help="Oldest format.  [default: IN's]")
@click.option("--high", type=click.Choice(BOUNDS[1:]), help="Newest format.  [default: latest]")
@click.option("--alignment", type=SIZE, help="Begin objects of this size at multiples of it.")
@click.option("--paged", type=SIZE, help="Paged file space, with pages of this size.")
@click.option("--metadata-block", type=SIZE, help="Gather metadata in blocks of this size.")
@for_option("Refuse changes that PROGRAM cannot read")
@batches.options
def command(
    arguments: tuple[str, ...],
    chunks: tuple[str, ...],
    filters: tuple[str, ...],
    access: tuple[str, ...],
    min_size: int,
    salvage: bool,
    low: str | None,
    high: str | None,
    alignment: int | None,
    paged: int | None,
    metadata_block: int | None,
    readers: tuple[str, ...],
    verify: str,
    merge: bool,
    resume: bool,
    memory: int | None,
    threads: int | None,
    **given: Any,
) -> int:
    """Copy the HDF5 or netCDF file IN to OUT, with other chunks and filters.

    Everything else stays as it was: groups, links, attributes, types, references,
    dimension scales.  OUT appears when it is complete and verified, or not at all.
    """
    from chunkwise.mpi.machine import share
    from chunkwise.mpi.ranks import of_many_ranks
    from chunkwise.newfile.target import choose as place_of
    from chunkwise.patterns import read
    from chunkwise.repacking.api import using_threads
    from chunkwise.repacking.crew import by_all
    from chunkwise.repacking.rules import Rules
    from chunkwise.repacking.run import Job

    chosen = batches.choose("repack", batches.Chosen(arguments, **given), several=False)
    comm = of_many_ranks()
    if comm.size > 1 and chosen.many:
        raise UsageError(
            "several ranks repack one file together; give each task of an array its part of "
            "many files (--task), or start a command for each, as in docs/mpi.md"
        )
    memory, threads = share(comm, memory, threads)
    job = Job(
        rules=Rules.of(chunks or None, filters or None, min_size),
        options=Options(
            memory_nbytes=chosen.memory_of(memory),
            verify=verify,  # type: ignore[arg-type]
            merge=merge,
            salvage=salvage,
            low=low,  # type: ignore[arg-type]
            high=high,  # type: ignore[arg-type]
            alignment_nbytes=alignment,
            page_nbytes=paged,
            metadata_block_nbytes=metadata_block,
            readers=readers,
        ),
        access=read(access),
        resume=resume,
        anew=chosen.unchanged == "copy",
    )
    with using_threads(threads), ending() as ends, leaving():
        if chosen.many:
            return _many(chosen, job, ends)
        place = partial(
            place_of,
            chosen.arguments[0],
            chosen.out,
            in_place=chosen.in_place,
            force=chosen.force,
            salvage=salvage and not chosen.dry_run,
        )
        if chosen.dry_run:
            return 0 if comm.rank else _dry_run(chosen.arguments[0], place(), job, chosen.as_json)
        return by_all(
            comm, lambda executor: _repack(place(), job, chosen.as_json, ends, executor, comm.size)
        )


def _dry_run(source: str, place: Place, job: Job, as_json: bool) -> int:
    from chunkwise.files.netcdf3 import as_netcdf4
    from chunkwise.repacking.records import plan_record
    from chunkwise.repacking.render import plan_lines
    from chunkwise.repacking.run import check_room, planned

    with as_netcdf4(Path(source)) as readable, planned(job, readable) as (_, plan):
        warning = check_room(place, plan)
        if as_json:
            echo_json(plan_record(source, place.said, plan), indent=2)
        else:
            for line in plan_lines(source, place.said, plan):
                echo(line)
    if warning is not None:
        echo(f"chunkwise: warning: {warning}", err=True)
    return 0


def _repack(
    place: Place, job: Job, as_json: bool, ends: Ending, executor: Executor, n_ranks: int
) -> int:
    from chunkwise.repacking.render import summary_lines
    from chunkwise.repacking.run import run

    if job.options.salvage and n_ranks == 1:
        # libhdf5 may crash on a damaged file.
        from chunkwise.repacking.salvaging import salvage_as

        summary = salvage_as(job, place, ends.check)
    else:
        with showing(as_json, ends) as watch:
            summary = run(job, place, watch, executor)
    if as_json:
        echo_json(summary.as_dict(), indent=2)
    else:
        for line in summary_lines(summary):
            echo(line)
    return Exit.WRONG if summary.lost else Exit.DONE


def _many(chosen: batches.Chosen, job: Job, ends: Ending) -> int:
    from chunkwise.repacking.folder import FileResult, work_of
    from chunkwise.repacking.render import file_line

    work = work_of(job, chosen.kept)
    results = batches.do_each(chosen, work, ends, file_line, FileResult.as_dict)
    lost = not chosen.dry_run and any(one.summary and one.summary.lost for one in results)
    return worst([Exit.WRONG if lost else Exit.DONE, *(one.exit_code for one in results)])
