"""What does each of the ranks do that repack one file?

It opens the files, copies its part of each large dataset, and compares its part of the result.
Rank 0 says when: `crew.py`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import h5py
from h5py import h5d

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import ChunkwiseError, FileChangedError
from chunkwise.files.unclosed import open_readable
from chunkwise.mpi.encoding import Likeness
from chunkwise.mpi.folder import open_seen
from chunkwise.mpi.machine import neighbours
from chunkwise.mpi.ranks import Failure, host, together
from chunkwise.mpi.serving import serving
from chunkwise.mpi.waiting import exchange
from chunkwise.names import encode_name, printable
from chunkwise.proof.compare import Comparison
from chunkwise.repacking.phases import Figures, Meter
from chunkwise.repacking.pieces import FirstRank

if TYPE_CHECKING:
    from chunkwise.mpi.waiting import Comm

# A rank's encoded chunks are noted in the journal after this time.
_NOTED_S: Final = 3.0

Tell = Callable[[int, int, int], None]


@dataclass(frozen=True)
class Work:
    """The files that ranks work on; each rank opens them itself."""

    source: str  # Paths: of the source, and of the half-written target
    target: str
    # What shows that a rank sees the same files: size and time of the source, and the inode
    # of the target.
    same: tuple[int, ...]
    # The journal, and what is half written, of a stopped run; none if nothing is resumed.
    before: tuple[str, ...]
    identity: bytes  # Of which work a journal is


@dataclass(frozen=True)
class Copy:
    """A dataset that all copy."""

    path: str
    image: bytes  # What makes a likeness of the target's dataset
    how: dict[str, Any]  # Arguments of `_native.copy_data` that are equal on all ranks


@dataclass(frozen=True)
class Measured:
    """Each rank sends what it has measured."""


Message = Work | Copy | Comparison | Measured | Failure | None


@dataclass(frozen=True)
class Copied:
    """The result of copying a dataset on all ranks; see `_native.CopyResult`."""

    decodes: int
    chunks_written: int
    chunks_replayed: int
    stored_nbytes_written: int
    tuning: str | None
    lost_chunks: list[tuple[list[int], str]]
    through_libhdf5: str | None
    elapsed_s: float


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
        self.meter = Meter()

    def close(self) -> None:
        """Close what is open, and give up what is not complete."""
        self._open.close()

    def open(self, work: Work) -> None:
        """Open the files (collective)."""
        self._near = neighbours(self.comm) == self.comm.size > 1
        with together(self.comm):
            try:
                self._source = self._open.enter_context(open_readable(work.source))
            except ChunkwiseError as wrong:
                # Rank 0 has it open: what is wrong is where this rank runs.
                raise type(wrong)(f"rank {self.comm.rank} on {host()}: {wrong}") from None
            self._target = self._held(open_seen(work.target, self.comm.rank))
            found = os.stat(work.source)  # noqa: PTH116 (a str, of any bytes)
            inode = os.fstat(self._target).st_ino
            if work.same != (found.st_size, found.st_mtime_ns, inode):
                raise FileChangedError(
                    f"{printable(work.source)}: this rank sees other files than rank 0: repeat "
                    "when nothing writes to them, in a folder that all ranks share"
                )
            self._noted = self._held(os.memfd_create("journal"))
            before = None
            if work.before:
                flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
                journal, half = (self._held(os.open(name, flags)) for name in work.before)
                before = (journal, half)
            self._journal = _native.Journal(self._noted, work.identity, before)
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
        self, what: Copy, answer: Callable[[int, Any], Any] | None, tell: Tell | None
    ) -> Copied:
        """Copy this rank's part of a dataset, and sum up what all did (collective)."""
        assert self._source is not None
        begun = time.monotonic()
        with serving(self.comm, answer) as ask, ExitStack() as opened:
            source = h5d.open(self._source.id, encode_name(what.path))
            opened.enter_context(closing(source))
            like = opened.enter_context(closing(Likeness(what.image, what.how["label"])))
            first = FirstRank(ask, self._note, meter=self.meter, near=self._near)
            opened.enter_context(closing(first))
            with first.raising():
                opened.enter_context(self.meter.copying())
                mine = _native.copy_data(
                    library(),
                    source.id,
                    like.id.id,
                    journal=self._journal,
                    encoders=self._encoders,
                    part=(self.comm.size, first, first, self._target),
                    progress=tell,
                    **what.how,
                )
            ask(("note", self._rest()))
        figures = {one.name: getattr(mine, one.name) for one in fields(Copied)}
        parts = exchange(self.comm, Copied(**figures))
        return _summed(parts, time.monotonic() - begun)

    def measured(self) -> list[Figures]:
        """Return the measurements of all ranks (collective)."""
        return exchange(self.comm, self.meter.figures())

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
