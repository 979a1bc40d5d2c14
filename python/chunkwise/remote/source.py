"""What do libhdf5 and the engine read a remote file through?"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

from chunkwise import _native, system
from chunkwise.errors import ChunkwiseError
from chunkwise.files.unclosed import Patch, Positioned, mend
from chunkwise.model.far import Fetched
from chunkwise.remote.blocks import FRONT_NBYTES, NBYTES_PER_S, Blocks
from chunkwise.remote.faults import Patience
from chunkwise.remote.requests import TOGETHER, Interrupts, Range, fetch, first_bytes
from chunkwise.remote.stores import Store

# More is read by several requests.
_REQUEST_NBYTES: Final = 8 << 20
# Web servers and stores answer as many at a time.
_IN_FLIGHT: Final = 64
# Nobody asks for a range again for so long after it could not be had.
_SPENT_S: Final = 2.0


class RemoteBytes:
    """The bytes of one file, as they were when it was opened."""

    def __init__(self, make: Callable[[], Store], shown: str, patience: Patience) -> None:
        self._make, self._patience, self.shown = make, patience, shown
        self._interrupts = Interrupts()
        self._process, self._store = os.getpid(), make()
        begin = time.perf_counter_ns()
        front, self.version = first_bytes(self._store, FRONT_NBYTES, patience, self._interrupts)
        elapsed_ns = time.perf_counter_ns() - begin
        self.size = self.version.size  # Bytes of the file
        self.requests = 1
        # Rounds: the longest chain of requests that each began after the one before was answered.
        self._rounds = 1
        self._lock = threading.Lock()
        self.nbytes = len(front)
        latency_ns = 0
        if self._store.loop is None:
            # As for a local disk, which the engine knows.
            self.cost = (4_000, 16_384_000_000, 1 << 20, 4)  # See `chunkwise._native.Storage`
        else:
            sent_ns = len(front) * 1_000_000_000 // NBYTES_PER_S
            latency_ns = min(max(elapsed_ns - sent_ns, 1_000_000), 1_000_000_000)
            # See `chunkwise._native.Storage`.
            self.cost = (latency_ns, NBYTES_PER_S, _REQUEST_NBYTES, _IN_FLIGHT)
        self._blocks = Blocks(self.size, front, self._fetch, latency_ns / 1_000_000_000)
        self._spent: list[tuple[Range, float, ChunkwiseError]] = []
        # When (`time.monotonic`) and by which error a request has failed for good at last.
        self.failure: tuple[float, ChunkwiseError] | None = None
        self.storage = _native.Storage(self)
        _sources.add(self)

    def of_pages(self, page_nbytes: int) -> None:
        """Read structures by pages of this size."""
        self._blocks.of_pages(page_nbytes)

    def look_around(self) -> None:
        """Fetch what lies beside structures, too, until data is read."""
        self._blocks.look_around(True)

    def read(self, start: int, stop: int) -> bytes:
        """Bytes for libhdf5, as far as the file reaches."""
        stop = min(stop, self.size)
        return self._blocks.read(start, stop) if start < stop else b""

    def read_metadata(self, ranges: Sequence[Range]) -> list[bytes]:
        """Bytes of the file's structures; ranges are addresses and lengths."""
        return [self._blocks.read(start, start + nbytes) for start, nbytes in ranges]

    def expect_metadata(self, ranges: Sequence[Range]) -> None:
        """Fetch structures before they are read."""
        self._blocks.expect((start, start + nbytes) for start, nbytes in ranges)

    def read_ranges(self, ranges: Sequence[Range]) -> list[bytes]:
        """Bytes of data, by as many requests at a time as there are ranges."""
        wanted = [(start, start + nbytes) for start, nbytes in ranges]
        found = [self._blocks.held(start, stop) for start, stop in wanted]
        missing = [number for number, bytes_ in enumerate(found) if bytes_ is None]
        pieces, counts = [], []
        for number in missing:
            start, stop = wanted[number]
            cut = [
                (begin, min(begin + _REQUEST_NBYTES, stop))
                for begin in range(start, stop, _REQUEST_NBYTES)
            ]
            pieces += cut
            counts.append(len(cut))
        if pieces:
            self._blocks.look_around(False)
        come = iter(self._fetch(pieces)) if pieces else iter(())
        for number, count in zip(missing, counts, strict=True):
            parts = [next(come) for _ in range(count)]
            found[number] = parts[0] if count == 1 else b"".join(parts)
        return [bytes_ for bytes_ in found if bytes_ is not None]

    def failed_lately(self) -> ChunkwiseError | None:
        """What a request has failed with for good, for as long as it is not made again."""
        if self.failure is None or time.monotonic() > self.failure[0] + _SPENT_S:
            return None
        return self.failure[1]

    def interrupt(self) -> None:
        """Cancel pending requests."""
        self._interrupts.stop()

    def _fetch(self, ranges: Sequence[Range]) -> list[bytes]:
        if os.getpid() != self._process:
            self._process, self._store = os.getpid(), self._make()
        self._refuse_spent(ranges)
        begun, before = self._interrupts.count, self._rounds
        try:
            found = fetch(self._store, ranges, self.version, self._patience, self._interrupts)
        except ChunkwiseError as error:
            if self._interrupts.count == begun:
                now = time.monotonic()
                self.failure = now, error
                until = now + _SPENT_S
                self._spent = [*self._spent[-63:], *((one, until, error) for one in ranges[:64])]
            raise
        with self._lock:
            self.requests += len(ranges)
            self.nbytes += sum(map(len, found))
            self._rounds = max(self._rounds, before + -(-len(ranges) // TOGETHER))
        return found

    def fetched(self, latency_s: float | None = None) -> Fetched | None:
        """What was fetched so far, at a latency; None for that of the first request."""
        # None where nothing was far away, and no latency is given.
        if self._store.loop is None and latency_s is None:
            return None
        measured_ns, nbytes_per_s = self.cost[0], min(self.cost[1], NBYTES_PER_S)
        latency_s = measured_ns / 1e9 if latency_s is None else latency_s
        taken_s = self._rounds * latency_s + self.nbytes / nbytes_per_s
        return Fetched(
            self.requests, self._rounds, self.nbytes, latency_s, float(nbytes_per_s), taken_s
        )

    def _refuse_spent(self, ranges: Sequence[Range]) -> None:
        """Repeat an error at once: one read asks several times for bytes that it could not get."""
        if not self._spent:
            return
        now = time.monotonic()
        self._spent = [one for one in self._spent if one[1] > now]
        for (start, stop), _, error in self._spent:
            if any(start < end and begin < stop for begin, end in ranges):
                raise type(error)(*error.args)

    def forked(self) -> None:
        """Start again in a child: its parent's threads do not exist there."""
        self._interrupts, self._lock = Interrupts(), threading.Lock()
        self._blocks.forked()


_sources: weakref.WeakSet[RemoteBytes] = weakref.WeakSet()


def _after_fork() -> None:
    for source in list(_sources):
        source.forked()


system.after_fork_in_child(_after_fork)


class Stream(Positioned):
    """A source as a file object."""

    # Zeros fill the buffer beyond the end, as in libhdf5's driver: h5py ignores the count.

    def __init__(self, source: RemoteBytes, *patches: Patch) -> None:
        self.source, self._patches = source, sorted(patches)
        self.error: ChunkwiseError | None = None  # What the last read ended with

    def __repr__(self) -> str:
        # h5py takes it for the file's name.
        return self.source.shown

    @property
    def storage(self) -> _native.Storage:
        """Its bytes, for readers other than libhdf5."""
        return self.source.storage

    def end(self) -> int:
        """Return where the file ends."""
        return self.source.size

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer from the current position on; gives how many bytes came."""
        view = memoryview(buffer).cast("B")
        self.error = None
        try:
            found = self.source.read(self.position, self.position + len(view))
        except ChunkwiseError as error:
            # h5py passes it on as it is.
            self.error = type(error)(f"{self.source.shown}: {error}")
            raise self.error from error
        view[: len(found)] = found
        view[len(found) :] = bytes(len(view) - len(found))
        if self._patches:
            mend(view, self.position, self._patches)
        self.position += len(found)
        return len(found)
