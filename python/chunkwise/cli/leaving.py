"""How does a command end where libhdf5 could not write a file?"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from chunkwise.cli.echo import echo


@contextmanager
def leaving() -> Iterator[None]:
    """End the process at once where a file could not be written.

    By then what was half-written is removed.  What libhdf5 could not write on a full disk it
    did not close either, and would look at once more as the process ends, and crash.
    """
    from chunkwise.errors import CannotWriteError

    try:
        yield
    except CannotWriteError as wrong:
        echo(f"chunkwise: {wrong}", err=True)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(2)
