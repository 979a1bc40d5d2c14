"""How many bytes are free on the file system that will hold a file?"""

from __future__ import annotations

import os
import shutil
import sys


def free_nbytes(folder: str | os.PathLike[str]) -> int:
    """Return the free bytes on a folder's file system; `sys.maxsize` if it does not tell.

    Some FUSE and network mounts state a size of 0 bytes, of which 0 are free.
    """
    usage = shutil.disk_usage(folder)
    return usage.free if usage.total else sys.maxsize
