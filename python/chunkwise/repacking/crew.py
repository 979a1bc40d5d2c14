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
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import h5py
from h5py import h5d

from chunkwise import _native
from chunkwise.errors import CorruptDataError, UsageError
from chunkwise.mpi.encoding import Likeness, image_of
from chunkwise.mpi.ranks import (
    Failure,
    OtherRankFailedError,
    broadcast,
    failure_of,
    require_supported,
)
from chunkwise.newfile.claim import BEFORE, Claim
from chunkwise.newfile.index import FileIndex
from chunkwise.proof.compare import Comparison, Sharing
from chunkwise.proof.records import GOES_ON
from chunkwise.repacking.creation import properties
from chunkwise.repacking.executor import Copied, Executor, Tell
from chunkwise.repacking.options import Options
from chunkwise.repacking.rank import Dividing, Rank

if TYPE_CHECKING:
    from chunkwise.mpi.ranks import Comm

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

        def tell_all(done: int, read: int, mine: int) -> None:
            # What all have taken, or as much as this rank has done; it is one of many alike.
            far = max(int(nbytes * dividing.share_taken), done * size)
            tell(min(nbytes, far), read * size, written or mine * size)

        with closing(dividing):
            copied: Copied = self._call(
                "copy", path, image_of(made), how, answer=answer, tell=tell_all
            )
        tell(nbytes, 0, copied.stored_nbytes_written)
        return copied

    def _append(self, noted: bytes | None) -> None:
        """Put what a rank has noted into the journal."""
        while noted:
            noted = noted[os.write(self._journal, noted) :]

    def sharing(self, claim: Claim, memory_nbytes: int, tell: Callable[[int], None]) -> Sharing:
        """Return what lets all ranks compare the closed target with the source."""
        del claim
        size = self._comm.size

        def compare(what: Comparison) -> None:
            # This rank's part is one of many alike.
            self._call("compare", what, tell=lambda nbytes: tell(nbytes * size))

        return Sharing(size, memory_nbytes, compare)

    def _call(self, name: str, *arguments: Any, **own: Any) -> Any:
        """Let all ranks call a method of `Rank`; all learn of a failure."""
        broadcast(self._comm, (name, arguments))
        try:
            return getattr(self._rank, name)(*arguments, **own)
        except BaseException:
            self._gone = True
            raise
