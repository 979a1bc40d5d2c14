"""What do ranks share of their machines: memory, cores, and files that rank 0 has made?"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from chunkwise.errors import CannotWriteError
from chunkwise.memory import default_budget
from chunkwise.mpi.ranks import exchange, host
from chunkwise.names import printable

if TYPE_CHECKING:
    from chunkwise.mpi.ranks import Comm


def neighbours(comm: Comm) -> int:
    """Count the ranks on this rank's machine, itself included (collective)."""
    return exchange(comm, host()).count(host())


def cores(comm: Comm) -> int:
    """Give how many cores this rank may use (collective)."""
    # A core that several ranks may use, as without binding, is divided among them.
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


T = TypeVar("T")
# A file that another host has made may be seen only after this time.
_PATIENCE_S: Final = 2.0


def open_seen(path: str, rank: int) -> int:
    """Open a file that rank 0 has made, for reading and writing."""
    # A network file system may show it late; a rank that never finds it sees another folder.
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
