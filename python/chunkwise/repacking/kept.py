"""What do the results of many files lack that their sources have, apart from their content?

The table of docs/archive.md says what is kept.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final

from chunkwise import system
from chunkwise.repacking.gathering import Batch
from chunkwise.words import counted

# What a user or an administrator has set, not what a system sets on each file.
_SET: Final = ("user.", "trusted.", "system.posix_acl_")


def not_kept(batch: Batch) -> str | None:
    """Count what is not carried over into a folder of results; None for nothing."""
    if batch.out is None:
        return None
    counts: Counter[tuple[str, str]] = Counter()
    folders: dict[Path, int] = {}
    for source, _ in batch.pairs:
        with suppress(OSError):
            found = source.stat()
            names = os.listxattr(source) if hasattr(os, "listxattr") else ()
            folders[source.parent] = stat.S_IMODE(source.parent.stat().st_mode)
            counts["symbolic link", ""] += source.is_symlink()
            counts["file", " of several names"] += found.st_nlink > 1
            counts["file", " of another owner"] += found.st_uid != system.user()
            counts["file", " with extended attributes"] += any(map(_is_set, names))
    usual = 0o777 & ~_umask()
    special = sum(mode != usual for mode in folders.values())
    counts["folder", " with permissions of its own"] = special
    said = [counted(number, noun) + more for (noun, more), number in counts.items() if number]
    return ", ".join(said) or None


def _is_set(name: str) -> bool:
    return name.startswith(_SET)


def _umask() -> int:
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Umask:")).split()[1], 8)
    # No Linux: it can only be set, for a moment that other threads may see.
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
