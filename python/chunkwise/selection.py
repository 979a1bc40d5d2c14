"""Which elements of a dataset are meant?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index as as_int
from typing import cast

from chunkwise.errors import SelectionError

_LARGEST = 2**64 - 1  # hsize_t

Parts = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Selection:
    """A regular hyperslab, as ``H5Sselect_hyperslab`` takes it; see `hyperslab`.

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


def hyperslab(
    start: int | Sequence[int],
    count: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    block: int | Sequence[int] = 1,
) -> Selection:
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
    Selection
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
                f"hyperslab: start has {rank} dimensions, {name} has {len(values)}"
            )
    return Selection(starts, strides, counts, blocks)


def _values(name: str, given: int | Sequence[int], rank: int = 1) -> tuple[int, ...]:
    """One value a dimension; a single integer counts for all `rank` of them."""
    try:
        if hasattr(given, "__len__"):
            values = tuple(as_int(value) for value in cast("Sequence[int]", given))
        else:
            values = (as_int(given),) * rank
    except TypeError:
        raise SelectionError(
            f"hyperslab: {name} takes integers, one a dimension, not {given!r}"
        ) from None
    if any(value < 0 for value in values):
        raise SelectionError(f"hyperslab: {name} {values} must not be negative")
    if any(value > _LARGEST for value in values):
        raise SelectionError(f"hyperslab: {name} {values} does not fit into 64 bits")
    return values
