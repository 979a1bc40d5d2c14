"""How does one rank's failure become the failure of all?"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from chunkwise.errors import ChunkwiseError
from chunkwise.mpi.waiting import Alone, Comm, broadcast_bytes, exchange

T = TypeVar("T")


class OtherRankFailedError(ChunkwiseError):
    """Another rank failed at what all ranks did together."""

    def __init__(self, rank: int, host: str, kind: str, reason: str) -> None:
        super().__init__(f"rank {rank} on {host} failed: {reason}")
        self.rank, self.host, self.kind, self.reason = rank, host, kind, reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.rank, self.host, self.kind, self.reason)


class Failure(NamedTuple):
    """One rank's failure, as the others learn it."""

    rank: int
    host: str
    kind: str
    reason: str


def host() -> str:
    """Name the machine that this process runs on."""
    return os.uname().nodename


def agree(comm: Comm, work: Callable[[], T]) -> T:
    """Do something on every rank, and fail on all if it fails on one (collective)."""
    # `work` must not wait for another rank, unless by functions of this module.
    with together(comm):
        return work()


@contextmanager
def together(comm: Comm) -> Iterator[None]:
    """Fail on all ranks at the end of the block, if it fails on one (collective)."""
    try:
        yield
    except BaseException as error:
        _settle(comm, error)
        raise
    _settle(comm, None)


def on_first(comm: Comm, work: Callable[[], T]) -> T:
    """Do something on rank 0, and give all ranks what it returned (collective)."""
    if isinstance(comm, Alone) or comm.size == 1:
        return work()
    if comm.rank:
        received = pickle.loads(broadcast_bytes(comm, b"", 0))
        if isinstance(received, Failure):
            raise agreed(OtherRankFailedError(*received), received.rank)
        result: T = received[0]
        return result
    try:
        result = work()
        data = pickle.dumps((result,), pickle.HIGHEST_PROTOCOL)
    except BaseException as error:
        broadcast_bytes(comm, pickle.dumps(failure_of(comm, error)), 0)
        raise agreed(error, failure_of(comm, error).rank) from None
    broadcast_bytes(comm, data, 0)
    return result


def _settle(comm: Comm, error: BaseException | None) -> None:
    """Send this rank's outcome to the others, and raise if another one failed."""
    mine = None if error is None else failure_of(comm, error)
    failures = [one for one in exchange(comm, mine) if one is not None]
    if not failures:
        return
    # A rank that only passes on the failure of another names that one.
    first = min(failures)
    if error is None:
        raise agreed(OtherRankFailedError(*first), first.rank)
    agreed(error, first.rank)


def failure_of(comm: Comm, error: BaseException) -> Failure:
    """Put this rank's failure, or another's that it passes on, into plain words."""
    if isinstance(error, OtherRankFailedError):
        return Failure(error.rank, error.host, error.kind, error.reason)
    reason = str(error) or type(error).__name__
    if not isinstance(error, ChunkwiseError) and str(error):
        reason = f"{type(error).__name__}: {reason}"
    return Failure(comm.rank, host(), type(error).__name__, reason)


_Error = TypeVar("_Error", bound=BaseException)


def agreed(error: _Error, first: int) -> _Error:
    """Note in an error that all ranks raise one now, and which rank's is the first."""
    error.__dict__["chunkwise_first_rank"] = first
    return error
