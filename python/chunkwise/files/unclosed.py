"""How is a file read whose writer never closed it?

libhdf5 refuses the mark in its superblock (version 3).  ``h5clear -s`` removes it, and cuts the
file at the superblock's end, which a SWMR writer does not keep up to date.  Here libhdf5 reads
through a file object without the mark, which ends where the file really ends.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import io
import os
import shutil
import weakref
from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import h5py
from h5py import h5f

from chunkwise import _native, system
from chunkwise.errors import BusyError, UnclosedFileError
from chunkwise.files.opening import open_h5
from chunkwise.files.superblock import read_superblock
from chunkwise.names import HDF5_ERRORS

# The largest that the operating system knows (off_t).
_LAST_OFFSET: Final = (1 << 63) - 1


class Positioned(io.RawIOBase):
    """A file object with a position of its own."""

    position = 0

    @property
    def storage(self) -> _native.Storage | None:
        """Its bytes for readers other than libhdf5, if these may read them."""
        return None

    def end(self) -> int:
        """Return where the file ends."""
        raise NotImplementedError

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def seekable(self) -> bool:
        """Return that it can be sought in."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to an offset from the beginning, the current position or the end."""
        if whence == os.SEEK_END:
            offset += self.end()
        elif whence == os.SEEK_CUR:
            offset += self.position
        if offset > _LAST_OFFSET:
            # A damaged address; preadv would raise an OverflowError.
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self.position = offset
        return offset

    def tell(self) -> int:
        """Return the current position."""
        return self.position


_COPIED_NBYTES: Final = 1 << 20


class Patch(NamedTuple):
    """Other bytes for a part of a file."""

    at: int
    content: bytes

    @property
    def end(self) -> int:
        """Where that part ends."""
        return self.at + len(self.content)


def closed_patch(path: str | os.PathLike[str]) -> Patch | None:
    """Give the superblock that a file would have had its writer closed it; None if it did."""
    superblock = read_superblock(path)
    if superblock is None or not superblock.flags:
        return None
    content = superblock.closed(Path(path).stat().st_size)
    return None if content is None else Patch(superblock.offset, content)


class ReadOnlyFile(Positioned):
    """A file for h5py's fileobj driver, some of whose bytes are shown otherwise."""

    # What of a buffer lies beyond the end of the file is filled with zeros, as libhdf5's own
    # driver does: h5py does not look at how many bytes came, and would pass on what was in the
    # buffer before.

    # Of one that cannot be opened, which Python closes, too.
    descriptor = -1

    def __init__(self, path: str | os.PathLike[str] | int, *patches: Patch | None) -> None:
        if isinstance(path, int):
            # Somebody else's.
            self._said, self.descriptor = f"descriptor {path}", os.dup(path)
        else:
            self._said = os.fspath(path)
            self.descriptor = os.open(path, os.O_RDONLY | system.OPENED)
        self._patches = sorted(patch for patch in patches if patch is not None)

    def __repr__(self) -> str:
        """Return its path: what h5py calls the file."""
        return self._said

    def end(self) -> int:
        """Return where the file ends, with what is shown behind it."""
        nbytes = os.fstat(self.descriptor).st_size
        return max(nbytes, self._patches[-1].end) if self._patches else nbytes

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer from the current position on."""
        begin = self.position
        view = memoryview(buffer).cast("B")
        # Nearly always, all comes at once.
        filled = system.pread_into(self.descriptor, view, begin)
        while filled < len(view):
            count = system.pread_into(self.descriptor, view[filled:], begin + filled)
            if not count:
                view[filled:] = bytes(len(view) - filled)
                break
            filled += count
        if self._patches:
            mend(view, begin, self._patches)
            filled = max(filled, min(len(view), self._patches[-1].end - begin))
        self.position = begin + filled
        return filled

    def close(self) -> None:
        """Close the file."""
        if not self.closed and self.descriptor >= 0:
            os.close(self.descriptor)
        super().close()


def mend(view: memoryview, begin: int, patches: Sequence[Patch]) -> None:
    """Apply patches, in order of their addresses, to bytes just read."""
    end = begin + len(view)
    before = bisect_right(patches, begin, key=lambda patch: patch.at) - 1
    for at, content in islice(patches, max(0, before), None):
        if at >= end:
            break
        first, last = max(begin, at), min(end, at + len(content))
        if first < last:
            view[first - begin : last - begin] = content[first - at : last - at]


def open_patched(path: str | os.PathLike[str], *patches: Patch | None) -> h5py.File:
    """Have libhdf5 open a file for reading that shows other bytes."""
    file = h5py.File(ReadOnlyFile(path, *patches), "r", rdcc_nbytes=0)
    close_at_exit(file.id)
    return file


# libhdf5 closes what is open after Python's end, and would call into it.
_open_files: weakref.WeakValueDictionary[int, h5f.FileID] = weakref.WeakValueDictionary()


def close_at_exit(identifier: h5f.FileID) -> None:
    """Close a file that libhdf5 reads through Python before Python ends."""
    _open_files[id(identifier)] = identifier


@atexit.register
def _close_all() -> None:
    for identifier in list(_open_files.values()):
        if identifier.valid:
            with contextlib.suppress(*HDF5_ERRORS):
                identifier.close()


def open_unclosed(path: str | os.PathLike[str]) -> h5py.File | None:
    """Open a file that libhdf5 refuses since its writer has not closed it."""
    # A writer in SWMR mode holds no lock, so that its file is opened even as it grows; what it
    # adds later is not seen.  (libhdf5's own way, ``swmr=True``, would see it.  But where a piece
    # of metadata is damaged it tries a hundred times, each time after twice the wait, which never
    # ends.)  What a crashed writer had not flushed is missing, and objects may be unreadable.
    try:
        patch = closed_patch(path)
        if patch is None or _is_locked(path):
            return None
        return open_patched(path, patch)
    except HDF5_ERRORS:
        return None


def is_unclosed(path: str | os.PathLike[str]) -> bool:
    """Return whether a file has the mark of a writer, for which libhdf5 refuses it."""
    superblock = read_superblock(path)
    return superblock is not None and bool(superblock.flags)


def open_readable(path: str | os.PathLike[str], **options: Any) -> h5py.File:
    """Open a file for reading, also one that its writer did not close."""
    try:
        return open_h5(path, **options)
    except (UnclosedFileError, BusyError):
        file = open_unclosed(path)
        if file is None:
            raise
        return file


def copy_patched(
    path: str | os.PathLike[str], target: str | os.PathLike[str], *patches: Patch | None
) -> None:
    """Copy a file with other bytes in some places, so that libhdf5 opens the copy."""
    with ReadOnlyFile(path, *patches) as source, Path(target).open("wb") as copy:
        shutil.copyfileobj(source, copy, _COPIED_NBYTES)


def _is_locked(path: str | os.PathLike[str]) -> bool:
    """Return whether a writer holds the lock that libhdf5 takes (flock, exclusive)."""
    with Path(path).open("rb") as stream:
        try:
            system.lock(stream.fileno(), shared=True)
        except BlockingIOError:
            return True
        except OSError:
            # The file system knows no locks, so nobody holds one.
            return False
    return False
