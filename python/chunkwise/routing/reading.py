"""Who performs a program's read of a dataset: the engine, or libhdf5?

The methods of chunkwise's datasets, and those that replace h5py's when it is patched, ask here.
If the engine would not read exactly as h5py does, the answer is NotImplemented (or False), and the
read is counted: then h5py's own method reads.  A patched program relies on h5py's errors, so
for it only indices that h5py takes go to the engine; our datasets take more (`lenient`).

Iteration and the views of `astype`, `fields` and `asstr` also read through these.
"""

from __future__ import annotations

import warnings
from collections import Counter
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
from chunkwise.routing.indexing import is_mask, listed, plain
from chunkwise.selecting.indexing import resolve
from chunkwise.selection import Selection


class Counts:
    """How many calls took which path."""

    def __init__(self) -> None:
        self.engine = 0
        self.h5py: Counter[str] = Counter()


counts = Counts()

_OTHER_INDEX = "an index that does not fit, or of another kind"
_OTHER_TYPE = "a conversion, a destination or an index that libhdf5 alone handles"
_UNDECODED = "a chunk that is left to libhdf5"
# What libhdf5 may read where the engine cannot.
_FAILED = (UndecodedChunkError, RemoteError, FileChangedError)


def getitem(
    dataset: h5py.Dataset,
    binding: Binding,
    args: Any,
    new_dtype: Any,
    lenient: bool = False,
    again: bool = False,
) -> Any:
    """Read ``dataset[args]``; NotImplemented if libhdf5 has to."""
    bound = binding.bound
    if bound is None:
        counts.h5py[binding.why] += 1
        return NotImplemented
    why, result = _OTHER_INDEX, NotImplemented
    if not binding.own and bound.native.is_virtual and is_mask(args):
        # Points of a virtual dataset are an error in h5py, but for some.
        counts.h5py[why] += 1
        return NotImplemented
    try:
        if bound.dtype.names is not None and new_dtype is None and _names_a_field(args):
            result = transfers.by_fields(bound, args)
        elif new_dtype is not None or bound.has_arrays:
            why = _OTHER_TYPE
            wanted = bound.dtype if new_dtype is None else np.dtype(new_dtype)
            result = transfers.as_type(bound, args, wanted, lenient)
        if new_dtype is None and result is NotImplemented:
            if lenient or type(args) is int or plain(args):
                result = _by_index(dataset, bound, args)
            elif listed(args, bound.shape):
                result = _by_index(dataset, bound, args)
                if result is not NotImplemented and not is_mask(args) and result.size == 0:
                    # A list beside a slice of nothing is an error in most versions of h5py.
                    result = NotImplemented
    except SelectionError:
        if lenient:
            raise
        result = NotImplemented
    except _FAILED as error:
        if not again and _is_known_anew(dataset, binding, error):
            return getitem(dataset, binding, args, new_dtype, lenient, again=True)
        why = _left(dataset, binding, error)
        result = NotImplemented
    if result is not NotImplemented:
        counts.engine += 1
    # h5py turns names into a view, which comes here again.
    elif not (new_dtype is None and _names_a_field(args)):
        counts.h5py[why] += 1
    return result


def array(dataset: h5py.Dataset, binding: Binding, dtype: Any, again: bool = False) -> Any:
    """Read all elements, of a type or their own; NotImplemented if libhdf5 has to.

    It is not counted then: h5py fills an array by `read_direct`, which comes here again.
    """
    bound = binding.bound
    if bound is None or bound.dtype.subdtype is not None:
        return NotImplemented
    try:
        wanted = dataset.dtype if dtype is None else np.dtype(dtype)
        result = transfers.as_type(bound, ..., wanted)
    except _FAILED as error:
        if not again and _is_known_anew(dataset, binding, error):
            return array(dataset, binding, dtype, again=True)
        _left(dataset, binding, error)
        return NotImplemented
    if result is not NotImplemented:
        counts.engine += 1
    return result


def into(
    dataset: h5py.Dataset,
    binding: Binding,
    dest: Any,
    source_sel: Any,
    dest_sel: Any,
    again: bool = False,
) -> bool:
    """Read ``dataset[source_sel]`` into ``dest[dest_sel]``; False if libhdf5 has to."""
    bound, why = binding.bound, binding.why
    if bound is not None:
        why = _OTHER_TYPE
        source = ... if source_sel is None else source_sel
        target = ... if dest_sel is None else dest_sel
        try:
            if transfers.into(bound, dest, source, target):
                counts.engine += 1
                return True
        except _FAILED as error:
            if not again and _is_known_anew(dataset, binding, error):
                return into(dataset, binding, dest, source_sel, dest_sel, again=True)
            why = _left(dataset, binding, error)
        except SelectionError:
            pass
    counts.h5py[why] += 1
    return False


def selected(
    dataset: h5py.Dataset,
    binding: Binding,
    selection: _native.Selection,
    out: Any = None,
    stacklevel: int = 5,
    again: bool = False,
) -> Any:
    """Read a selection into `out`, or a new array; as `getitem`."""
    bound, why = binding.bound, binding.why
    if bound is not None:
        try:
            result = bound.native.read(selection, out)
        except _FAILED as error:
            if not again and _is_known_anew(dataset, binding, error):
                return selected(dataset, binding, selection, out, stacklevel, again=True)
            why = _left(dataset, binding, error, stacklevel)
        else:
            counts.engine += 1
            return result
    counts.h5py[why] += 1
    return NotImplemented


def _is_known_anew(dataset: h5py.Dataset, binding: Binding, error: Exception) -> bool:
    """Whether a source that has changed is known as it is now, so that the engine reads once more.

    libhdf5 may have it open as it was before.
    """
    before = binding.bound
    if before is None or not isinstance(error, ChangedSourceError):
        return False
    binding.look_again(dataset, listed=False)
    now = binding.bound
    return now is not None and now.shape == before.shape


def _left(dataset: h5py.Dataset, binding: Binding, error: Exception, stacklevel: int = 4) -> str:
    """Leave a read to libhdf5, with a warning if a chunk is odd or the file another one.

    Returns the reason; raises what libhdf5 cannot do better.
    """
    if isinstance(error, UnsoundIndexError | RemoteError | FileChangedError) and not binding.own:
        from chunkwise.remote import ros3

        with phil:
            why = ros3.given_up(dataset, error) if dataset else None
        if why is not None:
            binding.leave(why)
            if isinstance(error, FileChangedError):
                warnings.warn(f"{error}: reading through libhdf5", RuntimeWarning, stacklevel)
            return why
    if isinstance(error, RemoteError | FileChangedError):
        raise error
    if isinstance(error, UnsoundIndexError):
        binding.look_again(dataset)
        return binding.why
    if isinstance(error, ChangedSourceError):
        binding.look_again(dataset, listed=False)
        return elsewhere.CHANGED
    warnings.warn(f"{error}: reading through libhdf5", RuntimeWarning, stacklevel=stacklevel)
    return _UNDECODED


def scalar_or_array(array: Any) -> Any:
    """Return an element as the scalar that NumPy and h5py make of it."""
    return array if array.shape else array[()]


def _by_index(dataset: h5py.Dataset, bound: Bound, args: Any) -> Any:
    """Read all that has a meaning to the engine."""
    if isinstance(args, Selection):
        return bound.native.read(args.resolve(bound.shape, bound.label))
    if is_mask(args):
        selection = resolve(bound.shape, args, bound.label)
        if selection is None:  # of no dimension
            return NotImplemented
        # Points, to h5py, which reads them into an array that it makes itself.
        return bound.native.read(selection, np.zeros(selection.shape, dataset.dtype))
    result = bound.getitem(args)
    if bound.gives_views and type(result) is np.ndarray:
        return result.view()
    return result


def _names_a_field(args: Any) -> bool:
    return any(isinstance(item, str) for item in (args if isinstance(args, tuple) else (args,)))
