"""How is a bound dataset read into an array of another type, or of the caller's?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from chunkwise import _native
from chunkwise.routing.bindings import Bound
from chunkwise.routing.conversions import Part, identical, parts_between
from chunkwise.routing.eligibility import OTHER_INDEX, OTHER_TYPE, Left
from chunkwise.routing.indexing import is_mask, listed, plain
from chunkwise.selecting.indexing import pieces, resolve

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Parts = list[Part]

# Elements as they are.
COPIED: Parts = []
# Beside the result, about so much is held at a time, and at least a chunk.
_PIECE_NBYTES = 32 << 20


def as_type(bound: Bound, index: Any, wanted: np.dtype[Any], own: bool) -> Any | Left:
    """Read ``d.astype(wanted)[index]``; of our `own`, also nothing where h5py refuses that."""
    parts = _parts(bound, wanted)
    if parts is None or not (plain(index) or listed(index, bound.shape)):
        return OTHER_TYPE
    selection = resolve(bound.shape, index, bound.label)
    if selection is None:
        return OTHER_TYPE
    found = _read(bound, selection, wanted, parts)
    if not (own or found.size or plain(index) or is_mask(index)):
        # A list beside a slice of nothing is an error in most versions of h5py.
        return OTHER_TYPE
    return scalar_or_array(found)


def scalar_or_array(array: Any) -> Any:
    """Return an element as the scalar that NumPy and h5py make of it."""
    return array if array.shape else array[()]


def by_fields(bound: Bound, index: Any, names: Sequence[str], own: bool) -> Any | Left:
    """Read ``d["a", 10:20]``, where the index is without the names."""
    if not set(names) <= set(bound.dtype.names or ()) or len(set(names)) < len(names):
        return OTHER_INDEX
    found = as_type(bound, index, np.dtype([(name, bound.dtype[name]) for name in names]), own)
    return found if isinstance(found, Left) or len(names) > 1 else found[names[0]]


def into(bound: Bound, dest: Any, source: Any, target: Any) -> Array | Left:
    """Read ``d[source]`` into ``dest[target]``; None is everything."""
    if not isinstance(dest, np.ndarray) or not dest.flags.carray or bound.has_arrays:
        return OTHER_TYPE
    parts = _parts(bound, dest.dtype)
    # If an element was never written and has no fill value, `dest` keeps its old value.
    if parts is None or not (parts == COPIED or bound.native.fills):
        return OTHER_TYPE
    source, target = (... if index is None else index for index in (source, target))
    if not (plain(source) and plain(target)):
        return OTHER_TYPE
    items = target if isinstance(target, tuple) else (target,)
    try:
        selection = _native.select_index(bound.shape, source, bound.label)
        # With an Ellipsis NumPy gives a view, and never an element.
        view = dest[items if Ellipsis in items else (*items, ...)]
    except (IndexError, OverflowError, TypeError, ValueError):
        return OTHER_TYPE
    if selection is None or list(view.shape) != selection.shape:
        return OTHER_TYPE
    if view.flags.c_contiguous:
        _read(bound, selection, dest.dtype, parts, view)
        return dest
    # With those dimensions that integers have dropped.
    out: Array = view[tuple(None if gone else slice(None) for gone in selection.dropped)]
    slab = selection.hyperslab
    assert slab is not None, "only plain indices come here"
    most = max(_PIECE_NBYTES // bound.dtype.itemsize, 1)
    for where, piece in pieces(slab, bound.native.chunks or (1,) * len(bound.shape), most):
        elements = np.array(out[where], order="C")
        chosen = _native.select_hyperslabs(bound.shape, piece, bound.label)
        out[where] = _read(bound, chosen, dest.dtype, parts, elements)
    return dest


def why_not_as(bound: Bound, dtype: Any) -> str | None:
    """Return why libhdf5 reads elements as another type; None if the engine does."""
    wanted = np.dtype(dtype)
    if _parts(bound, wanted) is not None:
        return None
    return f"the conversion from {bound.dtype} to {wanted} is left to libhdf5"


def _parts(bound: Bound, wanted: np.dtype[Any]) -> Parts | None:
    """Return how elements of another type convert; None if libhdf5 converts."""
    if identical(bound.dtype, wanted):
        return COPIED
    return None if bound.converted else parts_between(bound.dtype, wanted)


def _read(
    bound: Bound,
    selection: _native.Selection,
    wanted: np.dtype[Any],
    parts: Parts,
    out: Array | None = None,
) -> Array:
    """Read as elements of another type, or of the dataset's own if they are `COPIED`."""
    if parts != COPIED:
        return bound.native.read_as(selection, wanted, parts, out)
    if out is None:
        # Elements that nobody has written are 0.
        out = np.zeros(selection.shape, wanted)
    return bound.native.read(selection, out)
