"""What does it cost to open a file and list its contents, and where does that metadata lie?

libhdf5 does just that through a file object that records each of its
reads.  h5py's fileobj driver passes libhdf5's requests on one by one, without
reading ahead.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5d, h5g, h5i, h5l, h5o, h5s

from chunkwise._lib import library
from chunkwise.errors import CorruptDataError, FileFormatError
from chunkwise.files.mended import Mended, open_mended
from chunkwise.files.objects import HDF5_ERRORS
from chunkwise.files.stored import has_long_index, stored_nbytes
from chunkwise.files.superblock import Superblock, read_superblock
from chunkwise.files.unclosed import ReadOnlyFile, closed_patch, open_readable
from chunkwise.inspection.attributes import attribute_names
from chunkwise.inspection.facts import MetadataFacts
from chunkwise.inspection.format import free_nbytes

# Reads this close together count as one place: a disk or a network fetches the gap
# sooner than it seeks or asks again.
_GAP_NBYTES: Final = 4 << 10
# What readers that cache blocks of remote files fetch at least (fsspec and GDAL have
# blocks of 16 KiB to 5 MiB); h5py's users pass such readers as file objects.
_BLOCK_NBYTES: Final = 1 << 20

# Fixed and extensible arrays, by H5D_chunk_index_t.
_ARRAYS: Final = (3, 4)

_Phase = Literal["open", "list", "index"]
Offsets = npt.NDArray[np.int64]


def metadata_facts(
    path: str | os.PathLike[str], early: Mended | None = None
) -> MetadataFacts | None:
    """Record what opening a file, listing it and finding its chunks reads; see `recorded`."""
    return recorded(path, early)[0]


def recorded(
    path: str | os.PathLike[str], early: Mended | None = None
) -> tuple[MetadataFacts | None, bool]:
    """Record what opening a file, listing it and finding its chunks reads.

    Also tells whether HDF5 took all of it, without an error.

    Listing opens each object by its hard link, once, and each attribute, and reads no
    values: those of variable length lie on heaps that only reading them touches.  The
    metadata cache has libhdf5's default size, as a reader's has, so that what it evicts
    and reads again counts as that reader's requests.

    Two counts of metadata are in play.  ``nbytes`` is what was read; since libhdf5 reads
    object headers by 512 bytes and cuts off what is too much, it may hold some data or
    empty space.  ``unaccounted_nbytes`` is computed from the sizes that libhdf5 states
    itself (H5Oget_info), with which ``h5stat -S`` works as well.  h5stat also counts the
    superblock's extension, shared messages and the managers of free space (unaccounted
    here), the user block (here a part of neither), and compact data as raw data (here a
    part of its object header).  To both, global heaps, in which data of variable length
    lies, are unaccounted.
    """
    path = Path(path)
    try:
        superblock = read_superblock(path)
        with _Recorder(path, superblock, early) as recorder:
            # No chunk is read here, so that datasets need no tables for their caches.
            with h5py.File(recorder, "r", rdcc_nbytes=0) as file:
                recorder.phase = "list"
                accounts = _visit(file, recorder)
                free = free_nbytes(file)
            left = recorder.seek(0, os.SEEK_END) - accounts.metadata_nbytes - accounts.raw_nbytes
    except HDF5_ERRORS:
        return None, False
    if superblock is not None:
        left -= superblock.offset + len(superblock.content)
    unaccounted = max(0, left - free) if accounts.are_complete else None
    return _facts(recorder, accounts.raw_nbytes, unaccounted), accounts.is_sound


class _Recorder(ReadOnlyFile):
    """A file that records which bytes are read, in which phase."""

    def __init__(self, path: Path, superblock: Superblock | None, early: Mended | None) -> None:
        patches = (closed_patch(path, superblock),) if early is None else early.patches
        super().__init__(path, *patches)
        self._path = path
        self._early = early
        self._unrecorded: h5py.File | None = None
        self.phase: _Phase | None = "open"
        phases: tuple[_Phase, ...] = ("open", "list", "index")
        self.reads = {phase: (array("q"), array("q")) for phase in phases}

    def readinto(self, buffer: Any) -> int:
        begin = self.position
        count = super().readinto(buffer)
        if self.phase is not None:
            offsets, lengths = self.reads[self.phase]
            offsets.append(begin)
            lengths.append(count)
        return count

    def unrecorded(self, dataset: h5d.DatasetID) -> h5d.DatasetID:
        """Open a dataset of the file once more, so that nothing of its reads is recorded."""
        if self._unrecorded is None:
            self._unrecorded = (
                open_readable(self._path, rdcc_nbytes=0)
                if self._early is None
                else open_mended(self._path, self._early)
            )
        return h5d.open(self._unrecorded.id, h5i.get_name(dataset))

    def close(self) -> None:
        if self._unrecorded is not None:
            self._unrecorded.close()
        super().close()


class _Accounts:
    """Bytes that the objects take, as libhdf5 states them."""

    def __init__(self) -> None:
        self.metadata_nbytes = 0
        self.raw_nbytes = 0
        # h5py tells the sizes of indexes and heaps from 3.11 on.
        self.are_complete = True
        self.is_sound = True
        self._seen: set[int] = set()

    def add(self, found: Any) -> None:
        info = h5o.get_info(found)
        # The root group may be met again, by a link to it.
        if info.addr in self._seen:
            return
        self._seen.add(info.addr)
        sizes = getattr(info, "meta_size", None)
        if sizes is None:
            self.are_complete = False
            return
        self.metadata_nbytes += info.hdr.space.total
        self.metadata_nbytes += sizes.obj.index_size + sizes.obj.heap_size
        self.metadata_nbytes += sizes.attr.index_size + sizes.attr.heap_size


def _visit(file: h5py.File, recorder: _Recorder) -> _Accounts:
    """Open everything in a file as a listing would, and find the chunks.

    Not by `chunkwise.files.objects.walk`, which asks each object for its address: a listing
    takes that from the links, and reads nothing for it.
    """
    accounts = _Accounts()
    seen: set[int] = set()
    pending = [h5g.open(file.id, b"/")]
    while pending:
        group = pending.pop()
        for found in _members(group, seen, accounts):
            if isinstance(found, h5g.GroupID):
                pending.append(found)
            else:
                _look_into(found, recorder, accounts)
        # Only now: the account of a group reads what listing it reads, uncounted.
        _look_into(group, recorder, accounts)
    return accounts


def _members(group: Any, seen: set[int], accounts: _Accounts) -> Iterator[Any]:
    """Open what the hard links of a group lead to, but nothing twice."""
    try:
        names = list(group)
    except HDF5_ERRORS:
        accounts.is_sound = False
        return
    for name in names:
        try:
            link = group.links.get_info(name)
            if link.type == h5l.TYPE_HARD and link.u not in seen:
                seen.add(link.u)
                yield h5o.open(group, name)
        except HDF5_ERRORS:
            accounts.is_sound = False


def _look_into(found: Any, recorder: _Recorder, accounts: _Accounts) -> None:
    """Open an object's attributes, read the index of its chunks, and take account."""
    try:
        # Reads each header; opening attributes by number takes quadratic time and more.
        attribute_names(found)
        recorder.phase = "index"
        layout = _layout(found) if isinstance(found, h5d.DatasetID) else None
        same = found
        if layout == h5d.CHUNKED:
            same = _read_index(found, recorder)
        recorder.phase = None
        accounts.add(found)
        if layout is not None:
            accounts.raw_nbytes += stored_nbytes(same)
    except (*HDF5_ERRORS, CorruptDataError, FileFormatError):
        accounts.is_sound = False
    finally:
        recorder.phase = "list"


def _read_index(dataset: h5d.DatasetID, recorder: _Recorder) -> h5d.DatasetID:
    """Let libhdf5 read a whole chunk index; return the dataset, whose size is then known.

    libhdf5 goes through an array element by element, though it reads only what was written:
    seconds for one chunk of 30 million.  Looking up those that were written reads the same, but
    for blocks whose chunks are all gone, as the dataset was once larger.
    """
    if not has_long_index(dataset):
        dataset.get_num_chunks()
        return dataset
    same = recorder.unrecorded(dataset)
    chunks = library().chunk_census(same.id)
    if chunks["index_type"] in _ARRAYS:
        library().look_up_written(dataset.id, same.id)
    else:
        dataset.get_num_chunks()
    return same


def _layout(dataset: h5d.DatasetID) -> int | None:
    """Tell the layout of data that lies outside its object header and in this file."""
    dcpl = dataset.get_create_plist()
    layout = int(dcpl.get_layout())
    if layout == h5d.CONTIGUOUS:
        return None if dcpl.get_external_count() else layout
    if layout == h5d.CHUNKED and dataset.get_space().get_simple_extent_type() != h5s.NULL:
        return layout
    return None


def _facts(recorder: _Recorder, raw_nbytes: int, unaccounted_nbytes: int | None) -> MetadataFacts:
    phases = [
        (np.frombuffer(offsets, np.int64), np.frombuffer(lengths, np.int64))
        for offsets, lengths in recorder.reads.values()
    ]
    (_, opened), (_, listed), (_, indexed) = phases
    begins = np.concatenate([offsets for offsets, _ in phases])
    first, last = merged(begins, begins + np.concatenate([lengths for _, lengths in phases]))
    return MetadataFacts(
        open_requests=opened.size,
        open_nbytes=int(opened.sum()),
        list_requests=opened.size + listed.size,
        list_nbytes=int(opened.sum() + listed.sum()),
        index_requests=indexed.size,
        index_nbytes=int(indexed.sum()),
        nbytes=int((last - first).sum()),
        extents=merged(first, last, _GAP_NBYTES)[0].size,
        span_nbytes=int(last[-1] - first[0]),
        blocks=_blocks(first, last),
        raw_nbytes=raw_nbytes,
        unaccounted_nbytes=unaccounted_nbytes,
    )


def merged(begins: Offsets, ends: Offsets, gap: int = 0) -> tuple[Offsets, Offsets]:
    """Merge half-open intervals that overlap or are at most `gap` bytes apart."""
    order = np.argsort(begins, kind="stable")
    begins = begins[order]
    ends = np.maximum.accumulate(ends[order])
    apart = begins[1:] > ends[:-1] + gap
    return begins[np.append(True, apart)], ends[np.append(apart, True)]


def _blocks(first: Offsets, last: Offsets) -> int:
    """Count the blocks that hold any byte of merged intervals."""
    begin, end = first // _BLOCK_NBYTES, (last - 1) // _BLOCK_NBYTES
    shared = np.count_nonzero(begin[1:] == end[:-1])
    return int((end - begin + 1).sum()) - int(shared)
