"""Which names beside the target belong to this run, and stay so if others may write there too?

``.out.nc.repack`` is a folder with a lock, a journal, and what an earlier run left.  The lock
holds a random token, which names the partial file, ``.out.nc.TOKEN.partial``.  Others may plant
something at these names.  So the folder must be no link, belong to this user, be closed to others,
and hold a lock that a run has written.  Everything else is reached from there by descriptor, and a
run removes only files whose inodes it knows.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from chunkwise import system
from chunkwise.errors import CannotWriteError, UsageError, like
from chunkwise.files.identity import Identity
from chunkwise.names import printable
from chunkwise.newfile.target import Place, writing_to

LOCK: Final = "lock"
JOURNAL: Final = "journal"
# A run continues from the journal and the partial file of the earlier run.
BEFORE: Final = ("before.journal", "before.h5")
# Shows workers that they see this folder, and that they may still write.
LEASE: Final = "lease"
_NAMES: Final = (JOURNAL, LEASE, *BEFORE)

_MARK: Final = re.compile(rb"chunkwise repack ([0-9a-f]{16})\n")
_MARK_NBYTES: Final = 34


@dataclass
class Claim:
    """The names of one run, held by descriptors."""

    place: Place  # What they are for
    parent: int  # Descriptors of the target's folder, and of the work folder
    folder: int
    token: str  # What the partial file's name has in it
    owner: int  # Number of the user whose files are made here
    resumed: bool = False  # Whether there is an earlier run's work to go on from
    _made: os.stat_result | None = None
    _own: set[tuple[int, int]] = field(default_factory=set)

    @property
    def partial_name(self) -> str:
        """Name of the file that becomes the target, in the target's folder."""
        return f".{self.place.short_name}.{self.token}.partial"

    @property
    def partial(self) -> Path:
        """Its path, for who makes it exclusively, or reads it."""
        return self.place.target.with_name(self.partial_name)

    def make_partial(self) -> int:
        """Make the partial file, closed to others; gives a descriptor for writing."""
        # No other file will be brought into place.
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | system.SAFELY
        descriptor = system.open_at(self.parent, self.partial_name, flags)
        self._made = os.fstat(descriptor)
        return descriptor

    def require_partial(self, descriptor: int) -> None:
        """Raise OSError unless an open file is the partial one."""
        if self._made is None or not os.path.samestat(os.fstat(descriptor), self._made):
            raise OSError(errno.ESTALE, "the half-written file was replaced by another program")

    def link_partial(self) -> None:
        """Make the partial file another name of the source."""
        system.link_at(self.place.source, self.parent, self.partial_name)

    def open_partial(self, flags: int) -> int:
        """Open the partial file."""
        descriptor = system.open_at(self.parent, self.partial_name, flags | system.SAFELY)
        try:
            self.require_partial(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def make(self, name: str) -> int:
        """Make a file in the work folder; gives a descriptor for writing."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | system.SAFELY
        descriptor = system.open_at(self.folder, name, flags)
        self._own.add(Identity.of(os.fstat(descriptor)).file)
        return descriptor

    def open(self, name: str) -> int:
        """Open a file of the work folder for reading."""
        return system.open_at(self.folder, name, os.O_RDONLY | system.SAFELY)

    def allowed_mode(self) -> int:
        """Permissions that the umask leaves a new file."""
        return system.stat_at(self.folder, LOCK).st_mode & 0o777

    def size(self, name: str) -> int:
        """Bytes of a file in the work folder; -1 if it is not there."""
        found = _look(name, self.folder)
        return -1 if found is None else found.st_size

    def adopt(self) -> None:
        """Own the files in the locked work folder: they are this run's, or an earlier one's."""
        there = (_look(name, self.folder) for name in (LOCK, *_own_names(self.folder)))
        self._own |= {Identity.of(found).file for found in there if found is not None}

    def has_partial(self) -> bool:
        """Return whether the partial file is there."""
        found = _look(self.partial_name, self.parent)
        if found is None:
            return False
        if not stat.S_ISREG(found.st_mode) or found.st_uid != self.owner:
            raise _foreign(self.place, self.partial, "is not the file that an earlier run left")
        return True

    def put_aside(self) -> bool:
        """Put aside what a stopped run left; return whether there is something to go on from."""
        # Of two stopped runs, one resumed from the other, the one that had done more counts.
        if self.has_partial() and 0 <= self.size(JOURNAL) >= self.size(BEFORE[0]):
            old = self.partial_name
            system.replace_at(self.parent, old, self.folder, BEFORE[1])
            system.replace_at(self.folder, JOURNAL, self.folder, BEFORE[0])
            self.adopt()
        self.clean(keep_before=True)
        return all(self.size(name) >= 0 for name in BEFORE)

    def clean(self, *, keep_before: bool = False) -> None:
        """Remove a run's files, but not its lock; `keep_before`: nor what it can go on from."""
        if self.has_partial():
            found = _look(self.partial_name, self.parent)
            if self._made is None or (found is not None and os.path.samestat(found, self._made)):
                system.unlink_at(self.parent, self.partial_name)
        for name in _own_names(self.folder):
            if not (keep_before and name in BEFORE):
                self._remove(name)

    def is_over(self) -> bool:
        """Return whether a run is over: its file has the target's name, or is gone."""
        if not self.has_partial():
            return True
        partial = _look(self.partial_name, self.parent)
        target = _look(self.place.target.name, self.parent)
        if partial is None or target is None or not os.path.samestat(partial, target):
            return False
        system.unlink_at(self.parent, self.partial_name)
        return True

    def give_back(self) -> None:
        """Remove all that this run has made or taken over, as far as the system lets it."""
        with contextlib.suppress(OSError, UsageError):
            self.clean()
            self._remove(LOCK)
            # A folder that holds something stays.
            system.rmdir_at(self.parent, self.place.folder.name)

    def _remove(self, name: str) -> None:
        """Remove a file from the work folder, if it is an own one."""
        found = _look(name, self.folder)
        if found is not None and Identity.of(found).file in self._own:
            system.unlink_at(self.folder, name)


@contextlib.contextmanager
def claimed(place: Place, *, resume: bool) -> Iterator[Claim]:
    """Hold the names for a result, and remove what need not stay."""
    with contextlib.ExitStack() as stack:
        stack.callback(system.clear_away, place.folder, LOCK)
        with writing_to(place.said):
            parent = system.open_folder(place.target.parent)
            stack.callback(let_go, parent)
            claim = _lock(place, parent, stack)
        done = False
        try:
            if resume:
                claim.resumed = claim.put_aside()
            else:
                claim.clean()
            yield claim
            done = True
        finally:
            # The rest is for a run that continues.
            if done or not resume:
                claim.give_back()


def let_go(descriptor: int) -> None:
    """Close what holds nothing of the result, whatever the system says."""
    with contextlib.suppress(OSError):
        os.close(descriptor)


def _lock(place: Place, parent: int, stack: contextlib.ExitStack) -> Claim:
    """Make the work folder, or find it, and lock it; what a killed run held is free."""
    while True:
        with contextlib.ExitStack() as attempt:
            folder, owner = _folder(place, parent)
            if folder < 0:
                continue
            attempt.callback(let_go, folder)
            _require_own_names(place, folder, owner)
            try:
                flags = os.O_RDWR | os.O_CREAT | system.SAFELY
                lock = system.open_at(folder, LOCK, flags, 0o666)
                attempt.callback(let_go, lock)
                _hold(place, lock)
                if _is_there(lock, folder):
                    token = _token(place, folder, lock)
                    claim = Claim(place, parent, folder, token, owner)
                    if claim.is_over():
                        # That token was the name of a file that is finished, or gone.
                        claim = Claim(place, parent, folder, _new_token(lock), owner)
                    claim.adopt()
                    stack.push(attempt.pop_all())
                    return claim
            except FileNotFoundError:
                continue
            except OSError:
                # On a full disk nothing stays, except a folder that holds something.
                with contextlib.suppress(OSError):
                    system.rmdir_at(parent, place.folder.name)
                raise
        # Another run ended just now, and removed the lock or the folder.


def _is_there(lock: int, folder: int) -> bool:
    """Return whether an open lock still has its name."""
    there = _look(LOCK, folder)
    return there is not None and os.path.samestat(os.fstat(lock), there)


def _hold(place: Place, lock: int) -> None:
    try:
        system.lock(lock)
    except BlockingIOError:
        raise like(CannotWriteError, BlockingIOError())(
            f"{printable(place.said)}: another run is writing it; wait for it to end"
        ) from None
    except OSError:
        pass  # a file system without locks


def _folder(place: Place, parent: int) -> tuple[int, int]:
    """Open the work folder: its descriptor, and whose it is; -1 if it went away just now."""
    name = place.folder.name
    try:
        system.mkdir_at(parent, name, 0o700)
        is_new = True
    except FileExistsError:
        is_new = False
    try:
        folder = system.open_folder_at(parent, name)
    except FileNotFoundError:
        return -1, -1
    except OSError as wrong:
        if wrong.errno in (errno.ENOTDIR, errno.ELOOP):
            raise _foreign(place, place.folder, "is no folder of an earlier run") from None
        if wrong.errno == errno.EACCES:
            raise _foreign(place, place.folder, "belongs to another user") from None
        raise
    found = os.fstat(folder)
    if is_new and not system.names_in(folder):
        return folder, found.st_uid
    expected = (system.user(), 0o700)
    if not _is_closed(found, *expected) and not _is_closed(found, *_as_made(parent)):
        os.close(folder)
        raise _foreign(place, place.folder, "belongs to another user, or is open to others")
    return folder, found.st_uid


def _is_closed(found: os.stat_result, owner: int, mode: int) -> bool:
    return found.st_uid == owner and not found.st_mode & 0o077 & ~mode


def _as_made(parent: int) -> tuple[int, int]:
    """Owner and mode of a new folder here: not every file system keeps the requested ones."""
    name = f".chunkwise-{secrets.token_hex(8)}"
    system.mkdir_at(parent, name, 0o700)
    try:
        found = system.stat_at(parent, name)
        return found.st_uid, found.st_mode
    finally:
        system.rmdir_at(parent, name)


def _require_own_names(place: Place, folder: int, owner: int) -> None:
    """Raise UsageError if a folder holds what no run makes."""
    names = system.names_in(folder)
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            found = system.stat_at(folder, name)
            is_ours = _is_own(name) and stat.S_ISREG(found.st_mode)
            if not is_ours or found.st_uid != owner or found.st_nlink > 1:
                raise _foreign(
                    place, place.folder / name, "is in a folder that repack uses, and not its own"
                )
    if names and LOCK not in names and system.names_in(folder):
        raise _foreign(place, place.folder, "is no folder of an earlier run")


def _token(place: Place, folder: int, lock: int) -> str:
    """Return the lock's text; a new lock has a text from here on."""
    mark = system.pread(lock, _MARK_NBYTES + 1, 0)
    found = _MARK.fullmatch(mark)
    if found is not None:
        return found[1].decode()
    # One that was killed as it began has written no more than a part of it, and nothing else.
    whole = b"chunkwise repack " + b"0" * 17
    begun = mark[:17] == whole[: len(mark[:17])] and len(mark) < _MARK_NBYTES
    if (mark and not begun) or system.names_in(folder) != [LOCK]:
        raise _foreign(place, place.folder, "is no folder of an earlier run")
    try:
        return _new_token(lock)
    except OSError:
        system.unlink_at(folder, LOCK)
        raise


def _new_token(lock: int) -> str:
    """Write another token into a lock."""
    token = secrets.token_hex(8)
    system.pwrite(lock, f"chunkwise repack {token}\n".encode(), 0)
    # Before anything is made whose name only this gives.
    os.fsync(lock)
    return token


def _look(name: str, folder: int) -> os.stat_result | None:
    """Look at what has a name in a folder, without following it; None if nothing has."""
    try:
        return system.stat_at(folder, name)
    except FileNotFoundError:
        return None


def _is_own(name: str) -> bool:
    return name in (LOCK, *_NAMES)


def _own_names(folder: int) -> list[str]:
    """Names in the work folder that a run uses, but for the lock."""
    return [name for name in system.names_in(folder) if _is_own(name) and name != LOCK]


def _foreign(place: Place, path: Path, why: str) -> UsageError:
    return UsageError(
        f"{printable(place.said)}: {printable(str(path))} {why}; it was left as it is: move it "
        "away, or choose another target"
    )
