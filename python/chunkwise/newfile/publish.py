"""How does the finished file come into place, whole or not at all?  Through descriptors."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

from chunkwise import system
from chunkwise.errors import CannotWriteError, note
from chunkwise.names import printable
from chunkwise.newfile.claim import Claim, claimed
from chunkwise.newfile.target import NewFile, writing_to

# Errors of a file system without extended attributes, or without this one.
_UNKEPT = (errno.ENOTSUP, errno.ENODATA, errno.EINVAL, errno.EPERM, errno.EACCES)


def publish(claim: Claim) -> None:
    """Bring the finished file into place."""
    # It is on disk before its name is.  A new file has the source's permissions, as far as the
    # umask lets it; one that replaces another has that one's owner, permissions and extended
    # attributes.  Its time of modification is now: its bytes are new.
    place = claim.place
    place.require_unchanged()
    with writing_to(place.said):
        partial = claim.open_partial(os.O_RDWR)
        try:
            replaced = _there(claim)
            if replaced is None:
                system.dress(partial, claim.allowed_mode() & place.permissions())
            else:
                _dress(claim, partial, replaced)
            os.fsync(partial)
        finally:
            os.close(partial)
        place.require_unchanged()
        bring(claim)
        # It is there, whether or not the file system can say when a name is on disk.
        with noting_it_stays(place.said), contextlib.suppress(OSError):
            system.sync_descriptor(claim.parent)


@contextlib.contextmanager
def new_file(target: str | os.PathLike[str], *, overwrite: bool) -> Iterator[Claim]:
    """Hold the names for a new file, and bring it into place when the block ends."""
    place = NewFile.at(target, overwrite=overwrite)
    with claimed(place, resume=False) as claim:
        yield claim
        publish(claim)


@contextlib.contextmanager
def noting_it_stays(said: str) -> Iterator[None]:
    """Note on what ends the block that the new file is in place, and stays there."""
    try:
        yield
    except BaseException as error:
        note(error, f"{printable(said)}: the new file is complete and in place")
        raise


def bring(claim: Claim) -> None:
    """Give the partial file the target's name; only what may be replaced is."""
    old, new, folder = claim.partial_name, claim.place.target.name, claim.parent
    made = system.stat_at(folder, old)
    if _there(claim) is None:
        try:
            placed = system.place_new_at(folder, old, new)
        except FileExistsError:
            raise claim.place.taken() from None
        if placed:
            _require_there(claim, made)
            # What has two names is in place; the work folder's end, or the next run, removes one.
            with contextlib.suppress(OSError):
                system.unlink_at(folder, old)
            return
    system.replace_at(folder, old, folder, new)
    _require_there(claim, made)


def _require_there(claim: Claim, made: os.stat_result) -> None:
    """Raise CannotWriteError if the target's name does not lead to the new file."""
    target = claim.place.target.name
    with contextlib.suppress(FileNotFoundError):
        found = system.stat_at(claim.parent, target)
        # Some network file systems number files by their names.
        alike = (found.st_size, found.st_mtime_ns) == (made.st_size, made.st_mtime_ns)
        if os.path.samestat(found, made) or alike:
            return
    raise CannotWriteError(
        f"{claim.place.said}: the file system did not give the new file this name, and reported "
        "no error; the source is as it was: write to another folder"
    )


def _there(claim: Claim) -> os.stat_result | None:
    """Look at what has the target's name; raise UsageError if it may not be replaced."""
    try:
        found = system.stat_at(claim.parent, claim.place.target.name)
    except FileNotFoundError:
        return None
    if not claim.place.replaces or not stat.S_ISREG(found.st_mode):
        raise claim.place.taken()
    return found


def _dress(claim: Claim, partial: int, replaced: os.stat_result) -> None:
    """Give a file the owner, permissions and extended attributes of the one it replaces."""
    system.dress(partial, stat.S_IMODE(replaced.st_mode), replaced)
    if not hasattr(os, "listxattr"):
        return
    target = claim.place.target
    names: list[str] = []
    with _unless_unkept():
        names = os.listxattr(target, follow_symlinks=False)
    for name in names:
        with _unless_unkept():
            os.setxattr(partial, name, os.getxattr(target, name, follow_symlinks=False))


@contextlib.contextmanager
def _unless_unkept() -> Iterator[None]:
    try:
        yield
    except OSError as wrong:
        if wrong.errno not in _UNKEPT:
            raise
