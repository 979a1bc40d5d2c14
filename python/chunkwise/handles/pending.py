"""Which datasets of which open files hold data that is not in the file yet?

It is written before h5py closes or flushes the file, when nobody refers to the dataset any more,
and when the program ends.  Data that cannot be written is never dropped in silence.  A writer
takes the dataset's lock first and h5py's after it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import threading
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Protocol, cast

import h5py
from h5py import h5f

from chunkwise import _lib as _lib
from chunkwise import _native, system
from chunkwise.errors import UsageError
from chunkwise.files import closing as closing_files
from chunkwise.files.objects import address_of
from chunkwise.names import HDF5_ERRORS
from chunkwise.words import counted

Key = tuple[int, ...]

phil = h5py._objects.phil


class Writing(Protocol):
    """What is being written to one dataset, as far as it matters here."""

    key: Key
    label: str
    inode: tuple[int, ...]  # Device and inode of its file
    is_open: bool
    is_over: bool  # Whether the file is closed, with nothing left to write
    held_nbytes: int
    settle: Callable[..., None]
    finish: Callable[..., bool]


# By the number of the open file, which is never reused, and the address of the header.
_writings: weakref.WeakValueDictionary[Key, Writing] = weakref.WeakValueDictionary()

# What a dataset holds outlives its writer, until it is in the file.
_left: dict[Key, PendingWork] = {}

# The number of threads that are closing a file, by its number.
_closing: Counter[Key] = Counter()

# Whether the program ends.
_ended = threading.Event()


class UnderWayError(UsageError):
    """The thread that writes needs the lock that the waiting thread holds."""


def known(dataset: h5py.Dataset) -> Any:
    """Who writes to a dataset, if anybody does."""
    return _writings.get(address_of(dataset.id)) if _writings else None


def is_free(dataset: h5py.Dataset) -> bool:
    """Whether nobody writes to a dataset, and nothing waits.  Under h5py's lock."""
    if not _writings and not _left:
        return True
    key = address_of(dataset.id)
    return _writings.get(key) is None and key not in _left


def settle_left(key: Key, label: str) -> None:
    """Wait until what a former `Writing` of a dataset held is in the file."""
    # Two that complete the same chunk from the file at once lose each other's elements.
    left = _left.get(key)
    if left is not None and not left.finish(blocking=not phil._is_owned()):
        raise busy(label, "write without it, not within a visit")


def register(dataset: h5py.Dataset, writing: Any) -> Any:
    """Note who writes to a dataset from now on.  Under h5py's lock."""
    _watch()
    key = address_of(dataset.id)
    former = _writings.get(key)
    if former is not None and former.is_over:
        # The file was opened twice, and closed once.
        del _writings[key]
    return _writings.setdefault(key, writing)


def settle_reached(dataset: h5py.Dataset, blocking: bool = True) -> None:
    """Give libhdf5 all pending data that a read or a write of a dataset may touch."""
    if not _writings or not dataset:
        return
    if dataset.is_virtual:
        settle_all(blocking)
        return
    writing = known(dataset)
    if writing is not None:
        writing.settle(blocking)


def settle_for_h5py(dataset: h5py.Dataset) -> None:
    """Give libhdf5 the pending data that it is about to read, also in h5py's methods."""
    if _writings:
        # Those who are writing may wait for h5py's lock, which some of its methods hold here.
        settle_reached(dataset, blocking=not phil._is_owned())


def settle_inode(inode: tuple[int, ...]) -> None:
    """Give libhdf5 all pending data of a file, by its device and inode."""
    for writing in list(_writings.values()):
        if writing.inode == inode:
            writing.settle()


def settle_all(blocking: bool = True) -> None:
    """Give libhdf5 everything that this process has written, for all files."""
    for writing in _alive():
        # Users of that dataset learn what was lost with a closed file.
        if writing.is_open:
            writing.settle(blocking)


def flush_beside(path: str | os.PathLike[str]) -> None:
    """Write all this process's pending data to a file before it is examined."""
    # Other files' data goes to libhdf5, too: links and virtual datasets may lead there.
    settle_all()
    try:
        wanted = os.stat(path)  # noqa: PTH116 (paths of any kind)
    except OSError:
        return
    with phil, without_waiting():
        for identifier in cast("list[h5f.FileID]", h5f.get_obj_ids(h5f.OBJ_ALL, h5f.OBJ_FILE)):
            if identifier.get_intent() & h5f.ACC_RDWR and _is(identifier, wanted):
                h5py.File(identifier).flush()


def _is(identifier: h5f.FileID, wanted: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(identifier.name), wanted)  # noqa: PTH116
    except OSError:
        # It has lost its name, or never had one.
        return False


def refuse_late(number: Key, label: str) -> None:
    """Refuse a write to a file that is being closed: nobody would put it there."""
    if _closing[number]:
        raise UsageError(f"{label}: nothing was written: another thread is closing the file")
    if _ended.is_set():
        raise UsageError(f"{label}: nothing was written: the program is ending")


@contextlib.contextmanager
def closing(file: h5py.File | None) -> Iterator[None]:
    """Within it nothing more is written to a file, which may be closed already, or None."""
    number = _number(file)
    if number is None:
        yield
        return
    with phil:
        _closing[number] += 1
    try:
        yield
    finally:
        with phil:
            _closing[number] -= 1
            if not _closing[number]:
                del _closing[number]


def settle_file(file: h5py.File) -> None:
    """Give libhdf5 all pending data of a file's datasets."""
    # Each dataset is tried, whatever becomes of the others; the first error is raised.
    number = _number(file) if _writings or _left else None
    if number is not None:
        _finish_all(lambda key: key[:2] == number)


def _number(file: h5py.File | None) -> Key | None:
    """Give the number of an open file; None if nothing can be written to it."""
    if file is None or not file.id.valid:
        return None
    try:
        return address_of(file.id)[:2]
    except HDF5_ERRORS:
        # Its root is damaged: nothing in it was ever opened.
        return None


def _finish_all(wanted: Callable[[Key], bool]) -> None:
    failure: BaseException | None = None
    waiting: list[Writing | PendingWork] = [*_alive(), *list(_left.values())]
    for one in waiting:
        if not wanted(one.key):
            continue
        try:
            if not one.finish(blocking=not phil._is_owned()):
                raise busy(one.label, "flush or close the file without it")
        except Exception as error:
            failure = failure or error
    if failure is not None:
        raise failure


def busy(label: str, remedy: str) -> UnderWayError:
    """Say that a dataset's writer is not waited for."""
    return UnderWayError(
        f"{label}: another thread is writing to it, and waits for h5py's lock, which this one "
        f"holds: {remedy}"
    )


def _alive() -> list[Writing]:
    """Return all writers; others may be added at the same time."""
    found = [reference() for reference in _writings.valuerefs()]
    return [writing for writing in found if writing is not None]


def balance(writing: Any) -> None:
    """Let other datasets write, if all together hold more than one may."""
    others = [other for other in _alive() if other is not writing]
    most = _native.setting("write_buffer_nbytes") if others else 0
    if not others or sum(other.held_nbytes for other in others) + writing.held_nbytes <= most:
        return
    for other in others:
        # One that is being written to takes care of itself.
        if other.is_open:
            other.finish(blocking=False)


def lost(label: str, chunks: int) -> str:
    """Say what has happened to a dataset whose file is gone."""
    return (
        f"{label}: the file was closed before all was written: {counted(chunks, 'chunk')} "
        f"{'is' if chunks == 1 else 'are'} lost; call flush() first"
    )


class PendingWork:
    """The work left for a dataset once nobody refers to its `Writing`."""

    # It is known from the first write on: a thread that closes the file meanwhile finds it.

    def __init__(self, writing: Any, native: _native.Writer, dataset: h5py.Dataset) -> None:
        self.key = writing.key
        self.label = writing.label
        self._writing = weakref.ref(writing)
        self._native = native
        self._dataset = dataset
        self._process = os.getpid()
        self._lock = threading.Lock()
        _left[self.key] = self
        self._finalize = weakref.finalize(writing, self._finish)
        # `_end` sees to those who are there when the program ends.
        self._finalize.atexit = False

    def drop(self) -> None:
        """Forget it: somebody else takes care."""
        self._finalize.detach()
        self._forget()

    def _forget(self) -> None:
        found = _left.pop(self.key, None)
        if found is not None and found is not self:
            # That of the one who writes now.
            _left.setdefault(self.key, found)

    def finish(self, blocking: bool) -> bool:
        """Commit pending data that no other thread commits."""
        if os.getpid() != self._process or self._writing() is not None:
            return True
        if not self._lock.acquire(blocking):
            return False
        try:
            if self._native.dirty_chunks and self._dataset:
                # Others may have resized it.
                self._native.set_shape(self._dataset.shape)
                self._native.flush(interruptible=False)
            self._forget()
            return True
        finally:
            self._lock.release()

    def _finish(self) -> None:
        if os.getpid() != self._process:
            return
        message = None
        try:
            # The thread that has the lock may wait for h5py's, and this thread may hold that.
            if self.finish(blocking=False):
                chunks = self._native.dirty_chunks
                message = lost(self.label, chunks) if chunks else None
        except Exception as error:
            # Nobody is there to catch it.
            self._forget()
            chunks = self._native.dirty_chunks
            message = f"{error}; {counted(chunks, 'chunk')} {'is' if chunks == 1 else 'are'} lost"
        if message is not None:
            warnings.warn(message, RuntimeWarning, stacklevel=2)


@functools.cache
def _watch() -> None:
    """Be called before h5py closes or flushes a file, and forget the parent's after a fork."""
    system.after_fork_in_child(_forget)
    closing_files.ask(_after_settling)
    # Of ours into a file of h5py's, maybe.
    closing_files.ask_before_copies(lambda: settle_all(blocking=not phil._is_owned()))


def _forget() -> None:
    for known_here in (_writings, _left, _closing):
        known_here.clear()


# Not with the first write, which may come as the program ends; before `_lib`'s own.
@atexit.register
def _end() -> None:
    """Write what is left when the program ends; threads that still run write nothing more."""
    _ended.set()
    try:
        _finish_all(lambda _: True)
    except Exception as error:
        warnings.warn(f"{error}; it is lost", RuntimeWarning, stacklevel=2)


# Whether this thread is within one of h5py's methods, before which everything was written.
_within = threading.local()


@contextlib.contextmanager
def without_waiting() -> Iterator[None]:
    """Within it h5py's methods close and flush as they are, and nobody is waited for."""
    outermost = not getattr(_within, "method", False)
    _within.method = True
    try:
        yield
    finally:
        _within.method = not outermost


def _after_settling(file: h5py.File, closes: bool, method: Callable[[], Any]) -> Any:
    if getattr(_within, "method", False):
        return method()
    with closing(file) if closes else contextlib.nullcontext():
        try:
            settle_file(file)
        except UnderWayError:
            # The file stays as it is, and nothing is lost.
            raise
        except BaseException:
            with without_waiting():
                method()
            raise
        with without_waiting():
            return method()
