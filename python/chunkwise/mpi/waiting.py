"""How do ranks wait for each other, and exchange what they know, without using a core?

Open MPI's own waiting looks without pause: a rank that waits takes the core that another one
needs.  Here a rank sleeps between two looks, for 1 ms at most.

Every function takes an mpi4py communicator, or `ALONE`, which works without
mpi4py.  mpi4py is imported where it is used.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    from mpi4py import MPI

T = TypeVar("T")

_SHORTEST_S, _LONGEST_S = 50e-6, 1e-3
# MPI counts in 32 bits: exchanges go in pieces of this many bytes in all.
_MOST_NBYTES: Final = 1 << 30
# This much depends on the length of a message.
_INLINE_NBYTES: Final = 120


@dataclass(frozen=True)
class Alone:
    """A communicator of this one process, without MPI."""

    rank: int = 0
    size: int = 1


ALONE: Final = Alone()

# mpi4py's, or that of one process.
Comm: TypeAlias = "MPI.Comm | Alone"


# Buffers of a request that was left because of a signal: MPI may still write to them.
abandoned: list[Any] = []


class WaitedTooLongError(Exception):
    """The others did not come in time."""


def wait(request: MPI.Request, limit_s: float | None = None) -> Any:
    """Wait until a request is done, without using a core."""
    # Open MPI's own waiting looks without pause, and takes the core from a rank that works.
    until = None if limit_s is None else time.monotonic() + limit_s
    try:
        for pause in pauses():
            done, received = request.test()
            if done:
                return received
            if until is not None and time.monotonic() > until:
                raise WaitedTooLongError
            time.sleep(pause)
    except BaseException:
        abandoned.append(request)
        raise
    return None


def wait_all(requests: Sequence[MPI.Request]) -> None:
    """Wait for several requests of buffers, as `wait` does for one."""
    for request in requests:
        wait(request)


def pauses() -> Iterator[float]:
    """Give seconds to sleep between two looks, without end."""
    # The first looks only let another process run: neighbours are often nearly there.
    for _ in range(20):
        yield 0.0
    pause = _SHORTEST_S
    while True:
        yield pause
        pause = min(pause * 1.5, _LONGEST_S)


def barrier(comm: Comm) -> None:
    """Wait until all ranks are here, without using a core."""
    if not isinstance(comm, Alone) and comm.size > 1:
        wait(comm.Ibarrier())


def exchange(comm: Comm, value: T, limit_s: float | None = None) -> list[T]:
    """Give each rank the values of all, by rank (collective)."""
    if isinstance(comm, Alone) or comm.size == 1:
        return [value]
    from mpi4py import MPI

    mine = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    # First the length and what fits behind it, which is all of most messages.
    head = len(mine).to_bytes(8, "little") + mine[:_INLINE_NBYTES]
    sent = bytearray(head.ljust(8 + _INLINE_NBYTES, b"\0"))
    heads = bytearray(len(sent) * comm.size)
    wait(comm.Iallgather([sent, MPI.BYTE], [heads, MPI.BYTE]), limit_s)
    each = [heads[at : at + len(sent)] for at in range(0, len(heads), len(sent))]
    counts = [int.from_bytes(one[:8], "little") for one in each]
    parts = [one[8 : 8 + count] for one, count in zip(each, counts, strict=True)]
    share = max(1, _MOST_NBYTES // comm.size)
    for begin in range(_INLINE_NBYTES, max(counts), share):
        sizes = [max(0, min(share, count - begin)) for count in counts]
        received = bytearray(sum(sizes))
        more = mine[begin : begin + share]
        wait(comm.Iallgatherv([more, MPI.BYTE], [received, sizes, MPI.BYTE]))
        at = 0
        for part, size in zip(parts, sizes, strict=True):
            part += received[at : at + size]
            at += size
    return [pickle.loads(part) for part in parts]


def broadcast(comm: Comm, value: T, root: int = 0) -> T:
    """Give each rank the value of one (collective); the others' `value` is not looked at."""
    if isinstance(comm, Alone) or comm.size == 1:
        return value
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL) if comm.rank == root else b""
    received = broadcast_bytes(comm, data, root)
    return value if comm.rank == root else pickle.loads(received)


def broadcast_bytes(comm: MPI.Comm, data: bytes, root: int) -> bytearray:
    """Give each rank the bytes of one (collective)."""
    from mpi4py import MPI

    length = memoryview(bytearray(8)).cast("q")
    length[0] = len(data)
    wait(comm.Ibcast([length, MPI.INT64_T], root))
    held = bytearray(data) if comm.rank == root else bytearray(length[0])
    for begin in range(0, length[0], _MOST_NBYTES):
        part = memoryview(held)[begin : begin + _MOST_NBYTES]
        wait(comm.Ibcast([part, MPI.BYTE], root))
    return held
