"""Which pieces of a dataset does a rank get, and who gives its chunks their places?

Rank 0 does both: it keeps the target's index.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final

from chunkwise.mpi.serving import Ask, Questions
from chunkwise.mpi.waiting import pauses
from chunkwise.newfile.index import Places, Table
from chunkwise.repacking.phases import Meter

# Each rank gets its pieces in this many turns, so that all end at about the same time.
_TURNS: Final = 8


def placed(meter: Meter, places: Places, chunks: Table) -> tuple[Table, float]:
    """Give chunks their places, for a rank; return them, and how many seconds it took."""
    begun = time.monotonic()
    with meter.keeping():
        addresses = places.allocate(chunks)
    return addresses, time.monotonic() - begun


class Dividing:
    """What rank 0 knows of the work on a dataset: which pieces are taken, and who waits."""

    def __init__(self, size: int) -> None:
        self._size = size
        # Pieces that are taken, by round.
        self._taken: dict[int, int] = {}
        # For each meeting: who has come, and whether all is well there.
        self._meetings: dict[int, dict[int, bool]] = {}
        # Memory for all ranks of this machine; -1 if there is none.
        self._memory: int | None = None
        self.share_taken = 0.0

    def close(self) -> None:
        """Give back memory; ranks that have it keep it."""
        if self._memory is not None and self._memory >= 0:
            os.close(self._memory)

    def take(self, number: int, count: int, least: int) -> tuple[int, int]:
        """Give the first and the end of the next pieces of a round of `count`."""
        begin = self._taken.get(number, 0)
        end = min(count, begin + max(least, count // (_TURNS * self._size)))
        self._taken[number] = end
        if number == 0:
            self.share_taken = end / max(1, count)
        return begin, end

    def meet(self, rank: int, number: int, well: bool) -> bool | None:
        """Return whether all is well with all ranks; None until all have come."""
        come = self._meetings.setdefault(number, {})
        come[rank] = well
        return all(come.values()) if len(come) == self._size else None

    def memory(self, nbytes: int) -> str | None:
        """Make memory for the processes of this machine; return a path to it."""
        if self._memory is None:
            self._memory = os.memfd_create("chunkwise")
            try:
                # Reserved: what is not there when it is touched would end the process.
                os.posix_fallocate(self._memory, 0, nbytes)
            except OSError:
                os.close(self._memory)
                self._memory = -1
        return f"/proc/{os.getpid()}/fd/{self._memory}" if self._memory >= 0 else None


class FirstRank(Questions):
    """The index of a dataset, and its pieces, which rank 0 keeps; as `_native` asks for them."""

    def __init__(
        self, ask: Ask, note: Callable[[], bytes | None], *, meter: Meter, near: bool
    ) -> None:
        super().__init__(ask)
        self._note, self._meter = note, meter
        # Whether there are several ranks, all on one machine.
        self._near = near
        self._meetings = 0
        self._memory = -1

    def close(self) -> None:
        """Give back memory."""
        if self._memory >= 0:
            os.close(self._memory)

    def allocate(self, chunks: Table) -> Table:
        """Get places for chunks; see `Places.allocate`."""
        begun = time.monotonic()
        addresses: Table
        addresses, answered_s = self._answer("allocate", chunks, self._note())
        self._meter.question(time.monotonic() - begun, answered_s)
        return addresses

    def find(self, origins: Table) -> Table:
        """Ask where chunks lie; see `Places.find`."""
        found: Table = self._answer("find", origins)
        return found

    def next(self, number: int, count: int, least: int) -> tuple[int, int]:
        """Take the next pieces of a round; see `Dividing.take`."""
        with self._meter.waiting():
            given: tuple[int, int] = self._answer("pieces", number, count, least, self._note())
        return given

    def meet(self) -> None:
        """Wait for all ranks."""
        with self._meter.waiting():
            self._agree(True)

    def memory(self, nbytes: int) -> int | None:
        """Share memory with all ranks; gives a descriptor, or None if there is none."""
        if not self._near or not nbytes:
            return None
        path = self._answer("memory", nbytes)
        try:
            if path is not None:
                self._memory = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            # Another container on the same machine, perhaps.
            path = None
        return self._memory if self._agree(path is not None) else None

    def _agree(self, well: bool) -> bool:
        """Wait for all ranks; tell whether all is well with them."""
        number, self._meetings = self._meetings, self._meetings + 1
        for pause in pauses():
            agreed = self._answer("meet", number, well)
            if agreed is not None:
                break
            time.sleep(pause)
        return bool(agreed)
