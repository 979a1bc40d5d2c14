"""Which part of its machine belongs to a rank, if several ranks run on one machine?"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from chunkwise.mpi.ranks import host
from chunkwise.mpi.waiting import exchange

if TYPE_CHECKING:
    from chunkwise.mpi.waiting import Comm


def neighbours(comm: Comm) -> int:
    """Count the ranks on this rank's machine, itself included (collective)."""
    return exchange(comm, host()).count(host())


def cores(comm: Comm) -> int:
    """Give how many cores this rank may use (collective).

    A core that several ranks may use, as launchers leave it that bind none, is divided among
    them.
    """
    mine = os.sched_getaffinity(0)
    every = [used for where, used in exchange(comm, (host(), mine)) if where == host()]
    return max(1, int(sum(1 / sum(core in used for used in every) for core in mine) + 1e-9))
