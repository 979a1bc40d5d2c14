"""What is known about a file, its objects and how its datasets are stored?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, Final, Literal

from chunkwise.files.objects import Kind
from chunkwise.inspection.datatypes import ByteOrder
from chunkwise.inspection.finding import Finding
from chunkwise.inspection.records import plain
from chunkwise.model.far import Fetched
from chunkwise.model.layout import FileLayout, metadata_block, together
from chunkwise.model.purpose import Purpose
from chunkwise.patterns import interpretations
from chunkwise.remedy.fix import Fix
from chunkwise.remedy.records import Anew, Copy, Present
from chunkwise.remedy.spelling import spelled
from chunkwise.verdicts import FileVerdict, worst_verdict

# Of the dictionary that `--json` prints.
VERSION: Final = 2
Layout = Literal["chunked", "contiguous", "compact", "virtual", "external"]


def entry_nbytes(rank: int) -> int:
    """Return about how many bytes a stored chunk takes in the list of them."""
    # An entry of a version 1 B-tree (HDF5 File Format Specification, III.A.1).
    return 24 + 8 * rank


class TooShort(str):
    """Why a raw file is missing that is there: it ends too early, and HDF5 gives zeros."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Source:
    """Where the data of a virtual or external dataset lies."""

    file: str  # The file's name as written in the dataset; ``.`` is the dataset's own file
    dataset: str | None  # The path of the source dataset; None for an external (raw) file
    # Why it is not found; None if it is, or if ``%b`` stands for a series that may grow.
    missing: str | None


@dataclass(frozen=True, slots=True)
class ChunkFacts:
    """How the chunks of one dataset lie in the file."""

    shape: tuple[int, ...]  # Elements of a chunk along each dimension
    nbytes: int  # Bytes of a chunk before filters
    grid: int  # How many chunks cover the dataset's shape
    allocated: int  # How many are stored (H5Dget_num_chunks); `grid` less this were never written
    # How libhdf5 finds a chunk (H5Dget_chunk_index_type): ``v1 B-tree``, ``single chunk``,
    # ``implicit``, ``fixed array``, ``extensible array``, ``v2 B-tree``; None if nothing is stored
    # yet or the library does not say.
    index: str | None
    smallest_nbytes: int | None  # Stored bytes of a chunk; None if nothing is stored
    median_nbytes: int | None
    largest_nbytes: int | None
    # Stored chunks that at least one filter of the pipeline was not applied to: by their filter
    # mask, or as partial edge chunks (H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS); 0 without filters.
    unfiltered: int
    masked: int  # Of those, how many by their filter mask
    edge_nbytes: int  # Bytes (before filters) of the stored grid that lie beyond the shape
    pairs: int  # Pairs of stored chunks that follow each other in the array (C order)
    adjacent: int  # Of those pairs, how many whose bytes follow each other in the file, too
    backward: int  # Of those pairs, how many of which the second lies before the first
    span_nbytes: int  # From the first byte of the first chunk in the file to the last of the last
    # False if the library lists chunks under wrong coordinates: the following are 0.
    order_known: bool


@dataclass(frozen=True, slots=True)
class SampleFacts:
    """What a few whole chunks of a dataset say about its data."""

    chunks: int  # Chunks read; for a contiguous dataset, pieces
    raw_nbytes: int  # Their bytes before and after filters
    stored_nbytes: int
    # Seconds in which libhdf5 read them, one after the other, in one thread: fetch and decode.
    read_s: float
    # Pipelines that were tried on the sample, with the bytes that it took.
    encodings: tuple[Encoding, ...]

    def as_list(self) -> list[Any]:
        """Return it as plain JSON values."""
        return list(astuple(self))

    @classmethod
    def of(cls, values: Sequence[Any]) -> SampleFacts | None:
        """Undo `as_list`; None for what it did not write."""
        try:
            chunks, raw, stored, read_s, tried = values
            encodings = tuple(Encoding(*one) for one in tried)
            found = cls(chunks, raw, stored, read_s, encodings)
            return found if found.read_s > 0 and found.raw_nbytes > 0 else None
        except (TypeError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class Encoding:
    """What one pipeline makes of a sample: `raw_nbytes` become `nbytes`."""

    filters: str
    raw_nbytes: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Survival:
    """What a reader's default chunk cache keeps from one read for the neighbouring one."""

    reader: str  # `chunkwise.model.readers.Reader.name`
    # Chunks that the second of two equal reads decodes again.
    reloads: int
    collisions: int  # Chunks of the read that share a slot with another one of it; 0 without slots
    decodes: float  # How often reading the whole dataset so decodes each chunk, on average
    # Predicted seconds of reading the whole dataset so; None without a sample.
    total_s: float | None


@dataclass(frozen=True, slots=True)
class PatternFacts:
    """What a canonical access pattern costs."""

    # ``line along 0``, ``plane across 2``, ``chunk``, ``all``; with one dimension ``piece``.
    name: str
    block: tuple[int, ...]  # Its shape in elements
    # The chunks that one read touches; for a contiguous dataset, the separate pieces of the file.
    chunks: int
    # Bytes that one read takes, and that are decoded or, without filters, copied for it.
    selected_nbytes: int
    decoded_nbytes: int
    amplification: float  # The second divided by the first
    # Predicted seconds of one read with nothing cached, from the sample; None without.
    read_s: float | None
    survival: tuple[Survival, ...]  # For each reader


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """How one dataset is stored.

    Attributes
    ----------
    shape
        Elements along each dimension; ``()`` for a scalar, None for a null
        dataspace, which holds no element at all.
    maxshape
        As far as it can grow; None in place of a dimension means unlimited.
        None for a null dataspace.
    dimensions
        Names of the dimension scales, one per dimension, None if there is none;
        None for a dataset without any.
    is_scale
        Whether it is itself a dimension scale (H5DSis_scale).
    dtype
        The stored type in words (`chunkwise.inspection.datatypes.describe`).
    byte_order
        ``little``, ``big``, ``vax``, ``mixed``, or None if there is none.
    itemsize
        Bytes of one element as stored; for a type of variable length, of the
        reference that stands in its place.
    variable_length
        Whether the values lie on the file's heap, whose bytes are not counted.
    layout
        ``chunked``, ``contiguous``, ``compact`` (in the object header),
        ``virtual`` (mapped from other datasets) or ``external`` (raw files).
    sources
        Of a virtual or external dataset, each place once; else None.
    mappings
        How many mappings a virtual dataset has, or pieces an external one; else None.
    chunks
        How its chunks lie; None if not chunked.
    filters
        The pipeline in the project's grammar, ``none`` if there is none.
    unavailable_filters
        HDF5's numbers of the filters that the library in use lacks.
    fill_value
        In words; ``default`` (zero) or ``undefined`` if none was set.
    fill_time, allocation_time
        When the fill value is written (``never``, ``alloc``, ``if set``) and when
        space is allocated (``early``, ``late``, ``incremental``, ``default``).
    logical_nbytes
        Elements times `itemsize`; None for a type of variable length.
    stored_nbytes
        Bytes that its data takes in the file (H5Dget_storage_size); None for a
        virtual dataset, whose data lies elsewhere.
    ratio
        `logical_nbytes` over `stored_nbytes`, as `h5dump -p` gives it, absent
        chunks included; None if either is None or nothing is stored.
    sample
        What a sample of its data shows; None if none was taken.
    patterns
        What reading it costs; None if it was not computed.
    purpose
        What it is read by, as far as file and layout say it; None if patterns were stated.
    unlisted
        Of a chunked dataset without `chunks`, why its chunks cannot be listed.
    taken_for
        What each stated pattern was taken for, a sentence for each; empty without any.
    """

    shape: tuple[int, ...] | None
    maxshape: tuple[int | None, ...] | None
    dimensions: tuple[str | None, ...] | None
    is_scale: bool
    dtype: str
    byte_order: ByteOrder | None
    itemsize: int
    variable_length: bool
    layout: Layout
    sources: tuple[Source, ...] | None
    mappings: int | None
    chunks: ChunkFacts | None
    filters: str
    unavailable_filters: tuple[int, ...]
    fill_value: str
    fill_time: str
    allocation_time: str
    logical_nbytes: int | None
    stored_nbytes: int | None
    ratio: float | None
    sample: SampleFacts | None = None
    patterns: tuple[PatternFacts, ...] | None = None
    purpose: Purpose | None = None
    unlisted: str | None = None
    taken_for: tuple[str, ...] = ()

    @property
    def is_placed(self) -> bool:
        """Whether it has elements that lie in this file, at places that are known."""
        if not self.shape or 0 in self.shape or self.unlisted:
            return False
        return self.layout in ("chunked", "contiguous")

    @property
    def can_be_chunked(self) -> bool:
        """Whether it has elements of its own, and HDF5 says how they lie."""
        return self.is_placed and not self.variable_length


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """One name in the file.

    Attributes
    ----------
    path, depth, kind, target, reason
        As in `chunkwise.files.objects.Entry`.
    attributes
        How many attributes the object has; None for links and unreadable objects.
    unreadable_attributes
        Names of attributes that HDF5 cannot read, with its reason: ``units (...)``.
    dangling
        Whether a soft or external link leads nowhere.
    dataset
        For a dataset, how it is stored.
    linked
        Whether links lead there; only references do otherwise.
    """

    path: str
    depth: int
    kind: Kind
    attributes: int | None = None
    unreadable_attributes: tuple[str, ...] = ()
    target: str | None = None
    reason: str | None = None
    dangling: bool = False
    dataset: DatasetFacts | None = None
    linked: bool = True
    # For one that is unreadable, what that proves.
    verdict: FileVerdict = FileVerdict.SOUND


@dataclass(frozen=True, slots=True)
class FormatFacts:
    """The file format's own settings, from superblock and creation properties."""

    superblock_version: int  # 0 to 3
    # The oldest release series that opens all objects found: ``1.6`` to ``2.0``.
    oldest_reader: str
    userblock_nbytes: int  # Bytes before the HDF5 signature; 0 if there is no user block
    # How free space is managed (H5Pget_file_space_strategy).
    space_strategy: str
    space_persistent: bool  # Whether free space is remembered after the file is closed
    page_nbytes: int  # Bytes of a page; only of consequence with strategy ``page``
    free_nbytes: int  # Free space that the file keeps track of (H5Fget_freespace)
    # Marks that a writer left in the superblock: ``write``, ``swmr``; empty after a proper close.
    flags: tuple[str, ...]
    # With such marks, whether a process here has it open for writing; None if not known.
    being_written: bool | None = None
    # The stated end, if HDF5 therefore refuses what lies beyond; None if it reads everything.
    early_end: int | None = None
    # Why this process's HDF5 refuses a part of a sound file; None if it does not.
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class MetadataFacts:
    """What opening the file and listing everything in it reads."""

    # Requests of a reader that fetches one structure after the other, at least 512 bytes each.
    open_requests: int  # Reads to open the file and its root group
    open_nbytes: int
    list_requests: int  # All reads until each link, object header and attribute was seen
    list_nbytes: int
    index_requests: int  # Further reads for all chunk indexes
    index_nbytes: int
    nbytes: int  # Bytes of all these structures
    extents: int  # Separate places of the file that they lie in, gaps up to 4 KiB ignored
    span_nbytes: int  # From the first of these bytes to the last
    # 1 MiB blocks that hold structures: requests of a reader that caches such blocks.
    blocks: int
    raw_nbytes: int  # Bytes of the datasets' data in this file
    # What is left of the file: lost space, and heaps of variable-length data
    unaccounted_nbytes: int


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file, its objects in the order of the walk, and what is wrong with it.

    Attributes
    ----------
    path
        The file's path as given, or its URL without passwords.
    nbytes
        Its size.
    hdf5_version, h5py_version
        Versions of the HDF5 library that read it, such as ``2.0.0``, and of h5py.
    file_format
        The file's own settings.
    metadata
        What opening it costs; None for one dataset, or where it could not be found out.
    objects
        Every name in it, or only the requested dataset.
    findings
        The findings, the worst first.
    far
        What was fetched for these facts, of a file that was opened by a URL and not copied first.
    copy
        Of a URL, the name of a copy, which remedies and commands are for.
    """

    path: str
    nbytes: int
    hdf5_version: str
    h5py_version: str
    file_format: FormatFacts
    metadata: MetadataFacts | None
    objects: tuple[ObjectFacts, ...]
    findings: tuple[Finding, ...] = ()
    far: Fetched | None = None
    copy: str | None = None

    @property
    def taken_for(self) -> tuple[str, ...]:
        """What each stated pattern was taken for, once for all datasets; nothing without any."""
        datasets = ((one.path, one.dataset) for one in self.objects if one.dataset is not None)
        return interpretations(
            (path, one.logical_nbytes or 0, one.taken_for) for path, one in datasets
        )

    @property
    def verdict(self) -> FileVerdict:
        """What is said of the file, as far as its metadata and findings show."""
        return worst_verdict(finding.verdict for finding in self.findings)

    @property
    def layout(self) -> FileLayout | None:
        """How a copy is to be stored, without any finding that a layout mends; None if none is."""
        layout = together(one.layout for one in self.findings if one.layout is not None)
        if layout is None or layout.metadata_block_nbytes is None or self.metadata is None:
            return layout
        # The lists of fewer chunks need less room, and what is left of it is in no use.
        rest = self.metadata.nbytes - self._saved_nbytes(layout)
        return replace(layout, metadata_block_nbytes=metadata_block(rest))

    def _saved_nbytes(self, layout: FileLayout) -> int:
        """Estimate by how many bytes the lists of chunks become shorter."""
        datasets = {one.path: one.dataset for one in self.objects}
        saved = 0
        for one in layout.datasets:
            dataset = datasets.get(one.path)
            if one.chunk is None or dataset is None or dataset.chunks is None:
                continue
            pairs = zip(dataset.shape or (), one.chunk, strict=True)
            fewer = dataset.chunks.allocated - math.prod(-(-n // c) for n, c in pairs)
            saved += fewer * entry_nbytes(len(one.chunk))
        return saved

    @property
    def commands(self) -> tuple[Fix, ...]:
        """The commands that fix all findings that a layout fixes; one of them is enough."""
        layout = self.layout
        if layout is None:
            return ()
        now = {
            one.path: Present(one.dataset.filters, shape=one.dataset.shape)
            for one in self.objects
            if one.dataset is not None
        }
        copy = Copy(
            self.copy or self.path,
            tuple(
                Anew(one.path, one.chunk, one.filters, now[one.path]) for one in layout.datasets
            ),
            layout,
            frozenset(one.filters for one in now.values() if layout.datasets),
            exact=True,
            by_us=bool(self.file_format.flags),
        )
        return spelled([copy])

    def as_dict(self) -> dict[str, Any]:
        """Give the facts as the dictionary that ``--json`` prints (docs/inspect.md)."""
        return {
            "format": "chunkwise-inspect",
            "version": VERSION,
            "verdict": str(self.verdict),
            "exit_code": int(self.verdict.exit),
            **plain(self),
            "error": None,
            "commands": plain(self.commands),
        }
