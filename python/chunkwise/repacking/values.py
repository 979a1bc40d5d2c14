"""Do two values from two files mean the same, when their bytes need not be the same?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import h5py
import numpy as np

from chunkwise.files.objects import Address, Entry, address_of
from chunkwise.names import HDF5_ERRORS


class Paths:
    """The path of each object of a file, by its address: references are compared by path."""

    def __init__(self, paths: dict[Address, str], root: Any) -> None:
        self._paths = paths
        self._root = root

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Paths:
        """Take what a walk has met; it begins with the root group."""
        entries = list(entries)
        paths = {one.address: one.path for one in entries if one.address is not None}
        return cls(paths, entries[0].identifier)

    def meaning(self, reference: Any) -> object:
        """Say what a reference leads to: a path, for a region with what is selected.

        One that leads nowhere means no more than one that is null, which it becomes.
        """
        if not reference:
            return None
        try:
            target = h5py.h5r.dereference(reference, self._root)
        except HDF5_ERRORS:
            return None
        if target is None or not target.valid:
            return None
        path = self._paths.get(address_of(target))
        if isinstance(reference, h5py.RegionReference):
            region = h5py.h5r.get_region(reference, self._root)
            return path, _selected(region)
        return path


def _selected(region: Any) -> object:
    """Say what a dataspace selects, however it is encoded."""
    kind = region.get_select_type()
    if kind == h5py.h5s.SEL_HYPERSLABS:
        return kind, region.get_select_hyper_blocklist().tolist()
    if kind == h5py.h5s.SEL_POINTS:
        return kind, region.get_select_elem_pointlist().tolist()
    return kind


def equal_values(first: Any, second: Any, mine: Paths, theirs: Paths) -> bool:
    """Compare values as h5py gives them: of variable length, references, or with such parts.

    Parameters
    ----------
    first, second
        From one file and the other.
    mine, theirs
        What references of each file lead to.
    """
    if isinstance(first, h5py.Reference | h5py.RegionReference):
        return type(first) is type(second) and mine.meaning(first) == theirs.meaning(second)
    if isinstance(first, np.ndarray | np.void):
        if type(first) is not type(second) or first.dtype != second.dtype:
            return False
        if first.shape != second.shape:
            return False
        if not first.dtype.hasobject:
            return first.tobytes() == second.tobytes()
        if first.dtype.names:
            return all(
                equal_values(first[name], second[name], mine, theirs) for name in first.dtype.names
            )
        pairs = zip(first.ravel(), second.ravel(), strict=True)
        return all(equal_values(a, b, mine, theirs) for a, b in pairs)
    if isinstance(first, np.generic):
        return type(first) is type(second) and first.tobytes() == second.tobytes()
    return type(first) is type(second) and bool(first == second)
