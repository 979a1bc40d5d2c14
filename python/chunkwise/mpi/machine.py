"""How much of its machine may a process use: memory and cores, also if several ranks run there?"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from chunkwise.memory import default_budget
from chunkwise.mpi.failing import host
from chunkwise.mpi.waiting import exchange

if TYPE_CHECKING:
    from chunkwise.mpi.waiting import Comm


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
