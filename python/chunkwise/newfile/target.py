"""Where does the result go, may it go there, and is the source still unchanged?

It is made beside the target (``claim.py``), so that relative names lead to the same places.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from chunkwise import system
from chunkwise.errors import (
    CannotJudgeError,
    CannotWriteError,
    ChunkwiseError,
    DamagedFileError,
    FileChangedError,
    FileFormatError,
    UsageError,
    like,
)
from chunkwise.files.contained import contained
from chunkwise.files.identity import Identity
from chunkwise.files.mended import early_end, mended
from chunkwise.files.netcdf3 import is_netcdf3, require_netcdf
from chunkwise.files.opening import refuse_url
from chunkwise.files.unclosed import is_unclosed, open_readable
from chunkwise.names import printable, system_reason

_LONGEST_NAME: Final = 100


@dataclass(frozen=True)
class Place:
    """Where the result goes."""

    source: Path  # Real paths, without links; equal in place
    target: Path
    identity: Identity  # The source as it was when the work began
    said: str  # The target as the user wrote it
    replaces: bool  # Whether a file that has the target's name may be replaced
    # What lets it be replaced, as the user says it.
    remedy: str = field(default="--force, or force=True,", kw_only=True)

    @property
    def in_place(self) -> bool:
        """Whether the result replaces the source."""
        return self.source == self.target

    @property
    def folder(self) -> Path:
        """The folder with what the run needs."""
        return self.target.with_name(f".{self.short_name}.repack")

    @property
    def short_name(self) -> str:
        """The target's name, or one that stands for it if that is long."""
        name = self.target.name
        if len(os.fsencode(name)) > _LONGEST_NAME:
            # Names have 255 bytes at most; two long ones must not share a folder.
            name = f"{name[:20]}.{zlib.crc32(os.fsencode(name)):08x}"
        return name

    def permissions(self) -> int:
        """Permissions of a new target, before the umask."""
        return self.source.stat().st_mode & 0o777

    def require_unchanged(self) -> None:
        """Raise FileChangedError if something wrote to the source since the work began."""
        try:
            same = Identity.of(self.source.stat()) == self.identity
        except OSError:
            same = False
        if not same:
            raise FileChangedError(
                f"{printable(str(self.source))}: changed while it was repacked; the result was "
                "dropped; repeat when nothing writes to it"
            )

    def taken(self) -> UsageError:
        """Say that something has taken the target's name that may not be replaced."""
        return UsageError(
            f"{printable(self.said)}: was made by another program meanwhile and stays as it "
            f"is; {self.remedy} replaces it"
        )


@dataclass(frozen=True)
class ConvertedPlace(Place):
    """Where the result goes of a source that is a copy, made of a file of another format."""

    original: Place  # The same for that file, which must not change meanwhile

    def require_unchanged(self) -> None:
        """Raise FileChangedError if something wrote to the original, or to its copy."""
        self.original.require_unchanged()
        super().require_unchanged()


@dataclass(frozen=True)
class NewFile(Place):
    """Where a file goes that is made of data in memory; `source` means nothing."""

    @classmethod
    def at(
        cls, target: str | os.PathLike[str], *, overwrite: bool, remedy: str = "overwrite=True"
    ) -> NewFile:
        """Decide where a new file goes."""
        goal, said = Path(os.path.realpath(target)), os.fspath(target)
        _check_target(goal, None, said, overwrite, remedy)
        _require_writable(goal.parent, said)
        nothing = Identity((0, 0), (0, 0), 0, ())
        return cls(goal, goal, nothing, said, replaces=overwrite, remedy=remedy)

    def permissions(self) -> int:
        """As any new file's."""
        return 0o666

    def require_unchanged(self) -> None:
        """Have no source that could change."""


def _is_mended(source: str | os.PathLike[str]) -> bool:
    """Return whether libhdf5 opens a file only with other bytes at its beginning."""
    try:
        open_readable(source).close()
    except (FileFormatError, CannotJudgeError):
        if not Path(source).is_file() or mended(source) is None:
            raise
        return True
    return False


def choose(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str] | None,
    *,
    in_place: bool,
    force: bool,
    salvage: bool = False,
) -> Place:
    """Decide where the result goes; with `salvage`, the source need not open as it is."""
    # Says what is wrong with a source that cannot be read, before anything else is.
    if is_netcdf3(source):
        require_netcdf(source)
    elif not salvage:
        # As it is, or to its end.
        try:
            open_readable(source).close()
        except (DamagedFileError, CannotJudgeError):
            if early_end(source) is None:
                raise
    elif contained(partial(_is_mended, source), printable(os.fspath(source))) and in_place:
        raise UsageError(
            f"{printable(os.fspath(source))}: libhdf5 does not open it as it is: keep it, and "
            "give OUT for what can be read of it"
        )
    origin = Path(os.path.realpath(source))
    identity = Identity.settled(origin)
    if target is None:
        if not in_place:
            raise UsageError("give OUT, or --in-place to replace the file itself")
        if is_unclosed(origin):
            raise UsageError(
                f"{printable(str(origin))}: its writer did not close it, and may still be at "
                "work; repack it to a new file"
            )
        links = origin.stat().st_nlink
        if links > 1 and not force:
            raise UsageError(
                f"{printable(str(origin))}: has {links} names (hard links), and the others would "
                "keep the old content; --force does it, or repack to a new file"
            )
        place = Place(origin, origin, identity, os.fspath(source), replaces=True)
    else:
        said = os.fspath(target)
        if in_place:
            raise UsageError("--in-place takes no OUT: it replaces the source")
        place = Place(origin, Path(os.path.realpath(target)), identity, said, replaces=force)
        _check_target(place.target, origin, said, force, place.remedy)
    _require_writable(place.target.parent, place.said)
    if place.target.exists() and not force and not os.access(place.target, os.W_OK):
        raise like(CannotWriteError, PermissionError())(
            f"{printable(place.said)}: may not be written to; --force, or force=True, replaces it"
        )
    return place


def _require_writable(folder: Path, said: str) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise like(CannotWriteError, PermissionError())(
            f"{printable(said)}: the folder {printable(str(folder))} cannot be written to; "
            "choose another, or change its permissions"
        )


def _is_planted(path: Path) -> bool:
    """Return whether a link in a folder that others may write to is a third user's."""
    # Systems that protect such links open them no more either.
    try:
        link, folder = path.lstat(), path.parent.stat()
    except OSError:
        return False
    trusted = (system.user(), folder.st_uid)
    return (
        stat.S_ISLNK(link.st_mode) and bool(folder.st_mode & 0o022) and link.st_uid not in trusted
    )


def _check_target(goal: Path, origin: Path | None, said: str, force: bool, remedy: str) -> None:
    refuse_url(said)
    shown = printable(said)
    if _is_planted(Path(said)):
        raise UsageError(
            f"{shown}: is a link that another user has made in a folder that others may write to; "
            "give the file that it leads to, or remove it"
        )
    if said.endswith("/") or goal.is_dir():
        raise UsageError(f"{shown}: is a folder; give a file's name")
    if not goal.parent.is_dir():
        raise UsageError(
            f"{shown}: there is no folder {printable(str(goal.parent))}; make it first"
        )
    if not goal.exists():
        return
    if origin is not None and goal.samefile(origin):
        raise UsageError(f"{shown}: is the source itself; --in-place replaces it")
    if not goal.is_file():
        raise UsageError(f"{shown}: is not a regular file")
    if not force:
        raise UsageError(f"{shown}: exists already; {remedy} replaces it")


@contextmanager
def writing_to(said: str, errors: tuple[type[BaseException], ...] = (OSError,)) -> Iterator[None]:
    """Say of what the system refuses within the block which file cannot be written."""
    try:
        yield
    except errors as wrong:
        if isinstance(wrong, ChunkwiseError):
            raise
        raise cannot_write(said, wrong) from wrong


def cannot_write(said: str, wrong: BaseException) -> CannotWriteError:
    """Say why the system refuses to write, without HDF5's words around it."""
    if isinstance(wrong, CannotWriteError):
        return CannotWriteError(f"{printable(said)}: {wrong}; nothing was changed")
    reason = system_reason(wrong) or printable(" ".join(str(wrong).split()))
    kind: type[CannotWriteError] = CannotWriteError
    if isinstance(wrong, PermissionError):
        kind = like(kind, wrong)
    return kind(f"{printable(said)}: cannot be written: {reason}; nothing was changed")
