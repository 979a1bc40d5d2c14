"""How is a bound dataset read into an array of another type, or of the caller's?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from chunkwise import _native
from chunkwise.routing.bindings import Bound
from chunkwise.routing.conversions import convert, exact, identical
from chunkwise.routing.indexing import plain

Array = npt.NDArray[Any]
Parts = tuple[list[int], list[int], list[int], list[int]]
Box = tuple[slice, ...]

# Beside the result, about so much is held at a time, and at least a chunk.
_PIECE_NBYTES = 32 << 20


def as_type(bound: Bound, args: Any, wanted: np.dtype[Any]) -> Any:
    """Read ``d.astype(wanted)[args]``; NotImplemented where h5py has to."""
    same = identical(bound.dtype, wanted)
    if not (same or exact(bound.dtype, wanted)) or not plain(args):
        return NotImplemented
    selection = _native.select_index(bound.shape, args, bound.label)
    if selection is None:
        return NotImplemented
    result = np.zeros(selection.shape, wanted)
    out = _with_all_dimensions(result, selection.dropped)
    if same:
        bound.native.read(selection, out)
    elif not _read_converted(bound, selection, out):
        return NotImplemented
    # As h5py does, an element rather than an array of no dimension.
    return result if result.shape else result[()]


def by_fields(bound: Bound, args: Any, wanted: np.dtype[Any] | None) -> Any:
    """Read ``d["a", 10:20]``, or as a compound type with some fields of the dataset's.

    Parameters
    ----------
    bound : Bound
        A dataset of a compound type.
    args : object
        What stands between the brackets, names of fields among it.
    wanted : numpy.dtype or None
        A compound type; None for the fields that `args` names.

    Returns
    -------
    object
        As h5py has it: of a single name an array of that field, of several, of a compound type
        with these.  NotImplemented where h5py has to.
    """
    items = args if isinstance(args, tuple) else (args,)
    names = [item for item in items if isinstance(item, str)]
    rest = tuple(item for item in items if not isinstance(item, str))
    if wanted is None and set(names) <= set(bound.dtype.names or ()):
        wanted = np.dtype([(name, bound.dtype[name]) for name in dict.fromkeys(names)])
    elif names or wanted is None:
        return NotImplemented
    if not exact(bound.dtype, wanted) or not plain(rest) or len(set(names)) < len(names):
        return NotImplemented
    selection = _native.select_index(bound.shape, rest, bound.label)
    if selection is None:
        return NotImplemented
    found = bound.native.read_fields(selection, wanted, _parts(bound.dtype, wanted))
    if found is None:
        return NotImplemented
    result = found[names[0]] if len(names) == 1 else found
    return result if result.shape else result[()]


def _parts(dtype: np.dtype[Any], wanted: np.dtype[Any]) -> list[tuple[int, int, int]]:
    """Tell where the bytes of a type's fields lie in it, and in another one that has them too."""
    there, fields = dtype.fields, wanted.fields
    assert there is not None, "only compound types come here"
    assert fields is not None, "`exact` has looked at both"
    return [(there[name][1], field[1], field[0].itemsize) for name, field in fields.items()]


def into(bound: Bound, dest: Any, source: Any, target: Any) -> bool:
    """Read ``d[source]`` into ``dest[target]``; False where h5py has to."""
    if not isinstance(dest, np.ndarray) or not dest.flags.carray:
        return False
    same = identical(bound.dtype, dest.dtype)
    # Where an element was never written and has no fill value, `dest` keeps what it held.
    if bound.dtype.subdtype is not None or not (
        same or (bound.fills and exact(bound.dtype, dest.dtype))
    ):
        return False
    if not (plain(source) and plain(target)):
        return False
    selection = _native.select_index(bound.shape, source, bound.label)
    if selection is None:
        return False
    items = target if isinstance(target, tuple) else (target,)
    # With an Ellipsis NumPy gives a view, and never an element.
    try:
        view = dest[items if Ellipsis in items else (*items, ...)]
    except (IndexError, OverflowError, TypeError, ValueError):
        return False
    if list(view.shape) != selection.shape:
        return False
    out = _with_all_dimensions(view, selection.dropped)
    if not same:
        return _read_converted(bound, selection, out)
    if out.flags.c_contiguous:
        bound.native.read(selection, out)
        return True
    for where, piece in _pieces(selection, bound):
        elements = np.array(out[where], order="C")
        out[where] = bound.native.read(piece, elements)
    return True


def _read_converted(bound: Bound, selection: _native.Selection, out: Array) -> bool:
    return all(
        convert(bound.native.read(piece), out[where]) for where, piece in _pieces(selection, bound)
    )


def _pieces(selection: _native.Selection, bound: Bound) -> Iterator[tuple[Box, _native.Selection]]:
    """Cut a hyperslab to what is held at a time, along chunks: no two share one."""
    parts = selection.hyperslab
    assert parts is not None, "only plain indices come here"
    most = max(_PIECE_NBYTES // bound.dtype.itemsize, 1)
    chunk = bound.chunks or (1,) * len(bound.shape)
    for where, piece in _cut(parts, chunk, most, ()):
        yield where, _native.select_hyperslabs(bound.shape, piece, bound.label)


def _cut(
    parts: Parts, chunk: tuple[int, ...], most: int, where: Box
) -> Iterator[tuple[Box, Parts]]:
    """Cut along the dimensions behind those of `where`, until pieces hold `most` elements."""
    shape = _shape(parts)
    axis = len(where)
    if axis == len(shape) or math.prod(shape) <= most:
        yield where, parts
        return
    start, stride, count, block = parts
    # An index gives one block of neighbours, or blocks of one element.
    step = stride[axis] if count[axis] > 1 else 1
    size = chunk[axis]
    row_of_chunks = math.prod(shape) // shape[axis] * -(-size // step)
    chunks = max(most // row_of_chunks, 1)
    first = 0
    while first < shape[axis]:
        begin = start[axis] + first * step
        border = (begin // size + chunks) * size
        length = min(-(-(border - begin) // step), shape[axis] - first)
        piece: Parts = (
            _with(start, axis, begin),
            stride,
            _with(count, axis, length if count[axis] > 1 else 1),
            _with(block, axis, 1 if count[axis] > 1 else length),
        )
        yield from _cut(piece, chunk, most, (*where, slice(first, first + length)))
        first += length


def _with(values: list[int], axis: int, value: int) -> list[int]:
    return [*values[:axis], value, *values[axis + 1 :]]


def _with_all_dimensions(array: Array, dropped: list[bool]) -> Array:
    """View an array with those dimensions that an index by integers has dropped."""
    view: Array = array[tuple(None if gone else slice(None) for gone in dropped)]
    return view


def _shape(parts: Parts) -> tuple[int, ...]:
    return tuple(count * block for count, block in zip(parts[2], parts[3], strict=True))
