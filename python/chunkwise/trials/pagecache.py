"""Do a file's bytes come from memory or from storage, and how is that known?

For a cold trial the page cache is dropped, which the system may refuse: so the bytes that were
really read from storage are checked.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Literal

from chunkwise.memory import free_nbytes
from chunkwise.trials.environment import field

PageCache = Literal["warm", "cold"]
PAGE_CACHES: Final[tuple[PageCache, ...]] = ("warm", "cold")
# So much must come from storage to be cold: read-ahead blurs the rest.
VERIFIED_SHARE: Final = 0.5


def warm(path: str) -> str:
    """Read a file's bytes once, so that every trial finds them in the page cache."""
    if Path(path).stat().st_size > free_nbytes() // 2:
        return "uncontrolled"
    with Path(path).open("rb", buffering=0) as stream:
        buffer = bytearray(4 << 20)
        while stream.readinto(buffer):
            pass
    return "warm"


def drop(path: str) -> None:
    """Ask the system to forget a file's bytes (posix_fadvise, DONTNEED)."""
    # They are written to storage before, as dirty ones are not dropped.
    with Path(path).open("rb", buffering=0) as stream:
        os.fsync(stream.fileno())
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def storage_nbytes() -> int | None:
    """Return the bytes that this process has read from storage; None if unknown."""
    # From ``/proc/self/io``, which does not count what comes from the page cache.
    found = field("/proc/self/io", "read_bytes:")
    return None if found is None else int(found)


def verdict(fetched_nbytes: int, from_storage_nbytes: int | None) -> str:
    """Say whether a trial was cold."""
    if from_storage_nbytes is None or from_storage_nbytes < VERIFIED_SHARE * fetched_nbytes:
        return "cold, unverified"
    return "cold"
