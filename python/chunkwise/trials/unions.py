"""How does a loop in Python read and write a selection, such as a union of hyperslabs?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from chunkwise import Dataset, Hyperslab, Union, _native, union
from chunkwise.grammar.boxes import Box
from chunkwise.selecting import lowlevel

Clock = Callable[[], int]


class Laps:
    """The moments between the parts of one operation, as its code reports them."""

    __slots__ = ("_clock", "_done_ns", "_opened_ns", "_selected_ns")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._opened_ns: int | None = None
        self._selected_ns: int | None = None
        self._done_ns: int | None = None

    def opened(self) -> None:
        """The dataset is open."""
        self._opened_ns = self._clock()

    def selected(self) -> None:
        """The selection is put together."""
        self._selected_ns = self._clock()

    def done(self) -> None:
        """The elements are there; what follows is not a part of the operation."""
        self._done_ns = self._clock()

    def finish(self, begun_ns: int, ended_ns: int) -> tuple[int, int | None, int | None]:
        """Start again, and return nanoseconds of the whole, of opening, and of selecting."""
        done = ended_ns if self._done_ns is None else self._done_ns
        opened = None if self._opened_ns is None else self._opened_ns - begun_ns
        select = None
        if self._selected_ns is not None:
            select = self._selected_ns - (begun_ns + (opened or 0))
        self._opened_ns = self._selected_ns = self._done_ns = None
        return done - begun_ns, opened, select


Index = tuple[slice, ...] | Union


def index_of(selection: Any) -> Index:
    """Return what a program would write for a selection of a `_native.Walk`."""
    return slices(selection) if isinstance(selection, tuple) else union_of(selection)


def slices(hyperslab: _native.Hyperslab) -> tuple[slice, ...]:
    """Write a hyperslab as NumPy's index: single blocks, or single elements with a stride."""
    return tuple(
        slice(start, start + block) if count == 1 else slice(start, start + count * stride, stride)
        for start, stride, count, block in zip(*hyperslab, strict=True)
    )


def union_of(hyperslabs: Sequence[_native.Hyperslab]) -> Union:
    """Return what `chunkwise.union` makes of these, each start, stride, count and block."""
    return Union(tuple(Hyperslab(*(tuple(part) for part in one)) for one in hyperslabs))


def read_by_h5py(dataset: h5py.Dataset, index: Index, laps: Laps) -> npt.NDArray[Any]:
    """Read as ``d[slices]``; a union, which h5py has no index for, by its low-level interface."""
    array: npt.NDArray[Any]
    if isinstance(index, Union):
        space = dataset.id.get_space()
        lowlevel.select(space, index.parts)
        shape = (space.get_select_npoints(),)
        laps.selected()
        return lowlevel.read_selected(dataset, space, shape)
    array = dataset[index]
    return array


def read_by_chunkwise(dataset: Dataset, index: Index, laps: Laps) -> npt.NDArray[Any]:
    """Read as ``d[slices]``, and a union by `Dataset.read`."""
    array: npt.NDArray[Any]
    if isinstance(index, Union):
        together = union(index.hyperslabs)
        laps.selected()
        array = dataset.read(together)
    else:
        array = dataset[index]
    return array


def write_by_h5py(dataset: h5py.Dataset, index: Index, elements: npt.NDArray[Any]) -> None:
    """Write as ``d[slices] = array``; a union by the low-level interface."""
    if isinstance(index, Union):
        space = dataset.id.get_space()
        lowlevel.select(space, index.parts)
        lowlevel.write_selected(dataset, space, (space.get_select_npoints(),), elements)
    else:
        dataset[index] = elements


def write_by_chunkwise(dataset: Dataset, index: Index, elements: npt.NDArray[Any]) -> None:
    """Write as ``d[slices] = array``, and a union by `Dataset.write`."""
    if isinstance(index, Union):
        dataset.write(index, elements)
    else:
        dataset[index] = elements


def gathered(array: npt.NDArray[Any], index: Index) -> npt.NDArray[Any]:
    """Return the elements of an array that a selection names, as a program has them to write."""
    if isinstance(index, Union):
        chosen = np.zeros(array.shape, bool)
        for one in index.hyperslabs:
            for number in np.ndindex(*one.count):
                starts = [s + i * t for s, i, t in zip(one.start, number, one.stride, strict=True)]
                chosen[Box(tuple(starts), one.block).slices] = True
        elements: npt.NDArray[Any] = array[chosen]
        return elements
    block: npt.NDArray[Any] = np.ascontiguousarray(array[index])
    return block
