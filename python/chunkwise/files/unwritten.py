"""What becomes of data that libhdf5 holds and cannot write when its dataset or file is closed?

libhdf5 frees a dataset that it cannot flush while it closes it, and crashes later
(`tests/upstream/close_unflushed.c`).  So a dataset is flushed while it is open.  If that fails,
it stays open until the file is closed; then what libhdf5 still holds goes to memory, and closing
raises the error, also one of an earlier flush: flushing again may succeed without the data.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Final

import h5py
from h5py import h5d, h5fd, h5i
from h5py._objects import phil

from chunkwise import system
from chunkwise.files import closing
from chunkwise.files.objects import address_of
from chunkwise.names import HDF5_ERRORS, hdf5_reason

# Under this name a dataset keeps what flushes it.
_ATTRIBUTE: Final = "_chunkwise_unwritten"
# What libhdf5 may look up in a file that was given up, as it closes it: its beginning.
_MOST_COPIED_NBYTES: Final = 64 << 20


class _Keeper:
    """Flushes a dataset when nobody holds its object any more."""

    def __init__(self, identifier: h5d.DatasetID) -> None:
        self.identifier = identifier
        # Before anything that may fail: what is begun is ended, too.
        self._process = os.getpid()
        # Whether a reader who opens the file now finds chunks of it.
        self.is_stored = identifier.get_storage_size() > 0
        # Whether libhdf5 has written since then, and may replace these chunks.
        self.replaces = False

    # Bound here: when the interpreter ends, the module's names may be gone.
    def __del__(self, getpid: Callable[[], int] = os.getpid) -> None:
        if getpid() == self._process and self.identifier.valid:
            try:
                self.identifier.flush()
            except HDF5_ERRORS as error:
                with phil:
                    _held.append((self.identifier, error.with_traceback(None)))


# Of datasets whose objects somebody holds, by the `id` of h5py's identifier, which objects share.
_keepers: weakref.WeakValueDictionary[int, _Keeper] = weakref.WeakValueDictionary()
# Datasets that could not be flushed, and why, if that was not raised.
_held: list[tuple[h5d.DatasetID, Exception | None]] = []


def keep(dataset: h5py.Dataset) -> None:
    """Flush a dataset, which libhdf5 is about to write, before it is closed."""
    keeper = dataset.__dict__.get(_ATTRIBUTE)
    if keeper is None:
        _watch()
        with phil:
            keeper = _keepers.get(id(dataset.id)) or _Keeper(dataset.id)
            _keepers[id(dataset.id)] = keeper
        dataset.__dict__[_ATTRIBUTE] = keeper
    keeper.replaces = keeper.is_stored


def replaces(dataset: h5py.Dataset) -> bool:
    """Whether libhdf5 holds other values for chunks that the file had when it was last flushed."""
    # If they leave its cache before the next flush, a process that is killed loses both.
    keeper = _keepers.get(id(dataset.id))
    return keeper is not None and keeper.replaces


def flush(identifier: h5d.DatasetID) -> None:
    """Flush a dataset now; if libhdf5 cannot, it stays open until its file is closed."""
    _watch()
    try:
        identifier.flush()
    except HDF5_ERRORS:
        with phil:
            _held.append((identifier, None))
        raise


def _close(file: h5py.File, closes: bool, close: Callable[[], Any]) -> Any:
    """Close a file so that libhdf5 frees nothing that it has not written."""
    if not file.id.valid:
        return close()
    if not closes:
        result = close()
        with phil:
            _note_flushed(file)
        return result
    failure = None
    with phil:
        there = _unflushed()
        if there:
            number = address_of(file.id)[:2]
            failure = _flush_or_abandon(one for one in there if address_of(one[0])[:2] == number)
    # Not within the lock: others may wait here for reads in other threads.
    result = close()
    with phil:
        _held[:] = [one for one in _held if one[0].valid]
    if failure is not None:
        raise failure
    return result


def _note_flushed(file: h5py.File) -> None:
    """Note that the file has all that libhdf5 has written.  Under h5py's lock."""
    for keeper in list(_keepers.values()):
        if keeper.replaces or not keeper.is_stored:
            same = keeper.identifier.valid and address_of(keeper.identifier)[:2]
            if same == address_of(file.id)[:2]:
                keeper.is_stored, keeper.replaces = True, False


def _unflushed() -> list[tuple[h5d.DatasetID, Exception | None]]:
    """All open datasets that libhdf5 has written, and may not have flushed, as in `_held`."""
    known = [*_held, *((keeper.identifier, None) for keeper in list(_keepers.values()))]
    return [one for one in known if one[0].valid]


def _flush_or_abandon(
    datasets: Iterable[tuple[h5d.DatasetID, Exception | None]],
) -> Exception | None:
    """Return why datasets were not flushed; the files of those that cannot be are given up."""
    failure: Exception | None = None
    for identifier, unsaid in datasets:
        failure = failure or unsaid
        try:
            identifier.flush()
        except HDF5_ERRORS as error:
            failure = failure or error
            # Of a file that is no plain local one, libhdf5 may still close what it cannot write.
            with contextlib.suppress(OSError):
                _abandon(identifier)
    return failure


def _abandon(identifier: h5d.DatasetID) -> None:
    """Replace the descriptor of a dataset's file by one in memory that has its first bytes."""
    file = h5i.get_file_id(identifier)
    if file.get_access_plist().get_driver() != h5fd.SEC2:
        return
    descriptor = file.get_vfd_handle()
    with os.fdopen(system.memory_file("given up"), "wb") as memory:
        memory.write(system.pread(descriptor, _MOST_COPIED_NBYTES, 0))
        memory.flush()
        os.dup2(memory.fileno(), descriptor, inheritable=False)


@functools.cache
def _watch() -> None:
    """Be called before h5py closes a file."""
    system.after_fork_in_child(_forget)
    closing.ask(_close)


def _forget() -> None:
    _held.clear()
    _keepers.clear()


# Before those who import this register what writes all that waits: so it comes after that.
@atexit.register
def _end() -> None:
    """Do the same for files that are still open when the program ends."""
    if not _keepers and not _held:
        return
    with phil:
        failure = _flush_or_abandon(_unflushed())
    if failure is not None:
        reason = hdf5_reason(failure)
        warnings.warn(f"{reason}; what was not written is lost", RuntimeWarning, stacklevel=2)
