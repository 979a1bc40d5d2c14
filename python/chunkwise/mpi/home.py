"""What do the groups and datasets of a file that ranks write have in common?"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, TypeVar

import h5py
import numpy as np

from chunkwise.errors import ChunkwiseError, NameTakenError, UsageError, like
from chunkwise.mpi.committing import Chunked, Contiguous, Made
from chunkwise.mpi.encoding import Likeness, image_of
from chunkwise.mpi.session import Session, described
from chunkwise.mpi.target import PartialFile
from chunkwise.names import HDF5_ERRORS, hdf5_reason, printable
from chunkwise.newfile.index import Places
from chunkwise.newfile.target import writing_to
from chunkwise.writing.creating import Request, create

T = TypeVar("T")


class Home:
    """A file that ranks write, as one of them has it."""

    def __init__(self, session: Session, target: PartialFile, budget_nbytes: int) -> None:
        self.session, self.target = session, target
        self._budget_nbytes = budget_nbytes
        self._stored: dict[int, Chunked | Contiguous] = {}
        # On rank 0: the datasets by their numbers, and where their chunks lie.
        self._h5: list[h5py.Dataset] = []
        self._places: dict[int, Places] = {}

    @property
    def h5(self) -> h5py.File:
        """On rank 0: the file, as h5py has it."""
        assert self.target.index is not None
        return self.target.index.file

    def where(self, kind: str, path: str) -> str:
        """Begin a message."""
        return f"{self.session.label}: {kind} {printable(path)}"

    def first(self, what: str, same: str, work: Callable[[], T]) -> T:
        """Do something on rank 0, for which all ranks give the same arguments (collective)."""
        self.session.meet(what, None, same)
        return self.session.on_first(work)

    def changed(self, what: str, same: str, work: Callable[[], None]) -> None:
        """Change something but data on rank 0 (collective); what h5py refuses is said by name."""

        def change() -> None:
            try:
                work()
            except HDF5_ERRORS as error:
                if isinstance(error, ChunkwiseError):
                    raise
                reason = hdf5_reason(error)
                raise like(UsageError, error)(f"{self.session.label}: {what}: {reason}") from error

        self.first(what, same, change)

    # Of datasets -----------------------------------------------------------------------

    def make(self, path: str, request: Request) -> Made:
        """Make a dataset; on rank 0."""
        where = self.where("dataset", path)
        if self.h5.get(path, getlink=True) is not None:
            raise NameTakenError(f"{where}: exists already; choose another name")
        end = self.h5.id.get_filesize()
        created = create(self.h5["/"], path, where, request)
        dataset = created.dataset
        number = len(self._h5)
        self._h5.append(dataset)
        made = Made(number, path, dataset.shape or (), dataset.maxshape or (), created.effort)
        given = created.data is not None
        if request.data is not None and not given:
            # h5py has written it.
            return made._replace(reason="it was made with data that is not plain numbers")
        if dataset.chunks is not None:
            image = image_of(dataset.id)
            made = made._replace(image=image)
            with closing(Likeness(image, where)) as like_it:
                reason = like_it.refusal(made.effort)
        elif dataset.shape and not dataset.external and not dataset.is_virtual:
            made = self._allocated(made, dataset, end)
            reason = None
        else:
            reason = "it has no dimensions, or lies in other files"
        if reason is not None and given:
            dataset[...] = created.data
        return made._replace(reason=reason, rest=given and reason is None)

    def _allocated(self, made: Made, dataset: h5py.Dataset, end: int) -> Made:
        """Give a contiguous dataset its place, which reads as its fill value."""
        made = made._replace(encoded_type=dataset.id.get_type().encode())
        if dataset.size:
            # With the first element libhdf5 allocates all, and writes fill values that were given.
            dataset[(0,) * dataset.ndim] = dataset.fillvalue
            dataset.id.flush() if hasattr(dataset.id, "flush") else self.h5.flush()
            offset = int(dataset.id.get_offset())
            if offset < end and not np.any(dataset.fillvalue):
                # Where other data was before.
                self._zero(offset, min(end, offset + dataset.id.get_storage_size()))
            made = made._replace(offset=offset)
        return made

    def _zero(self, begin: int, end: int) -> None:
        zeros = bytes(1 << 20)
        while begin < end:
            begin += os.pwrite(self.target.descriptor, zeros[: end - begin], begin)

    def stored(self, made: Made) -> Chunked | Contiguous:
        """Return the writer of this rank's part of a dataset."""
        found = self._stored.get(made.number)
        if found is not None:
            return found
        label, session = self.where("dataset", made.path), self.session
        if made.reason is not None:
            raise UsageError(
                f"{label}: cannot be written by several processes: {made.reason}; give it as data "
                "when it is made, or write it on rank 0 with f.on_first"
            )
        descriptor = self.target.descriptor
        if made.image is None:
            found = Contiguous(made, label, session.comm.rank, descriptor)
        else:
            found = Chunked(
                made, label, session.comm, session.ask, descriptor, self._budget_nbytes
            )
        self._stored[made.number] = found
        return found

    def resize(self, made: Made, shape: tuple[int, ...]) -> None:
        """Let libhdf5 change a dataset's shape; on rank 0."""
        dataset = self._h5[made.number]
        dataset.resize(shape)
        if made.number in self._places:
            self._places[made.number].resized()

    def answer(self, _: int, question: tuple[str, int, Any]) -> Any:
        """Answer where chunks lie; on rank 0, on any thread."""
        kind, number, table = question
        places = self._places.get(number)
        if places is None:
            assert self.target.index is not None
            places = self._places[number] = self.target.index.places(self._h5[number].id)
        return places.allocate(table) if kind == "allocate" else places.find(table)

    # What waits ------------------------------------------------------------------------

    def balance(self) -> None:
        """Write some pending data, if all datasets together hold too much."""
        held = {number: one.held_nbytes for number, one in self._stored.items()}
        total = sum(held.values())
        while total > self._budget_nbytes and len(held) > 1:
            most = max(held, key=lambda number: held[number])
            self._stored[most].flush()
            total -= held.pop(most)

    def flush(self) -> None:
        """Write all that waits on this rank."""
        for one in self._stored.values():
            one.flush()

    def flushed(self) -> None:
        """Note that all ranks have flushed."""
        for one in self._stored.values():
            one.flushed()

    def h5_flush(self) -> None:
        """Let libhdf5 write what it has; on rank 0."""
        with writing_to(self.session.label, HDF5_ERRORS):
            self.h5.flush()
            os.fsync(self.target.descriptor)

    def close(self) -> None:
        """Let go of all datasets, with what waits."""
        for one in self._stored.values():
            one.close()
        self._stored.clear()
        self._h5.clear()
        self._places.clear()


class ParallelAttributes:
    """Attributes of an object of a file that ranks write; all is collective."""

    # They are set, not read: what all ranks have set they know.

    def __init__(self, home: Home, path: str) -> None:
        self._home, self._path = home, path

    def __setitem__(self, name: str, value: Any) -> None:
        """Set an attribute, as h5py does; all ranks give the same value."""
        what, same = "setting an attribute", f"{described(name)}: {described(value)}"
        self._change(what, same, lambda attrs: attrs.__setitem__(name, value))

    def update(self, values: Mapping[str, Any]) -> None:
        """Set several attributes; all ranks give the same ones."""
        self._change("setting attributes", described(values), lambda attrs: attrs.update(values))

    def __delitem__(self, name: str) -> None:
        """Remove an attribute."""
        self._change(
            "removing an attribute", described(name), lambda attrs: attrs.__delitem__(name)
        )

    def _change(self, what: str, same: str, work: Callable[[Any], None]) -> None:
        home, path = self._home, self._path
        home.changed(f"{what} of {path}", same, lambda: work(home.h5[path].attrs))
