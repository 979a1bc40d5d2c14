"""Where is the file until it is complete, and how does each rank open it?"""

from __future__ import annotations

import os
import warnings
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from h5py import h5p

from chunkwise.errors import AlreadyExistsError, UsageError
from chunkwise.mpi.filesystems import filesystem_of
from chunkwise.mpi.machine import open_seen
from chunkwise.mpi.ranks import agree, exchange, host, on_first
from chunkwise.names import printable
from chunkwise.newfile.claim import Claim, claimed
from chunkwise.newfile.index import FileIndex, access_list
from chunkwise.newfile.publish import publish
from chunkwise.newfile.target import NewFile, writing_to

if TYPE_CHECKING:
    from chunkwise.mpi.ranks import Comm

Mode = Literal["w", "w-", "x"]


@dataclass
class PartialFile:
    """The half-written file, as one rank has it."""

    descriptor: int  # For reading and writing
    # Whether this rank is the one of its host that puts on storage what was written there.
    syncs: bool = False
    # On rank 0: the names that are held for it, and what libhdf5 has of it.
    claim: Claim | None = None
    index: FileIndex | None = None

    def sync(self, said: str) -> None:
        """Sync this host's writes to storage."""
        if self.syncs:
            with writing_to(said):
                os.fsync(self.descriptor)

    def publish(self) -> None:
        """Complete the file, and bring it into place; on rank 0."""
        assert self.claim is not None
        assert self.index is not None
        self.index.close()
        self.index = None
        publish(self.claim)


def make(
    comm: Comm, path: str | os.PathLike[str], mode: Mode, held: ExitStack, **how: Any
) -> PartialFile:
    """Make the file beside its target, and open it on all ranks (collective)."""
    said = os.fspath(path)
    target: PartialFile | None = None

    def begin() -> tuple[str, int]:
        nonlocal target
        target = _begin(said, mode, held, how)
        assert target.claim is not None
        return os.fspath(target.claim.partial), os.fstat(target.descriptor).st_ino

    partial, inode = on_first(comm, begin)

    def follow() -> PartialFile:
        with writing_to(said):
            descriptor = open_seen(partial, comm.rank)
        held.callback(os.close, descriptor)
        if os.fstat(descriptor).st_ino != inode:
            raise UsageError(
                f"{printable(said)}: this rank sees another file than rank 0: name a folder that "
                "all ranks share"
            )
        return PartialFile(descriptor)

    opened = agree(comm, lambda: follow() if target is None else target)
    every = exchange(comm, host())
    hosts = len(set(every))
    # Rank 0 does so for its own host at the end.
    opened.syncs = every.index(host()) == comm.rank != 0
    several = comm.size > 1 and comm.rank == 0
    warning = filesystem_of(partial).warning(hosts) if several else None
    if warning is not None:
        warnings.warn(f"{printable(said)}: {warning}", RuntimeWarning, stacklevel=4)
    return opened


def _begin(said: str, mode: Mode, held: ExitStack, how: dict[str, Any]) -> PartialFile:
    fcpl, fapl = properties(**how)
    if mode != "w" and os.path.lexists(said):
        raise AlreadyExistsError(f"{printable(said)}: exists already; mode 'w' replaces it")
    place = NewFile.at(said, overwrite=mode == "w", remedy="mode 'w'")
    claim = held.enter_context(claimed(place, resume=False))
    with writing_to(said):
        descriptor = claim.make_partial()
    held.callback(os.close, descriptor)
    index = FileIndex(descriptor, said, fapl=fapl, fcpl=fcpl)
    target = PartialFile(descriptor, claim=claim, index=index)

    def let_go() -> None:
        if target.index is not None:
            target.index.give_up()

    held.callback(let_go)
    return target


def properties(
    libver: str | tuple[str, str] | None = None, track_order: bool | None = None
) -> tuple[Any, Any]:
    """Give the properties with which the file is made (`fcpl`), and opened (`fapl`)."""
    fcpl = h5p.create(h5p.FILE_CREATE)
    if track_order:
        order = h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED
        fcpl.set_link_creation_order(order)
        fcpl.set_attr_creation_order(order)
    return fcpl, access_list(libver)
