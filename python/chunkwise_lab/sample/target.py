"""How does a sample's file appear whole or not at all?  As all new files of chunkwise do."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import h5py

from chunkwise.errors import CannotWriteError, ChunkwiseError
from chunkwise.names import system_reason
from chunkwise.newfile.claim import claimed
from chunkwise.newfile.publish import publish
from chunkwise.newfile.target import NewFile


@contextlib.contextmanager
def new_file(path: str | os.PathLike[str], *, overwrite: bool) -> Iterator[h5py.File]:
    """Make an HDF5 file that appears at `path` when the block ends without error."""
    try:
        place = NewFile.at(path, overwrite=overwrite, remedy="--force, or force=True,")
        with claimed(place, resume=False) as claim:
            os.close(claim.make_partial())
            # No chunk cache: chunks are written whole, and one that cannot be written
            # fails there and then, not when the file is closed.
            file = h5py.File(claim.partial, "w", rdcc_nbytes=0)
            try:
                yield file
            except BaseException:
                # Closing writes metadata, and fails too where the disk is full; what
                # went wrong first is what the user should hear.
                with contextlib.suppress(OSError, RuntimeError):
                    file.close()
                raise
            try:
                file.close()
            except RuntimeError as wrong:
                raise OSError(str(wrong)) from wrong
            publish(claim)
    except OSError as wrong:
        if isinstance(wrong, ChunkwiseError):
            raise
        raise CannotWriteError(
            f"{os.fspath(path)}: cannot be written: {system_reason(wrong) or wrong}"
        ) from wrong
