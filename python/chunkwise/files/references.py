"""Where do the references of a file lead?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import h5py
import numpy as np
from h5py import h5r, h5s

from chunkwise.files.objects import Entry, address_of
from chunkwise.names import HDF5_ERRORS


class Paths:
    """The path of each object of a file, by its address: references are compared by path."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        # Those of a walk, which begins with the root group.
        entries = list(entries)
        self._paths = {one.address: one.path for one in entries if one.address is not None}
        self._root = entries[0].identifier

    def meaning(self, reference: Any) -> object:
        """Say what a reference leads to: a path, for a region with what is selected."""
        # One that leads nowhere means no more than one that is null, which it becomes.
        target = opened(reference, self._root) if reference else None
        if target is None or not target.valid:
            return None
        path = self._paths.get(address_of(target))
        if isinstance(reference, h5py.RegionReference):
            return path, selected(h5r.get_region(reference, self._root))
        return path


def opened(reference: Any, place: Any) -> Any:
    """Open what a reference leads to, in the file of an open object; None if that is nothing."""
    try:
        return h5r.dereference(reference, place)
    except HDF5_ERRORS:
        return None


def selected(space: Any) -> object:
    """Say what a dataspace selects, however it is encoded."""
    kind = space.get_select_type()
    if kind == h5s.SEL_HYPERSLABS:
        return kind, space.get_select_hyper_blocklist().tolist()
    if kind == h5s.SEL_POINTS:
        return kind, space.get_select_elem_pointlist().tolist()
    return kind


def dangling(values: Any, place: Any) -> int:
    """Count the references in some values that are set and lead nowhere."""
    return sum(opened(reference, place) is None for reference in _references(values))


def _references(values: Any) -> Iterator[Any]:
    """Give all references within some values that are set."""
    if isinstance(values, h5py.Reference | h5py.RegionReference):
        if values:
            yield values
    elif isinstance(values, np.ndarray | np.void):
        if not values.dtype.hasobject:
            return
        if values.dtype.names is not None:
            for name in values.dtype.names:
                if values.dtype[name].hasobject:
                    yield from _references(values[name])
        elif isinstance(values, np.ndarray):
            for value in values.reshape(-1):
                if not isinstance(value, bytes | str):
                    yield from _references(value)
