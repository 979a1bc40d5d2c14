"""How are many files repacked, so that a stopped run can continue?"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from chunkwise import _native, system
from chunkwise.errors import (
    CannotWriteError,
    ChunkwiseError,
    CrashedError,
    UsageError,
    notes_of,
    reason_of,
)
from chunkwise.files.identity import Identity
from chunkwise.files.ledger import Ledger
from chunkwise.files.netcdf3 import as_netcdf4
from chunkwise.files.objects import walk
from chunkwise.files.unclosed import is_unclosed, open_readable
from chunkwise.files.workers import by_workers, check_ended
from chunkwise.names import HDF5_ERRORS, printable
from chunkwise.newfile.claim import claimed
from chunkwise.newfile.publish import bring, publish
from chunkwise.newfile.target import Place, cannot_write, choose, writing_to
from chunkwise.repacking.gathering import Batch
from chunkwise.repacking.options import Options
from chunkwise.repacking.progress import Moment, Watch
from chunkwise.repacking.records import plan_record
from chunkwise.repacking.rules import Rules
from chunkwise.repacking.run import Job, closed, planned, run_plan
from chunkwise.verdicts import Exit

FINISHED: Final = Path(".chunkwise-repack.jsonl")
_FOREIGN: Final = (
    "is not the list of results that an earlier run of yours left; it was left as it is: move it "
    "away, or name another folder (-o)"
)


class Finished:
    """The files that are done."""

    def __init__(self, folder: Path, job: str, resume: bool, part: str = "") -> None:
        path = folder / (f"{FINISHED.stem}.{part}{FINISHED.suffix}" if part else FINISHED)
        self._ledger = Ledger(path, b'{"job": ', printable(str(path)), _FOREIGN)
        self._job = job
        self._done: dict[str, dict[str, Any]] = {}
        with contextlib.suppress(FileNotFoundError):
            if resume:
                self._done = {str(record.get("target")): record for record in self._ledger.read()}
            else:
                self._ledger.remove()

    def has(self, source: Path, target: Path) -> bool:
        """Return whether this job made this result of this source, and both are unchanged."""
        record = self._done.get(str(target.absolute()))
        if record is None or record.get("job") != self._job:
            return False
        with contextlib.suppress(OSError):
            if _stamp(Identity.of(source.stat())) != record.get("source_is"):
                return False
            return bool(_stamp_of(target) == record.get("target_is"))
        return False

    def note(self, source: Path, target: Path, identity: Identity) -> None:
        """Note a result."""
        self._ledger.append(
            {
                "job": self._job,
                "source": str(source),
                "source_is": _stamp(identity),
                "target": str(target.absolute()),
                "target_is": _stamp_of(target),
            }
        )


def _stamp_of(path: Path) -> list[int] | None:
    return _stamp(Identity.of(path.stat())) if path.exists() else None


def _stamp(identity: Identity) -> list[int]:
    # A device has another number when it is mounted again.
    return [identity.file[1], *identity.content, identity.changed_ns]


Unchanged: TypeAlias = Literal["copy", "link", "skip"]
_COPIED_NBYTES: Final = 1 << 20
UNCHANGED: Final[tuple[Unchanged, ...]] = get_args(Unchanged)
Outcome: TypeAlias = Literal[
    "repacked", "fixed", "planned", "copied", "linked", "skipped", "done before", "later", "failed"
]


@dataclass(frozen=True)
class FileResult:
    """One file among many."""

    source: str  # Paths
    target: str
    outcome: Outcome  # What was done
    source_nbytes: int | None = None  # Sizes; None if there is no such file
    target_nbytes: int | None = None
    reason: str | None = None  # Why it failed, or is left for later
    summary: Any = None  # Of a file that was repacked, or fixed
    elapsed_s: float = 0.0  # Seconds it took
    exit_code: int = Exit.DONE  # What the command would end with if this were its only file

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {"format": "chunkwise-repack-file", "version": 1, **asdict(self)}


def check(batch: Batch, work: Work, *, force: bool, dry_run: bool = False) -> None:
    """Check all before any file is written; make the folder, unless it is a dry run."""
    there = [target for _, target in batch.pairs if os.path.lexists(target)]
    if there and not force and not work.resume and not batch.in_place:
        more = f" and {len(there) - 1:,} more" if len(there) > 1 else ""
        raise UsageError(
            f"{printable(str(there[0]))}{more}: exists already; --resume goes on with a stopped "
            "run, --force replaces"
        )
    _require_meaning(batch, work.rules)
    if batch.out is None or dry_run:
        return
    with writing_to(str(batch.out)):
        batch.out.mkdir(parents=True, exist_ok=True)


def _require_meaning(batch: Batch, rules: Rules) -> None:
    """Look into files until each rule matches a dataset: mostly one file is enough."""
    # Also into those of other parts, which may have what these lack.
    left = list(rules.all)
    for source in (*(source for source, _ in batch.pairs), *batch.others):
        if not left:
            return
        try:
            with as_netcdf4(source) as readable, open_readable(readable) as file:
                names = [e.path for e in walk(file) if e.kind in ("dataset", "hard_link")]
        except ChunkwiseError:
            return  # Nobody knows what is in there; it is reported in its turn.
        left = [rule for rule in left if not rule.means(names)]
    if left and not batch.failed:
        raise UsageError(f"rule {left[0].text!r}: means no dataset in any of the files")


@dataclass(frozen=True)
class Treated:
    """The result for one file."""

    outcome: Outcome  # What was done
    summary: Any = None  # What that came to; None if nothing was done
    identity: Identity | None = None  # The source as it is now; None if that is as it was


@dataclass(frozen=True)
class Work:
    """What is done to each of many files."""

    # Does it, given the file's place and who hears about the progress.
    treat: Callable[[Place, Watch], Treated]
    # Says what would be done, given source and target.
    plan: Callable[[Path, Path, Watch], FileResult]
    key: str  # Distinguishes jobs by what decides how results look
    resume: bool = False
    rules: Rules = field(default_factory=Rules)  # Each means a dataset in one of the files


def key_of(*settings: object) -> str:
    """Distinguish jobs by what decides how results look."""
    said = [
        {**asdict(one), "memory_nbytes": None, "avoid": None} if isinstance(one, Options) else one
        for one in settings
    ]
    return hashlib.sha256(json.dumps(said).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def work_of(job: Job, unchanged: Unchanged) -> Work:
    """Repack each file."""
    rules = [rule.text for rule in job.rules.all]
    key = key_of(rules, job.rules.min_nbytes, [*map(str, job.access)], job.options, unchanged)
    each = replace(job, strict=False)
    treat, plan = partial(_repack_one, each, unchanged), partial(_plan_one, each)
    return Work(treat, plan, key, job.resume, job.rules)


def _repack_one(job: Job, unchanged: Unchanged, place: Place, watch: Watch) -> Treated:
    """Repack one of many files, or put one that needs no change into its place."""
    with (
        contextlib.ExitStack() as placed,
        closed(place, job.options) as readable,
        planned(job, readable) as (file, plan),
    ):
        needed = plan.changes or job.options.reshapes_file or (job.anew and place.in_place)
        if needed or readable != place.source:
            return Treated("repacked", run_plan(job, place, file, plan, watch, placed))
    # Closed, because Windows gives no name of a file that is open another name.
    return left_as_it_is(place, unchanged)


def _plan_one(job: Job, source: Path, target: Path, watch: Watch) -> FileResult:
    watch(Moment("planning"))
    try:
        with as_netcdf4(source) as readable, planned(job, readable) as (_, plan):
            anew = (job.anew and source == target) or readable != source or is_unclosed(source)
            needed = anew or plan.changes or job.options.reshapes_file
            record = plan_record(str(source), str(target), plan)
    except (ChunkwiseError, *HDF5_ERRORS) as error:
        return failed(source, target, error)
    outcome: Outcome = "planned" if needed else "skipped"
    return FileResult(str(source), str(target), outcome, _size(source), summary=record)


def failed(source: Path, target: Path | str, error: BaseException) -> FileResult:
    """Return the result for a file that cannot be repacked."""
    wrong = reason_of(error, str(source))
    if isinstance(error, MemoryError) and not error.args:
        wrong = "there is not enough memory for it; give --memory, or use another machine"
    wrong = "; ".join((wrong, *notes_of(error)))
    code = int(error.exit_code if isinstance(error, ChunkwiseError) else Exit.FAILED)
    return _left(str(source), str(target), wrong, code, _size(source))


def _left(
    source: str, target: str, reason: str, code: int, nbytes: int | None = None
) -> FileResult:
    """Return the result for a file to which nothing was done, for good or for now."""
    outcome: Outcome = "later" if code == Exit.BUSY else "failed"
    return FileResult(source, target, outcome, nbytes, None, reason, exit_code=code)


def survey(
    batch: Batch,
    work: Work,
    *,
    force: bool,
    watch: Callable[[int, Path], Watch],
    jobs: int = 1,
    going_on: Callable[[], object] = lambda: None,
    dry_run: bool = False,
) -> Iterator[FileResult]:
    """Do the work on file after file; one that fails does not stop the rest."""
    finished = None
    if batch.out is not None and not dry_run:
        finished = Finished(batch.out, work.key, work.resume, batch.part)
    for name, reason, verdict in batch.failed:
        yield _left(name, "", reason, verdict.exit)
    if dry_run:
        for number, pair in enumerate(batch.pairs):
            yield work.plan(*pair, watch(number, pair[0]))
        return
    # Going on means to replace results; in place these would be sources.
    replaces = force or (work.resume and not batch.in_place)
    left: list[int] = []
    for number, (source, target) in enumerate(batch.pairs):
        if finished is not None and finished.has(source, target):
            sizes = source.stat().st_size, _size(target)
            yield FileResult(str(source), str(target), "done before", *sizes)
        elif jobs > 1:
            left.append(number)
        else:
            report = watch(number, source)
            yield _noted(
                finished, *_treated(batch.out, source, target, work.treat, replaces, report)
            )
    works = (
        (
            number,
            printable(str(batch.pairs[number][0])),
            partial(_treated, batch.out, *batch.pairs[number], work.treat, replaces, check_ended),
        )
        for number in left
    )
    # Each process has its share of the threads.
    setup = partial(_native.set_threads, max(1, _native.thread_count() // max(1, jobs)))
    for number, outcome in by_workers(works, jobs, setup=setup, check=going_on):
        source, target = batch.pairs[number]
        if isinstance(outcome.error, CrashedError):
            yield replace(failed(source, target, outcome.error), exit_code=Exit.FAILED)
        else:
            yield _noted(finished, *outcome.get())


def _noted(finished: Finished | None, result: FileResult, identity: Identity | None) -> FileResult:
    """Note a file that is done."""
    if finished is not None and identity is not None and result.outcome != "planned":
        finished.note(Path(result.source), Path(result.target), identity)
    return result


def _treated(
    out: Path | None,
    source: Path,
    target: Path,
    treat: Callable[[Place, Watch], Treated],
    force: bool,
    watch: Watch,
) -> tuple[FileResult, Identity | None]:
    """Do something to one file; what is wrong with it is its result."""
    begin = time.monotonic()
    before = _size(source)
    try:
        if out is None:
            place = choose(source, None, in_place=True, force=force)
        else:
            _make_folders(out, target)
            place = choose(source, target, in_place=False, force=force)
        done = treat(place, watch)
    except (ChunkwiseError, MemoryError, *HDF5_ERRORS) as error:
        # Unlike where a file is in use, or too large, no other result can be written there either.
        forbids = isinstance(error, CannotWriteError) and isinstance(error, PermissionError)
        if forbids and out is not None:
            raise
        return failed(source, target, error), None
    sizes, elapsed_s = (before, _size(target)), time.monotonic() - begin
    result = FileResult(str(source), str(target), done.outcome, *sizes)
    result = replace(result, summary=done.summary, elapsed_s=elapsed_s)
    return result, done.identity or place.identity


def _make_folders(out: Path, target: Path) -> None:
    """Make the folders between `out` and a result."""
    *folders, name = target.relative_to(out).parts
    with contextlib.ExitStack() as opened:
        try:
            at = system.open_folder(out)
            opened.callback(os.close, at)
            for part in folders:
                with contextlib.suppress(FileExistsError):
                    system.mkdir_at(at, part)
                at = system.open_folder_at(at, part)
                opened.callback(os.close, at)
            with contextlib.suppress(FileNotFoundError):
                if stat.S_ISLNK(system.stat_at(at, name).st_mode):
                    raise OSError(errno.ELOOP, "")
        except OSError as wrong:
            if wrong.errno in (errno.ELOOP, errno.ENOTDIR):
                raise UsageError(
                    f"{printable(str(target))}: is a link, or in a folder that is one; results of "
                    "many files are not written through links below -o"
                ) from None
            raise cannot_write(str(target), wrong) from wrong


def left_as_it_is(place: Place, unchanged: Unchanged) -> Treated:
    """Put a file that needs no change into its place among the results."""
    if unchanged == "skip" or place.in_place:
        return Treated("skipped")
    with claimed(place, resume=False) as claim, writing_to(place.said):
        if unchanged == "link":
            claim.link_partial()
            # A link that replaces another name of the same file leaves both.
            bring(claim)
            # Another name is a change of the file as well.
            return Treated("linked", identity=Identity.of(place.source.stat()))
        with place.source.open("rb") as reading, os.fdopen(claim.make_partial(), "wb") as writing:
            shutil.copyfileobj(reading, writing, _COPIED_NBYTES)
            writing.flush()
            publish(claim)
            system.set_modified(writing.fileno(), place.identity.content[1])
    return Treated("copied")


def _size(path: Path) -> int | None:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return None
