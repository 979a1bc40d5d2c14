"""Which files does the user mean, by HDF5's signature, and how do many files compare?"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from glob import has_magic
from pathlib import Path
from typing import Any

from chunkwise import _native
from chunkwise.errors import ChunkwiseError, FileFormatError, NotADatasetError, reason_of
from chunkwise.files.causes import verdict_of
from chunkwise.files.contained import Outcome
from chunkwise.files.formats import is_zarr
from chunkwise.files.opening import find_dataset, full_name, open_h5
from chunkwise.inspection.facts import VERSION, FileFacts
from chunkwise.inspection.finding import SEVERITIES, Finding, Severity, grouped, without
from chunkwise.inspection.records import plain
from chunkwise.names import HDF5_ERRORS, is_url, printable, shown_url
from chunkwise.verdicts import FileVerdict, worst_verdict

CANNOT_OPEN = "cannot-open"
# An empty file has no signature; with such a name it was meant to have one.
_SUFFIXES = frozenset({".h5", ".hdf5", ".hdf", ".he5", ".nc", ".nc4"})


@dataclass(frozen=True, slots=True)
class FolderFiles:
    """Files to be inspected."""

    files: tuple[str, ...]  # Their paths, each once: as given, or below the folder as given
    passed_over: int  # Files found in folders that are not HDF5
    # Files and folders that could not be looked into, with the reason.
    unreadable: tuple[tuple[str, str], ...]
    # Links in folders that lead nowhere or to themselves; `passed_over` counts them, too.
    dangling: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tally:
    """Findings of one code and severity, of one file or of several."""

    severity: Severity
    code: str
    # How many, and in how many files.
    findings: int
    files: int
    # The waste of the most wasteful one, and the path of its file.
    waste_nbytes: int
    largest: str


@dataclass(frozen=True, slots=True)
class FileSummary:
    """One file among many."""

    path: str  # As given, or below the folder as given
    nbytes: int | None  # Its size; None if even that is not known
    findings: int = 0  # How many it has
    worst: Finding | None = None  # The first of them; None without any
    waste_nbytes: int = 0  # The largest waste of a finding
    reason: str | None = None  # Why it could not be opened; None if it could
    verdict: FileVerdict = FileVerdict.SOUND  # What is said of it
    tallies: tuple[Tally, ...] = ()  # What it has of each code and severity

    @property
    def severity(self) -> Severity | None:
        """The highest severity among the findings; for an unreadable file, that of its error."""
        return None if self.worst is None else self.worst.severity


def one_file(arguments: Sequence[str]) -> tuple[str, str | None] | None:
    """Return whether one file is meant, and which dataset of it."""
    first, *others = arguments
    if is_url(first):
        several = len(others) > 1 or any(map(is_url, others))
        return None if several else (first, others[0] if others else None)
    if len(others) > 1 or _is_folder(first) or _is_pattern(first):
        return None
    if not others:
        return first, None
    (second,) = others
    if os.path.lexists(second) or _is_pattern(second):
        return (first, second) if _holds(first, second) else None
    return first, second


def find_files(
    arguments: Iterable[str], taken: Callable[[str], bool] = lambda _: False
) -> FolderFiles:
    """Find the files that arguments name: files, folders and patterns."""
    arguments = tuple(arguments)
    files: dict[str, None] = {}
    unreadable: dict[str, str] = {}
    passed_over = 0
    dangling: list[str] = []
    for name in _expanded(arguments):
        if is_url(name) or not _is_folder(name):
            files[name] = None
            continue
        for path, reason in _files_below(name):
            if reason is not None:
                unreadable[path] = reason
            elif _is_hdf5(path, unreadable) or (path not in unreadable and taken(path)):
                files[path] = None
            elif path not in unreadable:
                passed_over += 1
                if os.path.islink(path) and not os.path.exists(path):  # noqa: PTH110, PTH114
                    dangling.append(path)
    if not files and not unreadable:
        others = f" ({passed_over:,} of other formats)" if passed_over else ""
        where = ", ".join(map(printable, arguments))
        raise FileFormatError(f"{where}: a directory without any HDF5 file{others}")
    return FolderFiles(tuple(files), passed_over, tuple(unreadable.items()), tuple(dangling))


def summarize(facts: FileFacts) -> FileSummary:
    """Reduce the facts about a file to what its line says."""
    return _summary(facts.path, facts.nbytes, facts.findings, findings=len(facts.findings))


def refused(
    path: str,
    reason: str,
    ignored: frozenset[str] = frozenset(),
    verdict: FileVerdict = FileVerdict.FAILED,
) -> FileSummary:
    """Summarize a file that cannot be opened."""
    found = without((refusal(reason, verdict),), ignored)
    return _summary(path, _size(path), found, reason=reason)


def _summary(path: str, nbytes: int | None, found: Sequence[Finding], **more: Any) -> FileSummary:
    return FileSummary(
        path,
        nbytes,
        worst=found[0] if found else None,
        waste_nbytes=max((finding.waste_nbytes for finding in found), default=0),
        tallies=_tallies(path, found),
        verdict=worst_verdict(one.verdict for one in found),
        **more,
    )


def totals(summaries: Iterable[FileSummary]) -> list[Tally]:
    """Add up files: a tally for each code and severity, the worst and most frequent first."""
    found: dict[tuple[Severity, str], Tally] = {}
    for summary in summaries:
        for one in summary.tallies:
            key = one.severity, one.code
            found[key] = _sum(found[key], one) if key in found else one
    return sorted(
        found.values(),
        key=lambda one: (-SEVERITIES.index(one.severity), -one.files, -one.findings, one.code),
    )


def _tallies(path: str, findings: Iterable[Finding]) -> tuple[Tally, ...]:
    return tuple(
        Tally(*key, len(group), 1, max(finding.waste_nbytes for finding in group), path)
        for key, group in grouped(findings).items()
    )


def _sum(one: Tally, other: Tally) -> Tally:
    larger = other if other.waste_nbytes > one.waste_nbytes else one
    return replace(larger, findings=one.findings + other.findings, files=one.files + other.files)


def survey(
    found: FolderFiles,
    collect: Callable[[Sequence[str]], Iterable[Outcome[FileFacts]]],
    ignored: frozenset[str] = frozenset(),
) -> Iterator[tuple[FileSummary, FileFacts | None]]:
    """Inspect file after file; one that cannot be opened does not stop the rest."""
    for path, reason in found.unreadable:
        yield refused(path, reason, ignored), None
    for path, outcome in zip(found.files, collect(found.files), strict=True):
        path = shown_url(path) if is_url(path) else path
        try:
            facts = outcome.get()
        except (ChunkwiseError, *HDF5_ERRORS) as error:
            yield refused(path, reason_of(error, path), ignored, verdict_of(error)), None
        else:
            facts = replace(facts, findings=without(facts.findings, ignored))
            yield summarize(facts), facts


def worst_first(summaries: Iterable[FileSummary]) -> list[FileSummary]:
    """Sort files by severity, and then by waste."""

    def key(summary: FileSummary) -> tuple[int, int, str]:
        severity = 0 if summary.severity is None else SEVERITIES.index(summary.severity) + 1
        return -severity, -summary.waste_nbytes, summary.path

    return sorted(summaries, key=key)


def refusal(reason: str, verdict: FileVerdict = FileVerdict.FAILED) -> Finding:
    """Put into a finding that a file cannot be opened."""
    return Finding(
        code=CANNOT_OPEN,
        severity="error",
        path=None,
        summary=reason,
        evidence={},
        source="H5Fopen",
        verdict=verdict,
    )


def reaches(severity: Severity | None, level: Severity) -> bool:
    """Return whether a severity is at least `level`; None is less than any."""
    return severity is not None and SEVERITIES.index(severity) >= SEVERITIES.index(level)


def refusal_record(summary: FileSummary) -> dict[str, Any]:
    """Return what ``--json`` prints for a file that cannot be opened, with the usual keys."""
    found = () if summary.worst is None else (plain(summary.worst),)
    known = {"path": summary.path, "nbytes": summary.nbytes, "error": summary.reason}
    nothing: dict[str, Any] = {field.name: None for field in fields(FileFacts)}
    return {
        "format": "chunkwise-inspect",
        "version": VERSION,
        "verdict": str(summary.verdict),
        "exit_code": int(summary.verdict.exit),
        **nothing,
        **known,
        "objects": (),
        "findings": found,
        "commands": (),
    }


def _is_folder(name: str) -> bool:
    try:
        # A Zarr store is one thing.  An empty name is the working folder to a Path.
        path = Path(name)
        return bool(name) and stat.S_ISDIR(path.stat().st_mode) and not is_zarr(path)
    except (OSError, ValueError):
        return False


def _is_pattern(name: str) -> bool:
    return has_magic(name) and not os.path.lexists(name)


def _holds(file: str, dataset: str) -> bool:
    try:
        with open_h5(file) as opened:
            find_dataset(opened, full_name(opened, dataset))
    except NotADatasetError:
        return True  # opening it says what it is
    except ChunkwiseError:
        return False
    return True


def _expanded(arguments: Sequence[str]) -> Iterator[str]:
    """Give the files and folders that arguments stand for."""
    for name in arguments:
        if is_url(name) or os.path.lexists(name):
            yield name
        elif _is_pattern(name):
            yield from _matches(name)
        else:
            said = f"{printable(name)}: no such file"
            if len(arguments) > 1:
                said += " (a dataset's name is taken behind a single file only)"
            raise FileFormatError(said)


def _matches(pattern: str) -> list[str]:
    """Expand a pattern as a shell does, without hidden names; raise if nothing matches."""
    path = Path(pattern)
    base = Path(path.anchor)
    rest = path.relative_to(base)
    hidden = any(part.startswith(".") for part in rest.parts)
    try:
        # Unlike glob.glob, this does not walk in circles where links lead upwards.
        found = sorted(base.glob(str(rest)))
    except (OSError, ValueError, NotImplementedError) as error:
        raise FileFormatError(f"{printable(pattern)}: {printable(str(error))}") from None
    names = [
        str(match)
        for match in found
        if hidden or not any(part.startswith(".") for part in match.relative_to(base).parts)
    ]
    if not names:
        raise FileFormatError(f"{printable(pattern)}: no file matches this pattern")
    return names


def _files_below(top: str) -> Iterator[tuple[str, str | None]]:
    """Give every file below a folder, or why a folder cannot be listed."""
    seen: set[tuple[int, int]] = set()
    pending = [Path(top)]
    while pending:
        folder = pending.pop()
        try:
            status = folder.stat()
            if (status.st_dev, status.st_ino) in seen:
                continue  # a link to a folder that was walked, or to one above
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as entries:
                members = sorted((entry.name, _leads_to_folder(entry)) for entry in entries)
        except OSError as error:
            yield str(folder), f"cannot be listed: {error.strerror or error}"
            continue
        yield from ((str(folder / name), None) for name, inside in members if not inside)
        pending += [folder / name for name, inside in reversed(members) if inside]


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_hdf5(path: str, unreadable: dict[str, str]) -> bool:
    """Look for the signature; what cannot be read goes to `unreadable`."""
    try:
        status = Path(path).stat()
        # Opening a pipe or a device may block for ever.
        if not stat.S_ISREG(status.st_mode):
            return False
        if not status.st_size and Path(path).suffix.lower() in _SUFFIXES:
            unreadable[path] = "the file is empty (0 bytes)"
            return False
        with Path(path).open("rb") as stream:
            return _native.signature_offset(stream.fileno()) is not None
    except OSError as error:
        # A link that leads nowhere or to itself is no file.
        if error.errno not in (errno.ENOENT, errno.ELOOP):
            unreadable[path] = f"cannot be read: {error.strerror or error}"
        return False


def _size(path: str) -> int | None:
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
