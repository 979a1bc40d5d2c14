"""When is a written file on storage, and never half of it?

For small files, such as an index; what takes long, `newfile/publish.py` publishes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from chunkwise import system
from chunkwise.errors import AlreadyExistsError
from chunkwise.names import printable


def require_free(target: str | os.PathLike[str], *, force: bool) -> None:
    """Refuse a name that is taken."""
    if os.path.lexists(target) and not force:
        said = printable(os.fspath(target))
        raise AlreadyExistsError(f"{said}: exists; remove it, or give another name or --force")


@contextlib.contextmanager
def placed(target: Path) -> Iterator[Path]:
    """Give a new path, for a file or a folder, which becomes `target` when the block ends well."""
    # Nobody can have planted a file there.  It is on storage before it gets its own name.
    import secrets
    import shutil

    beside = f".{target.name[:100]}.{secrets.token_hex(8)}"
    partial = target.with_name(f"{beside}.partial")
    try:
        yield partial
        for path in (*partial.rglob("*"), partial):
            system.sync(path)
        former = None
        if target.is_dir() and not target.is_symlink():
            # A folder cannot be replaced by a name: the former one goes aside first.
            former = target.with_name(f"{beside}.former")
            target.rename(former)
        partial.replace(target)
        if former is not None:
            shutil.rmtree(former)
    finally:
        if partial.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
        else:
            partial.unlink(missing_ok=True)


@contextlib.contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file that appears whole or not at all; see `placed`."""
    with placed(Path(path)) as partial, partial.open("xb") as stream:
        yield stream


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file at once; see `whole`."""
    with whole(path) as stream:
        stream.write(content)


def free_nbytes(folder: str | os.PathLike[str]) -> int:
    """Return the free bytes on a folder's file system; `sys.maxsize` if it does not say."""
    # Some FUSE and network mounts state a size of 0 bytes, of which 0 are free.
    usage = shutil.disk_usage(folder)
    return usage.free if usage.total else sys.maxsize
