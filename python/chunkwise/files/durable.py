"""When is a written file on storage, and never half of it?"""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def sync(path: str | os.PathLike[str]) -> None:
    """Sync a file or a folder to storage (fsync).

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


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file that appears whole or not at all.

    It is made under a name that nobody can have planted something at, and is then renamed.

    Raises
    ------
    OSError
        The system refuses.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.partial")
    with partial.open("xb") as stream:
        try:
            stream.write(content)
            stream.flush()
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
