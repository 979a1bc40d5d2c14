"""Is a file still the same, unchanged?

Size and time of last change show most changes, but programs set the time back (``cp -p``).
``ctime`` shows those, but also links, names and permissions.  If nothing else differs, the bytes
are compared: all of a small file; some of a large one, if permissions, owner or links changed.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

from chunkwise import system

# A file up to this many bytes is compared whole; a larger one by blocks of as many bytes.
WHOLE_NBYTES = 256 << 10
BLOCK_NBYTES = 4 << 10
# Systems keep times by their clock's tick, 10 ms at most; some file systems by whole seconds.
_TICK_NS = 20_000_000
_SECOND_NS = 1_000_000_000


class Identity(NamedTuple):
    """What the system says of a file."""

    file: tuple[int, int]  # Device and inode
    # Bytes, and when they were last written, as programs may set it (ns since 1970).
    content: tuple[int, int]
    changed_ns: int  # When anything of the file was last changed (ns since 1970)
    manner: tuple[int, ...]  # Permissions, owner, group and number of links

    @classmethod
    def of(cls, status: os.stat_result) -> Identity:
        """From what ``os.stat`` gives."""
        return cls(
            (status.st_dev, status.st_ino),
            (status.st_size, status.st_mtime_ns),
            status.st_ctime_ns,
            (status.st_mode, status.st_uid, status.st_gid, status.st_nlink),
        )

    @classmethod
    def settled(cls, path: Path) -> Identity:
        """Look at a file when any later change of it will show in its times."""
        # A change within the same tick of the clock would look the same: wait until it is over.
        identity = cls.of(path.stat())
        coarse = identity.changed_ns % _SECOND_NS == 0
        rest_ns = identity.changed_ns + (2 * _SECOND_NS if coarse else _TICK_NS) - time.time_ns()
        # A clock that is far ahead, of another machine, is not waited for.
        if 0 < rest_ns <= 2 * _SECOND_NS:
            time.sleep(rest_ns / _SECOND_NS)
            return cls.of(path.stat())
        return identity

    def may_be(self, other: Identity) -> bool:
        """Whether the file may be unchanged, so that its bytes have to be looked at."""
        return (self.file, self.content) == (other.file, other.content)

    def explains(self, other: Identity) -> bool:
        """Whether there is a reason for another time of change than other bytes."""
        # Of a small file none is needed, as `sample` is all of it.
        return self.content[0] <= WHOLE_NBYTES or self.manner != other.manner


def sample(descriptor: int) -> str:
    """A checksum of a file, or of some blocks of a large one, its first and last among them."""
    import hashlib

    nbytes = os.fstat(descriptor).st_size
    found = hashlib.blake2b(digest_size=16)
    if nbytes <= WHOLE_NBYTES:
        blocks, length = [0], nbytes
    else:
        count = WHOLE_NBYTES // BLOCK_NBYTES
        last = nbytes - BLOCK_NBYTES
        blocks, length = [last * i // (count - 1) for i in range(count)], BLOCK_NBYTES
    for begin in blocks:
        found.update(system.pread(descriptor, length, begin))
    return found.hexdigest()


def sample_of(path: str | os.PathLike[str]) -> str:
    """Do as `sample`, for the file at a path."""
    with Path(path).open("rb", buffering=0) as stream:
        return sample(stream.fileno())
