"""How much memory does this machine have for the ranks on it?"""

from __future__ import annotations

import contextlib
from pathlib import Path


def memory_of_host(
    proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")
) -> int | None:
    """Give the machine's memory, or the limit of this process's control group if that is less.

    Parameters
    ----------
    proc, cgroup : Path
        Where the system tells.

    Returns
    -------
    int or None
        Bytes; None where the system does not tell.
    """
    told = [nbytes for nbytes in (_total(proc), *_limits(proc, cgroup)) if nbytes is not None]
    return min(told, default=None)


def _total(proc: Path) -> int | None:
    try:
        for line in (proc / "meminfo").read_text().splitlines():
            if line.startswith("MemTotal:"):
                return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        pass
    return None


def _limits(proc: Path, cgroup: Path) -> list[int]:
    """Read the limits of this group and of those above it, of version 2 and 1."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if controllers == "":
            top, name = cgroup, "memory.max"
        elif "memory" in controllers.split(","):
            top, name = cgroup / "memory", "memory.limit_in_bytes"
        else:
            continue
        folder = top / group.strip("/")
        while folder == top or top in folder.parents:
            # No limit is "max"; the topmost group has no such file.
            with contextlib.suppress(OSError, ValueError):
                found.append(int((folder / name).read_text()))
            folder = folder.parent
    return found
