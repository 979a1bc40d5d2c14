"""How does one process keep the index of a file whose chunks others write?

libhdf5 has the file open through h5py's file-object driver, whose object writes everything except
chunks, and notes where `H5Dwrite_chunk` would have written these.  The process that encoded the
bytes writes them there.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any, Final, Literal

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5d, h5f, h5fd, h5i, h5p

from chunkwise import system
from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.files.objects import Address, address_of
from chunkwise.files.unclosed import Positioned
from chunkwise.grammar.boxes import chunk_counts
from chunkwise.names import HDF5_ERRORS, hdf5_reason, printable, shown
from chunkwise.newfile.claim import Claim
from chunkwise.newfile.target import writing_to

# Rows of numbers, and one column.
Table = npt.NDArray[np.uint64]

# How HDF5 names the versions of the format that bound a file.
LIBVER: Final = {
    "earliest": "LIBVER_EARLIEST",
    "v108": "LIBVER_V18",
    "v110": "LIBVER_V110",
    "v112": "LIBVER_V112",
    "v114": "LIBVER_V114",
    "v200": "LIBVER_V200",
    "latest": "LIBVER_LATEST",
}
_RECORD: Final = np.dtype([("address", "u8"), ("stored_nbytes", "u8"), ("filter_mask", "u4")])


class _Accountant(Positioned):
    """A file that is written, except for what is only accounted for."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = os.dup(descriptor)
        # libhdf5 does not close what it cannot write: nothing of it counts any more.
        self.given_up = False
        # Never touched, so that it takes no memory.
        self._dummy = np.empty(0, np.uint8)
        self._begin = 0
        # The address where the last dummy would have been written.
        self.placed: int | None = None

    def dummy(self, nbytes: int) -> memoryview:
        """Bytes that nobody reads, which distinguish a chunk from everything else."""
        if self._dummy.nbytes < nbytes:
            self._dummy = np.empty(max(nbytes, 1 << 20), np.uint8)
            self._begin = self._dummy.ctypes.data
        self.placed = None
        return self._dummy[:nbytes].data

    def write(self, given: Any) -> int:
        data, at = memoryview(given).cast("B"), self.position
        place = np.frombuffer(data, np.uint8).ctypes.data if self._begin else -1
        if self._begin <= place < self._begin + self._dummy.nbytes:
            self.placed = at
        elif not self.given_up:
            system.pwrite_all(self._descriptor, data, at)
        self.position = at + data.nbytes
        return data.nbytes

    def readinto(self, given: Any) -> int:
        data = memoryview(given).cast("B")
        found = system.pread_into(self._descriptor, data, self.position)
        self.position += found
        return found

    def truncate(self, size: int | None = None) -> int:
        size = self.position if size is None else size
        if not self.given_up:
            os.ftruncate(self._descriptor, size)
        return size

    def end(self) -> int:
        return os.fstat(self._descriptor).st_size

    def flush(self) -> None:
        pass

    def writable(self) -> bool:
        return True

    def release(self) -> None:
        """Close the descriptor."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class FileIndex:
    """A file that is open in libhdf5 but for the bytes of its chunks."""

    # Any number of threads may use it; they take turns.

    def __init__(
        self,
        descriptor: int,
        label: str,
        mode: Literal["w", "r+"] = "w",
        *,
        fapl: Any = None,
        fcpl: Any = None,
    ) -> None:
        self._said, self._label = label, printable(label)
        self._lock = threading.RLock()
        self._places: dict[Address, Places] = {}
        self._held = _Accountant(descriptor)
        fapl = access_list() if fapl is None else fapl.copy()
        fapl.set_fileobj_driver(h5fd.fileobj_driver, self._held)
        # libhdf5 distinguishes files by the name.
        name = f"chunkwise-{id(self._held):x}".encode()
        try:
            if mode == "w":
                opened = h5f.create(name, h5f.ACC_TRUNC, fcpl=fcpl, fapl=fapl)
            else:
                opened = h5f.open(name, h5f.ACC_RDWR, fapl=fapl)
        except HDF5_ERRORS as error:
            self._held.release()
            raise CannotWriteError(
                f"{self._label}: cannot be opened for writing: {hdf5_reason(error)}"
            ) from error
        # Everything but chunks is made as ever; these are written where `places` says.
        self.file = h5py.File(opened)

    def places(self, dataset: h5d.DatasetID) -> Places:
        """Keep the places of a dataset's chunks."""
        with self._lock:
            key = address_of(dataset)
            if key not in self._places:
                self._places[key] = Places(self._held, self._lock, self._label, dataset)
            return self._places[key]

    def close(self) -> None:
        """Write what is left, and close the file."""
        with self._lock:
            try:
                # After a failed flush the file is as it was; after a failed close libhdf5 crashes.
                with writing_to(self._said, HDF5_ERRORS):
                    self.file.flush()
            except BaseException:
                self.give_up()
                raise
            self._close()

    def give_up(self) -> None:
        """Close a file that will be removed, and write nothing more to it."""
        # What libhdf5 cannot write, on a full disk, it does not close, and crashes on at the end.
        with self._lock:
            self._held.given_up = True
            with contextlib.suppress(CannotWriteError):
                self._close()

    def _close(self) -> None:
        try:
            with writing_to(self._said, HDF5_ERRORS):
                self.file.close()
        finally:
            self._places.clear()
            self._held.release()


@contextlib.contextmanager
def opened(claim: Claim, mode: Literal["w", "r+"]) -> Iterator[int]:
    """Make the partial file of a claim, or open it, for reading and writing."""
    # The system may say only at the end what it has not written.
    with writing_to(claim.place.said):
        descriptor = claim.make_partial() if mode == "w" else claim.open_partial(os.O_RDWR)
    try:
        yield descriptor
    finally:
        with writing_to(claim.place.said):
            os.close(descriptor)


@contextlib.contextmanager
def open_index(
    claim: Claim, mode: Literal["w", "r+"] = "w", fapl: Any = None
) -> Iterator[FileIndex]:
    """Open the partial file of a claim, and complete it when the block ends."""
    with opened(claim, mode) as descriptor:
        index = FileIndex(descriptor, claim.place.said, mode, fapl=fapl)
        try:
            yield index
        except BaseException as wrong:
            index.give_up()
            if isinstance(wrong, OSError) and wrong.errno:
                with writing_to(claim.place.said):
                    raise
            raise
        index.close()


class Places:
    """Where the chunks of one dataset lie; made by `FileIndex.places`."""

    # What `chunkwise._native` asks of an object that keeps the index of a dataset.

    def __init__(
        self, held: _Accountant, lock: threading.RLock, label: str, dataset: h5d.DatasetID
    ) -> None:
        self._held, self._lock, self._dataset = held, lock, dataset
        name = h5i.get_name(dataset) or b"a dataset without a name"
        self._label = f"{label}: '{printable(os.fsdecode(name))}'"
        if dataset.get_create_plist().get_layout() != h5d.CHUNKED:
            raise UsageError(f"{self._label}: has no chunks: give it a chunk shape")
        if dataset.get_num_chunks():
            raise UsageError(
                f"{self._label}: has chunks already; several processes write only datasets without"
            )
        self._chunk: tuple[int, ...] = dataset.get_create_plist().get_chunk()
        # By place in the grid.  Its pages take memory when something is noted there.
        self._records = np.zeros(self._counts(), _RECORD)

    def allocate(self, chunks: Table) -> Table:
        """Give chunks their places."""
        rank = len(self._chunk)
        places = np.empty(len(chunks), np.uint64)
        origin: tuple[int, ...] = ()
        with self._lock:
            try:
                for number, row in enumerate(chunks.tolist()):
                    origin = tuple(row[:rank])
                    places[number] = self._place(origin, *row[rank:])
            except (*HDF5_ERRORS, IndexError) as error:
                if isinstance(error, CannotWriteError):
                    raise
                raise CannotWriteError(
                    f"{self._label}: the chunk at element {list(origin)} cannot be noted in the "
                    f"file: {hdf5_reason(error)}"
                ) from error
        return places

    def _place(self, origin: tuple[int, ...], nbytes: int, mask: int) -> int:
        write, held = self._dataset.write_direct_chunk, self._held
        at = tuple(begin // n for begin, n in zip(origin, self._chunk, strict=True))
        former = self._records[at]
        if former["stored_nbytes"] == nbytes and former["filter_mask"] != mask:
            # With another length first, or libhdf5 keeps the mask as it was.
            write(origin, held.dummy(nbytes + 1), mask)
        write(origin, held.dummy(nbytes), mask)
        place = held.placed
        if place is None:
            raise CannotWriteError(
                f"{self._label}: libhdf5 gave the chunk at element {list(origin)} no place; "
                "write the file with one process"
            )
        self._records[at] = (place, nbytes, mask)
        return place

    def find(self, origins: Table) -> Table:
        """Return where chunks lie."""
        with self._lock:
            at = (origins // np.asarray(self._chunk, np.uint64)).T.astype(np.intp)
            found = self._records[tuple(at)]
            return np.stack([found[name].astype(np.uint64) for name in _RECORD.names or ()], 1)

    def resized(self) -> None:
        """Follow the dataset, which has another shape now."""
        with self._lock:
            made, former = np.zeros(self._counts(), _RECORD), self._records
            both = tuple(slice(min(a, b)) for a, b in zip(former.shape, made.shape, strict=True))
            made[both] = former[both]
            self._records = made

    def _counts(self) -> tuple[int, ...]:
        return chunk_counts(self._dataset.shape, self._chunk)


def access_list(libver: str | tuple[str, str] | None = None) -> Any:
    """Give the properties with which a new file is opened, for h5py's `libver`."""
    fapl = h5p.create(h5p.FILE_ACCESS)
    fapl.set_fclose_degree(h5f.CLOSE_STRONG)
    # Chunks that are kept there would later overwrite what others have written.
    fapl.set_sieve_buf_size(0)
    pair = ("earliest", "latest") if libver is None else libver
    low, high = (pair, "latest") if isinstance(pair, str) else pair
    for one in (low, high):
        if one not in LIBVER or not hasattr(h5f, LIBVER[one]):
            raise UsageError(f"libver {shown(libver)}: write one of {', '.join(LIBVER)}, or two")
    fapl.set_libver_bounds(getattr(h5f, LIBVER[low]), getattr(h5f, LIBVER[high]))
    return fapl
