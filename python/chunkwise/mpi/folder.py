"""How does a rank open a file that rank 0 has made?"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from chunkwise.errors import CannotWriteError
from chunkwise.mpi.failing import host
from chunkwise.names import printable

T = TypeVar("T")
# A file that another host has made may be seen only after this time.
_PATIENCE_S: Final = 2.0


def open_seen(path: str, rank: int) -> int:
    """Open a file that rank 0 has made, for reading and writing."""
    # A network file system may show it only after a while.  Nobody can know its name before, so
    # that a rank that does not find it sees another folder.
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return patiently(lambda: os.open(path, flags), FileNotFoundError)
    except FileNotFoundError:
        folder = printable(str(Path(path).parent))
        raise CannotWriteError(
            f"{folder}: rank {rank} on {host()} does not see what rank 0 writes there: "
            "name a folder that all hosts share"
        ) from None


def patiently(work: Callable[[], T], error: type[OSError]) -> T:
    """Repeat what fails by an error for a while."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return work()
        except error:
            if time.monotonic() > until:
                raise
        time.sleep(0.05)
