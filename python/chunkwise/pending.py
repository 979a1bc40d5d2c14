"""Which datasets of which open files hold something that is not in the file yet?

It is written before h5py closes or flushes the file, when nobody refers to the dataset any
more, and when the program ends.  What cannot be written any more is never passed over in
silence.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import h5py

from chunkwise import _native
from chunkwise.objects import address_of

if TYPE_CHECKING:
    from chunkwise.writing import Writing

Key = tuple[int, ...]

# By the number of the open file and the address of the dataset's header, as libhdf5 tells
# objects apart; a file's number is never given again.
_writings: weakref.WeakValueDictionary[Key, Writing] = weakref.WeakValueDictionary()


def known(dataset: h5py.Dataset) -> Writing | None:
    """Who writes to a dataset, if anybody does."""
    return _writings.get(address_of(dataset.id)) if _writings else None


def register(dataset: h5py.Dataset, writing: Writing) -> Writing:
    """Note who writes to a dataset from now on.  Under h5py's lock."""
    _watch()
    _writings[address_of(dataset.id)] = writing
    return writing


def settle_reached(dataset: h5py.Dataset, blocking: bool = True) -> None:
    """Have libhdf5 given all that a read or a write of a dataset may meet.

    Parameters
    ----------
    dataset : h5py.Dataset
        A virtual one may lead to any file of this process.
    blocking : bool
        As for `settle_file`.
    """
    if not _writings or not dataset:
        return
    if dataset.is_virtual:
        settle_all(blocking)
        return
    writing = known(dataset)
    if writing is not None:
        writing.settle(blocking)


def settle_inode(inode: tuple[int, ...]) -> None:
    """Have all that was written to a file, by its device and inode, handed to libhdf5."""
    for writing in list(_writings.values()):
        if writing.inode == inode:
            writing.settle()


def settle_all(blocking: bool = True) -> None:
    """Have all that was written in this process handed to libhdf5, whatever the file.

    Parameters
    ----------
    blocking : bool
        As for `settle_file`.
    """
    for writing in list(_writings.values()):
        writing.settle(blocking)


def settle_file(file: h5py.File, blocking: bool = True) -> None:
    """Have all that was written to the datasets of a file handed to libhdf5.

    Parameters
    ----------
    file : h5py.File
        Open or closed.
    blocking : bool
        Whether to wait for those who are writing: never while h5py's lock is held, which they
        wait for.
    """
    if not _writings or not file.id.valid:
        return
    number = address_of(file.id)[:2]
    for key, writing in list(_writings.items()):
        if key[:2] == number:
            writing.settle(blocking)


def balance(writing: Writing) -> None:
    """Have other datasets write what they hold, where all together hold more than one may."""
    others = [other for other in list(_writings.values()) if other is not writing]
    most = _native.cache_stats()["budget_nbytes"]
    if not others or sum(other.held_nbytes for other in others) + writing.held_nbytes <= most:
        return
    for other in others:
        # One that is being written to takes care of itself.
        other.settle(blocking=False)


def lost(label: str, chunks: int) -> str:
    """Say what has happened to a dataset whose file is gone."""
    return (
        f"{label}: the file was closed before {chunks} of its chunks were written, which are "
        "lost: call flush() first"
    )


def finish(native: _native.Writer, dataset: h5py.Dataset, label: str, process: int) -> None:
    """Write what is left of a dataset that nobody refers to any more."""
    if os.getpid() != process or not native.dirty_chunks:
        return
    if not dataset:
        warnings.warn(lost(label, native.dirty_chunks), RuntimeWarning, stacklevel=2)
        return
    try:
        native.flush(interruptible=False)
    except Exception as error:
        # Nobody is there to catch it.
        message = f"{error}; {native.dirty_chunks} chunks are lost"
        warnings.warn(message, RuntimeWarning, stacklevel=2)


@functools.cache
def _watch() -> None:
    """Be asked before h5py closes or flushes a file, and forget the parent's after a fork."""
    os.register_at_fork(after_in_child=_writings.clear)
    for name in ("close", "flush", "__exit__"):
        setattr(h5py.File, name, _after_settling(getattr(h5py.File, name)))


# Whether this thread is within one of h5py's methods, and may have its lock.
_within = threading.local()


@contextlib.contextmanager
def without_waiting() -> Iterator[None]:
    """Within it h5py's lock is held, and nobody is waited for who may be waiting for that."""
    outermost = not getattr(_within, "method", False)
    _within.method = True
    try:
        yield
    finally:
        _within.method = not outermost


def _after_settling(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def settled(file: h5py.File, *args: Any) -> Any:
        outermost = not getattr(_within, "method", False)
        try:
            settle_file(file, blocking=outermost)
        finally:
            _within.method = True
            try:
                done = method(file, *args)
            finally:
                _within.method = not outermost
        return done

    return settled
