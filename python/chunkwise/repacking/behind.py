"""How are the datasets stored to which a virtual dataset leads?

If libhdf5 lacks a filter there, it only says that the read failed.  So some of those
datasets are examined before anything is read.  Merged data are stored as most of them are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, Final

import h5py
from h5py import h5d

from chunkwise.files.filters import missing_filter
from chunkwise.files.leading import Bounds, places
from chunkwise.grammar import Pipeline, Shape
from chunkwise.inspection.sources import prefix_of
from chunkwise.names import HDF5_ERRORS

# The first files of thousands mostly tell enough.
_LOOKED_AT: Final = 64
_VARIABLE: Final = "HDF5_VDS_PREFIX"


def missing_behind(identifier: Any) -> tuple[str, str] | None:
    """Name a file behind a virtual dataset, and the filter that it needs and that is missing."""
    for place, found, _ in _behind(identifier):
        missing = missing_filter(found.id.get_create_plist())
        if missing is not None:
            return place, missing
    return None


def stored_behind(identifier: Any) -> tuple[Shape, Pipeline] | None:
    """Return how most of the datasets behind a virtual one are stored."""
    counts: Counter[tuple[Shape, Pipeline]] = Counter()
    for _, found, extents in _behind(identifier):
        dcpl = found.id.get_create_plist()
        if dcpl.get_layout() != h5d.CHUNKED or found.id.get_type() != identifier.get_type():
            continue
        chunk = _spread(dcpl.get_chunk(), extents)
        if chunk is not None and missing_filter(dcpl) is None:
            counts[chunk, Pipeline.from_dcpl(dcpl)] += 1
    return counts.most_common(1)[0][0] if counts else None


def _behind(identifier: Any) -> Iterator[tuple[str, h5py.Dataset, Shape]]:
    """Give some of the datasets behind a virtual one, open."""
    dataset = h5py.Dataset(identifier)
    try:
        pairs = {(one.file_name, one.dset_name): one for one in dataset.virtual_sources()}
    except HDF5_ERRORS:
        return
    own = Path(str(dataset.file.filename)).absolute()
    bounds = Bounds(str(own), str(own))
    stated = dataset.id.get_access_plist().get_virtual_prefix()
    prefix = prefix_of(_VARIABLE, stated, own)
    for (name, path), one in islice(pairs.items(), _LOOKED_AT):
        file_name, path = name.replace("%b", "0"), path.replace("%b", "0")
        candidates = places(file_name, own, _VARIABLE, prefix) if name != "." else [own]
        for candidate in candidates:
            try:
                if name != ".":
                    # Opening a pipe might never end.
                    bounds.check(str(candidate), f"a source of {dataset.name}")
                opened = nullcontext(dataset.file) if name == "." else h5py.File(candidate)
                with opened as file:
                    found = file[path]
                    if isinstance(found, h5py.Dataset):
                        yield str(candidate), found, _extents(one.vspace)
            except HDF5_ERRORS:
                continue
            break


def _extents(space: Any) -> Shape:
    """Give the lengths of the box around a selection."""
    try:
        first, last = space.get_select_bounds()
    except HDF5_ERRORS:
        return (0,) * int(space.get_simple_extent_ndims())
    return tuple(end - begin + 1 for begin, end in zip(first, last, strict=True))


def _spread(chunk: Shape, extents: Shape) -> Shape | None:
    """Give a chunk the dimensions along which datasets of fewer dimensions are stacked."""
    more, left = len(extents) - len(chunk), list(chunk)
    if more < 0:
        return None
    made = []
    for extent in extents:
        if more and extent == 1:
            made.append(1)
            more -= 1
        elif left:
            made.append(left.pop(0))
    return tuple(made) if len(made) == len(extents) else None
