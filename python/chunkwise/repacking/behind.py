"""Which filter do the files need that a virtual dataset leads to?

libhdf5 only says, of a filter that it lacks there, that the read failed.  So some of those
datasets are looked at before anything is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import h5py

from chunkwise.files.opening import missing_filter
from chunkwise.names import HDF5_ERRORS

# Of thousands of files the first ones mostly tell.
_LOOKED_AT: Final = 64


def missing_behind(identifier: Any) -> tuple[str, str] | None:
    """Name a file behind a virtual dataset, and the filter that it needs and that is missing.

    Parameters
    ----------
    identifier
        h5py's low-level handle of the virtual dataset.

    Returns
    -------
    (str, str) or None
        Path and filter; None where none is missing, as far as can be told.
    """
    dataset = h5py.Dataset(identifier)
    try:
        pairs = dict.fromkeys((one.file_name, one.dset_name) for one in dataset.virtual_sources())
    except HDF5_ERRORS:
        return None
    for name, path in islice(pairs, _LOOKED_AT):
        for candidate in _places(str(dataset.file.filename), name.replace("%b", "0")):
            try:
                with h5py.File(candidate) as file:
                    found = file[path.replace("%b", "0")]
                    missing = missing_filter(found.id.get_create_plist())
            except (*HDF5_ERRORS, AttributeError):
                continue
            if missing is not None:
                return str(candidate), missing
            break
    return None


def _places(virtual: str, name: str) -> Iterator[Path]:
    """Where libhdf5 looks for a file of that name."""
    if name == ".":
        yield Path(virtual)
        return
    prefix = os.environ.get("HDF5_VDS_PREFIX")
    beside = Path(os.path.realpath(virtual)).parent
    if prefix:
        yield Path(prefix.replace("${ORIGIN}", str(beside))) / name
    # An absolute name replaces what is before it.
    yield beside / name
    yield Path(name)
