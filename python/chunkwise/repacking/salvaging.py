"""How is the readable part of a damaged file copied to another?

By a repack that changes nothing: chunks that decode are copied unchanged, and what cannot be read
is left out and listed.  This happens in another process, because libhdf5 crashes on some damaged
files.  If it does, `scouting` finds out on what, and another process copies the rest.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from chunkwise.errors import CannotJudgeError, ChunkwiseError, CorruptDataError
from chunkwise.files.workers import by_workers, check_ended
from chunkwise.names import printable
from chunkwise.newfile.target import Place, choose
from chunkwise.repacking.options import Options
from chunkwise.repacking.progress import Moment
from chunkwise.repacking.records import Summary
from chunkwise.repacking.run import Job, run
from chunkwise.repacking.scouting import scout


def salvage(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    check: Callable[[], object] = lambda: None,
    *,
    force: bool = False,
) -> Summary:
    """Write what can be read of a file to another, with fill values for the rest."""
    place = choose(os.fspath(source), os.fspath(target), in_place=False, force=force, salvage=True)
    return salvage_as(Job(options=Options(salvage=True)), place, check)


def salvage_as(job: Job, place: Place, check: Callable[[], object] = lambda: None) -> Summary:
    """Do the same as a job says; see `salvage`."""
    said = printable(str(place.source))

    def attempt(job: Job) -> Summary:
        for _, outcome in by_workers(
            [(0, said, partial(run, job, place, _watch))], 1, check=check
        ):
            return outcome.get()
        raise AssertionError("a worker gives one outcome")

    try:
        return attempt(job)
    except (CorruptDataError, CannotJudgeError) as error:
        failed: ChunkwiseError = error
    avoid = scout(place.source, check)
    for adopt in (True, False):
        options = replace(job.options, avoid=avoid, adopt=adopt)
        try:
            return attempt(replace(job, options=options))
        except (CorruptDataError, CannotJudgeError) as error:
            failed = error
    raise failed


def _watch(_: Moment) -> None:
    """End between two steps if the parent wants that."""
    check_ended()
