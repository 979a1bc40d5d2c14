"""How does the result appear whole or not at all, and never in the source's place too early?

It is made beside the target under another name (``.out.nc.partial``), from where names in
it lead where they will lead from the target, and a rename brings it into place when it is
complete, verified and on disk.  A folder beside it (``.out.nc.repack``) holds a journal,
and a lock as long as its process lives, so that what a killed run left is told from the
work of one that goes on.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chunkwise.durable import sync
from chunkwise.errors import CannotWriteError, ChunkwiseError, FileChangedError, UsageError
from chunkwise.names import printable
from chunkwise.unclosed import is_unclosed, open_readable

_LONGEST_NAME: Final = 100
_LOCK: Final = "lock"


@dataclass(frozen=True)
class Identity:
    """What tells whether a file is still the same one, unchanged."""

    device: int
    inode: int
    nbytes: int
    modified_ns: int

    @classmethod
    def of(cls, path: Path) -> Identity:
        """Look at a file, or through a link."""
        found = path.stat()
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


@dataclass(frozen=True)
class Left:
    """What a stopped run left: its journal, and the half-written file that it speaks of."""

    journal: Path
    partial: Path


@dataclass(frozen=True)
class Place:
    """Where the result goes.

    Attributes
    ----------
    source, target
        Real paths, without links; equal in place.
    identity
        The source as it was when the work began.
    said
        The target as the user wrote it.
    replaces
        Whether a file that has the target's name may be replaced.
    """

    source: Path
    target: Path
    identity: Identity
    said: str
    replaces: bool

    @property
    def in_place(self) -> bool:
        """Whether the result replaces the source."""
        return self.source == self.target

    @property
    def folder(self) -> Path:
        """The folder with what the run needs."""
        return self._beside("repack")

    @property
    def partial(self) -> Path:
        """The file that becomes the target."""
        return self._beside("partial")

    def _beside(self, suffix: str) -> Path:
        name = self.target.name
        if len(os.fsencode(name)) > _LONGEST_NAME:
            # Names have 255 bytes at most; two long ones must not share a folder.
            name = f"{name[:20]}.{zlib.crc32(os.fsencode(name)):08x}"
        return self.target.with_name(f".{name}.{suffix}")

    @property
    def journal(self) -> Path:
        """Says where in the partial file encoded chunks lie, for a run that goes on."""
        return self.folder / "journal"

    @property
    def before(self) -> Left:
        """What a run goes on from."""
        return Left(self.folder / "before.journal", self.folder / "before.h5")

    def require_unchanged(self) -> None:
        """Raise FileChangedError if something wrote to the source since the work began."""
        try:
            same = Identity.of(self.source) == self.identity
        except OSError:
            same = False
        if not same:
            raise FileChangedError(
                f"{printable(str(self.source))}: changed while it was repacked; the result was "
                "dropped; repeat when nothing writes to it"
            )

    def require_free(self) -> None:
        """Raise UsageError if something has taken the target's name that may not be replaced."""
        if not self.replaces and os.path.lexists(self.target):
            raise UsageError(
                f"{printable(self.said)}: was made by another program meanwhile and stays as it "
                "is; --force, or force=True, replaces it"
            )


def choose(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str] | None,
    *,
    in_place: bool,
    force: bool,
) -> Place:
    """Decide where the result goes.

    Raises
    ------
    UsageError
        The target is the source, exists, is no regular file, or its folder is missing; in
        place: the file has other names that would keep the old content.
    FileFormatError
        The source cannot be read.
    CannotWriteError
        The folder, or the file to be replaced, may not be written to.
    """
    # Says what is wrong with a source that cannot be read, before anything else is.
    open_readable(source).close()
    origin = Path(os.path.realpath(source))
    identity = Identity.of(origin)
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
        goal = Path(os.path.realpath(target))
        _check_target(goal, origin, said, force)
        place = Place(origin, goal, identity, said, replaces=force)
    if not os.access(place.target.parent, os.W_OK | os.X_OK):
        raise CannotWriteError(
            f"{printable(place.said)}: the folder {printable(str(place.target.parent))} cannot "
            "be written to; choose another, or change its permissions"
        )
    if place.target.exists() and not force and not os.access(place.target, os.W_OK):
        raise CannotWriteError(
            f"{printable(place.said)}: may not be written to; --force, or force=True, replaces it"
        )
    return place


def _check_target(goal: Path, origin: Path, said: str, force: bool) -> None:
    shown = printable(said)
    if said.endswith("/") or goal.is_dir():
        raise UsageError(f"{shown}: is a folder; give a file's name, or --out for many files")
    if not goal.parent.is_dir():
        raise UsageError(
            f"{shown}: there is no folder {printable(str(goal.parent))}; make it first"
        )
    if not goal.exists():
        return
    if goal.samefile(origin):
        raise UsageError(f"{shown}: is the source itself; --in-place replaces it")
    if not goal.is_file():
        raise UsageError(f"{shown}: is not a regular file")
    if not force:
        raise UsageError(f"{shown}: exists already; --force, or force=True, replaces it")


@contextlib.contextmanager
def claimed(place: Place, *, resume: bool) -> Iterator[Left | None]:
    """Hold the folder for a result, and remove what need not stay.

    Parameters
    ----------
    place
        Where.
    resume
        Whether what a stopped run left is wanted, and what this one has done shall stay if it
        is stopped by an exception.

    Yields
    ------
    Left or None
        What there is to go on from.

    Raises
    ------
    CannotWriteError
        Another run has it, or it cannot be made.
    """
    lock = _lock(place)
    done = False
    try:
        left = _found(place) if resume else None
        if not resume:
            _clean(place)
        yield left
        done = True
    finally:
        if done or not resume or not place.journal.exists():
            with contextlib.suppress(OSError):
                _clean(place)
                (place.folder / _LOCK).unlink()
                place.folder.rmdir()
        os.close(lock)


def _found(place: Place) -> Left | None:
    """Put aside what a stopped run left.

    Of a run that was stopped while it went on from another, the one that had done more counts.
    """
    before = place.before
    if place.journal.exists() and place.partial.exists():
        older = before.journal.stat().st_size if before.journal.exists() else -1
        if place.journal.stat().st_size >= older:
            place.partial.replace(before.partial)
            place.journal.replace(before.journal)
    _clean(place, before.journal, before.partial)
    return before if before.journal.exists() and before.partial.exists() else None


def _lock(place: Place) -> int:
    """Make the folder and lock it; what a killed run held is free."""
    path = place.folder / _LOCK
    while True:
        try:
            place.folder.mkdir(mode=0o700, exist_ok=True)
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            continue  # another run ended and removed the folder just now
        except OSError as wrong:
            raise cannot_write(place.said, wrong) from wrong
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise CannotWriteError(
                f"{printable(place.said)}: another repack is writing it; wait for it to end"
            ) from None
        except OSError:
            return lock  # a file system without locks
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), path.stat()):
                return lock
        os.close(lock)


def _clean(place: Place, *keep: Path) -> None:
    """Remove a run's files."""
    for path in (place.partial, *place.folder.iterdir()):
        if path.name != _LOCK and path not in keep:
            path.unlink(missing_ok=True)


def publish(place: Place) -> None:
    """Bring the finished file into place.

    It is on disk before its name is.  A new file has the source's permissions, as far as
    the umask lets it; one that replaces another has that one's owner, permissions and
    extended attributes.  Its time of modification is now: its bytes are new.

    Raises
    ------
    CannotWriteError
        The system refuses.
    FileChangedError
        Something wrote to the source meanwhile.
    UsageError
        Something made a file of the target's name meanwhile.
    """
    partial = place.partial
    place.require_unchanged()
    place.require_free()
    try:
        if place.target.exists():
            replaced = place.target.stat()
            with contextlib.suppress(PermissionError):
                os.chown(partial, replaced.st_uid, replaced.st_gid)
            shutil.copystat(place.target, partial)
            os.utime(partial)
        else:
            # The lock was made with what the umask leaves of all permissions.
            allowed = (place.folder / _LOCK).stat().st_mode
            partial.chmod(allowed & place.source.stat().st_mode & 0o777)
        sync(partial)
        place.require_unchanged()
        place.require_free()
        partial.replace(place.target)
        sync(place.target.parent)
    except OSError as wrong:
        if isinstance(wrong, ChunkwiseError):
            raise
        raise cannot_write(place.said, wrong) from wrong


def cannot_write(said: str, wrong: BaseException) -> CannotWriteError:
    """Say why the system refuses to write, without HDF5's words around it."""
    if isinstance(wrong, CannotWriteError):
        return CannotWriteError(f"{printable(said)}: {wrong}; nothing was changed")
    number = getattr(wrong, "errno", None)
    reason = os.strerror(number) if number else ""
    if not reason:
        found = re.search(r"error message = '([^']*)'", str(wrong))
        reason = found[1] if found else printable(" ".join(str(wrong).split()))
    return CannotWriteError(f"{printable(said)}: cannot be written: {reason}; nothing was changed")
