"""How much memory has this machine or control group, and how much of it may this process use?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

_PROC: Final = Path("/proc")
_CGROUP: Final = Path("/sys/fs/cgroup")
# Share of the free memory: others need some, and the page cache makes writing fast.
_SHARE: Final = 4
# Below this nothing is planned well; a machine that has less swaps anyway.
_LEAST_NBYTES: Final = 64 << 20
_UNKNOWN_NBYTES: Final = 1 << 30


def default_budget(proc: Path = _PROC, cgroup: Path = _CGROUP) -> int:
    """Give a quarter of the memory that is free."""
    return max(_LEAST_NBYTES, free_nbytes(proc, cgroup) // _SHARE)


def free_nbytes(proc: Path = _PROC, cgroup: Path = _CGROUP) -> int:
    """Give the bytes that can be used without swapping; 1 GiB if the system does not say."""
    found = [_meminfo("MemAvailable", proc)]
    # Its page cache of files can be had back, and counts as free.
    for folder, version in _groups(proc, cgroup):
        # No limit is "max"; the topmost group has no such file.
        with suppress(OSError, ValueError):
            if version == 2:
                limit = int((folder / "memory.max").read_text())
                used = int((folder / "memory.current").read_text())
                found.append(max(0, limit - used + _cached(folder)))
    return min((nbytes for nbytes in found if nbytes is not None), default=_UNKNOWN_NBYTES)


def total_nbytes(proc: Path = _PROC, cgroup: Path = _CGROUP) -> int | None:
    """Give the machine's memory, or the limit of this process's control group if that is less."""
    # None if the system does not say.
    found = [_meminfo("MemTotal", proc)]
    for folder, version in _groups(proc, cgroup):
        name = "memory.max" if version == 2 else "memory.limit_in_bytes"
        with suppress(OSError, ValueError):
            found.append(int((folder / name).read_text()))
    if found == [None] and proc == _PROC:
        # No Linux.
        with suppress(AttributeError, OSError, ValueError):
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min((nbytes for nbytes in found if nbytes is not None), default=None)


def _cached(folder: Path) -> int:
    wanted = ("active_file", "inactive_file")
    lines = (folder / "memory.stat").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(wanted))


def _meminfo(field: str, proc: Path) -> int | None:
    """Give a figure of ``/proc/meminfo`` in bytes; None if the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        for line in (proc / "meminfo").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) << 10
    return None


def _groups(proc: Path, cgroup: Path) -> Iterator[tuple[Path, Literal[1, 2]]]:
    """Give the folders of this process's control groups for memory, and of those above them."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        controllers, _, group = line.partition(":")[2].partition(":")
        version: Literal[1, 2] = 1 if controllers else 2
        if version == 1 and "memory" not in controllers.split(","):
            continue
        top = cgroup / "memory" if version == 1 else cgroup
        folder = top / group.strip().strip("/")
        while folder == top or top in folder.parents:
            yield folder, version
            folder = folder.parent
