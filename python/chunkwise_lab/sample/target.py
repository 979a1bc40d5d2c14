"""How does a file appear whole or not at all?

It is written under a temporary name beside its place and renamed when it is done.
If anything goes wrong before, Ctrl-C included, it is removed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import h5py

from chunkwise.errors import CannotWriteError, ChunkwiseError, UsageError
from chunkwise.names import system_reason


@contextlib.contextmanager
def new_file(path: str | os.PathLike[str], *, overwrite: bool) -> Iterator[h5py.File]:
    """Make an HDF5 file that appears at `path` when the block ends without error."""
    target = Path(os.path.realpath(path))
    partial: Path | None = None
    try:
        _check(target, path, overwrite)
        # Nobody can have planted something at a name that nobody knows.
        partial = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.partial")
        # No chunk cache: chunks are written whole, and one that cannot be written
        # fails there and then, not when the file is closed.
        file = h5py.File(partial, "x", rdcc_nbytes=0)
        try:
            yield file
        except BaseException:
            # Closing writes metadata, and fails too where the disk is full; what
            # went wrong first is what the user should hear.
            with contextlib.suppress(OSError):
                _close(file)
            raise
        _close(file)
        _check(target, path, overwrite)
        partial.replace(target)
    except OSError as wrong:
        if isinstance(wrong, ChunkwiseError):
            raise
        raise CannotWriteError(
            f"{os.fspath(path)}: cannot be written: {system_reason(wrong) or wrong}"
        ) from wrong
    finally:
        if partial is not None:
            with contextlib.suppress(OSError):
                partial.unlink()


def _close(file: h5py.File) -> None:
    """Close a file; h5py raises RuntimeError if the rest cannot be written."""
    try:
        file.close()
    except RuntimeError as wrong:
        raise OSError(str(wrong)) from wrong


def _check(target: Path, path: str | os.PathLike[str], overwrite: bool) -> None:
    """Refuse a place where no file should be made."""
    name = os.fspath(path)
    if target.is_dir():
        raise UsageError(f"{name}: is a folder; give the name of a file in it")
    if target.exists() and not target.is_file():
        raise UsageError(f"{name}: is not a regular file")
    if target.exists() and not overwrite:
        raise UsageError(f"{name}: exists already; --force, or force=True, replaces it")
    if not target.parent.is_dir():
        raise UsageError(f"{name}: there is no folder {target.parent}; make it first")
