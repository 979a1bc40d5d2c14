"""What does each of the ranks do that repack one file?

It opens the files, copies its part of each large dataset, and compares its part of the result.
Rank 0 says when: `crew.py`.  It also divides the pieces of a dataset, and gives chunks their
places, as it keeps the target's index.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

import h5py
from h5py import h5d

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import ChunkwiseError, FileChangedError
from chunkwise.files.unclosed import open_readable
from chunkwise.mpi.encoding import Likeness
from chunkwise.mpi.machine import neighbours, open_seen
from chunkwise.mpi.ranks import exchange, host, pauses, together
from chunkwise.mpi.serving import Ask, Questions, serving
from chunkwise.names import encode_name, printable
from chunkwise.newfile.index import Table
from chunkwise.proof.compare import Comparison
from chunkwise.repacking.executor import Copied, Tell

if TYPE_CHECKING:
    from chunkwise.mpi.ranks import Comm

# A rank's encoded chunks are noted in the journal after this time.
_NOTED_S: Final = 3.0
# Each rank gets its pieces in this many turns, so that all end at about the same time.
_TURNS: Final = 8


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

    def __init__(self, ask: Ask, note: Callable[[], bytes | None], *, near: bool) -> None:
        super().__init__(ask)
        self._note = note
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
        addresses: Table = self._answer("allocate", chunks, self._note())
        return addresses

    def find(self, origins: Table) -> Table:
        """Ask where chunks lie; see `Places.find`."""
        found: Table = self._answer("find", origins)
        return found

    def next(self, number: int, count: int, least: int) -> tuple[int, int]:
        """Take the next pieces of a round; see `Dividing.take`."""
        given: tuple[int, int] = self._answer("pieces", number, count, least, self._note())
        return given

    def meet(self) -> None:
        """Wait for all ranks."""
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


class Rank:
    """One rank of those that work together; rank 0 is one of them."""

    def __init__(self, comm: Comm) -> None:
        self.comm = comm
        self._open = ExitStack()
        self._source: h5py.File | None = None
        self._target = -1
        self._near = False
        self._journal: _native.Journal | None = None
        # Where this rank's journal is written to, until rank 0 has it.
        self._noted = -1
        self._noted_at = 0.0
        self._sent_nbytes = 0
        self._encoders = _native.Encoders()

    def close(self) -> None:
        """Close what is open, and give up what is not complete."""
        self._open.close()

    def open(
        self,
        source: str,  # Paths: of the source, and of the half-written target
        target: str,
        # What shows that a rank sees the same files: size and time of the source, and the inode
        # of the target.
        same: tuple[int, ...],
        # The journal, and what is half written, of a stopped run; none if nothing is resumed.
        before: tuple[str, ...],
        identity: bytes,  # Of which work a journal is
    ) -> None:
        """Open the files, on each rank by itself (collective)."""
        self._near = neighbours(self.comm) == self.comm.size > 1
        with together(self.comm):
            try:
                self._source = self._open.enter_context(open_readable(source))
            except ChunkwiseError as wrong:
                # Rank 0 has it open: what is wrong is where this rank runs.
                raise type(wrong)(f"rank {self.comm.rank} on {host()}: {wrong}") from None
            self._target = self._held(open_seen(target, self.comm.rank))
            found = os.stat(source)  # noqa: PTH116 (a str, of any bytes)
            inode = os.fstat(self._target).st_ino
            if same != (found.st_size, found.st_mtime_ns, inode):
                raise FileChangedError(
                    f"{printable(source)}: this rank sees other files than rank 0: repeat "
                    "when nothing writes to them, in a folder that all ranks share"
                )
            self._noted = self._held(os.memfd_create("journal"))
            both = None
            if before:
                flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
                journal, half = (self._held(os.open(name, flags)) for name in before)
                both = (journal, half)
            self._journal = _native.Journal(self._noted, identity, both)
            # What rank 0 has written to the journal itself.
            self._sent_nbytes = os.fstat(self._noted).st_size

    def _held(self, descriptor: int) -> int:
        self._open.callback(os.close, descriptor)
        return descriptor

    def _note(self) -> bytes | None:
        """Return the notes since the last call, some seconds ago."""
        now = time.monotonic()
        if now - self._noted_at < _NOTED_S:
            return None
        self._noted_at = now
        return self._rest()

    def _rest(self) -> bytes:
        end = os.fstat(self._noted).st_size
        found = os.pread(self._noted, end - self._sent_nbytes, self._sent_nbytes)
        self._sent_nbytes = end
        return found

    def copy(
        self,
        path: str,  # Of the source's dataset
        image: bytes,  # What makes a likeness of the target's dataset
        how: dict[str, Any],  # Arguments of `_native.copy_data` that are equal on all ranks
        answer: Callable[[int, Any], Any] | None = None,
        tell: Tell | None = None,
    ) -> Copied:
        """Copy this rank's part of a dataset, and sum up what all did (collective)."""
        assert self._source is not None
        begun = time.monotonic()
        with serving(self.comm, answer) as ask, ExitStack() as opened:
            source = h5d.open(self._source.id, encode_name(path))
            opened.enter_context(closing(source))
            like = opened.enter_context(closing(Likeness(image, how["label"])))
            first = FirstRank(ask, self._note, near=self._near)
            opened.enter_context(closing(first))
            with first.raising():
                mine = _native.copy_data(
                    library(),
                    source.id,
                    like.dataset.id.id,
                    journal=self._journal,
                    encoders=self._encoders,
                    part=(self.comm.size, first, first, self._target),
                    progress=tell,
                    **how,
                )
            ask(("note", self._rest()))
        figures = {one.name: getattr(mine, one.name) for one in fields(Copied)}
        parts = exchange(self.comm, Copied(**figures))
        return _summed(parts, time.monotonic() - begun)

    def compare(self, what: Comparison, tell: Callable[[int], None] = lambda _: None) -> None:
        """Compare this rank's part of the pieces (collective)."""
        with together(self.comm):
            what.part(self.comm.rank, self.comm.size).run(tell)


def _summed(parts: list[Copied], elapsed_s: float) -> Copied:
    tunings = dict.fromkeys(one.tuning for one in parts if one.tuning is not None)
    reasons = dict.fromkeys(one.through_libhdf5 for one in parts if one.through_libhdf5)
    lost = {tuple(origin): reason for one in parts for origin, reason in one.lost_chunks}
    return Copied(
        decodes=sum(one.decodes for one in parts),
        chunks_written=sum(one.chunks_written for one in parts),
        # Each rank looks at all that a run before has left.
        chunks_replayed=max(one.chunks_replayed for one in parts),
        stored_nbytes_written=sum(one.stored_nbytes_written for one in parts),
        tuning="; ".join(tunings) or None,
        # Both ranks report one that reaches into their blocks.
        lost_chunks=[(list(origin), reason) for origin, reason in sorted(lost.items())],
        through_libhdf5="; ".join(reasons) or None,
        elapsed_s=elapsed_s,
    )
