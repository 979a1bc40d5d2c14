"""Which elements of a dataset does a selection take?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import index as as_int
from typing import TYPE_CHECKING, cast

import numpy as np

from chunkwise import _native
from chunkwise.errors import SelectionError
from chunkwise.names import shown
from chunkwise.words import counted

if TYPE_CHECKING:
    import numpy.typing as npt

_LARGEST = 2**64 - 1  # hsize_t

Parts = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]


class Selection(ABC):
    """What all selections have in common: a shape, and elements once an array is given.

    See `hyperslab`, `union` and `points`, which make them.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of what is read."""

    @abstractmethod
    def resolve(self, shape: Sequence[int], label: str = "selection") -> _native.Selection:
        """Find out which elements of an array the selection takes.

        Parameters
        ----------
        shape : sequence of int
            Of the array, slowest dimension first.
        label : str
            What an error begins with.

        Returns
        -------
        chunkwise._native.Selection
            As the engine takes it.

        Raises
        ------
        chunkwise.errors.SelectionError
            When it does not fit the shape.
        """


class _Elements(Selection):
    """Sets of elements, each counted once, which combine as sets do."""

    if TYPE_CHECKING:

        @property
        def hyperslabs(self) -> tuple[Hyperslab, ...]:
            """The hyperslabs that make it up; they may overlap."""

        @property
        def parts(self) -> Parts | tuple[Parts, ...]:
            """Start, stride, count and block; of a union, of each hyperslab."""

    def resolve(self, shape: Sequence[int], label: str = "selection") -> _native.Selection:
        """Find out which elements of an array it takes; see `Selection.resolve`."""
        return _native.select_hyperslabs(shape, self.parts, label)

    def __or__(self, other: object) -> Union:
        """Select the elements of either."""
        if not isinstance(other, _Elements):
            return NotImplemented
        return _together(self.hyperslabs + other.hyperslabs)

    def __and__(self, other: object) -> Union:
        """Select the elements of both."""
        return _combined(self, "&", other) if isinstance(other, _Elements) else NotImplemented

    def __sub__(self, other: object) -> Union:
        """Select the elements of this one that the other has not."""
        return _combined(self, "-", other) if isinstance(other, _Elements) else NotImplemented


@dataclass(frozen=True)
class Hyperslab(_Elements):
    """A regular hyperslab, as ``H5Sselect_hyperslab`` takes it; see `hyperslab`.

    ``|``, ``&`` and ``-`` with another selection make a `Union`.

    Attributes
    ----------
    start, stride, count, block : tuple of int
        One value a dimension, slowest dimension first, in elements.
    """

    start: tuple[int, ...]
    stride: tuple[int, ...]
    count: tuple[int, ...]
    block: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of what is read: ``count * block`` in each dimension."""
        return tuple(c * b for c, b in zip(self.count, self.block, strict=True))

    @property
    def parts(self) -> Parts:
        """Start, stride, count and block."""
        return self.start, self.stride, self.count, self.block

    @property
    def hyperslabs(self) -> tuple[Hyperslab, ...]:
        """Itself."""
        return (self,)


@dataclass(frozen=True)
class Union(_Elements):
    """The elements of several hyperslabs, each counted once; see `union`.

    They are read as one row, in row-major order of the dataset.

    Attributes
    ----------
    hyperslabs : tuple of Hyperslab
        They may overlap, and there may be none of them.
    """

    hyperslabs: tuple[Hyperslab, ...]

    def __repr__(self) -> str:
        # There may be a million of them.
        return f"<union of {len(self.hyperslabs):,} hyperslabs>"

    @property
    def shape(self) -> tuple[int]:
        """Shape of what is read: the number of elements."""
        return (self._size,)

    @property
    def parts(self) -> tuple[Parts, ...]:
        """Start, stride, count and block of each hyperslab."""
        return tuple(one.parts for one in self.hyperslabs)

    @cached_property
    def _size(self) -> int:
        if not self.hyperslabs:
            return 0
        return _native.union_len(len(self.hyperslabs[0].start), self.parts)


@dataclass(frozen=True, eq=False)
class Points(Selection):
    """Single elements, in any order, each as often as it is named; see `points`.

    Attributes
    ----------
    coordinates : ndarray of int64
        One row an element, one column a dimension, slowest dimension first.
    """

    coordinates: npt.NDArray[np.int64]

    def __repr__(self) -> str:
        return f"<{counted(len(self.coordinates), 'point')}>"

    @property
    def shape(self) -> tuple[int]:
        """Shape of what is read: the number of points."""
        return (len(self.coordinates),)

    def resolve(self, shape: Sequence[int], label: str = "selection") -> _native.Selection:
        """Find out which elements of an array it takes; see `Selection.resolve`."""
        rank = self.coordinates.shape[1]
        if rank != len(shape):
            raise SelectionError(
                f"{label}: the selection has {counted(rank, 'dimension')}, the dataset has "
                f"{len(shape)}"
            )
        resolved = _native.select_index(shape, tuple(self.coordinates.T), label, paired=True)
        return cast("_native.Selection", resolved)


def points(coordinates: npt.ArrayLike) -> Points:
    """Select elements one by one, as ``H5Sselect_elements`` takes them.

    Parameters
    ----------
    coordinates : array_like of int
        One row an element, one column a dimension, slowest dimension first.  Negative ones
        count from the end; any order; an element may come several times.

    Returns
    -------
    Points
        To be passed to `Dataset.read`, which gives one row with the elements in this order.

    Raises
    ------
    chunkwise.errors.SelectionError
        For other things than integers, or another number of dimensions than two.

    Examples
    --------
    >>> points([(3, 0), (1, -1), (3, 0)]).shape
    (3,)
    """
    array = _native.integers(coordinates, "points")
    if array.ndim != 2 or array.shape[1] == 0:
        raise SelectionError(
            "points: takes one row of coordinates an element, and one column a dimension, "
            f"not an array of shape {array.shape}"
        )
    return Points(array)


def union(selections: Iterable[Hyperslab | Union]) -> Union:
    """Combine selections into one read; each element counts once.

    Parameters
    ----------
    selections : iterable of Hyperslab or Union
        All of the same number of dimensions.  Where they overlap, an element counts once.

    Returns
    -------
    Union
        To be passed to `Dataset.read`, which gives its elements as one row.

    Raises
    ------
    chunkwise.errors.SelectionError
        For other things than selections, or different numbers of dimensions.

    Examples
    --------
    >>> (hyperslab((0, 0), (2, 3)) | hyperslab((1, 1), (2, 3))).shape
    (8,)
    """
    found: list[Hyperslab] = []
    for one in selections:
        if not isinstance(one, _Elements):
            raise SelectionError(
                f"union: takes selections such as chunkwise.hyperslab, not {type(one).__name__}"
            )
        found.extend(one.hyperslabs)
    return _together(tuple(found))


def _together(hyperslabs: tuple[Hyperslab, ...]) -> Union:
    ranks = sorted({len(one.start) for one in hyperslabs})
    if len(ranks) > 1:
        raise SelectionError(
            f"selections of {ranks[0]} and of {counted(ranks[-1], 'dimension')} cannot be combined"
        )
    return Union(hyperslabs)


def _combined(left: _Elements, operation: str, right: _Elements) -> Union:
    both = _together(left.hyperslabs + right.hyperslabs)
    if not both.hyperslabs:
        return both
    rank = len(both.hyperslabs[0].start)
    ours, theirs = (tuple(one.parts for one in side.hyperslabs) for side in (left, right))
    boxes = _native.combined(rank, ours, operation, theirs)
    return Union(tuple(Hyperslab(*(tuple(part) for part in box)) for box in boxes))


def hyperslab(
    start: int | Sequence[int],
    count: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    block: int | Sequence[int] = 1,
) -> Hyperslab:
    """Select ``count`` blocks of ``block`` elements, ``stride`` apart, from ``start`` on.

    Parameters
    ----------
    start, count : int or sequence of int
        In elements, slowest dimension first; a single integer for one dimension.
    stride : int or sequence of int
        From the start of one block to the start of the next; one value counts for all
        dimensions.  Where there are several blocks it must not be smaller than ``block``.
    block : int or sequence of int
        Elements in a block; one value counts for all dimensions.

    Returns
    -------
    Hyperslab
        To be passed to `Dataset.read`; whether it fits a dataset is checked there.

    Raises
    ------
    chunkwise.errors.SelectionError
        For negative values or sequences of different lengths.

    Examples
    --------
    >>> hyperslab((0, 10), (2, 3), stride=(1, 4)).shape
    (2, 3)
    """
    starts, counts = _values("start", start), _values("count", count)
    rank = len(starts)
    strides = _values("stride", stride, rank)
    blocks = _values("block", block, rank)
    for name, values in (("count", counts), ("stride", strides), ("block", blocks)):
        if len(values) != rank:
            raise SelectionError(
                f"hyperslab: start has {counted(rank, 'dimension')}, {name} has {len(values)}"
            )
    return Hyperslab(starts, strides, counts, blocks)


def _values(name: str, given: int | Sequence[int], rank: int = 1) -> tuple[int, ...]:
    """One value a dimension; a single integer counts for all `rank` of them."""
    try:
        if hasattr(given, "__len__"):
            values = tuple(as_int(value) for value in cast("Sequence[int]", given))
        else:
            values = (as_int(given),) * rank
    except TypeError:
        raise SelectionError(
            f"hyperslab: {name} takes integers, one a dimension, not {shown(given)}"
        ) from None
    if any(value < 0 for value in values):
        raise SelectionError(f"hyperslab: {name} {values} must not be negative")
    if any(value > _LARGEST for value in values):
        raise SelectionError(f"hyperslab: {name} {values} does not fit into 64 bits")
    return values
