"""How does a file that many write come into place, whole or not at all?

It is created under another name beside the target, as in repack, and gets the target's name when
it is complete and on storage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import h5py

from chunkwise.dask.cluster import Cluster, results_of
from chunkwise.dask.flat import flat_places
from chunkwise.dask.lease import Lease
from chunkwise.dask.local import Local
from chunkwise.dask.pieces import Piece, Target, token
from chunkwise.dask.tasks import Form
from chunkwise.errors import ChunkwiseError
from chunkwise.grammar import Effort
from chunkwise.mpi.encoding import Likeness, image_of
from chunkwise.names import printable
from chunkwise.newfile.claim import Claim, claimed
from chunkwise.newfile.index import FileIndex
from chunkwise.newfile.publish import publish
from chunkwise.newfile.target import NewFile, cannot_write

if TYPE_CHECKING:
    from chunkwise.dask.finding import Scheduler


@dataclass
class Written:
    """The result of writing.

    Attributes
    ----------
    nbytes
        Of all elements.
    stored_nbytes
        Of all chunks, after filters.
    blocks
        Tasks by which they were written.
    again
        Blocks that were computed again, after a worker was lost, and then were of other bytes.
    by_client
        Datasets that this process wrote by itself, and why.
    """

    nbytes: int = 0
    stored_nbytes: int = 0
    blocks: int = 0
    again: int = 0
    by_client: dict[str, str] = field(default_factory=dict)


def target_of(
    index: FileIndex, dataset: h5py.Dataset, name: str, said: str, effort: Effort = "as-stated"
) -> Target:
    """Make a dataset of the open file one that workers write."""
    if dataset.chunks is None:
        flat = flat_places(dataset)
        return Target(name, flat, flat.form, dataset.nbytes)
    label = f"{printable(said)}: '{printable(name)}'"
    image = image_of(dataset.id)
    like = Likeness(image, label)
    try:
        like.writer((None, 0), effort=effort)
    finally:
        like.close()
    places = index.places(dataset.id)
    return Target(name, places, Form(image, label, effort), dataset.nbytes)


@contextmanager
def new_file(target: str | os.PathLike[str], *, overwrite: bool) -> Iterator[Claim]:
    """Hold the names for a new file, and bring it into place when the block ends."""
    place = NewFile.at(target, overwrite=overwrite)
    with claimed(place, resume=False) as claim:
        yield claim
        publish(claim)


@contextmanager
def open_index(claim: Claim, mode: Any = "w", fapl: Any = None) -> Iterator[FileIndex]:
    """Open the partial file, and complete it when the block ends."""
    said = claim.place.said
    with ExitStack() as stack:
        try:
            make = claim.make_partial if mode == "w" else lambda: claim.open_partial(os.O_RDWR)
            descriptor = make()
        except OSError as wrong:
            raise cannot_write(said, wrong) from wrong
        stack.callback(_close, descriptor, said)
        index = FileIndex(descriptor, said, mode, fapl=fapl)
        try:
            yield index
            index.file.flush()
        except BaseException as wrong:
            index.give_up()
            ours = isinstance(wrong, ChunkwiseError)
            if isinstance(wrong, OSError) and wrong.errno and not ours:
                raise cannot_write(said, wrong) from wrong
            raise
        index.close()


def _close(descriptor: int, said: str) -> None:
    """Close the partial file; the system may say only now what it has not written."""
    try:
        os.close(descriptor)
    except OSError as wrong:
        raise cannot_write(said, wrong) from wrong


def write_pieces(
    claim: Claim,
    pieces: Iterable[Piece],
    scheduler: Scheduler,
    *,
    in_flight: int | None = None,
    tell: Callable[[Piece], None] = lambda _: None,
) -> tuple[int, int]:
    """Write pieces of the datasets of an open index."""
    with ExitStack() as stack:
        runner: Cluster | Local
        if isinstance(scheduler, str):
            descriptor = claim.open_partial(os.O_RDWR)
            stack.callback(_close, descriptor, claim.place.said)
            runner = Local(scheduler, descriptor, tell)
        else:
            lease = Lease(claim)
            stack.callback(lease.close)
            runner = Cluster(scheduler, lease, claim.place.said, in_flight, tell)
            stack.callback(lease.end)
        stack.callback(runner.stop)
        blocks = 0
        for _ in runner.write(pieces):
            blocks += 1
        return blocks, runner.again


def run_tasks(
    scheduler: Scheduler, work: Sequence[Callable[[], Any]], name: str, said: str
) -> Iterator[Any]:
    """Do independent tasks, and yield their results in order."""
    if not isinstance(scheduler, str):
        yield from results_of(scheduler, work, name, said)
        return
    import dask.local
    import dask.threaded

    get = dask.threaded.get if scheduler == "threads" else dask.local.get_sync
    keys = [f"{name}-{token()}{number:x}" for number in range(len(work))]
    if keys:
        yield from get({key: (one,) for key, one in zip(keys, work, strict=True)}, keys)
