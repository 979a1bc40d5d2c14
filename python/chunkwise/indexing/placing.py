"""How does an index appear whole, or not at all?"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chunkwise.errors import AlreadyExistsError, CannotWriteError, ChunkwiseError
from chunkwise.files.durable import sync
from chunkwise.names import printable


@contextmanager
def placed(target: Path, *, force: bool) -> Iterator[Path]:
    """Give a new path beside `target`, which becomes `target` when the block ends well.

    What is there after an error or Ctrl-C is removed.
    """
    where = printable(str(target))
    if os.path.lexists(target) and not force:
        raise AlreadyExistsError(f"{where}: exists; remove it, or give another name or --force")
    partial = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.partial")
    try:
        yield partial
        # On storage before it has its name: no power failure leaves half of it there.
        for path in (*partial.rglob("*"), partial):
            sync(path)
        former = None
        if target.is_dir() and not target.is_symlink():
            # A folder cannot be replaced by a name: the former one goes aside first.
            former = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.former")
            target.rename(former)
        partial.replace(target)
        if former is not None:
            shutil.rmtree(former)
    except OSError as error:
        # What was wrong with the source has its own words, ours or h5py's.
        if isinstance(error, ChunkwiseError) or error.strerror is None:
            raise
        raise CannotWriteError(f"{where}: cannot be written: {error.strerror}") from None
    finally:
        if partial.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
        else:
            partial.unlink(missing_ok=True)
