"""What replaces the methods of h5py that read, and which path did their calls take?

Whatever the engine does not read exactly as h5py would, the original method does: also
every index that does not fit, so that the exception is h5py's.  Not replaced, since they
read through these: iteration, and the views of `astype`, `fields` and `asstr`.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import Any

import h5py
import numpy as np
from h5py._objects import phil

from chunkwise import pending
from chunkwise.errors import SelectionError, UndecodedChunkError
from chunkwise.indexing import orthogonal
from chunkwise.patching import bindings, reading
from chunkwise.patching.indexing import is_mask, listed, plain

Method = Callable[..., Any]
# A class, the name of a method, and what replaces it, whose __wrapped__ is the original.
Replacement = tuple[type, str, Method]


class Counts:
    """How many calls took which path."""

    def __init__(self) -> None:
        self.engine = 0
        self.h5py: Counter[str] = Counter()


counts = Counts()

_OTHER_INDEX = "an index that does not fit, or of another kind"
_OTHER_TYPE = "a conversion, a destination or an index that libhdf5 alone handles"
_UNDECODED = "a chunk that is left to libhdf5"


def replacements() -> list[Replacement]:
    """What to put in the place of h5py's methods as they are now."""
    dataset = h5py.Dataset
    return [
        (dataset, "__getitem__", _getitem(dataset.__getitem__)),
        (dataset, "__array__", _array(dataset.__array__)),
        (dataset, "read_direct", _read_direct(dataset.read_direct)),
        (h5py.File, "close", _close(h5py.File.close)),
    ]


def _getitem(original: Method) -> Method:
    @wraps(original)
    def __getitem__(self: h5py.Dataset, args: Any, new_dtype: Any = None) -> Any:  # noqa: N807
        binding = bindings.binding_of(self)
        bound = binding.bound
        if bound is None:
            counts.h5py[binding.why] += 1
            _settle(self)
            return original(self, args, new_dtype)
        why = _OTHER_INDEX
        wanted = new_dtype
        if wanted is None and bound.dtype.subdtype is not None:
            wanted = bound.dtype
        try:
            if wanted is not None:
                why = _OTHER_TYPE
                result = reading.as_type(bound, args, np.dtype(wanted))
            elif type(args) is int or plain(args):
                result = bound.native.getitem(args)
                if bound.gives_views and type(result) is np.ndarray:
                    result = result.view()
            elif listed(args, bound.shape):
                result = _by_list(self, bound, args)
            else:
                result = NotImplemented
        except SelectionError:
            result = NotImplemented
        except UndecodedChunkError as error:
            why = _warn(error)
            result = NotImplemented
        if result is not NotImplemented:
            counts.engine += 1
            return result
        # Of names h5py makes a view, which comes here again.
        if not (new_dtype is None and _names_a_field(args)):
            counts.h5py[why] += 1
        return original(self, args, new_dtype)

    return __getitem__


def _by_list(dataset: h5py.Dataset, bound: bindings.Bound, args: Any) -> Any:
    request = orthogonal(bound.shape, args, "index")
    if request is None:
        return NotImplemented
    if is_mask(args):
        # Points, to h5py, which reads them into an array that it makes itself.
        return bound.native.read(request.product, np.zeros(request.shape, dataset.dtype))
    if 0 in request.shape:
        # A list beside a slice of nothing is an error of h5py's, in most of its versions.
        return NotImplemented
    result = bound.native.read(request.product, None, request.shape)
    return result.view() if bound.gives_views else result


def _array(original: Method) -> Method:
    def unpatched(dataset: h5py.Dataset, dtype: Any, copy: Any) -> Any:
        # Before 3.12 h5py did not know of `copy`, nor NumPy before 2 ask for it.
        return original(dataset, dtype) if copy is None else original(dataset, dtype, copy)

    @wraps(original)
    def __array__(self: h5py.Dataset, dtype: Any = None, copy: Any = None) -> Any:  # noqa: N807
        bound = bindings.binding_of(self).bound
        # The original fills an array by read_direct, which comes here again.
        if bound is None or copy is False or bound.dtype.subdtype is not None:
            _settle(self)
            return unpatched(self, dtype, copy)
        try:
            wanted = self.dtype if dtype is None else np.dtype(dtype)
            result = reading.as_type(bound, ..., wanted)
        except UndecodedChunkError as error:
            _warn(error)
            result = NotImplemented
        if result is NotImplemented:
            return unpatched(self, dtype, copy)
        counts.engine += 1
        return result

    return __array__


def _read_direct(original: Method) -> Method:
    @wraps(original)
    def read_direct(
        self: h5py.Dataset, dest: Any, source_sel: Any = None, dest_sel: Any = None
    ) -> None:
        binding = bindings.binding_of(self)
        bound = binding.bound
        why = binding.why
        if bound is not None:
            why = _OTHER_TYPE
            source = ... if source_sel is None else source_sel
            target = ... if dest_sel is None else dest_sel
            try:
                if reading.into(bound, dest, source, target):
                    counts.engine += 1
                    return
            except UndecodedChunkError as error:
                why = _warn(error)
            except SelectionError:
                pass
        counts.h5py[why] += 1
        _settle(self)
        original(self, dest, source_sel, dest_sel)

    return read_direct


def _close(original: Method) -> Method:
    @wraps(original)
    def close(self: h5py.File) -> None:
        number = bindings.file_number(self)
        original(self)
        if number is not None:
            bindings.release(number)

    return close


def _settle(dataset: h5py.Dataset) -> None:
    """Have libhdf5 given what chunkwise has written, before it reads."""
    # Those who are writing may wait for h5py's lock, which some of its own methods hold here.
    pending.settle_reached(dataset, blocking=not phil._is_owned())


def _names_a_field(args: Any) -> bool:
    return any(isinstance(item, str) for item in (args if isinstance(args, tuple) else (args,)))


def _warn(error: UndecodedChunkError) -> str:
    warnings.warn(f"{error}: reading through libhdf5", RuntimeWarning, stacklevel=3)
    return _UNDECODED
