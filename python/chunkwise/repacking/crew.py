"""How do several ranks repack one file?

Rank 0 does what one process does: it plans, copies the tree, keeps the target's index, and puts
the target into place.  For each large dataset it calls the others.  All take pieces of it,
super-blocks or chunks, encode them, ask rank 0 for places, and write the bytes there.  Then all
compare the result with the source.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import h5py
from h5py import h5d

from chunkwise import _native
from chunkwise.errors import CorruptDataError, UsageError
from chunkwise.mpi.encoding import Likeness, image_of
from chunkwise.mpi.ranks import Failure, OtherRankFailedError, failure_of
from chunkwise.mpi.waiting import broadcast
from chunkwise.newfile.claim import BEFORE, Claim
from chunkwise.newfile.index import FileIndex
from chunkwise.proof.compare import Comparison, Sharing
from chunkwise.proof.records import GOES_ON
from chunkwise.repacking.creation import CreatedFile, create, properties
from chunkwise.repacking.options import Options
from chunkwise.repacking.phases import Figures, Meter
from chunkwise.repacking.rank import (
    Copied,
    Copy,
    Dividing,
    Measured,
    Message,
    Rank,
    Tell,
    Work,
    placed,
)

if TYPE_CHECKING:
    from chunkwise.mpi.waiting import Comm

# Less than this rank 0 copies alone: calling the others is not worth it.
_LEAST_NBYTES: Final = 8 << 20

T = TypeVar("T")


def follow(comm: Comm) -> None:
    """Do what rank 0 says, until it no longer needs this rank."""
    rank = Rank(comm)
    with closing(rank):
        while (message := broadcast(comm, _nothing())) is not None:
            match message:
                case Work():
                    rank.open(message)
                case Copy():
                    try:
                        rank.copy(message, None, None)
                    except CorruptDataError as wrong:
                        raise type(wrong)(f"{wrong}; {GOES_ON}") from None
                case Comparison():
                    rank.compare(message)
                case Measured():
                    rank.measured()
                case Failure():
                    raise OtherRankFailedError(*message)


def by_all(comm: Comm, work: Callable[[Crew], T]) -> T:
    """Do something with all ranks, and return the result on all of them (collective)."""
    if comm.rank:
        follow(comm)
        return cast("T", broadcast(comm, None))
    with Crew(comm).working() as crew:
        done = work(crew)
    return broadcast(comm, done)


def _nothing() -> Message:
    return None


@dataclass
class Crew:
    """The ranks that repack a file, as rank 0 has them; the others are in `follow`."""

    comm: Comm
    _rank: Rank = field(init=False)
    _index: FileIndex | None = None
    _journal: int = -1
    _identity: bytes = b""
    # The others have left `follow`: they know of a failure.
    _gone: bool = False

    def __post_init__(self) -> None:
        self._rank = Rank(self.comm)

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

    def create(self, claim: Claim, source: h5py.File, options: Options) -> FileIndex | CreatedFile:
        """Create the target; if there are other ranks, this one keeps its index."""
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
        """Let all ranks open the source, and the partial file that now exists."""
        if self.comm.size == 1:
            return
        path = os.fspath(source.filename)
        found = os.stat(path)  # noqa: PTH116 (a str, of any bytes)
        names = BEFORE if claim.resumed else ()
        work = Work(
            source=path,
            target=os.fspath(claim.partial),
            same=(found.st_size, found.st_mtime_ns, claim.partial.stat().st_ino),
            before=tuple(os.fspath(claim.place.folder / name) for name in names),
            identity=self._identity,
        )
        self._call(work, lambda: self._rank.open(work))

    def shares(self, made: h5d.DatasetID, nbytes: int, *, raw: bool) -> bool:
        """Whether all ranks copy a dataset of `nbytes` bytes into this one."""
        if nbytes < _LEAST_NBYTES or self.comm.size == 1:
            return False
        if made.get_create_plist().get_layout() != h5d.CHUNKED:
            return False
        if made.get_num_chunks():
            # Allocated as it was made (H5D_ALLOC_TIME_EARLY).
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
        how: dict[str, Any],  # More arguments of `_native.copy_data`
    ) -> Copied:
        """Let all ranks copy a dataset."""
        assert self._index is not None
        places = self._index.places(made)
        dividing = Dividing(self.comm.size)
        written = 0

        def answer(rank: int, question: tuple[Any, ...]) -> Any:
            nonlocal written
            match question:
                case "allocate", table, noted:
                    self._append(noted)
                    addresses = placed(self._rank.meter, places, table)
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

        def tell_all(done: int, read: int, mine: int) -> None:
            # What all have taken, or as much as this rank has done; it is one of many alike.
            far = max(int(nbytes * dividing.share_taken), done * self.comm.size)
            tell(min(nbytes, far), read * self.comm.size, written or mine * self.comm.size)

        message = Copy(path, image_of(made), how)
        with closing(dividing):
            copied: Copied = self._call(
                message, lambda: self._rank.copy(message, answer, tell_all)
            )
        tell(nbytes, 0, copied.stored_nbytes_written)
        return copied

    @property
    def meter(self) -> Meter:
        """What measures this rank."""
        return self._rank.meter

    def measured(self) -> list[Figures]:
        """Return the measurements of all ranks."""
        found: list[Figures] = self._call(Measured(), self._rank.measured)
        return found

    def _append(self, noted: bytes | None) -> None:
        """Put what a rank has noted into the journal."""
        while noted:
            noted = noted[os.write(self._journal, noted) :]

    def sharing(self, _: Claim, memory_nbytes: int, tell: Callable[[int], None]) -> Sharing | None:
        """Return what lets all ranks compare the closed target with the source; None if alone."""
        size = self.comm.size

        def compare(what: Comparison) -> None:
            # This rank's part is one of many alike.
            self._call(what, lambda: self._rank.compare(what, lambda nbytes: tell(nbytes * size)))

        return Sharing(size, memory_nbytes, compare) if size > 1 else None

    def _call(self, message: Message, work: Callable[[], Any]) -> Any:
        """Let all ranks do something; all learn of a failure."""
        broadcast(self.comm, message)
        try:
            return work()
        except BaseException:
            self._gone = True
            raise
