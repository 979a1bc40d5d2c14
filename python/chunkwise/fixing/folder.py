"""How are many files fixed, each separately, and files without findings left alone?"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from chunkwise.errors import ChunkwiseError
from chunkwise.files.contained import contained
from chunkwise.fixing.records import Fixed
from chunkwise.fixing.run import Doing, Wish, mend, plan
from chunkwise.inspection import inspect
from chunkwise.inspection.facts import FileFacts
from chunkwise.names import HDF5_ERRORS, printable
from chunkwise.newfile.target import Place
from chunkwise.repacking.folder import (
    FileResult,
    Treated,
    Unchanged,
    each,
    failed,
    left_as_it_is,
)
from chunkwise.repacking.gathering import Batch
from chunkwise.repacking.progress import Moment, Watch
from chunkwise.verdicts import Exit


def inspect_apart(path: str, access: Sequence[str] = ()) -> FileFacts:
    """Collect the facts about a file in a process of its own: libhdf5 crashes on some."""
    return contained(partial(inspect, path, access=access), printable(path))


def survey(
    batch: Batch,
    wish: Wish,
    *,
    unchanged: Unchanged,
    force: bool,
    watch: Callable[[int, Path], Watch],
    jobs: int = 1,
    going_on: Callable[[], object] = lambda: None,
) -> Iterator[FileResult]:
    """Mend file after file; one that cannot be mended does not stop the rest."""
    treat = partial(mend_one, wish, unchanged)
    # Settings that decide how results look.
    options = {**asdict(wish.options), "memory_nbytes": None, "avoid": None}
    said = json.dumps([wish.access, wish.merge, options, unchanged, wish.advise_s])
    key = hashlib.sha256(said.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    yield from each(
        batch,
        treat,
        key,
        resume=wish.resume,
        force=force,
        watch=watch,
        jobs=jobs,
        going_on=going_on,
    )


def mend_one(wish: Wish, unchanged: Unchanged, place: Place, watch: Watch) -> Treated:
    """Mend one of many files, or give one that needs nothing its place."""
    do = Doing(inspect_apart, lambda _: watch(Moment("planning")), watch)
    fixed = mend(str(place.source), place, wish, do)
    if fixed.outcome == "fixed":
        return Treated("fixed", fixed)
    left = left_as_it_is(place, unchanged)
    return Treated(left.outcome, fixed, left.identity)


def plans(batch: Batch, wish: Wish, watch: Callable[[int, Path], Watch]) -> Iterator[FileResult]:
    """Say for each file what would be done to it, without writing anything."""
    for name, reason in batch.failed:
        yield FileResult(name, "", "failed", reason=reason, exit_code=Exit.FAILED)
    for number, (source, _) in enumerate(batch.pairs):
        tell = partial(_poke, watch(number, source))
        do = Doing(inspect_apart, tell, watch(number, source))
        nbytes = source.stat().st_size if source.exists() else None
        try:
            found: Fixed = plan(str(source), wish, do)
        except (ChunkwiseError, *HDF5_ERRORS) as error:
            yield failed(source, "", error)
            continue
        outcome = "planned" if found.outcome == "planned" else "skipped"
        yield FileResult(
            str(source),
            "",
            outcome,  # type: ignore[arg-type]
            nbytes,
            found.target_nbytes,
            summary=found,
            elapsed_s=found.elapsed_s,
        )


def _poke(watch: Watch, _: str) -> None:
    watch(Moment("planning"))
