"""Does a soft or external link lead anywhere?"""

from __future__ import annotations

from pathlib import Path

import h5py
from h5py import h5o

from chunkwise.errors import LeadsOutsideError
from chunkwise.files.leading import Bounds
from chunkwise.files.objects import Entry
from chunkwise.inspection.sources import places
from chunkwise.names import HDF5_ERRORS, encode_name


def is_dangling(file: h5py.File, entry: Entry) -> bool:
    """Tell whether a link leads nowhere, as libhdf5 follows it (H5Oexists_by_name)."""
    if entry.kind not in ("soft_link", "external_link"):
        return False
    name, link = str(file.filename), encode_name(entry.path.rpartition("/")[2])
    try:
        Bounds(name, name).check_path(entry.group, link)
        return not h5o.exists_by_name(entry.group, link)
    except LeadsOutsideError:
        # To a pipe, say: opening it might never end.  A folder is no file at all.
        target, own = (entry.target or "").partition(":")[0], Path(name).absolute()
        return any(one.is_dir() for one in places(target, own, "HDF5_EXT_PREFIX"))
    except HDF5_ERRORS:
        return True
