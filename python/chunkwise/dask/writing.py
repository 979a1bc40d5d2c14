"""Who computes, a cluster or threads, and who writes the pieces of a file's datasets?"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import h5py

from chunkwise.dask.cluster import Cluster, Lease, results_of
from chunkwise.dask.pieces import Piece, WrittenDataset, token
from chunkwise.dask.tasks import Encoded, Form, flat_places, forget, write_at
from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.grammar import Effort
from chunkwise.mpi.encoding import Likeness, image_of
from chunkwise.names import printable
from chunkwise.newfile.claim import Claim
from chunkwise.newfile.index import FileIndex, opened
from chunkwise.words import installing

if TYPE_CHECKING:
    from typing import TypeAlias

    from distributed import Client

    Scheduler: TypeAlias = Client | Literal["threads", "sync"]

_THREADS = ("threads", "threading")
_SYNC = ("sync", "synchronous", "single-threaded")


def require_dask() -> None:
    """Raise UsageError if Dask is missing."""
    try:
        import dask.array  # noqa: F401
    except ImportError as wrong:
        raise UsageError(f"dask is needed for this ({wrong}): {installing('dask')}") from None


def scheduler_of(client: Any = None) -> Scheduler:
    """Find the scheduler that computes: a cluster or threads."""
    import dask.local
    import dask.threaded

    if client is None:
        client = dask.config.get("scheduler", None)
    if client is None:
        return "threads"
    if isinstance(client, str):
        name = client.lower()
        if name in _THREADS:
            return "threads"
        if name in _SYNC:
            return "sync"
        if name in ("dask.distributed", "distributed"):
            return _default_client()
    elif client is dask.local.get_sync:
        return "sync"
    elif client is dask.threaded.get:
        return "threads"
    elif (known := sys.modules.get("distributed")) and isinstance(client, known.Client):
        if client.asynchronous:
            raise UsageError(
                "client: is asynchronous; give a Client that was made without asynchronous=True"
            )
        return client  # type: ignore[no-any-return]
    said = client if isinstance(client, str) else type(client).__name__
    raise UsageError(
        f"Dask's scheduler {said!r} cannot write one file with this process: use a Client of "
        "dask.distributed, or scheduler='threads'"
    )


def _default_client() -> Client:
    from distributed import default_client

    try:
        return scheduler_of(default_client())  # type: ignore[return-value]
    except ValueError as wrong:
        raise UsageError(f"no client of dask.distributed: {wrong}") from None


def getter(scheduler: Literal["threads", "sync"]) -> Callable[..., Any]:
    """Return what computes keys of a graph in this process."""
    import dask.local
    import dask.threaded

    found: Callable[..., Any]
    found = dask.threaded.get if scheduler == "threads" else dask.local.get_sync
    return found


@dataclass
class Local:
    """Threads that write one file."""

    kind: Literal["threads", "sync"]  # Dask's scheduler
    descriptor: int  # Of the file
    # Called with each piece that is written, by any thread.
    report: Callable[[Piece], None] = lambda _: None
    again: int = 0
    _held: int = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._held = os.dup(self.descriptor)

    def write(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Write pieces, and yield each."""
        graph: dict[Any, Any] = {}
        ends = []
        all_pieces = list(pieces)
        name = token()
        for number, piece in enumerate(all_pieces):
            encoded, end = (f"chunkwise-{what}-{name}{number:x}" for what in ("encode", "write"))
            graph.update(piece.graph())
            graph[encoded] = piece.task
            graph[end] = (partial(self._put, piece), encoded)
            ends.append(end)
        if ends:
            getter(self.kind)(graph, ends)
        for form in {piece.target.form for piece in all_pieces}:
            forget(form)
        yield from all_pieces

    def _put(self, piece: Piece, encoded: Encoded) -> None:
        # A thread that goes on after Ctrl-C has a descriptor of this file, or none.
        with self._lock:
            if self._held < 0:
                raise CannotWriteError("the run has ended")
            descriptor = os.dup(self._held)
        try:
            addresses = piece.target.places.allocate(encoded.table)
            write_at(descriptor, encoded.chunks, addresses)
        finally:
            os.close(descriptor)
        self.report(piece)

    def stop(self) -> None:
        """Let nothing more be written."""
        with self._lock:
            if self._held >= 0:
                os.close(self._held)
            self._held = -1


# Called with bytes done and bytes in all.
Progress: TypeAlias = Callable[[int, int], None]


@dataclass
class Written:
    """The result of writing.

    Attributes
    ----------
    nbytes
        Of all elements.
    stored_nbytes
        Of all chunks, after filters.
    blocks
        Tasks by which they were written.
    again
        Blocks that were computed again, after a worker was lost, and then were of other bytes.
    by_client
        Datasets that this process wrote by itself, and why.
    """

    nbytes: int = 0
    stored_nbytes: int = 0
    blocks: int = 0
    again: int = 0
    by_client: dict[str, str] = field(default_factory=dict)


@dataclass
class Tally:
    """Adds up what is written."""

    progress: Progress | None  # Called with bytes done and bytes in all; may raise to end the run
    total_nbytes: int  # Of all elements
    _done_nbytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, nbytes: int) -> None:
        """Note that bytes of elements are written."""
        with self._lock:
            self._done_nbytes += nbytes
            if self.progress is not None:
                self.progress(self._done_nbytes, self.total_nbytes)


def target_of(
    index: FileIndex, dataset: h5py.Dataset, name: str, said: str, effort: Effort = "as-stated"
) -> WrittenDataset:
    """Make a dataset of the open file one that workers write."""
    if dataset.chunks is None:
        flat = flat_places(dataset)
        return WrittenDataset(name, flat, flat.form, dataset.nbytes)
    label = f"{printable(said)}: '{printable(name)}'"
    image = image_of(dataset.id)
    with closing(Likeness(image, label)) as like:
        like.writer((None, 0), effort=effort)
    places = index.places(dataset.id)
    return WrittenDataset(name, places, Form(image, label, effort), dataset.nbytes)


def write_pieces(
    claim: Claim,
    pieces: Iterable[Piece],
    scheduler: Scheduler,
    *,
    in_flight: int | None = None,
    report: Callable[[Piece], None] = lambda _: None,
) -> tuple[int, int]:
    """Write pieces of the datasets of an open index."""
    with ExitStack() as stack:
        runner: Cluster | Local
        if isinstance(scheduler, str):
            descriptor = stack.enter_context(opened(claim, "r+"))
            runner = Local(scheduler, descriptor, report)
        else:
            lease = Lease(claim)
            stack.callback(lease.close)
            runner = Cluster(scheduler, lease, claim.place.said, in_flight, report)
            stack.callback(lease.end)
        stack.callback(runner.stop)
        blocks = 0
        for _ in runner.write(pieces):
            blocks += 1
        return blocks, runner.again


def run_tasks(
    scheduler: Scheduler, work: Sequence[Callable[[], Any]], name: str, said: str
) -> Iterator[Any]:
    """Do independent tasks, and yield their results in order."""
    if not isinstance(scheduler, str):
        yield from results_of(scheduler, work, name, said)
        return
    keys = [f"{name}-{token()}{number:x}" for number in range(len(work))]
    if keys:
        get = getter(scheduler)
        yield from get({key: (one,) for key, one in zip(keys, work, strict=True)}, keys)
