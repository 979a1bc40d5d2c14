"""What has this process written to a file that it now looks at from outside, as a tool does?"""

from __future__ import annotations

import os
from typing import cast

import h5py
from h5py import h5f

from chunkwise.writing import pending

phil = h5py._objects.phil


def flush_beside(path: str | os.PathLike[str]) -> None:
    """Have all that this process has written to a file in the file, before it is looked at.

    What waits for other files is handed to libhdf5, too, as links and virtual datasets may lead
    there.

    Parameters
    ----------
    path
        Of a file that this process may have open for writing; a file that is not there is none.
    """
    pending.settle_all()
    try:
        wanted = os.stat(path)  # noqa: PTH116 (paths of any kind)
    except OSError:
        return
    with phil, pending.without_waiting():
        for identifier in cast("list[h5f.FileID]", h5f.get_obj_ids(h5f.OBJ_ALL, h5f.OBJ_FILE)):
            if identifier.get_intent() & h5f.ACC_RDWR and _is(identifier, wanted):
                h5py.File(identifier).flush()


def _is(identifier: h5f.FileID, wanted: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(identifier.name), wanted)  # noqa: PTH116
    except OSError:
        # It has lost its name, or never had one.
        return False
