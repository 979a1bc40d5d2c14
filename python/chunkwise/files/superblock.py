"""What does the superblock of a file state, whether or not libhdf5 would open it?"""

from __future__ import annotations

import os
from pathlib import Path

from chunkwise import _native


def read_superblock(path: str | os.PathLike[str]) -> _native.Superblock | None:
    """Read the superblock of a file; None where none can be read."""
    try:
        # Opening a pipe or a device may block for ever.
        if not Path(path).is_file():
            return None
        with Path(path).open("rb") as stream:
            return _native.Superblock.of_descriptor(stream.fileno())
    except OSError:
        return None


def exceeds_stated_end(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is longer than it states, by a superblock that nothing disproves."""
    superblock = read_superblock(path)
    if superblock is None or superblock.flags:
        return False
    if superblock.version >= 2 and not superblock.is_sound:
        return False
    return Path(path).stat().st_size > superblock.end
