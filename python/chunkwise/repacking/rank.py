"""What does each of the ranks do that repack one file?

It opens the files, copies its part of each large dataset, and compares its part of the result.
Rank 0 says when: `crew.py`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import h5py
from h5py import h5d

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import ChunkwiseError, FileChangedError
from chunkwise.files.opening import open_h5
from chunkwise.files.unclosed import open_readable
from chunkwise.mpi.encoding import Likeness
from chunkwise.mpi.folder import open_seen
from chunkwise.mpi.ranks import Failure, host, together
from chunkwise.mpi.serving import serving
from chunkwise.mpi.share import neighbours
from chunkwise.mpi.waiting import exchange
from chunkwise.names import encode_name, printable
from chunkwise.proof.compare import Piece, compare_pieces
from chunkwise.proof.records import Allowed, Names
from chunkwise.repacking.phases import Figures, Meter
from chunkwise.repacking.pieces import Asked

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
    # By what a rank tells that it sees the same files: size and time of the source, and the inode
    # of the target.
    same: tuple[int, ...]
    # The journal, and what is half written, of a stopped run; none if nothing is resumed.
    before: tuple[str, ...]
    identity: bytes  # Of which work a journal is


@dataclass(frozen=True)
class Copy:
    """A dataset that all copy: its name, a target's likeness, arguments of `copy_data`."""

    path: str
    image: bytes
    label: str
    asked: dict[str, Any]
    raw: bool


@dataclass(frozen=True)
class Compare:
    """Parts of the source and of the closed target, which the ranks compare in turns."""

    source: str
    target: str
    pieces: tuple[Piece, ...]
    allowed: Allowed
    names: Names
    memory_nbytes: int


@dataclass(frozen=True)
class Measured:
    """Each rank tells what it has measured."""


Message = Work | Copy | Compare | Measured | Failure | None


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
            like = opened.enter_context(closing(Likeness(what.image, what.label)))
            asking = Asked(ask, self._note, meter=self.meter, near=self._near)
            asked = opened.enter_context(closing(asking))
            try:
                opened.enter_context(self.meter.copying())
                mine = _native.copy_data(
                    library(),
                    source.id,
                    like.id.id,
                    label=what.label,
                    raw=what.raw,
                    journal=self._journal,
                    encoders=self._encoders,
                    part=(self.comm.size, asked, asked, self._target),
                    progress=tell,
                    **what.asked,
                )
            except Exception:
                if asked.error is not None:
                    raise asked.error from None
                raise
            ask(("note", self._rest()))
        return _summed(
            exchange(
                self.comm,
                Copied(
                    decodes=mine.decodes,
                    chunks_written=mine.chunks_written,
                    chunks_replayed=mine.chunks_replayed,
                    stored_nbytes_written=mine.stored_nbytes_written,
                    tuning=mine.tuning,
                    lost_chunks=mine.lost_chunks,
                    through_libhdf5=mine.through_libhdf5,
                    elapsed_s=0.0,
                ),
            ),
            time.monotonic() - begun,
        )

    def measured(self) -> list[Figures]:
        """Return the measurements of all ranks (collective)."""
        return exchange(self.comm, self.meter.figures())

    def compare(self, what: Compare, tell: Callable[[int], None] = lambda _: None) -> None:
        """Compare this rank's share of the pieces (collective)."""
        mine = what.pieces[self.comm.rank :: self.comm.size]
        with together(self.comm), ExitStack() as opened:
            if not mine:
                return
            source, target = (
                opened.enter_context(open_h5(path)) for path in (what.source, what.target)
            )
            compare_pieces(
                source, target, mine, what.allowed, what.names, what.memory_nbytes, tell
            )


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
        # One that reaches into the blocks of two ranks both have met.
        lost_chunks=[(list(origin), reason) for origin, reason in sorted(lost.items())],
        through_libhdf5="; ".join(reasons) or None,
        elapsed_s=elapsed_s,
    )
