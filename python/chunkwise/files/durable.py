"""When is a written file on storage, and never half of it?"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


def sync(path: str | os.PathLike[str]) -> None:
    """Sync a file or a folder to storage (fsync)."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file that appears whole or not at all, also where power fails.

    What the block writes is made under a name that nobody can have planted something at.  It gets
    its own when the block ends without error, and its content is on storage.
    """
    import secrets

    path = Path(path)
    partial = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.partial")
    with partial.open("xb") as stream:
        try:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file at once; see `whole`."""
    with whole(path) as stream:
        stream.write(content)
