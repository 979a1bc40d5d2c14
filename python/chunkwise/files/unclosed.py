"""How is a file read whose writer never closed it?

libhdf5 refuses a file whose superblock (version 3) still says that it is being
written.  ``h5clear -s`` removes that mark, and loses data: a writer in SWMR mode does not
keep the superblock's end of the file up to date, and h5clear cuts the file there (a file of 4 MB
keeps 447 bytes).  ``h5clear -s --increment=0`` first moves the end.

Here libhdf5 instead reads through a file object without the mark, which ends where the file
really ends.  The file itself is never written to.
"""

from __future__ import annotations

import os
import shutil
import weakref
from pathlib import Path
from typing import Any, Final, NamedTuple

import h5py

from chunkwise import system
from chunkwise.errors import BusyError, UnclosedFileError
from chunkwise.files.objects import HDF5_ERRORS
from chunkwise.files.opening import open_h5
from chunkwise.files.positioned import Positioned
from chunkwise.files.superblock import Superblock, read_superblock

_COPIED_NBYTES: Final = 1 << 20


class Patch(NamedTuple):
    """Other bytes for a part of a file."""

    at: int
    content: bytes


def closed_patch(path: str | os.PathLike[str], superblock: Superblock | None) -> Patch | None:
    """Give the superblock that a file would have had its writer closed it; None if it did."""
    if superblock is None or not superblock.flags:
        return None
    return Patch(superblock.offset, superblock.closed(Path(path).stat().st_size))


class ReadOnlyFile(Positioned):
    """A file for h5py's fileobj driver, some of whose bytes are shown otherwise.

    What of a buffer lies beyond the end of the file is filled with zeros, as libhdf5's own
    driver does: h5py does not look at how many bytes came, and would pass on what was in
    the buffer before.
    """

    def __init__(self, path: str | os.PathLike[str], patch: Patch | None = None) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | system.OPENED)
        self._patch_at, self._patch = patch or Patch(0, b"")

    def end(self) -> int:
        """Return where the file ends."""
        return os.fstat(self._descriptor).st_size

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer from the current position on."""
        begin = self.position
        view = memoryview(buffer).cast("B")
        # Nearly always, all comes at once.
        filled = system.pread_into(self._descriptor, view, begin)
        while filled < len(view):
            count = system.pread_into(self._descriptor, view[filled:], begin + filled)
            if not count:
                view[filled:] = bytes(len(view) - filled)
                break
            filled += count
        if self._patch:
            self._mend(view[:filled], begin)
        self.position = begin + filled
        return filled

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            os.close(self._descriptor)
        super().close()

    def _mend(self, view: memoryview, begin: int) -> None:
        """Put what is to stand in the superblock's place into bytes just read."""
        first = max(begin, self._patch_at)
        last = min(begin + len(view), self._patch_at + len(self._patch))
        if first < last:
            patch = self._patch[first - self._patch_at : last - self._patch_at]
            view[first - begin : last - begin] = patch


def open_unclosed(path: str | os.PathLike[str]) -> h5py.File | None:
    """Open a file that libhdf5 refuses since its writer has not closed it.

    A writer in SWMR mode holds no lock, so that its file is opened even as it grows; what
    it adds later is not seen.  (libhdf5's own way, ``swmr=True``, would see it.  But where a
    piece of metadata is damaged it tries a hundred times, each time after twice the wait, which
    never ends.)  What a crashed writer had not flushed is missing, and objects may be
    unreadable.
    """
    superblock = read_superblock(path)
    if superblock is None or not superblock.flags:
        return None
    try:
        if _is_locked(path):
            return None
        patch = closed_patch(path, superblock)
        file = h5py.File(ReadOnlyFile(path, patch), "r", rdcc_nbytes=0)
    except HDF5_ERRORS:
        return None
    # libhdf5 closes what is still open after Python has ended, and would call into it.
    weakref.finalize(file, _close, file.id)
    return file


def is_unclosed(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file has the mark of a writer, for which libhdf5 refuses it."""
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
    path: str | os.PathLike[str], target: str | os.PathLike[str], patch: Patch | None
) -> None:
    """Copy a file with other bytes in one place, so that libhdf5 opens the copy."""
    with ReadOnlyFile(path, patch) as source, Path(target).open("wb") as copy:
        shutil.copyfileobj(source, copy, _COPIED_NBYTES)


def _close(identifier: Any) -> None:
    if identifier.valid:
        identifier.close()


def _is_locked(path: str | os.PathLike[str]) -> bool:
    """Tell whether a writer holds the lock that libhdf5 takes (flock, exclusive)."""
    with Path(path).open("rb") as stream:
        try:
            system.lock(stream.fileno(), shared=True)
        except BlockingIOError:
            return True
        except OSError:
            # The file system knows no locks, so nobody holds one.
            return False
    return False
