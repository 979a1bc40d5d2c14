"""How are many files fixed, each separately, and files without findings left alone?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from chunkwise.errors import ChunkwiseError
from chunkwise.files.contained import contained
from chunkwise.fixing.run import Doing, FixRequest, mend, plan
from chunkwise.inspection import inspect
from chunkwise.inspection.facts import FileFacts
from chunkwise.names import HDF5_ERRORS, printable
from chunkwise.newfile.target import Place
from chunkwise.patterns import StatedPattern
from chunkwise.repacking.folder import (
    FileResult,
    Treated,
    Unchanged,
    Work,
    failed,
    key_of,
    left_as_it_is,
)
from chunkwise.repacking.progress import Moment, Watch


def inspect_apart(path: str, access: Sequence[StatedPattern] = ()) -> FileFacts:
    """Collect the facts about a file in a process of its own: libhdf5 crashes on some."""
    return contained(partial(inspect, path, access=access), printable(path))


def work_of(request: FixRequest, unchanged: Unchanged) -> Work:
    """Mend each file."""
    access = [*map(str, request.access)]
    key = key_of(access, request.merge, request.options, unchanged, request.advise_s)
    return Work(
        partial(_mend_one, request, unchanged), partial(_plan_one, request), key, request.resume
    )


def _doing(watch: Watch) -> Doing:
    return Doing(inspect_apart, lambda _: watch(Moment("planning")), watch)


def _mend_one(request: FixRequest, unchanged: Unchanged, place: Place, watch: Watch) -> Treated:
    """Mend one of many files, or give one that needs nothing its place."""
    fixed = mend(str(place.source), place, request, _doing(watch))
    if fixed.outcome == "fixed":
        return Treated("fixed", fixed)
    left = left_as_it_is(place, unchanged)
    return Treated(left.outcome, fixed, left.identity)


def _plan_one(request: FixRequest, source: Path, _: Path, watch: Watch) -> FileResult:
    """Say what would be done to a file, without writing anything."""
    nbytes = source.stat().st_size if source.exists() else None
    try:
        found = plan(str(source), request, _doing(watch))
    except (ChunkwiseError, *HDF5_ERRORS) as error:
        return failed(source, "", error)
    return FileResult(
        str(source),
        "",
        "planned" if found.outcome == "planned" else "skipped",
        nbytes,
        found.target_nbytes,
        summary=found,
        elapsed_s=found.elapsed_s,
    )
