"""Does a soft or external link lead anywhere?"""

from __future__ import annotations

import stat
from pathlib import Path

import h5py
from h5py import h5o

from chunkwise.files.objects import HDF5_ERRORS, Entry, encode_name
from chunkwise.inspecting.sources import places


def is_dangling(file: h5py.File, entry: Entry) -> bool:
    """Tell whether a link leads nowhere, as libhdf5 follows it (H5Oexists_by_name).

    So it is with loops of links, too.

    Parameters
    ----------
    file
        The open file.
    entry
        One name in it.  For an external link the other file is opened and closed again,
        0.1 ms each; pipes and devices are not opened.

    Returns
    -------
    bool
        False for everything that is no soft or external link.
    """
    if entry.kind not in ("soft_link", "external_link"):
        return False
    if entry.kind == "external_link" and not _may_be_opened(file, entry):
        return False
    try:
        return not h5o.exists_by_name(file.id, encode_name(entry.path))
    except HDF5_ERRORS:
        return True


def _may_be_opened(file: h5py.File, entry: Entry) -> bool:
    """Tell whether a link leads to files only: opening a pipe might never end."""
    name = (entry.target or "").partition(":")[0]
    own = Path(file.filename).absolute()
    return not any(_is_special(path) for path in places(name, own, "HDF5_EXT_PREFIX"))


def _is_special(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
