"""How do several ranks repack one file?

Rank 0 does what one process does: it plans, copies the tree, keeps the target's index, and brings
the target into place.  For each large dataset it calls the others.  All take pieces of it,
super-blocks or chunks, encode them, ask rank 0 for places, and write the bytes there.  What a
rank has written it verifies.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import h5py
from h5py import h5d

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import (
    ChunkwiseError,
    CorruptDataError,
    FileChangedError,
    UsageError,
)
from chunkwise.files.opening import open_h5
from chunkwise.files.unclosed import open_readable
from chunkwise.names import encode_name, printable
from chunkwise.parallel.encoding import Likeness, image_of
from chunkwise.parallel.folder import open_seen
from chunkwise.parallel.index import FileIndex, Table
from chunkwise.parallel.ranks import (
    Failure,
    OtherRankFailedError,
    failure_of,
    host,
    together,
)
from chunkwise.parallel.serving import Ask, serving
from chunkwise.parallel.share import neighbours
from chunkwise.parallel.waiting import broadcast, exchange, pauses
from chunkwise.repacking.claim import BEFORE, Claim
from chunkwise.repacking.creation import Target, create, properties
from chunkwise.repacking.options import Options

if TYPE_CHECKING:
    from chunkwise.parallel.waiting import Comm

# Less than this rank 0 copies alone: calling the others is not worth it.
_LEAST_NBYTES: Final = 8 << 20
# Pieces are handed out in so many turns a rank, so that all end at about the same time.
_TURNS: Final = 8
# What a rank has encoded is noted in the journal after this time.
_NOTED_S: Final = 3.0

# What helps where a source is damaged.
GOES_ON: Final = "--salvage, or salvage=True, goes on without what cannot be read"

Tell = Callable[[int, int, int], None]
T = TypeVar("T")


@dataclass(frozen=True)
class _Work:
    """The files that ranks work on; each rank opens them itself.

    Attributes
    ----------
    source, target
        Paths: of the source, and of the half-written target.
    same
        By what a rank tells that it sees the same files: size and time of the source, and the
        target's inode.
    before
        The folder with what a stopped run left; None where nothing is resumed.
    identity
        Of which work a journal is.
    """

    source: str
    target: str
    same: tuple[int, int, int]
    before: str | None
    identity: bytes


@dataclass(frozen=True)
class _Copy:
    """A dataset that all copy: its name, a target's likeness, arguments of `copy_data`."""

    path: str
    image: bytes
    label: str
    asked: dict[str, Any]
    raw: bool


@dataclass(frozen=True)
class _Verify:
    """The closed target, which each rank reads again as far as it wrote it."""

    target: str
    said: str


_Message = _Work | _Copy | _Verify | Failure | None


@dataclass(frozen=True)
class Copied:
    """What copying a dataset came to on all ranks; see `_native.CopyResult`."""

    decodes: int
    chunks_written: int
    chunks_replayed: int
    stored_nbytes_written: int
    tuning: str | None
    lost_chunks: list[tuple[list[int], str]]
    through_libhdf5: str | None
    elapsed_s: float
    checksums: None = None


class _Dividing:
    """What rank 0 knows of the work on a dataset: which pieces are taken, and who waits."""

    def __init__(self, size: int) -> None:
        self._size = size
        # Pieces that are taken, by round.
        self._taken: dict[int, int] = {}
        # By meeting: who has come, and whether all is well there.
        self._meetings: dict[int, dict[int, bool]] = {}
        # Memory for all ranks of this machine; -1 where there is none.
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
        """Tell whether all is well with all ranks; None until all have come."""
        come = self._meetings.setdefault(number, {})
        come[rank] = well
        return all(come.values()) if len(come) == self._size else None

    def memory(self, nbytes: int) -> str | None:
        """Make memory of so many bytes; gives a path to it, for processes of this machine."""
        if self._memory is None:
            self._memory = os.memfd_create("chunkwise")
            try:
                # Reserved: what is not there when it is touched would end the process.
                os.posix_fallocate(self._memory, 0, nbytes)
            except OSError:
                os.close(self._memory)
                self._memory = -1
        return f"/proc/{os.getpid()}/fd/{self._memory}" if self._memory >= 0 else None


class _Asked:
    """The index of a dataset, and its pieces, which rank 0 keeps; as `_native` asks for them."""

    def __init__(self, ask: Ask, note: Callable[[], bytes | None], *, near: bool) -> None:
        self._ask, self._note = ask, note
        # Whether all ranks are on one machine.
        self._near = near
        self._meetings = 0
        self._memory = -1
        self.error: BaseException | None = None

    def close(self) -> None:
        if self._memory >= 0:
            os.close(self._memory)

    def allocate(self, chunks: Table) -> Table:
        addresses: Table = self._asked("allocate", chunks, self._note())
        return addresses

    def find(self, origins: Table) -> Table:
        found: Table = self._asked("find", origins)
        return found

    def next(self, number: int, count: int, least: int) -> tuple[int, int]:
        given: tuple[int, int] = self._asked("pieces", number, count, least, self._note())
        return given

    def meet(self) -> None:
        self._agree(True)

    def memory(self, nbytes: int) -> int | None:
        if not self._near or not nbytes:
            return None
        path = self._asked("memory", nbytes)
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
            agreed = self._asked("meet", number, well)
            if agreed is not None:
                break
            time.sleep(pause)
        return bool(agreed)

    def _asked(self, *question: object) -> Any:
        try:
            return self._ask(question)
        except BaseException as wrong:
            # `_native` keeps only its words.
            self.error = wrong
            raise


class _Rank:
    """One rank of those that work together; rank 0 is one of them."""

    def __init__(self, comm: Comm) -> None:
        self.comm = comm
        self._open = ExitStack()
        self._source: h5py.File | None = None
        self._descriptor = -1
        self._near = False
        self._journal: _native.Journal | None = None
        # Where this rank's journal is written to, until rank 0 has it.
        self._noted = -1
        self._noted_at = 0.0
        self._sent_nbytes = 0
        self._encoders = _native.Encoders()
        self.checksums: dict[str, _native.Checksums] = {}

    def close(self) -> None:
        self._open.close()

    def open(self, work: _Work) -> None:
        """Open the files (collective)."""
        self._near = neighbours(self.comm) == self.comm.size
        with together(self.comm):
            try:
                self._source = self._open.enter_context(open_readable(work.source))
            except ChunkwiseError as wrong:
                # Rank 0 has it open: what is wrong is where this rank runs.
                raise type(wrong)(f"rank {self.comm.rank} on {host()}: {wrong}") from None
            self._descriptor = self._held(open_seen(work.target, self.comm.rank))
            found = os.stat(work.source)  # noqa: PTH116 (a str, of any bytes)
            inode = os.fstat(self._descriptor).st_ino
            if work.same != (found.st_size, found.st_mtime_ns, inode):
                raise FileChangedError(
                    f"{printable(work.source)}: this rank sees other files than rank 0: repeat "
                    "when nothing writes to them, in a folder that all ranks share"
                )
            self._noted = self._held(os.memfd_create("journal"))
            before = None
            if work.before is not None:
                names = (os.path.join(work.before, name) for name in BEFORE)  # noqa: PTH118
                flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
                journal, half = (self._held(os.open(name, flags)) for name in names)
                before = (journal, half)
            self._journal = _native.Journal(self._noted, work.identity, before)
            # What rank 0 has written to the journal itself.
            self._sent_nbytes = os.fstat(self._noted).st_size

    def _held(self, descriptor: int) -> int:
        self._open.callback(os.close, descriptor)
        return descriptor

    def _note(self) -> bytes | None:
        """Give what was noted since it was asked last, some seconds ago."""
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
        self, what: _Copy, answer: Callable[[int, Any], Any] | None, tell: Tell | None
    ) -> Copied:
        """Copy this rank's part of a dataset, and sum up what all did (collective)."""
        assert self._source is not None
        begun = time.monotonic()
        with serving(self.comm, answer) as ask, ExitStack() as opened:
            source = h5d.open(self._source.id, encode_name(what.path))
            opened.enter_context(closing(source))
            like = opened.enter_context(closing(Likeness(what.image, what.label)))
            asked = opened.enter_context(closing(_Asked(ask, self._note, near=self._near)))
            try:
                mine = _native.copy_data(
                    library(),
                    source.id,
                    like.id.id,
                    label=what.label,
                    raw=what.raw,
                    journal=self._journal,
                    encoders=self._encoders,
                    part=(self.comm.size, asked, asked, self._descriptor),
                    progress=tell,
                    **what.asked,
                )
            except Exception:
                if asked.error is not None:
                    raise asked.error from None
                raise
            ask(("note", self._rest()))
        if mine.checksums is not None:
            self.checksums[what.path] = mine.checksums
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

    def verify(self, what: _Verify, tell: Tell | None = None) -> None:
        """Read again what this rank has written (collective)."""
        counts = exchange(self.comm, {name: len(one) for name, one in self.checksums.items()})
        with together(self.comm), open_h5(what.target) as target:
            for name, checksums in self.checksums.items():
                every = sum(count[name] for count in counts)
                made = h5d.open(target.id, encode_name(name))
                label = f"{printable(what.said)}: '{printable(name)}'"
                _native.verify_data(
                    library(),
                    made.id,
                    checksums,
                    label=label,
                    elsewhere=every - len(checksums),
                    progress=tell,
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


def follow(comm: Comm) -> None:
    """Do what rank 0 says, until it needs this rank no more.

    Raises
    ------
    OtherRankFailedError
        Rank 0 or another one failed.
    ChunkwiseError
        What is wrong on this rank.
    """
    rank = _Rank(comm)
    with closing(rank):
        while (message := broadcast(comm, _nothing())) is not None:
            match message:
                case _Work():
                    rank.open(message)
                case _Copy():
                    try:
                        rank.copy(message, None, None)
                    except CorruptDataError as wrong:
                        raise type(wrong)(f"{wrong}; {GOES_ON}") from None
                case _Verify():
                    rank.verify(message)
                case Failure():
                    raise OtherRankFailedError(*message)


def by_all(comm: Comm, work: Callable[[Crew], T]) -> T:
    """Do something with all ranks, and give all of them what it came to (collective).

    Parameters
    ----------
    comm
        Of all ranks.
    work
        Done on rank 0; what it returns is sent to the others.

    Raises
    ------
    ChunkwiseError
        What went wrong on this rank, or on another one.
    """
    if comm.rank:
        follow(comm)
        return cast("T", broadcast(comm, None))
    with Crew(comm).working() as crew:
        done = work(crew)
    return broadcast(comm, done)


def _nothing() -> _Message:
    return None


@dataclass
class Crew:
    """The ranks that repack a file, as rank 0 has them; the others are in `follow`.

    Parameters
    ----------
    comm
        Of all ranks.
    """

    comm: Comm
    _rank: _Rank = field(init=False)
    _index: FileIndex | None = None
    _journal: int = -1
    _identity: bytes = b""
    # The others have left `follow`: they know of a failure.
    _gone: bool = False

    def __post_init__(self) -> None:
        self._rank = _Rank(self.comm)

    @contextmanager
    def working(self) -> Iterator[Crew]:
        """Let the others go at the end of the block, or fail if it fails."""
        try:
            with closing(self._rank):
                yield self
        except BaseException as wrong:
            if not self._gone:
                broadcast(self.comm, failure_of(self.comm, wrong))
            raise
        broadcast(self.comm, _nothing())

    def create(self, claim: Claim, source: h5py.File, options: Options) -> FileIndex | Target:
        """Make the target, of which this rank keeps the index where there are others.

        Raises
        ------
        CannotWriteError
            libhdf5 cannot make it.
        OSError
            The system refuses.
        """
        if self.comm.size == 1:
            return create(claim, source, options)
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
        """Have all ranks open the source, and the partial file that is there now.

        Raises
        ------
        ChunkwiseError
            A rank does not see them.
        """
        if self.comm.size == 1:
            return
        path = os.fspath(source.filename)
        found = os.stat(path)  # noqa: PTH116 (a str, of any bytes)
        inode = claim.partial.stat().st_ino
        work = _Work(
            source=path,
            target=os.fspath(claim.partial),
            same=(found.st_size, found.st_mtime_ns, inode),
            before=os.fspath(claim.place.folder) if claim.resumed else None,
            identity=self._identity,
        )
        self._call(work, lambda: self._rank.open(work))

    def shares(self, made: h5d.DatasetID, nbytes: int, *, raw: bool) -> bool:
        """Tell whether all ranks copy a dataset of so many bytes into this one."""
        if nbytes < _LEAST_NBYTES or self.comm.size == 1:
            return False
        if made.get_create_plist().get_layout() != h5d.CHUNKED:
            return False
        if raw:
            return True
        with closing(Likeness.of(made, "")) as like:
            try:
                like.writer(_native.KeptChunks())
            except UsageError:
                return False
        return True

    def copy(
        self,
        path: str,
        made: h5d.DatasetID,
        nbytes: int,
        tell: Tell,
        *,
        label: str,
        raw: bool,
        **asked: Any,
    ) -> Copied:
        """Have all ranks copy a dataset.

        Parameters
        ----------
        path
            The dataset in the source.
        made
            In the target, without data.
        nbytes
            Before filters.
        tell
            Told how far all ranks are; may raise to end the work.
        label, raw, asked
            For `_native.copy_data`.

        Raises
        ------
        ChunkwiseError
            What is wrong on this rank, or on another one.
        """
        assert self._index is not None
        places = self._index.places(made)
        dividing = _Dividing(self.comm.size)
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
                case "memory", size:
                    return dividing.memory(size)
                case "note", noted:
                    self._append(noted)
            return None

        def told(done: int, read: int, _: int) -> None:
            # What all have taken, or as much as this rank has done; it is one of many alike.
            far = max(int(nbytes * dividing.share_taken), done * self.comm.size)
            tell(min(nbytes, far), read * self.comm.size, written)

        message = _Copy(path, image_of(made), label, asked, raw)
        with closing(dividing):
            copied: Copied = self._call(message, lambda: self._rank.copy(message, answer, told))
        tell(nbytes, 0, written)
        return copied

    def _append(self, noted: bytes | None) -> None:
        """Put what a rank has noted into the journal."""
        while noted:
            noted = noted[os.write(self._journal, noted) :]

    @property
    def verifies(self) -> frozenset[str]:
        """Datasets that all ranks verify."""
        return frozenset(self._rank.checksums)

    def verify(self, target: Path, said: str, tell: Tell) -> None:
        """Have each rank read again what it has written to the closed target.

        Raises
        ------
        CorruptDataError
            It is not what was read from the source.
        """
        what = _Verify(os.fspath(target), said)
        self._call(what, lambda: self._rank.verify(what, tell))

    def _call(self, message: _Message, work: Callable[[], Any]) -> Any:
        """Have all ranks do something, of whose failure all know."""
        broadcast(self.comm, message)
        try:
            return work()
        except BaseException:
            self._gone = True
            raise
