"""What do lists, masks and backward slices between the brackets ask for?

`orthogonal` reads an index as ``d[...]`` and ``d.oindex[...]`` take it, `paired` as
``d.vindex[...]`` does, and `assigned` as ``d[...] = values`` does.  They give a `Request`:
factors, each of which stands for one or more neighbouring dimensions, and the shape of the
result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index as as_int
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from chunkwise import _native
from chunkwise.errors import SelectionError
from chunkwise.words import counted

if TYPE_CHECKING:
    from chunkwise._native import Factor

Array = npt.NDArray[Any]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Request:
    """An index, understood.

    Attributes
    ----------
    factors : list
        What is wanted along neighbouring dimensions, slowest first: ``(start, step, count)``,
        the bytes of a mask, or the coordinates of points, an array a dimension.
    shape : tuple of int
        Of the result, without the shape of an array type.
    product : chunkwise._native.Product
        The factors, checked against the array.
    """

    factors: list[Factor]
    shape: Shape
    product: _native.Product

    @property
    def is_mask(self) -> bool:
        """Whether it is a single mask."""
        return len(self.factors) == 1 and isinstance(self.factors[0], np.ndarray)


def orthogonal(shape: Shape, index: Any, label: str) -> Request | None:
    """Read an index in which every choice of one entry goes with every choice of the others.

    Parameters
    ----------
    shape : tuple of int
        Of the dataset.
    index : object
        What stands between the brackets: integers, slices with any step but 0, an Ellipsis,
        one-dimensional lists of integers, and masks, each for as many dimensions as it has.
    label : str
        What an error begins with.

    Returns
    -------
    Request or None
        None for what only h5py understands, such as field names.

    Raises
    ------
    chunkwise.errors.SelectionError
        For an index that does not fit the shape.
    """
    entries = _entries(shape, index, label)
    if entries is None:
        return None
    made = _Factors(shape, label)
    for entry in entries:
        if not isinstance(entry, np.ndarray):
            made.add_regular(entry)
        elif entry.dtype.kind == "b":
            made.add_mask(entry)
        elif entry.ndim == 1:
            made.add_points([entry], entry.shape)
        else:
            raise SelectionError(
                f"{label}: a list of indices has one dimension, not {entry.ndim}; "
                "vindex takes arrays of any"
            )
    return made.request()


def paired(shape: Shape, index: Any, label: str) -> Request:
    """Read an index whose arrays pair up element by element, as NumPy's do.

    Parameters
    ----------
    shape : tuple of int
        Of the dataset.
    index : object
        Arrays of integers for neighbouring dimensions, which are broadcast together, or a
        mask for as many dimensions as it has; other dimensions may have integers, slices
        and an Ellipsis.  An integer between arrays is broadcast with them.
    label : str
        What an error begins with.

    Returns
    -------
    Request
        In its result the arrays' common shape stands where the first of them does.

    Raises
    ------
    chunkwise.errors.SelectionError
        For an index that does not fit the shape, or arrays that do not pair up.
    """
    entries = _entries(shape, index, label)
    if entries is None:
        raise SelectionError(
            f"{label}: vindex takes arrays of integers, masks, integers, slices and one Ellipsis"
        )
    arrays = [at for at, entry in enumerate(entries) if isinstance(entry, np.ndarray)]
    first, end = (arrays[0], arrays[-1] + 1) if arrays else (0, 0)
    made = _Factors(shape, label)
    for entry in entries[:first]:
        made.add_regular(entry)
    block = entries[first:end]
    if len(block) == 1 and cast("Array", block[0]).dtype.kind == "b":
        made.add_mask(cast("Array", block[0]))
    elif block:
        made.add_points(*_broadcast(block, made))
    for entry in entries[end:]:
        made.add_regular(entry)
    return made.request()


def assigned(shape: Shape, index: Any, label: str) -> Request | None:
    """Read an index to which h5py assigns: one list or mask, with integers and slices.

    Parameters
    ----------
    shape : tuple of int
        Of the dataset, at least one dimension.
    index : object
        What stands between the brackets.
    label : str
        What an error begins with.

    Returns
    -------
    Request or None
        None for what h5py refuses or understands in its own way, and where nothing is selected.
    """
    items = index if isinstance(index, tuple) else (index,)
    made = _Factors(shape, label)
    if len(items) == 1 and _is_mask(items[0]) and items[0].shape == shape:
        made.add_mask(items[0])
        request = made.request()
        return request if request.shape[0] else None
    ellipses = [at for at, item in enumerate(items) if item is Ellipsis]
    at = ellipses[0] if ellipses else len(items)
    given = (*items[:at], *items[at + 1 :])
    if len(ellipses) > 1 or len(given) > len(shape):
        return None
    whole = (slice(None),) * (len(shape) - len(given))
    lists = 0
    for size, item in zip(shape, (*given[:at], *whole, *given[at:]), strict=True):
        entry = _assigned_entry(item, size)
        if entry is None:
            return None
        if len(shape) == 1 and np.asarray(item).dtype.kind == "b":
            # Where a mask was no array, h5py takes it for something else.
            return None
        if isinstance(entry, np.ndarray):
            lists += 1
            made.add_points([entry], entry.shape)
        else:
            made.add_regular(entry)
    return made.request() if lists == 1 and 0 not in made.result else None


def _is_mask(item: Any) -> bool:
    return isinstance(item, np.ndarray) and item.dtype.kind == "b" and item.ndim > 0


def _assigned_entry(item: Any, size: int) -> int | slice | Array | None:
    """Return an entry to which h5py assigns, None for any other; lists are in rising order."""
    if isinstance(item, slice):
        try:
            return item if item.indices(size)[2] > 0 else None
        except (TypeError, ValueError):
            return None
    if isinstance(item, bool | np.bool_):
        return None
    if not isinstance(item, list | np.ndarray):
        try:
            place = as_int(item)
        except TypeError:
            return None
        return place if -size <= place < size else None
    try:
        array = np.asarray(item)
    except (ValueError, OverflowError):
        return None
    if array.ndim != 1 or array.dtype.kind not in "iub" or not array.size:
        return None
    if array.dtype.kind == "b":
        places = array.nonzero()[0]
        return places if array.shape == (size,) and places.size else None
    # Also where they are counted without a sign, or lie beyond 64 bits.
    if not (-size <= int(array.min()) and int(array.max()) < size):
        return None
    places = array.astype(np.int64)
    places = np.where(places < 0, places + size, places)
    return places if (places[1:] > places[:-1]).all() else None


def points(shape: Shape, coordinates: Array, label: str) -> Request:
    """Take the elements at these coordinates.

    Parameters
    ----------
    shape : tuple of int
        Of the dataset.
    coordinates : ndarray of int64
        One row an element, one column a dimension.
    label : str
        What an error begins with.

    Returns
    -------
    Request

    Raises
    ------
    chunkwise.errors.SelectionError
        For another number of columns than dimensions, or coordinates out of range.
    """
    count, rank = coordinates.shape
    if rank != len(shape):
        raise SelectionError(
            f"{label}: the selection has {counted(rank, 'dimension')}, the dataset has "
            f"{len(shape)}"
        )
    made = _Factors(shape, label)
    made.add_points([*coordinates.T], (count,))
    return made.request()


def integers(given: Any, what: str) -> npt.NDArray[np.int64]:
    """Make an array of 64-bit integers of what is given, if it is one of integers.

    Parameters
    ----------
    given : array_like
        Nothing at all counts as integers.
    what : str
        What an error begins with.

    Returns
    -------
    ndarray of int64

    Raises
    ------
    chunkwise.errors.SelectionError
        For anything but integers that fit into 64 bits.
    """
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise SelectionError(f"{what}: {error}") from None
    if array.dtype.kind not in "iu" and array.size:
        raise SelectionError(f"{what}: indices are integers, not {array.dtype}")
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise SelectionError(f"{what}: index {array.max()} is out of range")
    return array.astype(np.int64, copy=False)


class _Factors:
    """A request that is being put together, from the slowest dimension on."""

    def __init__(self, shape: Shape, label: str) -> None:
        self._shape = shape
        self._factors: list[Factor] = []
        # Shape of the result so far.
        self.result: list[int] = []
        self.label = label
        # The dimension for which the next factor stands.
        self.dimension = 0

    def add_regular(self, entry: int | slice | Array) -> None:
        """Add an integer, whose dimension the result has not, or a slice."""
        size = self._shape[self.dimension]
        if isinstance(entry, slice):
            try:
                taken = range(*entry.indices(size))
            except (TypeError, ValueError) as error:
                raise SelectionError(f"{self.label}: {error}") from None
            # A single element's step may not even fit into 64 bits.
            step = taken.step if len(taken) > 1 else 1
            self._factors.append((taken[0] if taken else 0, step, len(taken)))
            self.result.append(len(taken))
        else:
            self._factors.append((self.position(cast("int", entry)), 1, 1))
        self.dimension += 1

    def add_mask(self, mask: Array) -> None:
        """Add a mask, for as many dimensions as it has."""
        self.check_mask(mask, self.dimension)
        self._factors.append(np.ascontiguousarray(mask).view(np.uint8))
        self.result.append(int(np.count_nonzero(mask)))
        self.dimension += mask.ndim

    def add_points(self, columns: list[Array], shape: Shape) -> None:
        """Add points, by an array of coordinates a dimension; `shape` is theirs."""
        self._factors.append([np.ascontiguousarray(column).reshape(-1) for column in columns])
        self.result.extend(shape)
        self.dimension += len(columns)

    def position(self, index: int, ahead: int = 0) -> int:
        """Return an integer in the dimension that lies so far ahead, counted from its start."""
        dimension = self.dimension + ahead
        size = self._shape[dimension]
        if not -size <= index < size:
            raise SelectionError(
                f"{self.label}: index {index} is out of range for dimension {dimension} "
                f"of size {size}"
            )
        return index % size

    def check_mask(self, mask: Array, dimension: int) -> None:
        """Refuse a mask that has not the shape of the dimensions from this one on."""
        want = self._shape[dimension : dimension + mask.ndim]
        if mask.shape != want:
            raise SelectionError(
                f"{self.label}: a mask of shape {mask.shape} for dimensions of shape {want}"
            )

    def request(self) -> Request:
        """Return the request; dimensions left over are taken whole."""
        product = _native.Product(self._shape, self._factors, self.label)
        return Request(self._factors, tuple(self.result), product)


def _entries(shape: Shape, index: Any, label: str) -> list[int | slice | Array] | None:
    """Return an index's entries for all dimensions, an Ellipsis filled in.

    None where one of them is nothing that is known here.
    """
    entries = []
    for given in index if isinstance(index, tuple) else (index,):
        entry = _entry(given, label)
        if entry is None:
            return None
        entries.append(entry)
    ellipses = [at for at, entry in enumerate(entries) if entry is Ellipsis]
    if len(ellipses) > 1:
        raise SelectionError(f"{label}: an index may hold only one Ellipsis (...)")
    taken = sum(_rank(entry) for entry in entries if entry is not Ellipsis)
    if taken > len(shape):
        raise SelectionError(
            f"{label}: {counted(taken, 'index', 'indices')} for a dataset of "
            f"{counted(len(shape), 'dimension')}"
        )
    at = ellipses[0] if ellipses else len(entries)
    entries[at : at + 1] = [slice(None)] * (len(shape) - taken)
    return entries


def _entry(given: Any, label: str) -> Any:
    """Return an integer, a slice, an Ellipsis or an array; None for anything else."""
    if given is Ellipsis or isinstance(given, slice):
        return given
    if isinstance(given, bool | np.bool_ | str | bytes):
        return None
    try:
        return as_int(given)
    except TypeError:
        pass
    if not (isinstance(given, Sequence) or hasattr(given, "__array__")):
        return None
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise SelectionError(f"{label}: {error}") from None
    # Text may be names of fields, and what has no dimension is no list.
    if array.dtype.kind in "USO" or array.ndim == 0:
        return None
    return array if array.dtype.kind == "b" else integers(array, label)


def _rank(entry: int | slice | Array) -> int:
    """Return for how many dimensions an entry stands."""
    return entry.ndim if isinstance(entry, np.ndarray) and entry.dtype.kind == "b" else 1


def _broadcast(block: Sequence[int | slice | Array], made: _Factors) -> tuple[list[Array], Shape]:
    """Return the coordinates of paired entries, an array a dimension, and their common shape."""
    columns: list[Array] = []
    for entry in block:
        ahead = len(columns)
        if isinstance(entry, slice):
            raise SelectionError(
                f"{made.label}: vindex takes arrays for neighbouring dimensions, "
                "with no slice in between"
            )
        if isinstance(entry, int):
            columns.append(np.array(made.position(entry, ahead)))
        elif entry.dtype.kind == "b":
            made.check_mask(entry, made.dimension + ahead)
            columns.extend(entry.nonzero())
        else:
            columns.append(entry)
    try:
        together = np.broadcast_arrays(*columns)
    except ValueError:
        shapes = ", ".join(str(column.shape) for column in columns)
        raise SelectionError(f"{made.label}: arrays of shapes {shapes} cannot be paired") from None
    return list(together), together[0].shape
