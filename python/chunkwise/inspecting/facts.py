"""What is known about a file, its objects and how its datasets are stored?

Plain records, which can be printed, compared and written as JSON.  These modules make
them: `collect` (objects and datasets), `format` (the file itself),
`metadata` (what opening it costs), `patterns` and `sampling`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

from chunkwise.advise.combined import Stored, commands
from chunkwise.advise.fix import Fix
from chunkwise.advise.layout import FileLayout, metadata_block, together
from chunkwise.files.objects import Kind
from chunkwise.inspecting.datatypes import ByteOrder
from chunkwise.inspecting.finding import Finding
from chunkwise.inspecting.records import plain
from chunkwise.verdicts import Verdict, worst_verdict

Layout = Literal["chunked", "contiguous", "compact", "virtual", "external"]


def entry_nbytes(rank: int) -> int:
    """Return about how many bytes a stored chunk takes in the list of them.

    Counted is an entry of a version 1 B-tree (HDF5 File Format Specification, III.A.1):
    stored size and filter mask, an offset for each dimension and one more, an address.
    """
    return 24 + 8 * rank


@dataclass(frozen=True, slots=True)
class Source:
    """Where the data of a virtual or external dataset lies.

    Attributes
    ----------
    file
        The file's name as written in the dataset; ``.`` is the dataset's own file.
    dataset
        The path of the source dataset; None for an external (raw) file.
    missing
        Why it cannot be found, in a few words; None if it can, or if names with
        ``%b`` stand for a series of files that may grow.
    """

    file: str
    dataset: str | None
    missing: str | None


@dataclass(frozen=True, slots=True)
class ChunkFacts:
    """How the chunks of one dataset lie in the file.

    Attributes
    ----------
    shape
        Elements of a chunk along each dimension.
    nbytes
        Bytes of a chunk before filters.
    grid
        How many chunks cover the dataset's shape.
    allocated
        How many are stored (H5Dget_num_chunks); `grid` less this were never written.
    index
        How libhdf5 finds a chunk (H5Dget_chunk_index_type): ``v1 B-tree``,
        ``single chunk``, ``implicit``, ``fixed array``, ``extensible array``,
        ``v2 B-tree``; None if nothing is stored yet or the library does not tell.
    smallest_nbytes, median_nbytes, largest_nbytes
        Stored bytes of a chunk; None if nothing is stored.
    unfiltered
        Stored chunks that at least one filter of the pipeline was not applied to:
        by their filter mask, or as partial edge chunks
        (H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS); 0 without filters.
    masked
        Of those, how many by their filter mask.
    edge_nbytes
        Bytes (before filters) of the stored grid that lie beyond the shape.
    pairs
        Pairs of stored chunks that follow each other in the array (C order).
    adjacent
        Of those pairs, how many whose bytes follow each other in the file, too.
    backward
        Of those pairs, how many of which the second lies before the first.
    span_nbytes
        From the first byte of the first chunk in the file to the last of the last.
    order_known
        False if the library lists chunks under wrong coordinates, so that
        `pairs`, `adjacent` and `backward` are 0 (docs/architecture.md).
    """

    shape: tuple[int, ...]
    nbytes: int
    grid: int
    allocated: int
    index: str | None
    smallest_nbytes: int | None
    median_nbytes: int | None
    largest_nbytes: int | None
    unfiltered: int
    masked: int
    edge_nbytes: int
    pairs: int
    adjacent: int
    backward: int
    span_nbytes: int
    order_known: bool


@dataclass(frozen=True, slots=True)
class SampleFacts:
    """What a few whole chunks of a dataset say about its data.

    Attributes
    ----------
    chunks
        Chunks read; for a contiguous dataset, pieces.
    raw_nbytes, stored_nbytes
        Their bytes before and after filters.
    read_s
        Seconds in which libhdf5 read them, one after the other, in one thread: fetch and
        decode.
    encodings
        Pipelines that were tried on the sample, with the bytes that it took.
    """

    chunks: int
    raw_nbytes: int
    stored_nbytes: int
    read_s: float
    encodings: tuple[Encoding, ...]


@dataclass(frozen=True, slots=True)
class Encoding:
    """What one pipeline makes of a sample: `raw_nbytes` become `nbytes`."""

    filters: str
    raw_nbytes: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Survival:
    """What a reader's default chunk cache keeps from one read for the neighbouring one.

    Attributes
    ----------
    reader
        `chunkwise.advise.readers.Reader.name`.
    reloads
        Chunks that the second of two equal reads fetches and decodes again; 0 if
        everything survives.
    collisions
        Chunks of the read that share a slot with another one of it; 0 without slots.
    decodes
        How often reading the whole dataset so decodes each chunk, on average.
    total_s
        Predicted seconds of reading the whole dataset so; None without a sample.
    """

    reader: str
    reloads: int
    collisions: int
    decodes: float
    total_s: float | None


@dataclass(frozen=True, slots=True)
class PatternFacts:
    """What a canonical access pattern costs.

    Attributes
    ----------
    name
        ``line along 0``, ``plane across 2`` (all but dimension 2), ``chunk``, ``all``; of
        a dataset with one dimension ``piece``, 4 KiB of it.
    block
        Its shape in elements.
    chunks
        The chunks that one read touches; for a contiguous dataset, the separate
        pieces of the file.
    selected_nbytes, decoded_nbytes
        Bytes that one read asks for, and bytes that must be decoded (or, without filters,
        copied) for it.
    amplification
        The second divided by the first.
    read_s
        Predicted seconds of one read with nothing cached, from the sample; None without.
    survival
        For each reader.
    """

    name: str
    block: tuple[int, ...]
    chunks: int
    selected_nbytes: int
    decoded_nbytes: int
    amplification: float
    read_s: float | None
    survival: tuple[Survival, ...]


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
        The stored type in words (`chunkwise.inspecting.datatypes.describe`).
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
    unlisted
        Of a chunked dataset without `chunks`, why its chunks cannot be listed.
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
    unlisted: str | None = None


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
    verdict: Verdict = Verdict.SOUND


@dataclass(frozen=True, slots=True)
class FormatFacts:
    """The file format's own settings, from superblock and creation properties.

    Attributes
    ----------
    superblock_version
        0 to 3.
    oldest_reader
        The oldest release series that can open all objects met: ``1.6``, ``1.8``,
        ``1.10``, ``1.12`` or ``2.0``.
    userblock_nbytes
        Bytes before the HDF5 signature; 0 if there is no user block.
    space_strategy
        How free space is managed (H5Pget_file_space_strategy): ``fsm_aggr``,
        ``page``, ``aggr``, ``none``.
    space_persistent
        Whether free space is remembered after the file is closed.
    page_nbytes
        Bytes of a page; only of consequence with strategy ``page``.
    free_nbytes
        Free space that the file keeps track of (H5Fget_freespace).
    flags
        Marks that a writer left in the superblock: ``write``, ``swmr``; empty
        after a proper close.
    being_written
        With such marks, whether a process of this machine has it open for writing; None if that
        is not known.
    """

    superblock_version: int
    oldest_reader: str
    userblock_nbytes: int
    space_strategy: str
    space_persistent: bool
    page_nbytes: int
    free_nbytes: int
    flags: tuple[str, ...]
    being_written: bool | None = None


@dataclass(frozen=True, slots=True)
class MetadataFacts:
    """What opening the file and listing everything in it reads, call by call.

    Recorded while libhdf5 did just that through a file object, so that these are
    libhdf5's own requests; from object storage without a cache each would be one.

    Attributes
    ----------
    open_requests, open_nbytes
        Reads to open the file and its root group.
    list_requests, list_nbytes
        All reads until each link, object header and attribute was seen.
    index_requests, index_nbytes
        Further reads for all chunk indexes.
    nbytes
        Bytes of the file that were read by any of these, each counted once.
    extents
        Separate places of the file that they lie in, gaps up to 4 KiB ignored.
    span_nbytes
        From the first of these bytes to the last.
    blocks
        1 MiB blocks of the file that hold any of them: requests of a reader that
        fetches and caches such blocks.
    raw_nbytes
        Bytes of the datasets' data in this file.
    unaccounted_nbytes
        What is left of the file: lost space, and heaps of variable-length data; None
        before h5py 3.11, which does not tell the sizes of objects.
    """

    open_requests: int
    open_nbytes: int
    list_requests: int
    list_nbytes: int
    index_requests: int
    index_nbytes: int
    nbytes: int
    extents: int
    span_nbytes: int
    blocks: int
    raw_nbytes: int
    unaccounted_nbytes: int | None


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file, its objects in the order of the walk, and what is wrong with it.

    Attributes
    ----------
    path
        The file's path as given.
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
    """

    path: str
    nbytes: int
    hdf5_version: str
    h5py_version: str
    file_format: FormatFacts
    metadata: MetadataFacts | None
    objects: tuple[ObjectFacts, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """What is said of the file, as far as its metadata and findings tell."""
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
        """The commands that fix all findings that a layout fixes; one of them is enough.

        ``chunkwise repack`` first, then other tools that can; none where no layout mends anything.
        """
        layout = self.layout
        if layout is None:
            return ()
        stored = {
            one.path: Stored(one.dataset.filters, one.dataset.shape)
            for one in self.objects
            if one.dataset is not None
        }
        return commands(self.path, layout, stored, closed=not self.file_format.flags)

    def as_dict(self) -> dict[str, Any]:
        """Give the facts as the dictionary that ``--json`` prints (docs/inspect.md)."""
        return {
            "format": "chunkwise-inspect",
            "version": 2,
            "verdict": str(self.verdict),
            "exit_code": int(self.verdict.exit),
            **plain(self),
            "error": None,
            "commands": plain(self.commands),
        }
