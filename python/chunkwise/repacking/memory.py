"""How much memory may be used if nobody said?"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

from chunkwise.mpi.memory import groups, meminfo

# Share of the free memory: others need some, and the page cache makes writing fast.
_SHARE: Final = 4
# Below this nothing is planned well; a machine that has less swaps anyway.
_LEAST_NBYTES: Final = 64 << 20
_UNKNOWN_NBYTES: Final = 1 << 30


def default_budget(proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Give a quarter of the memory that is free, of this control group's if it has a limit."""
    told = (meminfo("MemAvailable", proc), _left_in_group(proc, cgroup))
    known = [nbytes for nbytes in told if nbytes is not None]
    return max(_LEAST_NBYTES, min(known, default=_UNKNOWN_NBYTES) // _SHARE)


def _left_in_group(proc: Path, cgroup: Path) -> int | None:
    """Return the memory that the tightest control group (version 2) leaves.

    Its page cache of files can be had back, and counts as free.
    """
    left: list[int] = []
    for folder, version in groups(proc, cgroup):
        # No limit is "max"; the topmost group has no such file.
        with contextlib.suppress(OSError, ValueError):
            if version == 2:
                limit = int((folder / "memory.max").read_text())
                used = int((folder / "memory.current").read_text())
                left.append(max(0, limit - used + _cached(folder)))
    return min(left, default=None)


def _cached(folder: Path) -> int:
    wanted = ("active_file", "inactive_file")
    lines = (folder / "memory.stat").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(wanted))
