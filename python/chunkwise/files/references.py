"""Where do the references of a file lead?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import h5py

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
