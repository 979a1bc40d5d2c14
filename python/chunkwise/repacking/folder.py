"""How are many files repacked, so that a stopped run goes on where it was?

One after another: each has all threads and the whole budget of memory.  A manifest in the
folder of results notes each file that is done.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from glob import has_magic
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from chunkwise.errors import CannotWriteError, ChunkwiseError, FileFormatError, UsageError
from chunkwise.files.objects import walk
from chunkwise.files.unclosed import open_readable
from chunkwise.inspecting.folder import find_files
from chunkwise.names import HDF5_ERRORS, hdf5_reason, printable
from chunkwise.repacking.claim import claimed
from chunkwise.repacking.manifest import Manifest
from chunkwise.repacking.progress import Watch
from chunkwise.repacking.publish import bring, publish
from chunkwise.repacking.records import Summary
from chunkwise.repacking.rules import Rules
from chunkwise.repacking.run import Job, closed, planned, run_plan
from chunkwise.repacking.target import Identity, Place, cannot_write, choose

Unchanged: TypeAlias = Literal["copy", "link", "skip"]
# A folder that others are made in.
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_COPIED_NBYTES: Final = 1 << 20
UNCHANGED: Final[tuple[Unchanged, ...]] = get_args(Unchanged)
Outcome: TypeAlias = Literal["repacked", "copied", "linked", "skipped", "done before", "failed"]


@dataclass(frozen=True)
class FileResult:
    """One file among many.

    Attributes
    ----------
    source, target
        Paths.
    outcome
        What was done.
    source_nbytes, target_nbytes
        Sizes; None where there is no such file.
    reason
        Why it failed.
    summary
        Of a file that was repacked.
    elapsed_s
        Seconds it took.
    """

    source: str
    target: str
    outcome: Outcome
    source_nbytes: int | None = None
    target_nbytes: int | None = None
    reason: str | None = None
    summary: Summary | None = None
    elapsed_s: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Give it as JSON has it."""
        return {"format": "chunkwise-repack-file", "version": 1, **asdict(self)}


@dataclass(frozen=True)
class Batch:
    """Many files, and where each one's result goes.

    Attributes
    ----------
    pairs
        Source and target of each.
    out
        The folder of results.
    failed
        What could not be looked into, with the reason.
    """

    pairs: tuple[tuple[Path, Path], ...]
    out: Path
    failed: tuple[tuple[str, str], ...] = ()


def gather(arguments: Sequence[str], out: str | os.PathLike[str]) -> Batch:
    """Find the files that arguments name, and give each a place below `out`.

    What lies in folders below a folder, or below the fixed part of a pattern, lies likewise
    below `out`.

    Raises
    ------
    FileFormatError
        Nothing has that name.
    UsageError
        Two files would have the same place.
    """
    folder = Path(out)
    real_out = os.path.realpath(folder)
    pairs: dict[Path, Path] = {}
    failed: list[tuple[str, str]] = []
    for argument in arguments:
        base = _base(argument)
        found = find_files([argument])
        failed += found.unreadable
        for name in found.files:
            source = Path(name)
            real = os.path.realpath(source)
            if real.startswith(real_out + os.sep):
                continue
            target = folder / source.relative_to(base)
            other = pairs.setdefault(target, source)
            if os.path.realpath(other) != real:
                raise UsageError(
                    f"{printable(str(source))} and {printable(str(other))} would both become "
                    f"{printable(str(target))}; give the folder that both lie in"
                )
    if not pairs and not failed:
        raise FileFormatError(f"{printable(' '.join(arguments))}: no HDF5 file found")
    ordered = tuple((source, target) for target, source in pairs.items())
    return Batch(ordered, folder, tuple(failed))


def _base(argument: str) -> Path:
    path = Path(argument)
    if path.is_dir():
        return path
    fixed = Path(path.anchor)
    parts = path.parts[1:] if path.anchor else path.parts
    for part in parts[:-1]:
        if has_magic(part) and not path.exists():
            break
        fixed /= part
    return fixed


def check(batch: Batch, rules: Rules, *, force: bool, resume: bool) -> None:
    """Refuse what can be refused before any file is written.

    Raises
    ------
    UsageError
        Results that exist already; a rule that means no dataset in any file.
    CannotWriteError
        The folder cannot be made.
    """
    there = [target for _, target in batch.pairs if os.path.lexists(target)]
    if there and not force and not resume:
        more = f" and {len(there) - 1:,} more" if len(there) > 1 else ""
        raise UsageError(
            f"{printable(str(there[0]))}{more}: exists already; --resume goes on with a stopped "
            "run, --force replaces"
        )
    _require_meaning(batch, rules)
    try:
        batch.out.mkdir(parents=True, exist_ok=True)
    except OSError as wrong:
        raise cannot_write(str(batch.out), wrong) from wrong


def _require_meaning(batch: Batch, rules: Rules) -> None:
    """Look into files until each rule has met a dataset that it means: mostly one is enough."""
    left = list(rules.all)
    for source, _ in batch.pairs:
        if not left:
            return
        try:
            with open_readable(source) as file:
                names = [e.path for e in walk(file) if e.kind in ("dataset", "hard_link")]
        except ChunkwiseError:
            return  # Nobody knows what is in there; it is reported in its turn.
        left = [rule for rule in left if not rule.means(names)]
    if left and not batch.failed:
        raise UsageError(f"rule {left[0].text!r}: means no dataset in any of the files")


def survey(
    batch: Batch,
    job: Job,
    *,
    unchanged: Unchanged,
    force: bool,
    watch: Callable[[int, Path], Watch],
) -> Iterator[FileResult]:
    """Repack file after file; one that cannot be repacked does not stop the rest.

    Parameters
    ----------
    batch
        The files, from `gather`.
    job
        What is asked of each.
    unchanged
        What to do with a file that is already as asked.
    force
        Whether targets may be replaced.
    watch
        Given a file's number and path, who is told about its progress.

    Raises
    ------
    CannotWriteError
        The disk is full or not writable: no other file would do better.
    """
    manifest = Manifest(batch.out, _job_key(job, unchanged), job.resume)
    for name, reason in batch.failed:
        yield FileResult(name, "", "failed", reason=reason)
    for number, (source, target) in enumerate(batch.pairs):
        begin = time.monotonic()
        if manifest.has(source, target):
            sizes = source.stat().st_size, _size(target)
            yield FileResult(str(source), str(target), "done before", *sizes)
            continue
        try:
            _make_folders(batch.out, target)
            place = choose(source, target, in_place=False, force=force or job.resume)
            with (
                closed(place) as readable,
                planned(replace(job, strict=False), readable) as (file, plan),
            ):
                if plan.changes or job.options.reshapes_file or readable != place.source:
                    summary = run_plan(job, place, file, plan, watch(number, source))
                    outcome: Outcome = "repacked"
                else:
                    summary, outcome = None, _leave(place, unchanged)
        except CannotWriteError:
            raise
        except (ChunkwiseError, *HDF5_ERRORS) as error:
            wrong = str(error) if isinstance(error, ChunkwiseError) else hdf5_reason(error)
            wrong = wrong.removeprefix(f"{printable(str(source))}: ")
            yield FileResult(str(source), str(target), "failed", _size(source), None, wrong)
            continue
        # Another name is a change of the file as well.
        identity = Identity.of(source) if outcome == "linked" else place.identity
        manifest.note(source, target, identity)
        elapsed_s = time.monotonic() - begin
        sizes = source.stat().st_size, _size(target)
        yield FileResult(
            str(source), str(target), outcome, *sizes, summary=summary, elapsed_s=elapsed_s
        )


def _make_folders(out: Path, target: Path) -> None:
    """Make the folders between `out` and a result.

    Raises
    ------
    CannotWriteError
        The system refuses.
    UsageError
        One of them, or the result, is a link: it might lead out of the folder of results.
    """
    *folders, name = target.relative_to(out).parts
    with contextlib.ExitStack() as opened:
        try:
            at = os.open(out, _FOLDER)
            opened.callback(os.close, at)
            for part in folders:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=at)
                at = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
                opened.callback(os.close, at)
            with contextlib.suppress(FileNotFoundError):
                if stat.S_ISLNK(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
                    raise OSError(errno.ELOOP, "")
        except OSError as wrong:
            if wrong.errno in (errno.ELOOP, errno.ENOTDIR):
                raise UsageError(
                    f"{printable(str(target))}: is a link, or in a folder that is one; results of "
                    "many files are not written through links below --out"
                ) from None
            raise cannot_write(str(target), wrong) from wrong


def _leave(place: Place, unchanged: Unchanged) -> Outcome:
    """Give a file that is as asked already its place among the results."""
    if unchanged == "skip":
        return "skipped"
    with claimed(place, resume=False) as claim:
        try:
            if unchanged == "link":
                claim.link_partial()
                # A link that replaces another name of the same file leaves both.
                bring(claim)
                return "linked"
            with (
                place.source.open("rb") as reading,
                os.fdopen(claim.make_partial(), "wb") as writing,
            ):
                shutil.copyfileobj(reading, writing, _COPIED_NBYTES)
                writing.flush()
                publish(claim)
                times = (place.identity.modified_ns, place.identity.modified_ns)
                os.utime(writing.fileno(), ns=times)
        except OSError as wrong:
            if isinstance(wrong, ChunkwiseError):
                raise
            raise cannot_write(place.said, wrong) from wrong
    return "copied"


def _size(path: Path) -> int | None:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return None


def _job_key(job: Job, unchanged: Unchanged) -> str:
    """Tell one job from others: what decides how results look."""
    options = {**asdict(job.options), "memory_nbytes": None}
    rules = [rule.text for rule in job.rules.all]
    said = json.dumps([rules, job.rules.min_nbytes, job.access, options, unchanged])
    return hashlib.sha256(said.encode("utf-8", "surrogateescape")).hexdigest()[:16]
