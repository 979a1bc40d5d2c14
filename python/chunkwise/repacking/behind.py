"""Which filters do the files need to which a virtual dataset leads?

If libhdf5 lacks a filter there, it only says that the read failed.  So some of those
datasets are examined before anything is read.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any, Final

import h5py

from chunkwise.files.opening import missing_filter
from chunkwise.inspecting.sources import places, prefix_of
from chunkwise.names import HDF5_ERRORS

# The first files of thousands mostly tell enough.
_LOOKED_AT: Final = 64
_VARIABLE: Final = "HDF5_VDS_PREFIX"


def missing_behind(identifier: Any) -> tuple[str, str] | None:
    """Name a file behind a virtual dataset, and the filter that it needs and that is missing.

    Parameters
    ----------
    identifier
        h5py's low-level handle of the virtual dataset.

    Returns
    -------
    (str, str) or None
        Path and filter; None if none is missing, as far as can be told.
    """
    dataset = h5py.Dataset(identifier)
    try:
        pairs = dict.fromkeys((one.file_name, one.dset_name) for one in dataset.virtual_sources())
    except HDF5_ERRORS:
        return None
    own = Path(str(dataset.file.filename)).absolute()
    told = dataset.id.get_access_plist().get_virtual_prefix()
    prefix = prefix_of(_VARIABLE, told, own)
    for name, path in islice(pairs, _LOOKED_AT):
        file_name = name.replace("%b", "0")
        candidates = places(file_name, own, _VARIABLE, prefix) if name != "." else [own]
        for candidate in candidates:
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
