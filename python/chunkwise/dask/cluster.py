"""How do the workers of a cluster write one file?

The worker that has a block encodes it.  This process, which has the file open, gives its chunks
places, and the worker writes them there.  If Dask repeats the work of a lost worker with other
bytes, these get other places (see `Lease`).
"""

from __future__ import annotations

import fcntl
import os
import queue
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from chunkwise.dask.pieces import Piece, token
from chunkwise.dask.tasks import Where, Wrote, see, table_of, to_storage, write
from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.mpi.ranks import host
from chunkwise.names import printable
from chunkwise.newfile.claim import LEASE, Claim
from chunkwise.newfile.index import Table
from chunkwise.words import counted

if TYPE_CHECKING:
    from distributed import Client, Future

# Seconds that writing one block may take.
_LIMIT_S: Final = 60.0
_PAUSE_S: Final = 0.005
_TERM_NBYTES: Final = 16


class Lease:
    """Who may write to a partial file."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._file = claim.open_partial(os.O_RDWR)
        try:
            self._lease = claim.make(LEASE)
        except BaseException:
            os.close(self._file)
            raise
        self._term = b""
        self._begin()

    @property
    def where(self) -> Where:
        """The file, for those who may write to it now."""
        lease = self._claim.place.folder / LEASE
        return Where(str(self._claim.partial), str(lease), self._term)

    def renew(self) -> None:
        """End the term and begin another one."""
        self._lock()
        try:
            self._begin()
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def end(self) -> None:
        """Let nobody write any more; raises as `renew`."""
        if self._file < 0:
            return
        try:
            self._lock()
            os.ftruncate(self._lease, 0)
        finally:
            self.close()

    def close(self) -> None:
        """Drop the files, even while others write."""
        for descriptor in (self._file, self._lease):
            if descriptor >= 0:
                os.close(descriptor)
        self._file = self._lease = -1

    def _begin(self) -> None:
        self._term = secrets.token_hex(_TERM_NBYTES // 2).encode()
        os.pwrite(self._lease, self._term, 0)

    def _lock(self) -> None:
        until = time.monotonic() + _LIMIT_S
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > until:
                    raise CannotWriteError(
                        f"{printable(self._claim.place.said)}: a worker that was lost still holds "
                        "the file; end it, and repeat"
                    ) from None
                time.sleep(_PAUSE_S)
            except OSError:
                return  # A file system without locks.


# How often the cluster is looked at when nothing comes, and how long there may be no worker.
_LOOK_S: Final = 1.0
_NO_WORKERS_S: Final = 30.0
# How often what a machine took with it is written again.
_ROUNDS: Final = 3
# Within which a small result that is ready arrives.
_RESULT_S: Final = 10.0
# Encoded chunks take memory until they are written.
_PRIORITY: Final = 10


@dataclass
class _Flight:
    """A piece in work."""

    number: int
    piece: Piece
    encoded: Future[Any]
    table: Future[Any]
    written: Future[Any] | None = None
    sizes: Table | None = None
    addresses: Table | None = None


@dataclass
class _Watchdog:
    """Ends waiting for a cluster in which nobody works."""

    client: Client
    said: str
    alone_since: float | None = None

    def look(self) -> None:
        """Raise CannotWriteError if there is nobody to wait for."""
        why = "no worker is left"
        if self.client.status == "running":
            with suppress(TimeoutError, OSError):
                if self.client.nthreads():
                    self.alone_since = None
                    return
        elif self.client.status == "closed":
            raise CannotWriteError(f"{printable(self.said)}: the client was closed meanwhile")
        else:
            why = "the scheduler does not answer"
        if self.alone_since is None:
            self.alone_since = time.monotonic()
        if time.monotonic() - self.alone_since > _NO_WORKERS_S:
            raise CannotWriteError(
                f"{printable(self.said)}: {why} for {_NO_WORKERS_S:.0f} s; start workers, and "
                "repeat"
            )


def results_of(
    client: Client, work: Sequence[Callable[[], Any]], name: str, said: str
) -> Iterator[Any]:
    """Let a cluster do independent tasks; yield their results in order."""
    watchdog = _Watchdog(client, said)
    futures = [
        client.submit(one, key=f"{name}-{token()}{number:x}", pure=False)
        for number, one in enumerate(work)
    ]
    try:
        for future in futures:
            while True:
                try:
                    result = future.result(timeout=_LOOK_S)
                except TimeoutError:
                    watchdog.look()
                else:
                    break
            yield result
    finally:
        client.cancel(futures, force=True)


@dataclass
class Cluster:
    """Workers that write one file."""

    client: Client  # Of the cluster
    lease: Lease  # Of the file
    said: str  # The file's name in messages
    # Blocks in work at a time; None for one more a worker than it has threads.
    in_flight: int | None = None
    report: Callable[[Piece], None] = lambda _: None  # Called with each piece that is written
    again: int = 0  # Blocks that were computed once more, and then were of other bytes
    _token: str = field(default_factory=token)
    _events: queue.SimpleQueue[tuple[int, Future[Any]]] = field(default_factory=queue.SimpleQueue)
    _flights: dict[int, _Flight] = field(default_factory=dict)
    _numbers: int = 0
    # The writes of each machine, until they are on storage there.
    _unsynced: dict[str, list[Piece]] = field(default_factory=dict)
    _watchdog: _Watchdog = field(init=False)

    def __post_init__(self) -> None:
        self._watchdog = _Watchdog(self.client, self.said)

    def write(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Write pieces, and yield each that is written."""
        self._check_workers()
        written: set[int] = set()
        left = iter(pieces)
        for _ in range(_ROUNDS):
            for piece in self._written(left):
                if id(piece) not in written:
                    written.add(id(piece))
                    self.report(piece)
                    yield piece
            lost = self._sync()
            if not lost:
                return
            left = iter(lost)
        raise CannotWriteError(
            f"{printable(self.said)}: workers were lost {_ROUNDS} times, with their data"
        )

    def _written(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        most = self._most()
        while True:
            while len(self._flights) < most:
                piece = next(pieces, None)
                if piece is None:
                    break
                self._start(piece)
            if not self._flights:
                return
            try:
                number, future = self._events.get(timeout=_LOOK_S)
            except queue.Empty:
                self._watchdog.look()
                most = max(most, self._most())
                continue
            flight = self._flights.get(number)
            if flight is None:
                continue
            done = self._advance(flight, future)
            if done is not None:
                del self._flights[number]
                self._unsynced.setdefault(done.host, []).append(flight.piece)
                yield flight.piece

    def _start(self, piece: Piece) -> None:
        number = self._numbers
        self._numbers += 1
        encoded, table = (
            f"chunkwise-{what}-{self._token}{number:x}" for what in ("encode", "sizes")
        )
        graph = {**piece.graph(), encoded: piece.task, table: (table_of, encoded)}
        futures = self.client.get(graph, [encoded, table], sync=False)
        flight = _Flight(number, piece, *futures)
        self._flights[number] = flight
        self._watch(flight, flight.table)

    def _watch(self, flight: _Flight, future: Future[Any]) -> None:
        events, number = self._events, flight.number
        future.add_done_callback(lambda future: events.put((number, future)))

    def _advance(self, flight: _Flight, future: Future[Any]) -> Wrote | None:
        """Take the next step of a piece; return the result of the last one."""
        result = self._result(flight, future)
        if result is None:
            return None
        if isinstance(result, Wrote):
            if result.other is None and not result.expired:
                return result
            if result.other is not None:
                # Holders of the former bytes must not write them any more.
                self.lease.renew()
                self.again += 1
                self._place(flight, result.other)
        else:
            self._place(flight, result)
        flight.written = self.client.submit(
            write,
            flight.encoded,
            flight.sizes,
            flight.addresses,
            self.lease.where,
            key=f"chunkwise-write-{token()}",
            priority=_PRIORITY,
            pure=False,
        )
        self._watch(flight, flight.written)
        return None

    def _place(self, flight: _Flight, table: Table) -> None:
        flight.sizes = table
        flight.addresses = flight.piece.target.places.allocate(table)

    def _result(self, flight: _Flight, future: Future[Any]) -> Any:
        """Return a task's result; None if it is computed again, and will come."""
        if future.status == "cancelled":
            raise CannotWriteError(
                f"{printable(self.said)}: the work was cancelled: the client or the cluster was "
                "closed, or its scheduler restarted; nothing was left behind"
            )
        if future.status == "error":
            wrong = future.exception()
            if type(wrong).__name__ == "KilledWorker":
                raise CannotWriteError(
                    f"{printable(self.said)}: '{printable(flight.piece.target.name)}': the block "
                    f"at element {list(flight.piece.start)} failed for good: "
                    + str(wrong).strip().partition("\n")[0]
                ) from wrong
            raise wrong
        try:
            return future.result(timeout=_RESULT_S)
        except TimeoutError:
            # The worker that had it is lost, and another one makes it again.
            self._watchdog.look()
            self._events.put((flight.number, future))
            return None

    def _most(self) -> int:
        if self.in_flight is not None:
            return self.in_flight
        threads: dict[str, int] = self.client.nthreads()
        return max(2, sum(threads.values()) + len(threads))

    def _check_workers(self) -> None:
        """Raise UsageError naming the workers that do not see the file."""
        where = self.lease.where
        seen = self.client.run(see, where.lease, on_error="return")
        blind = sorted(worker for worker, term in seen.items() if term != where.term)
        if not seen:
            return  # Workers that come later look for themselves.
        if not blind:
            return
        wrong = seen[blind[0]]
        names = ", ".join(map(str, blind[:4])) + (", ..." if len(blind) > 4 else "")
        if isinstance(wrong, ImportError):
            raise UsageError(
                f"{counted(len(blind), 'worker')} ({names}) cannot import chunkwise ({wrong}): "
                "install the same version there"
            )
        if isinstance(wrong, Exception) and len(blind) < len(seen):
            return  # Lost in between.
        raise UsageError(
            f"{printable(self.said)}: {counted(len(blind), 'worker')} ({names}) do not see its "
            "folder, or may not read in it: write to a file system that all workers have, as "
            "the same user"
        )

    def _sync(self) -> list[Piece]:
        """Let each machine sync its writes to storage; return what was lost with one."""
        lost: list[Piece] = []
        workers = self.client.run(host, on_error="return")
        by_host = {name: worker for worker, name in workers.items() if isinstance(name, str)}
        path = self.lease.where.path
        for name, pieces in self._unsynced.items():
            if name == host():
                continue  # By this process, before the file comes into place.
            try:
                if name not in by_host:
                    raise OSError("lost")
                self.client.run(to_storage, path, workers=[by_host[name]])
            except Exception:  # Whatever is wrong there: others do it again.
                lost += pieces
        self._unsynced.clear()
        return lost

    def stop(self) -> None:
        """Let go of all that is in work."""
        futures = [
            future
            for flight in self._flights.values()
            for future in (flight.encoded, flight.table, flight.written)
            if future is not None
        ]
        self._flights.clear()
        with suppress(Exception):  # The cluster may be what has failed.
            self.client.cancel(futures, force=True)
