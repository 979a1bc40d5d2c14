"""Who performs a program's read of a dataset: the engine, or libhdf5?

`read`, `read_into` and `read_selection` return what the engine has read, or `Left`: why libhdf5
has to read.  A patched program relies on h5py's errors; our own datasets take more indices.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np
from h5py._objects import phil

from chunkwise import _native
from chunkwise.errors import (
    ChangedSourceError,
    FileChangedError,
    RemoteError,
    SelectionError,
    UndecodedChunkError,
    UnsoundIndexError,
)
from chunkwise.routing import elsewhere, transfers
from chunkwise.routing.bindings import Binding, Bound
from chunkwise.routing.eligibility import OTHER_INDEX, UNDECODED, Left
from chunkwise.routing.indexing import is_mask, listed, plain
from chunkwise.selecting.indexing import resolve, without_names
from chunkwise.selection import Selection


class Counts:
    """How many calls took which path."""

    def __init__(self) -> None:
        self.engine = 0
        self.h5py: Counter[str] = Counter()


counts = Counts()

# What libhdf5 may read where the engine cannot.
_FAILED = (UndecodedChunkError, RemoteError, FileChangedError)


def read(
    dataset: h5py.Dataset,
    binding: Binding,
    index: Any,
    dtype: Any = None,
    *,
    comes_again: bool = False,
) -> Any | Left:
    """Read ``dataset[index]``, as elements of a type or of their own."""
    # What is left to h5py's method is not counted if that `comes_again` for it.
    bound = binding.bound
    if bound is None:
        counts.h5py[binding.why] += 1
        return Left(binding.why)
    if dtype is None:
        if bound.is_quick and not binding.own and (type(index) is int or plain(index)):
            # Most reads of a patched program, which are short.  `Dataset` has this for its own.
            try:
                found = bound.getitem(index)
            except (SelectionError, *_FAILED):
                found = None
            if found is not None:
                counts.engine += 1
                return found
        if bound.dtype.names:
            rest, names = without_names(index)
            if names:
                # h5py turns names into a view, which comes here again.
                wanted = rest, names, binding.own
                return _by_engine(dataset, binding, True, transfers.by_fields, *wanted)
    return _by_engine(dataset, binding, comes_again, _by_index, dataset, binding.own, index, dtype)


def read_into(
    dataset: h5py.Dataset, binding: Binding, dest: Any, source_sel: Any, dest_sel: Any
) -> Any | Left:
    """Read ``dataset[source_sel]`` into ``dest[dest_sel]``."""
    return _by_engine(dataset, binding, False, transfers.into, dest, source_sel, dest_sel)


def read_selection(
    dataset: h5py.Dataset, binding: Binding, selection: _native.Selection, out: Any = None
) -> Any | Left:
    """Read what an index or a selection was resolved to, into `out` or a new array."""
    return _by_engine(dataset, binding, False, lambda bound: bound.native.read(selection, out))


def _by_engine(
    dataset: h5py.Dataset,
    binding: Binding,
    comes_again: bool,
    method: Callable[..., Any],
    *wanted: Any,
) -> Any | Left:
    """Read by a method of a `Bound`; what the engine finds it cannot read is left, too."""
    is_last = False
    while True:
        bound = binding.bound
        if bound is None:
            found = Left(binding.why)
            break
        try:
            found = method(bound, *wanted)
        except SelectionError:
            if binding.own:
                raise
            # h5py says what does not fit.
            found = OTHER_INDEX
        except _FAILED as error:
            left = _left(dataset, binding, error)
            if left is None and not is_last:
                is_last = True
                continue
            found = left or Left(elsewhere.CHANGED)
        break
    if not isinstance(found, Left):
        counts.engine += 1
    elif not comes_again:
        counts.h5py[found.why] += 1
    return found


def _by_index(
    bound: Bound, dataset: h5py.Dataset, own: bool, index: Any, dtype: Any
) -> Any | Left:
    """Read ``dataset[index]``: what h5py takes, or of our `own` what has a meaning here."""
    taken = own or type(index) is int or plain(index)
    if not taken and is_mask(index) and bound.native.is_virtual:
        # Points of a virtual dataset are an error in h5py, but for some.
        return OTHER_INDEX
    if dtype is not None or bound.has_arrays:
        wanted = bound.dtype if dtype is None else np.dtype(dtype)
        found = transfers.as_type(bound, index, wanted, own)
        if dtype is not None or not isinstance(found, Left):
            return found
    if not (taken or listed(index, bound.shape)):
        return OTHER_INDEX
    if isinstance(index, Selection):
        return bound.native.read(index.resolve(bound.shape, bound.label))
    if is_mask(index):
        selection = resolve(bound.shape, index, bound.label)
        if selection is None:  # of no dimension
            return OTHER_INDEX
        # Points, to h5py, which reads them into an array that it makes itself.
        return bound.native.read(selection, np.zeros(selection.shape, dataset.dtype))
    found = bound.getitem(index)
    if found is None or not (taken or found.size):
        # A list beside a slice of nothing is an error in most versions of h5py.
        return OTHER_INDEX
    return found


def _left(dataset: h5py.Dataset, binding: Binding, error: Exception) -> Left | None:
    """Leave a read to libhdf5, with a warning if a chunk is odd or the file another one."""
    # None if a source has changed: libhdf5 may have it open as before.
    if isinstance(error, UnsoundIndexError | RemoteError | FileChangedError) and not binding.own:
        from chunkwise.remote import ros3

        with phil:
            why = ros3.given_up(dataset, error) if dataset else None
        if why is not None:
            binding.leave(why)
            if isinstance(error, FileChangedError):
                _warn(error)
            return Left(why)
    if isinstance(error, RemoteError | FileChangedError):
        raise error
    if isinstance(error, UnsoundIndexError):
        binding.look_again(dataset)
        return Left(binding.why)
    if isinstance(error, ChangedSourceError):
        before = binding.bound
        binding.look_again(dataset, listed=False)
        now = binding.bound
        is_like_before = before is not None and now is not None and now.shape == before.shape
        return None if is_like_before else Left(elsewhere.CHANGED)
    _warn(error)
    return UNDECODED


def _warn(error: Exception) -> None:
    # At the line of the program that reads.
    frame, level = sys._getframe(), 1
    while (
        frame.f_back is not None and frame.f_globals["__name__"].partition(".")[0] == "chunkwise"
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(f"{error}: reading through libhdf5", RuntimeWarning, stacklevel=level)
