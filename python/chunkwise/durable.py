"""When is what was written on storage?"""

from __future__ import annotations

import os


def sync(path: str | os.PathLike[str]) -> None:
    """Have the system put a file's, or a folder's, content on storage (fsync).

    Raises
    ------
    OSError
        It cannot be opened for reading, or the system cannot.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
