"""Which files do names, folders, patterns and lists mean, and where does each result go?"""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from glob import has_magic
from pathlib import Path, PurePath
from typing import Final, TypeAlias

from chunkwise import system
from chunkwise.errors import FileFormatError, UsageError
from chunkwise.files.netcdf3 import is_netcdf3
from chunkwise.files.opening import refuse_url
from chunkwise.inspection.folder import find_files
from chunkwise.names import printable
from chunkwise.verdicts import FileVerdict
from chunkwise.words import counted, format_seconds

_TASK: Final = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")
# Files and folders beside a target that another run may find.
_OURS: Final = re.compile(r"\.(.+)\.([0-9a-f]{16}\.partial|repack|(repack|netcdf4)\.[a-z0-9_]{8})")


# A file that is not taken: its name, why, and what that says of it.
Left: TypeAlias = tuple[str, str, FileVerdict]


@dataclass(frozen=True)
class Wanted:
    """Which of the files that are found are taken."""

    excluded: tuple[str, ...] = ()  # Patterns of names, and of paths below what was given
    quiet_s: float = 0.0  # To what was written within this many seconds, more may come

    def excludes(self, below: PurePath) -> bool:
        """Whether a pattern is about a file, or about a folder that it lies in."""
        names = {*below.parts, *(one.as_posix() for one in (below, *below.parents))}
        patterns = [one.replace(os.sep, "/").rstrip("/") for one in self.excluded]
        return any(fnmatchcase(name, one) for one in patterns for name in names)

    def early(self, name: str) -> list[Left]:
        """Say that a file may still arrive; nothing of one that is complete."""
        with suppress(OSError, ValueError):
            age_s = max(0.0, time.time() - os.stat(name).st_mtime)  # noqa: PTH116 (any string)
            if age_s < self.quiet_s:
                why = f"was written to {format_seconds(age_s)} ago (--quiet-for): try later"
                return [(name, why, FileVerdict.BUSY)]
        return []


@dataclass(frozen=True)
class Batch:
    """Many files, and where each one's result goes."""

    pairs: tuple[tuple[Path, Path], ...]  # Source and target of each; in place, the same twice
    out: Path | None  # The folder of results; None in place
    failed: tuple[Left, ...] = ()  # What could not be looked into, or not yet
    part: str = ""  # Which part of the files these are, such as ``3-of-8``; empty for all
    others: tuple[Path, ...] = ()  # Sources of the other parts
    dangling: int = 0  # How many symbolic links among them lead nowhere

    @property
    def in_place(self) -> bool:
        """Whether results replace their sources."""
        return self.out is None

    def task(self, text: str) -> Batch:
        """Return the part of the files that one of several runs has."""
        found = _TASK.fullmatch(text.strip())
        number, count = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 1 <= number <= count:
            raise UsageError(
                f"task {text!r}: write i/n with i from 1 to n, such as 3/8; in Slurm "
                "--task $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT, of --array=1-8"
            )
        return replace(
            self,
            pairs=self.pairs[number - 1 :: count],
            failed=self.failed if number == 1 else (),
            dangling=self.dangling if number == 1 else 0,
            part=f"{number}-of-{count}",
            others=tuple(
                source for i, (source, _) in enumerate(self.pairs) if i % count != number - 1
            ),
        )


def gather(
    arguments: Sequence[str],
    out: str | os.PathLike[str] | None,  # The folder of results; None to replace each file
    listed: Sequence[str] = (),
    wanted: Wanted | None = None,
) -> Batch:
    """Find the files that arguments name, and give each a place below `out`."""
    # What lies below a folder, or a pattern's fixed part, lies likewise below `out`.
    folder = None if out is None else Path(out)
    real_out = None if folder is None else os.path.realpath(folder) + os.sep
    pairs: dict[Path, Path] = {}
    failed: list[Left] = []
    dangling: set[str] = set()
    for source, below in _found(
        arguments, listed, is_netcdf3, failed, wanted or Wanted(), dangling
    ):
        real = os.path.realpath(source)
        if real_out is not None and real.startswith(real_out):
            continue
        target = source if folder is None else folder / below
        # With --in-place, a file that is named twice is one.
        other = pairs.setdefault(Path(real) if folder is None else target, source)
        if os.path.realpath(other) != real:
            raise UsageError(
                f"{printable(str(source))} and {printable(str(other))} would both become "
                f"{printable(str(target))}; give the folder that both lie in"
            )
    _require_any(pairs, failed, arguments)
    ordered = tuple(
        (source, source if folder is None else target) for target, source in pairs.items()
    )
    links = sum(real_out is None or not name.startswith(real_out) for name in dangling)
    return Batch(ordered, folder, tuple(failed), dangling=links)


@dataclass(frozen=True)
class Named:
    """Many files that are only read."""

    # Path of each, and its name below the folder that was given.
    files: tuple[tuple[Path, Path], ...]
    failed: tuple[Left, ...] = ()  # What could not be looked into, or not yet


def gather_named(
    arguments: Sequence[str],
    listed: Sequence[str],
    taken: Callable[[str], bool],
    wanted: Wanted | None = None,
) -> Named:
    """Find the files that arguments name, each once, and name each by where it lies below them."""
    failed: list[Left] = []
    files: dict[str, tuple[Path, Path]] = {}
    for source, below in _found(arguments, listed, taken, failed, wanted or Wanted()):
        files.setdefault(os.path.realpath(source), (source, below))
    _require_any(files, failed, arguments)
    return Named(tuple(files.values()), tuple(failed))


def read_list(path: str) -> tuple[str, ...]:
    """Read names of files, a line each; ``-`` reads them from standard input."""
    # Empty lines, and lines that begin with ``#``, say nothing.
    said = "standard input" if path == "-" else printable(path)
    try:
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as wrong:
        raise UsageError(f"--files-from {said}: cannot be read: {wrong.strerror}") from None
    # As bytes: names may have in them what ends a line of text, such as U+2028.
    lines = [line.decode("utf-8", "surrogateescape") for line in raw.splitlines()]
    found = tuple(line for line in lines if line.strip() and not line.startswith("#"))
    if not found:
        raise UsageError(f"--files-from {said}: names no file ({counted(len(lines), 'line')})")
    return found


def _found(
    arguments: Sequence[str],
    listed: Sequence[str],
    taken: Callable[[str], bool],
    failed: list[Left],
    wanted: Wanted,
    dangling: set[str] | None = None,
) -> Iterator[tuple[Path, Path]]:
    """Give each file and its path below the given folder; extend `failed` and `dangling`."""
    common = _common(listed)
    for argument, base in (
        *((one, None) for one in arguments),
        *((one, common) for one in listed),
    ):
        refuse_url(argument)
        if base is not None and not os.path.lexists(argument):
            failed.append((argument, "no such file", FileVerdict.FAILED))
            continue
        found = find_files([argument], taken)
        below = partial(_below, argument, base)
        if dangling is not None:
            gone = (name for name in found.dangling if not wanted.excludes(below(name)))
            dangling.update(map(os.path.abspath, gone))
        reasons: dict[str, str | None] = {**dict.fromkeys(found.files), **dict(found.unreadable)}
        for name, why in reasons.items():
            place = below(name)
            # What another run makes or has left, or is in there.
            is_ours = any(map(_OURS.fullmatch, place.parts))
            if is_ours or wanted.excludes(place):
                continue
            if early := wanted.early(name):
                failed += early
            elif why is not None:
                failed.append((name, why, FileVerdict.FAILED))
            else:
                yield Path(name), place


def _require_any(found: Collection[object], failed: Sized, arguments: Sequence[str]) -> None:
    if not found and not failed:
        said = printable(" ".join(arguments)) or "the list"
        raise FileFormatError(f"{said}: no HDF5 file found")


def _common(listed: Sequence[str]) -> Path:
    """Give the folder that all listed files lie in."""
    folders = [os.path.dirname(os.path.abspath(name)) for name in listed]  # noqa: PTH120, PTH100
    return Path(os.path.commonpath(folders)) if folders else Path()


def _below(argument: str, common: Path | None, name: str) -> Path:
    """Give the path of a file below its argument, or below the folder that a list is about."""
    if common is None:
        return Path(name).relative_to(_base(argument))
    return Path(os.path.abspath(name)).relative_to(common)  # noqa: PTH100


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


# What a user or an administrator has set, not what a system sets on each file.
_SET: Final = ("user.", "trusted.", "system.posix_acl_")


def not_kept(batch: Batch) -> str | None:
    """Count what is not carried over into a folder of results; None for nothing."""
    if batch.out is None:
        return None
    counts = Counter({("symbolic link", ""): 0, ("dangling link", ""): batch.dangling})
    folders: dict[Path, int] = {}
    for source, _ in batch.pairs:
        with suppress(OSError):
            folders[source.parent] = stat.S_IMODE(source.parent.stat().st_mode)
            if source.is_symlink():
                # The rest is about the file that it leads to, which may be counted itself.
                counts["symbolic link", ""] += 1
                continue
            found = source.stat()
            names = os.listxattr(source) if hasattr(os, "listxattr") else ()
            counts["file", " of several names"] += found.st_nlink > 1
            counts["file", " of another owner"] += found.st_uid != system.user()
            counts["file", " with extended attributes"] += any(
                name.startswith(_SET) for name in names
            )
    usual = 0o777 & ~_umask()
    special = sum(mode != usual for mode in folders.values())
    counts["folder", " with permissions of its own"] = special
    said = [counted(number, noun) + more for (noun, more), number in counts.items() if number]
    return ", ".join(said) or None


def _umask() -> int:
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Umask:")).split()[1], 8)
    # No Linux: it can only be set, for a moment that other threads may see.
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
