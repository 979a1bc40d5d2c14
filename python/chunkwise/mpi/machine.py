"""How much of its machine may a process use: memory and cores, also if several ranks run there?"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from chunkwise.mpi.failing import host
from chunkwise.mpi.waiting import exchange

if TYPE_CHECKING:
    from chunkwise.mpi.waiting import Comm

# Share of the free memory: others need some, and the page cache makes writing fast.
_SHARE: Final = 4
# Below this nothing is planned well; a machine that has less swaps anyway.
_LEAST_NBYTES: Final = 64 << 20
_UNKNOWN_NBYTES: Final = 1 << 30


def neighbours(comm: Comm) -> int:
    """Count the ranks on this rank's machine, itself included (collective)."""
    return exchange(comm, host()).count(host())


def cores(comm: Comm) -> int:
    """Give how many cores this rank may use (collective)."""
    # A core that several ranks may use, as launchers leave it that bind none, is divided among
    # them.
    mine = os.sched_getaffinity(0)
    every = [used for where, used in exchange(comm, (host(), mine)) if where == host()]
    return max(1, int(sum(1 / sum(core in used for used in every) for core in mine) + 1e-9))


def share(
    comm: Comm, memory_nbytes: int | None, threads: int | None
) -> tuple[int | None, int | None]:
    """Give memory and threads of this rank: the stated ones, or its part of its machine."""
    if comm.size == 1:
        return memory_nbytes, threads
    threads = cores(comm) if threads is None else threads
    if memory_nbytes is None:
        memory_nbytes = default_budget() // neighbours(comm)
    return memory_nbytes, threads


def default_budget(proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Give a quarter of the memory that is free, of this control group's if it has a limit."""
    found = (meminfo("MemAvailable", proc), _left_in_group(proc, cgroup))
    known = [nbytes for nbytes in found if nbytes is not None]
    return max(_LEAST_NBYTES, min(known, default=_UNKNOWN_NBYTES) // _SHARE)


def _left_in_group(proc: Path, cgroup: Path) -> int | None:
    """Return the memory that the tightest control group (version 2) leaves."""
    # Its page cache of files can be had back, and counts as free.
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


def meminfo(field: str, proc: Path = Path("/proc")) -> int | None:
    """Give a figure of ``/proc/meminfo`` in bytes; None if the system does not say."""
    try:
        for line in (proc / "meminfo").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        pass
    return None


def groups(proc: Path, cgroup: Path) -> Iterator[tuple[Path, Literal[1, 2]]]:
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
