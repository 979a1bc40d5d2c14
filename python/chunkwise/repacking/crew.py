"""How do several ranks repack one file?

Rank 0 does what one process does, and calls the others for each large dataset.  All encode pieces
of it, request places from rank 0, write the bytes there, and compare the result with the source.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import h5py
from h5py import h5d

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import ChunkwiseError, CorruptDataError, FileChangedError
from chunkwise.files.unclosed import open_readable
from chunkwise.mpi.encoding import Likeness, image_of
from chunkwise.mpi.machine import neighbours, open_seen
from chunkwise.mpi.ranks import (
    Failure,
    OtherRankFailedError,
    broadcast,
    exchange,
    failure_of,
    host,
    pauses,
    require_supported,
    together,
)
from chunkwise.mpi.serving import Ask, Questions, serving
from chunkwise.names import encode_name, printable
from chunkwise.newfile.claim import BEFORE, Claim
from chunkwise.newfile.index import FileIndex, Table
from chunkwise.proof.compare import Comparison, Sharing
from chunkwise.proof.records import GOES_ON
from chunkwise.repacking.creation import properties
from chunkwise.repacking.options import Options
from chunkwise.repacking.work import Copied, Executor, Report

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
        """Wait for all ranks; return whether all is well with them."""
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
        """Close open files, and drop incomplete pieces."""
        self._open.close()

    def open(
        self,
        source: str,  # Paths: of the source, and of the half-written target
        target: str,
        # What shows that a rank sees the same files: size and time, and the target's inode.
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
        report: Report | None = None,
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
                    progress=report,
                    **how,
                )
            ask(("note", self._rest()))
        figures = {one.name: getattr(mine, one.name) for one in fields(Copied)}
        parts = exchange(self.comm, Copied(**figures))
        return _summed(parts, time.monotonic() - begun)

    def compare(self, what: Comparison, report: Callable[[int], None] = lambda _: None) -> None:
        """Compare this rank's part of the pieces (collective)."""
        with together(self.comm):
            what.part(self.comm.rank, self.comm.size).run(report)


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


# Less than this rank 0 copies alone: calling the others is not worth it.
_LEAST_NBYTES: Final = 8 << 20
# In place of a call: there is no more work.
_END: Final[Any] = None

T = TypeVar("T")


def follow(comm: Comm) -> None:
    """Do what rank 0 says, until it no longer needs this rank."""
    rank = Rank(comm)
    with closing(rank):
        while (call := broadcast(comm, _END)) is not None:
            if isinstance(call, Failure):
                raise OtherRankFailedError(*call)
            name, arguments = call
            try:
                getattr(rank, name)(*arguments)
            except CorruptDataError as wrong:
                if name != "copy":
                    raise
                raise type(wrong)(f"{wrong}; {GOES_ON}") from None


def by_all(comm: Comm, work: Callable[[Executor], T]) -> T:
    """Do something with all ranks, and return the result on all of them (collective)."""
    if comm.size == 1:
        return work(Executor())
    require_supported()
    if comm.rank:
        follow(comm)
        return cast("T", broadcast(comm, None))
    with Crew(comm).working() as crew:
        done = work(crew)
    return broadcast(comm, done)


class Crew(Executor):
    """The ranks that repack a file, as rank 0 has them; the others are in `follow`."""

    def __init__(self, comm: Comm) -> None:
        self._comm, self._rank = comm, Rank(comm)
        self._index: FileIndex | None = None
        self._journal, self._identity = -1, b""
        # The others have left `follow`: they know of a failure.
        self._gone = False

    @contextmanager
    def working(self) -> Iterator[Crew]:
        """Let the others go at the end of the block, or fail if it fails."""
        try:
            with closing(self._rank):
                yield self
        except BaseException as wrong:
            if not self._gone:
                broadcast(self._comm, failure_of(self._comm, wrong))
            raise
        broadcast(self._comm, _END)

    def create(self, claim: Claim, source: h5py.File, options: Options) -> FileIndex:
        """Create the target, whose index this rank keeps."""
        fcpl, fapl = properties(source, options)
        descriptor = claim.make_partial()
        try:
            self._index = FileIndex(descriptor, claim.place.said, fapl=fapl, fcpl=fcpl)
        finally:
            os.close(descriptor)
        return self._index

    def note_to(self, journal: int, identity: bytes) -> None:
        """Append what ranks note to a journal; its descriptor stays the caller's."""
        self._journal, self._identity = journal, identity

    def begin(self, claim: Claim, source: h5py.File) -> None:
        """Let all ranks open the source, and the partial file that now exists."""
        path = os.fspath(source.filename)
        found = os.stat(path)  # noqa: PTH116 (a str, of any bytes)
        same = found.st_size, found.st_mtime_ns, claim.partial.stat().st_ino
        names = BEFORE if claim.resumed else ()
        before = tuple(os.fspath(claim.place.folder / name) for name in names)
        self._call("open", path, os.fspath(claim.partial), same, before, self._identity)

    def shares(self, made: h5d.DatasetID, nbytes: int, *, raw: bool) -> bool:
        """Whether all ranks copy a dataset of `nbytes` bytes into this one."""
        if nbytes < _LEAST_NBYTES or made.get_create_plist().get_layout() != h5d.CHUNKED:
            return False
        if made.get_num_chunks():
            # Allocated as it was made (H5D_ALLOC_TIME_EARLY).
            return False
        if raw:
            return True
        with closing(Likeness(image_of(made), "")) as like:
            return like.refusal() is None

    def copy(
        self,
        path: str,
        made: h5d.DatasetID,
        nbytes: int,
        report: Report,
        how: dict[str, Any],
    ) -> Copied:
        """Let all ranks copy a dataset."""
        assert self._index is not None
        places, size = self._index.places(made), self._comm.size
        dividing = Dividing(size)
        written = 0

        def answer(rank: int, question: tuple[Any, ...]) -> Any:
            nonlocal written
            match question:
                case "allocate", table, noted:
                    self._append(noted)
                    addresses = places.allocate(table)
                    written += int(table[:, -2].sum())
                    return addresses
                case "find", origins:
                    return places.find(origins)
                case "pieces", number, count, least, noted:
                    self._append(noted)
                    return dividing.take(number, count, least)
                case "meet", number, well:
                    return dividing.meet(rank, number, well)
                case "memory", wanted:
                    return dividing.memory(wanted)
                case "note", noted:
                    self._append(noted)
            return None

        def report_all(done: int, read: int, mine: int) -> None:
            # What all have taken, or as much as this rank has done; it is one of many alike.
            far = max(int(nbytes * dividing.share_taken), done * size)
            report(min(nbytes, far), read * size, written or mine * size)

        with closing(dividing):
            copied: Copied = self._call(
                "copy", path, image_of(made), how, answer=answer, report=report_all
            )
        report(nbytes, 0, copied.stored_nbytes_written)
        return copied

    def _append(self, noted: bytes | None) -> None:
        """Put what a rank has noted into the journal."""
        while noted:
            noted = noted[os.write(self._journal, noted) :]

    def sharing(self, claim: Claim, memory_nbytes: int, report: Callable[[int], None]) -> Sharing:
        """Return what lets all ranks compare the closed target with the source."""
        del claim
        size = self._comm.size

        def compare(what: Comparison) -> None:
            # This rank's part is one of many alike.
            self._call("compare", what, report=lambda nbytes: report(nbytes * size))

        return Sharing(size, memory_nbytes, compare)

    def _call(self, name: str, *arguments: Any, **own: Any) -> Any:
        """Let all ranks call a method of `Rank`; all learn of a failure."""
        broadcast(self._comm, (name, arguments))
        try:
            return getattr(self._rank, name)(*arguments, **own)
        except BaseException:
            self._gone = True
            raise
