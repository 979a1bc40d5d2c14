"""Types of the Rust extension module: what it takes, gives and raises."""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Final, Literal, Protocol, TypedDict, final, type_check_only

import numpy as np
import numpy.typing as npt

__version__: str
# Reasons of `Dataset` that are not the last word.
VIRTUAL_LAYOUT: str
EXTERNAL_LAYOUT: str

# Start, stride, count and block, one value a dimension each.
Hyperslab = tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]]
# One hyperslab, or the union of several.
Hyperslabs = Hyperslab | Sequence[Hyperslab]
# Choices along neighbouring dimensions: start, step and count of one; or coordinates of points.
Factor = tuple[int, int, int] | list[npt.NDArray[np.uint64]]

@type_check_only
class WalkResult(TypedDict):
    """What a timed walk over an array measured."""

    operations: int  # Selections that were read
    total_operations: int
    elapsed_s: float  # Of the reads alone
    selected_nbytes: int
    latencies_s: list[float]  # Of each operation, in order, at most 100,000 of them
    # Of `elapsed_s`: opening the dataset for each operation, and putting unions together; or None.
    open_s: float | None
    select_s: float | None
    # By a number of operations (1, 2, 4, ...), the CRC-32 of all bytes read so far.  Not timed.
    checksums: dict[int, int]

@type_check_only
class EngineWalkResult(WalkResult, total=False):
    """The same by chunkwise, and why libhdf5 had to read; missing where it had not."""

    fallback: str

@type_check_only
class WritePhases(TypedDict):
    """Seconds of a timed write besides the writes themselves."""

    create_s: float  # To create file and dataset
    flush_s: float  # To hand everything to the system: a library may keep what it is given
    close_s: float  # To close dataset and file
    sync_s: float  # Until the system has it on storage

@type_check_only
class WriteResult(WalkResult, WritePhases):
    """What a timed walk measured that wrote an array into a new file."""

    # Checksums are those of the bytes given to be written, which were gathered untimed.

@type_check_only
class HDF5WriteResult(WriteResult):
    """The same by libhdf5, and the slots, bytes and w0 of the cache in force."""

    chunk_cache: tuple[int, int, float]

@type_check_only
class EngineWriteResult(WriteResult, total=False):
    """The same by the engine; the first three are there only if it wrote."""

    encoded_chunks: int
    read_back_chunks: int  # Of these, those whose stored bytes had to be read back
    encoder: str | None  # Chosen for deflate
    fallback: str  # Why libhdf5 wrote in its place, and its cache
    chunk_cache: tuple[int, int, float]

@type_check_only
class ChunkCensus(TypedDict):
    """What is common to the stored chunks of a dataset."""

    index_type: int | None  # H5D_chunk_index_t; None if nothing is stored or HDF5 does not say
    allocated: int
    stored_nbytes: int | None  # None if chunks cannot be listed
    # Stored bytes of the smallest, the middle and the largest; None also where none is stored.
    sizes: tuple[int, int, int] | None
    unfiltered: int
    masked: int
    # Of chunks in C order: the elements of the dataset that they cover; pairs of one chunk and the
    # next; pairs without a gap in the file; pairs of which the second lies before the first; the
    # bytes from the first in the file to the end of the last.  None if it is not known which is
    # which.
    placement: tuple[int, int, int, int, int] | None

@type_check_only
class FilterTally(TypedDict):
    """What libhdf5's calls of one filter came to."""

    name: str
    # A number of calls, their seconds, the bytes given to them, the bytes that came out.
    decode: tuple[int, float, int, int]
    encode: tuple[int, float, int, int]

@final
class Library:
    """A libhdf5, bound at run time (DESIGN: the one that made the handles)."""

    # Handles must be live ones of this library.  Facts about chunks raise `CorruptDataError` if
    # the file does not give them.

    @staticmethod
    def from_handle(
        dataspace: tuple[int, tuple[int, ...]], modules: Sequence[str], lock: Any
    ) -> Library:
        """The libhdf5 that made a handle."""
        # `dataspace` is a dataspace's handle and its extents, which no other library's can have by
        # chance.  Tried are the libraries to which the loaded `modules` (paths) lead, then all
        # that are loaded.  `lock` has ``acquire`` and ``release`` and is held during every call.
        # Raises `LibraryError`, with all that was tried.
    @staticmethod
    def from_path(path: str) -> Library:
        """Load the libhdf5 at `path`.  Raises `LibraryError`."""
    @staticmethod
    def from_process() -> Library:
        """The one libhdf5 loaded in this process; `LibraryError` for none or several."""
    def chunk_census(self, dataset_id: int) -> ChunkCensus:
        """Take the census of a chunked dataset's chunks, from its index alone."""
    def written_origins(self, dataset_id: int, most: int) -> list[list[int]]:
        """Return the origins of the first `most` written chunks, in the array's order."""
    def unfiltered_partial_chunks(self, dataset_id: int) -> bool:
        """Return whether chunks at a dataset's edge are stored without filters."""
    def tally(self, filters: Sequence[int]) -> dict[int, FilterTally]:
        """Count the calls of filters from now on if not already; return the counts."""
        # By HDF5's numbers, for all datasets; a filter whose function is not found is missing.
    def chunk_listing(self, dataset_id: int, storage: Storage | None = None) -> ChunkListing:
        """List the chunks of an open dataset of this library."""
        # `storage` holds the bytes of its file, where that is no local one.
    def chunk_table(self, dataset_id: int) -> ChunkTable:
        """List the chunks of a chunked dataset."""
    def chunk_table_of(self, path: str, name: str) -> ChunkTable:
        """The same for the dataset `name` of the file at `path`, opened for it."""
        # Raises also `LibraryError`.
    version: Final[tuple[int, int, int]]
    path: Final[str]

@type_check_only
class NetCdfWriteResult(WriteResult):
    """The same by netCDF-C, and the cache in force: slots, bytes, w0; None without chunks."""

    chunk_cache: tuple[int, int, float] | None

@final
class NetCdf:
    """A libnetcdf, bound at run time.  Raises `LibraryError`."""

    def __new__(cls, path: str) -> NetCdf: ...
    version: Final[str]
    path: Final[str]
    def open(
        self, file: str, variable: str, cache: tuple[int, int, float] | None
    ) -> NetCdfVariable:
        """Open a file, and find a variable in it."""
        # `cache` is the slots, bytes and preemption policy of the variable's chunk cache
        # (nc_set_var_chunk_cache); None leaves netCDF-C's.  Raises `FileFormatError`,
        # `DatasetNotFoundError`, `UsageError`, `CorruptDataError`.
    def convert(self, source: str, target: str, slab_nbytes: int) -> None:
        """Write the netCDF-3 file `source` as the new netCDF-4 file `target`."""
        # Dimensions, variables, types, values and attributes are the same; at most `slab_nbytes`
        # of data are held.  Raises, leaving no file: `FileFormatError`, `CorruptDataError`,
        # `CannotWriteError` (also for a file that exists), `UsageError`, `LibraryError`.
    def write_walk(
        self,
        path: str,
        variable: str,
        dtype: str,
        big_endian: bool,
        shape: Sequence[int],
        chunks: Sequence[int] | None,
        filters: Sequence[tuple[int, Sequence[int]]],
        cache: tuple[int, int, float] | None,
        data: npt.NDArray[np.uint8],
        walk: Walk,
        max_operations: int,
        max_seconds: float,
        *,
        fill: bool = True,
        format: str = "netcdf4",
    ) -> NetCdfWriteResult:
        """Create a file at `path`, and write selection by selection with nc_put_vara."""
        # Or with nc_put_vars where there is a stride.  `variable` is an HDF5 path, whose groups
        # are made.  `dtype` is ``i1`` to ``i8``, ``u1`` to ``u8``, ``f4`` or ``f8``, stored
        # big-endian or little-endian; `data` are all elements in C order and in the machine's byte
        # order, as one row of bytes, which nobody may change meanwhile. `chunks` None is
        # contiguous.  `filters` are HDF5's numbers and cd_values, in the order in which a chunk
        # passes them when it is written.  `cache` is the slots, bytes and preemption policy of the
        # chunk cache; None leaves netCDF-C's.  Without `fill`, what is never written holds
        # anything (NC_NOFILL).  `format` is ``netcdf4`` (HDF5), or one of netCDF-3's, which have
        # no groups, chunks, filters and cache, and are big-endian: ``classic``, ``64bit-offset``,
        # ``64bit-data``.
        # ``create_s`` is that of nc_create up to nc_enddef, ``flush_s`` of nc_sync, ``close_s`` of
        # nc_close, ``sync_s`` of fsync.  Raises, leaving no file: `CannotWriteError` (also for a
        # file that exists), `UsageError` for what netCDF-C cannot make, `SelectionError`,
        # `OutOfMemoryError`, `LibraryError` where it is too old.

@final
class NetCdfVariable:
    """A variable in a file that is open; closed with it."""

    # The cache in force: slots, bytes, w0; None for netCDF-3.
    chunk_cache: Final[tuple[int, int, float] | None]
    def walk(self, walk: Walk, max_operations: int, max_seconds: float) -> WalkResult:
        """Read selection by selection with nc_get_vara, or nc_get_vars where there is a stride."""
        # Values, and so checksums, are in the machine's byte order.  Raises `UsageError`,
        # `SelectionError`, `OutOfMemoryError`, `CorruptDataError`.

@final
class Walk:
    """What a timed walk reads, or writes: selections, one after another."""

    # Blocks of shape `block` over an array of `shape`, clipped at its edges; in C order, or with
    # the dimensions of `order` from the slowest to the fastest, or at random, no block twice
    # (`seed` chooses the order).  `limit` keeps the first ones only. Raises
    # `SelectionError`.
    def __new__(
        cls,
        shape: Sequence[int],
        block: Sequence[int],
        order: Sequence[int] | None = None,
        seed: int | None = None,
        limit: int | None = None,
    ) -> Walk: ...
    @staticmethod
    def listed(shape: Sequence[int], selections: Sequence[Hyperslabs]) -> Walk:
        """Hyperslabs and unions, in the order given.  Raises `SelectionError`."""
    @staticmethod
    def cells(shape: Sequence[int], planes: int, count: int, seed: int) -> Walk:
        """Draw `count` unions of cells between random cut planes, as in paper 003."""
        # Each dimension of n elements is cut at `planes` different of its n + 1 boundaries (at all
        # of them where it has fewer); every choice is as likely as any other.  Of the cells
        # between neighbouring planes each is taken with probability 1/2; where none is, planes and
        # cells are drawn again.  A `seed` gives the same unions on every machine.  Raises
        # `SelectionError`.
    operations: Final[int]  # How many selections there are
    def __getitem__(self, number: int, /) -> Any:
        """Start, stride, count and block of one selection; of a union, a list of these."""
        # IndexError beyond the last.

@final
class Selection:
    """Elements of an array of known shape; made by `select_index` and `select_hyperslabs`."""

    shape: Final[list[int]]  # Shape of the result
    # Choices of each factor: 1 of an integer; arrays that pair up are one factor.
    choices: Final[list[int]]
    dropped: Final[list[bool]]  # Of each of `choices`, whether an integer has dropped it
    # Start, stride, count and block; None of anything but a single hyperslab.
    hyperslab: Final[tuple[list[int], list[int], list[int], list[int]] | None]
    # The same of all that make up a union; None of what is a product of factors.
    hyperslabs: Final[list[Hyperslab] | None]
    # What each factor of a product chooses, slowest dimensions first; nothing of others.
    factors: Final[list[Factor]]
    is_mask: Final[bool]  # Whether it is a single mask

@final
class ChunkListing:
    """All chunks of a dataset that were written, in row-major order."""

    grid_len: Final[int]  # Chunks of the grid, written or not
    written: Final[int]
    stored_nbytes: Final[int]
    furthest: Final[int]  # One past the last byte of any chunk in the file
    any_mask: Final[int]  # Every bit that is set in the filter mask of some chunk
    any_partial: Final[bool]  # Whether some chunk reaches beyond the dataset's shape
    def columns(
        self,
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """Positions in the grid, addresses in the file and stored bytes."""
    def masks(self) -> npt.NDArray[np.uint32]:
        """Filter masks of the written chunks, in the same order; empty if all are 0."""
    def references(self, begin: int, count: int, prefix: bytes, url: bytes) -> bytes:
        """Lines of Kerchunk's JSON for `count` chunks, from number `begin` on."""
        # Each is a key, `prefix` and the chunk's place, and a list of `url`, address and bytes.
    def saved(self) -> tuple[bool, int, bytes]:
        """What `SavedChunks` reads."""
        # Whether there is an entry for each chunk of the grid, how many entries, and their bytes.

@final
class SavedChunks:
    """A file that has what `ChunkListing.saved` gave.  Raises `FileFormatError`."""

    def __new__(cls, path: str) -> SavedChunks: ...

@final
class ChunkTable:
    """The chunks of a dataset: their filters, and where they lie."""

    filters: Final[list[int]]  # HDF5's numbers of the filters, in the order of the pipeline
    # Of those, the filters applied to every stored chunk, once: each counts loads.
    always_applied: Final[list[int]]
    def touches(self, walk: Walk, operations: int) -> tuple[int | None, int | None]:
        """Stored chunks that the first selections touch, and how many different ones."""
        # A chunk counts once for each selection that touches it; one that was never written does
        # not.  None if there are too many to be counted.  Raises `SelectionError`.
    def bare_reads(
        self, walk: Walk, operations: int, max_chunks: int, max_seconds: float
    ) -> tuple[int, int, float] | None:
        """Read stored bytes of chunks that those selections touch, and nothing else."""
        # Each chunk once, `max_chunks` at most, spread over the selections.  Gives chunks, bytes
        # and seconds; None if the file cannot be read by descriptor.  Raises `CorruptDataError`.

@type_check_only
class ChunkPlaces(Protocol):
    """Keeps the index of a dataset whose chunks are written here."""

    def allocate(self, chunks: npt.NDArray[np.uint64], /) -> npt.NDArray[np.uint64]:
        """Give chunks, each a row of origin, bytes and filter mask, their addresses."""
    def find(self, origins: npt.NDArray[np.uint64], /) -> npt.NDArray[np.uint64]:
        """Give address, bytes and filter mask of chunks; zeros where one was never written."""

@type_check_only
class WorkShare(Protocol):
    """Divides the work on a dataset among processes."""

    def next(self, number: int, count: int, least: int, /) -> tuple[int, int]:
        """Give first and end of the pieces of a round of `count` to do next; equal: none left."""
        # Fewer than `least` at a time are not worth asking for.
    def meet(self) -> None:
        """Wait until all processes have called this as often."""
    def memory(self, nbytes: int, /) -> int | None:
        """Give a descriptor of memory that all share, or None; all ask for it."""

@final
class WholeChunks:
    """Encodes the chunks that a write covers whole and puts them into the file at once."""

    # For a dataset that `dataset_id` has open for writing; the handles given are used in the call
    # alone, and must be live ones of `library`.  What `former` has learnt of the same dataset is
    # taken over.  All is called under h5py's lock, which is held until everything is written.
    # Raises `CorruptDataError`.
    def __new__(
        cls,
        library: Library,
        dataset_id: int,
        memory_type_id: int,
        dtype: np.dtype[Any],
        label: str,
        former: WholeChunks | None = None,
    ) -> WholeChunks: ...
    # Why libhdf5 has to write this dataset; everything else needs that this is None.
    reason: Final[str | None]
    # Which encoder of deflate was chosen; None before that, or without a choice.
    tuning: Final[str | None]
    def part(
        self, dataset_id: int, selection: Selection, growing: bool
    ) -> list[tuple[int, int]] | str | None:
        """What of a box of elements is whole chunks: from where to where, a dimension each."""
        # None for none; text says why libhdf5 must write.  With `growing`, edge chunks may grow.
    def write(
        self, dataset_id: int, selection: Selection, growing: bool, array: npt.NDArray[Any]
    ) -> None:
        """Write the part of a selection that `part` describes, from C-contiguous `data`."""
        # After `part`, for the shape that the dataset had then.  Nobody may change the array
        # meanwhile.  Raises `CannotWriteError`, `OutOfMemoryError`.

@final
class KeptChunks:
    """Encoded chunks that have no place in a file yet."""

    def __new__(cls) -> KeptChunks: ...
    def take(self) -> tuple[npt.NDArray[np.uint64], list[bytes]]:
        """Take all: rows of origin, bytes and filter mask, and the stored bytes of each."""

@final
class Writer:
    """Writes one chunked dataset of a file that is open for writing."""

    # The handles must be live ones of `library`, the dataset's for as long as anything is written;
    # `memory_type_id` is the type of the elements that are given, of `dtype`.  `effort` is
    # "as-stated" (no larger than zlib's at the level stated) or "fast"; `budget_nbytes` is what
    # chunks may take that wait for what they lack, None for 256 MiB or less.  With `elsewhere` the
    # dataset is only like the one that is written: its chunks are kept, or written to the file of
    # a descriptor at the places that an object gives.  Raises `CorruptDataError`.
    def __new__(
        cls,
        library: Library,
        dataset_id: int,
        memory_type_id: int,
        dtype: np.dtype[Any],
        label: str,
        *,
        effort: str = "as-stated",
        budget_nbytes: int | None = None,
        elsewhere: KeptChunks | tuple[ChunkPlaces, int] | None = None,
    ) -> Writer: ...
    # Why libhdf5 has to write this dataset; everything else needs that this is None.
    reason: Final[str | None]
    shape: Final[list[int]]  # For which selections are understood
    held_nbytes: Final[int]
    dirty_chunks: Final[int]
    # Chunks committed, and those of them whose stored bytes were read first.
    stats: Final[tuple[int, int]]
    # Which encoder of deflate was chosen; None before that, or without a choice.
    tuning: Final[str | None]
    def set_shape(self, shape: Sequence[int]) -> None:
        """Take over the dataset's shape; chunks outside are forgotten."""
    def write(
        self,
        selection: Selection,
        array: npt.NDArray[Any],
        members: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        """Write elements in the selection's order, C-contiguous and of the dtype."""
        # Of each element only the bytes in `members`, pairs of where they begin and end. Nobody
        # may change them meanwhile.  Raises `SelectionError`, `CannotWriteError`,
        # `CorruptDataError`, `OutOfMemoryError`, `UsageError` (in a forked child).
    def flush(self, *, interruptible: bool = True) -> None:
        """Commit all dirty chunks; those that cannot be stay.  Raises as `write`."""
    def forget(self) -> None:
        """Forget all dirty chunks."""

@type_check_only
class StorageSource(Protocol):
    """What gives the bytes of a file; any thread may ask."""

    # Ranges are addresses and lengths within `size`.  Raises `FileChangedError`.
    @property
    def size(self) -> int: ...
    @property
    def cost(self) -> tuple[int, int, int, int]:
        """What a request costs."""
        # Nanoseconds to the answer, bytes a second, most bytes of a request, requests at a time.
    def read_ranges(self, ranges: Sequence[tuple[int, int]], /) -> list[bytes]:
        """Give data."""
    def read_metadata(self, ranges: Sequence[tuple[int, int]], /) -> list[bytes]:
        """Give structures of the file, beside which others will be wanted."""
    def expect_metadata(self, ranges: Sequence[tuple[int, int]], /) -> None:
        """Structures that will be wanted one after the other."""
    def interrupt(self) -> None:
        """End what is waited for, with an error."""

@final
class Storage:
    """The bytes of a file that the engine does not open by itself."""

    def __new__(cls, source: StorageSource) -> Storage: ...
    @staticmethod
    def of_descriptor(descriptor: int) -> Storage:
        """Those of a local file, by an open descriptor, which is not needed any more afterwards.

        Raises OSError.
        """

def file_object(library: Library, dataset_id: int, driver: int) -> Any:
    """The file object through which h5py has opened a dataset's file; None of another driver."""
    # `dataset_id` is a live handle of `library`, `driver` h5py's number for file objects.

@type_check_only
class ObjectRecord(TypedDict):
    """What the bytes of a file say of an object."""

    kind: str | None  # group, dataset or datatype; None of what is not known here
    links: int  # Hard links that lead to it
    # Type, shape (None of a null dataspace) and values by name, in the order of h5py; None where
    # a name is not UTF-8, or a type is not known.  Types are those of `type`, and what leads
    # elsewhere: "reference" (its values are not read), "references" (sequences of references to
    # objects, lists of addresses), "places" (an object's address and a number).  Values of text
    # are lists, of numbers the bytes.
    attributes: dict[str, tuple[str, tuple[int, ...] | None, Any] | None] | None
    # Of datasets: "<i4" and the like; text: "S5", "U5", "O:ascii" and "O:utf-8".
    type: str | None
    shape: tuple[int, ...] | None  # None of a null dataspace
    max_shape: tuple[int | None, ...]
    chunk: tuple[int, ...] | None
    filters: list[tuple[int, list[int]]]  # Number and options

@final
@type_check_only
class StoredRecord(TypedDict):
    """How a dataset is stored."""

    datatype: bytes  # The message that states the type of its elements
    shape: tuple[int, ...] | None  # None of a null dataspace
    max_shape: tuple[int | None, ...]  # None where there is no end
    layout: Literal["compact", "contiguous", "chunked"]
    stored_nbytes: int
    # Only of chunks.
    chunk: tuple[int, ...]
    census: ChunkCensus
    filters: tuple[tuple[int, list[int]], ...]  # Number and options
    # When storage is allocated and filled, by the numbers in the file.
    fill_times: tuple[int, int]
    fill: bytes | None  # None if it is undefined; empty if it is the default
    scales: tuple[int | None, ...]  # The address of the last scale of each dimension
    is_scale: bool

NameKind = Literal[
    "group", "dataset", "named_type", "hard_link", "soft_link", "external_link", "user_link"
]
# A path, the groups above it, what has that name, where it leads (a path), the address of an
# object and the sorted names of its attributes, and how a dataset is stored.  No attributes are
# known of objects that libhdf5 has to describe.
ListedName = tuple[
    str,
    int,
    NameKind,
    str | None,
    int | None,
    tuple[str, ...] | None,
    StoredRecord | None,
]

@final
class Superblock:
    """What the superblock of a file states, whether or not libhdf5 opens the file."""

    @staticmethod
    def of_descriptor(descriptor: int) -> Superblock | None:
        """That of the file that a descriptor has open; None where none can be read."""
        # It is cut off, or of no known version.  Raises OSError.
    offset: Final[int]  # Where it begins: the size of the user block
    version: Final[int]  # 0 to 3
    is_sound: Final[bool]  # Whether its checksum is right; versions 0 and 1 have none
    # Marks of a writer that has not closed the file; version 3 alone has them.
    flags: Final[tuple[Literal["write", "swmr"], ...]]
    # Where the file ends by its own account, in bytes from its first one.
    # libhdf5 writes it when it flushes or closes the file, and not while it writes for SWMR
    # readers: there the file grows beyond it.
    end: Final[int]
    def closed(self, nbytes: int) -> bytes | None:
        """Its bytes as a proper close of a file of `nbytes` bytes leaves them."""
        # Without marks, and with the file's end, if that is beyond `end`.  None before version 3.

def signature_offset(descriptor: int) -> int | None:
    """Where HDF5's signature stands in an open file: the size of the user block."""
    # None without one.  Raises OSError.

@final
class Metadata:
    """The metadata of a local HDF5 file, read without libhdf5."""

    @staticmethod
    def of_descriptor(descriptor: int, *, damaged: bool = False) -> Metadata | None:
        """Read the file that a descriptor has open, which may be closed afterwards."""
        # None where libhdf5 should read it: it is marked as written to, truncated, or no HDF5
        # file. If it may be `damaged`, only where its superblock cannot be read.
    @staticmethod
    def of_storage(storage: Storage) -> Metadata | None:
        """Read a file that is no local one; what its headers lead to comes together."""
    root: Final[int]
    def links(self, address: int) -> list[tuple[str, int]] | None:
        """Names and addresses of what a group holds, in the order of h5py."""
        # None where a link is not hard, or a name not UTF-8.  Raises `CorruptDataError`, as all
        # below.
    def readable_links(self, address: int) -> tuple[list[tuple[bytes, int | None]], list[str]]:
        """Names and addresses (None of soft and other links), and what is wrong with the rest."""
    def readable_attributes(self, address: int) -> int:
        """How many can be read."""
    def damage(self, address: int) -> list[str]:
        """What is wrong with an object but its values: each time structure, address and object."""
    def narrowed(self) -> list[tuple[int, int, bytes]]:
        """Bytes with which lengths of chunks take no more bytes than they need."""
        # For each wide dataset: the address of its header, a position in the file, and the bytes.
    def objects(self, addresses: Sequence[int]) -> list[ObjectRecord]: ...
    def shape(self, address: int) -> tuple[int, ...] | None:
        """The shape of a dataset; None of what has none."""
    def find(self, group: int, path: bytes) -> tuple[bool, int] | None:
        """Whether a path leads from a group to a group or a dataset, and where its header is."""
        # By hard links only; None where libhdf5 has to say it, and of what is not there.
    def names(self, group: int) -> list[str | bytes] | None:
        """The names in a group, as h5py gives them; None where libhdf5 has to list them."""
    def visit(self, group: int, deep: bool) -> Visit | None:
        """A walk below the group at an address; None where libhdf5 has to list it."""
        # `deep` as ``H5Ovisit``: objects, each once, by name; else links, in the order of h5py.
    def account(self) -> dict[str, int] | None:
        """What opening and listing the file costs (`chunkwise.inspection.facts.MetadataFacts`)."""
        # What is damaged is left out; None without a sound superblock.
    def layout_version(self, address: int) -> int | None:
        """The version of a dataset's data layout message; None if nothing says it."""
    def dataset(
        self, address: int, label: str, most_listed: int = ...
    ) -> tuple[Dataset, np.dtype[Any]] | None:
        """A dataset of numbers that the engine reads, and its dtype."""
        # None if libhdf5 has to describe it.  Beyond `most_listed`, chunks are looked up.
    def listing(self) -> list[ListedName] | None:
        """All names in the file, in the order of `chunkwise.files.objects.walk`."""
        # None where only libhdf5 knows which there are.

# A path, what has that name, the names of an object's attributes, the shape of a dataset, the
# message that states its type, the shape of its chunks, and where a link leads (a path).
NameInShort = tuple[
    str,
    NameKind,
    tuple[str, ...],
    tuple[int, ...] | None,
    bytes | None,
    tuple[int, ...] | None,
    str | None,
]

@final
class Listings:
    """Listings of many local files, by so many threads and without libhdf5; one for each path."""

    # Each is what `made` makes of all names, on this thread and while others list what follows;
    # None where `Metadata.listing` has none, or libhdf5 has to describe an object, or somebody
    # writes to the file; or why the file cannot be opened.  As many files are listed at a time as
    # fit memory, and for no longer than one waits after Ctrl-C.  Raises what `made` raises, and
    # goes on with the next file.
    def __new__(
        cls, paths: Sequence[str], threads: int, made: Callable[[list[NameInShort]], Any]
    ) -> Listings: ...
    def __iter__(self) -> Listings: ...
    def __next__(self) -> Any: ...

@final
class Visit:
    """A walk over names."""

    def next(self, count: int) -> list[tuple[str | bytes, bool | None, int | None]] | None:
        """At most the next `count` names, none at the end; None where libhdf5 has to go on."""
        # Names are paths below the group, bytes where they are not UTF-8.  With each comes whether
        # it is a group, or a dataset that libhdf5 opens, and the address of its header; None if
        # only libhdf5 says what it is.

@final
@type_check_only
class DatasetRecord(TypedDict):
    """What is known of an open dataset."""

    # Live handles of this library: the dataset, and the type of its elements in memory.
    library: Library
    dataset_id: int
    memory_type_id: int
    dtype: np.dtype[Any]
    label: str  # Begins every error message
    listed: bool  # Whether all chunks are listed now, or looked up as reads need them
    # How elements are stored that are read with zeros behind, such as "|S5" or " S5".
    text: str | None
    plain: bool  # Whether its file has the driver of local files (sec2)
    storage: Storage | None  # The bytes of a file that has another one
    # Whether it follows its writer (SWMR): another record shows what was written meanwhile.
    follows: bool
    # Where its chunks are saved: file, first byte, whether one for each chunk, and how many.
    saved: tuple[SavedChunks, int, bool, int] | None
    external: Sequence[tuple[str, int, int]]  # Path, offset and bytes of the files of its data

@type_check_only
class ReadFigures(TypedDict):
    """What reading a selection takes; see `chunkwise.selecting.explained.Explained`."""

    chunks: int
    missing_chunks: int
    stored_nbytes: int
    decoded_nbytes: int
    selected_nbytes: int
    decoded_blocks: int | None
    blocks: int | None

@final
class Dataset:
    """An open dataset: its facts for the engine, or the reason why libhdf5 reads it."""

    def __new__(cls, record: DatasetRecord) -> Dataset:
        """Describe a dataset."""
    @staticmethod
    def mapped(
        shape: Sequence[int],
        dtype: np.dtype[Any],
        fill: bytes | None,
        sources: Sequence[
            tuple[
                Sequence[Hyperslab],
                Dataset,
                Sequence[Hyperslab],
                list[tuple[int, int, int | tuple[str, str]]],
                str,
            ]
        ],
        label: str,
    ) -> Dataset:
        """A dataset whose elements lie in others; what is not mapped is `fill`, if there is one.

        Each source is hyperslabs of this dataset, the other one, hyperslabs of it with as many
        elements in the same order, how elements are converted (as `read_as` takes it; nothing
        where they are not), and what its errors begin with.
        """
    reason: Final[str | None]
    # Valid only if there is no reason.
    shape: Final[tuple[int, ...]]
    chunks: Final[tuple[int, ...] | None]
    is_virtual: Final[bool]
    converts: Final[bool]
    fills: Final[bool]
    def getitem(self, index: Any) -> Any:
        """``d[index]``; None of names and the like, and of a mask alone."""
    def read(
        self,
        selection: Selection,
        out: npt.NDArray[Any] | None = None,
    ) -> npt.NDArray[Any]:
        """Read into `out`, or a new array."""
    def read_as(
        self,
        selection: Selection,
        dtype: np.dtype[Any],
        parts: list[tuple[int, int, int | tuple[str, str]]],
        out: npt.NDArray[Any] | None = None,
    ) -> npt.NDArray[Any]:
        """Read as elements of another type, into `out` or a new array."""
        # Each part is where it begins in an element of the dataset, and in one of `dtype`, and how
        # many bytes are copied or between which types they are converted.  What no part fills is 0
        # in a new array, and stays in `out`.
    def explain(self, selection: Selection) -> ReadFigures: ...
    def end_reads(self, wait: bool) -> None:
        """Begin no other read, and wait, if asked, for those of other threads: its file is closed.

        A read that comes later raises `chunkwise.errors.ChangedSourceError`.
        """
    def list_chunks(self) -> None:
        """Know where all chunks lie; else they are looked up as reads need them."""

def filters() -> dict[int, str]:
    """Names of filters that chunkwise decodes and encodes itself, by HDF5's numbers."""
    # As the grammar of filters, and `profile`, call them.  Some options only libhdf5 handles.

def thread_count() -> int:
    """Threads that one read uses in this process."""

def set_threads(threads: int | None) -> None:
    """Let each read that begins from now on use so many threads, in this process."""
    # 1 keeps all work on the thread that reads.  None: what the machine, its control group,
    # ``SLURM_CPUS_PER_TASK`` and ``CHUNKWISE_THREADS`` allow.  Raises `UsageError` for less than
    # 1, or more than `MOST_THREADS`.

@type_check_only
class CacheStats(TypedDict):
    """What the cache of decoded chunks holds, and has done since the process started."""

    held_nbytes: int
    budget_nbytes: int  # At most so much is held
    hits: int
    misses: int
    decoded: int  # Chunks, in part or whole, for the cache or past it
    decoded_blocks: int  # Of chunks of which a part was decoded

def cache_stats() -> CacheStats:
    """The cache of decoded chunks of this process."""

def cache_clear() -> None:
    """Let go of all chunks that the cache of this process keeps; what it has counted stays."""

MOST_THREADS: int

def setting(name: str) -> int:
    """The value in force of one of `chunkwise.settings`."""

def change_settings(values: dict[str, int | None]) -> dict[str, int | None]:
    """Change some of `chunkwise.settings`, None for the default; gives what was chosen before."""

def set_default_settings(values: dict[str, int]) -> None:
    """Change what is in force while nothing is chosen; of threads, the most there may be."""

def set_profiling(on: bool) -> None:
    """Begin or end measuring where the engine's time goes, in this process."""

def profile() -> dict[str, tuple[float, float]]:
    """Seconds measured so far: by threads that read or write, and by the pool's, all together."""
    # Of ``index``, ``storage``, ``scatter`` (copying, both ways), ``commit`` (handing encoded
    # chunks over), ``waiting`` for other threads, and each filter: ``deflate`` for decoding,
    # ``encode deflate`` for encoding, and so on.

def select_index(
    shape: Sequence[int], index: Any, label: str, *, paired: bool = False
) -> Selection | None:
    """What an index selects; see `chunkwise.selecting.indexing.resolve`."""

def select_hyperslabs(shape: Sequence[int], hyperslabs: Hyperslabs, label: str) -> Selection:
    """What a hyperslab selects, or the union of several."""
    # Raises `SelectionError`; `label` begins the message.

def integers(given: Any, what: str) -> npt.NDArray[np.int64]:
    """Make an array of 64-bit integers of what is given, nothing at all included."""
    # Raises `SelectionError` for anything else, and what does not fit; `what` begins the message.

def count_chunks(
    shape: Sequence[int], chunk: Sequence[int], selection: Selection, label: str
) -> tuple[int, int, int]:
    """Chunks that a selection touches, the elements those hold together, and those selected."""

def combined(
    rank: int, left: Sequence[Hyperslab], operation: str, right: Sequence[Hyperslab]
) -> list[tuple[list[int], list[int], list[int], list[int]]]:
    """Boxes that hold the elements of both unions (``&``), or of the first alone (``-``)."""

def union_len(rank: int, union: Sequence[Hyperslab]) -> int:
    """Elements of a union, each counted once."""

def convert_elements(
    elements: npt.NDArray[Any], into: npt.NDArray[Any], types: tuple[str, str]
) -> bool:
    """Convert elements into an array of as many, both C-contiguous."""
    # Types by NumPy's names.  False, with nothing converted, for others, or another size.

def edge_numbers(name: str) -> bytes | None:
    """Give numbers at which two libraries may convert differently, as they lie in memory."""
    # `name` is NumPy's for a type of numbers; None for one that is not converted.

def crc32(data: npt.NDArray[Any], value: int = 0) -> int:
    """CRC-32 of a C-contiguous array's bytes, continuing from `value`."""

def metadata_checksum(data: bytes) -> int:
    """The checksum that HDF5 keeps with its metadata (Bob Jenkins' lookup3)."""

def kind_at(
    bytes: npt.NDArray[np.uint8], base: int, address: int
) -> Literal["group", "dataset", "datatype"] | None:
    """What has its header at an address of a file, linked or not; None of what is no sound one.

    The superblock, which stands at `base`, may be damaged: numbers are taken to have 8 bytes.
    """

def encode_chunk(library: Library, dataset_id: int, raw: npt.NDArray[Any]) -> tuple[bytes, int]:
    """The stored bytes and the filter mask of a chunk, as `H5Dwrite_chunk` takes them."""
    # `raw` is C-contiguous and holds a whole chunk's bytes, in the file's type.  Raises
    # `UsageError` where only libhdf5 can apply one of the dataset's filters, `ChunkwiseError`
    # where a filter that is not optional fails.

@final
class OpenDataset:
    """A dataset opened for reading, without h5py, in any libhdf5; closed with the object."""

    # `properties` are those of `chunkwise.trials.trial.Trial.properties`: what is missing or None
    # stays as the library has it.  HDF5 gives all handles of a file the properties of the first,
    # so that it must not be open in this library already.  Raises `FileFormatError`; ValueError
    # for a property that there is not.
    def __new__(
        cls, library: Library, path: str, name: str, properties: dict[str, Any]
    ) -> OpenDataset: ...
    id: Final[int]  # Its handle (`hid_t`) in the library
    itemsize: Final[int]  # Bytes of an element in memory
    storage_nbytes: Final[int]  # Bytes that its elements take in the file (H5Dget_storage_size)
    chunk_cache: Final[tuple[int, int, float]]  # Slots, bytes and w0 of the chunk cache in force
    def walk(
        self,
        walk: Walk,
        max_operations: int,
        max_seconds: float,
        look: Callable[[int, bytes], None] | None = None,
    ) -> WalkResult:
        """Read selection by selection with H5Dread, in a loop without Python."""
        # Stops after `max_operations` operations, or when the timed reads reach `max_seconds` (at
        # least one operation is always done).  `look` is shown the number of each operation and
        # what it read, outside the timed region; what it raises ends the walk.  Raises
        # `CorruptDataError`.
    def engine_walk(
        self,
        walk: Walk,
        max_operations: int,
        max_seconds: float,
        look: Callable[[int, bytes], None] | None = None,
    ) -> EngineWalkResult:
        """The same by chunkwise's engine; loading the chunk index is in the first read."""
        # What the engine cannot read, libhdf5 reads, and ``fallback`` says why.
    def write_walk(
        self,
        path: str,
        name: str,
        data: npt.NDArray[Any],
        walk: Walk,
        max_operations: int,
        max_seconds: float,
    ) -> HDF5WriteResult:
        """Write selection by selection with H5Dwrite, to a new dataset like this one."""
        # It gets this one's type, shape and creation properties, in a new file at `path`. `data`
        # are all elements as they are in memory, in C order.  When anything fails the file is
        # removed.  Raises `ChunkwiseError`.
    def engine_write_walk(
        self,
        path: str,
        name: str,
        data: npt.NDArray[Any],
        walk: Walk,
        max_operations: int,
        max_seconds: float,
        *,
        effort: str = "as-stated",
    ) -> EngineWriteResult:
        """Write selection by selection with the engine, to the same new dataset."""
        # What the engine does not write, libhdf5 does, and ``fallback`` says why.  `effort` is as
        # for `Writer`.  Nobody may change `data` meanwhile.  ``create_s`` includes asking whether
        # the engine can, ``flush_s`` committing what waits.  Raises `ChunkwiseError`.

def walk_reopened(
    library: Library,
    path: str,
    name: str,
    properties: dict[str, Any],
    walk: Walk,
    max_seconds: float,
    by_engine: bool,
    look: Callable[[int, bytes], None] | None = None,
) -> EngineWalkResult:
    """Read selection by selection, the file opened for each, as a part of its time."""
    # As `OpenDataset.walk` or `OpenDataset.engine_walk`; nothing else has the file open.

def set_properties(library: Library, properties: dict[str, Any], lists: dict[str, int]) -> None:
    """Set properties on lists that h5py has made."""
    # `lists` maps a kind (``file_access``, ``file_creation``, ``dataset_access``,
    # ``dataset_creation``) to a live `hid_t` of the library.  Raises `UsageError` for what libhdf5
    # refuses.

@final
class RechunkPlan:
    """In which blocks a dataset is rechunked, and what that takes."""

    # Super-blocks are boxes of whole target chunks, such that each source chunk is decoded as
    # rarely as memory allows, and that they are no larger than that takes or than is good.  Pure
    # arithmetic: grids of any size cost nothing.  Chunks are None for a dataset without; each of
    # the processes that share the super-blocks has that memory for all that it does.  Raises
    # `UsageError` if the shapes do not fit, or the memory does not hold one target chunk: it says
    # how much would.
    def __new__(
        cls,
        shape: Sequence[int],
        source_chunk: Sequence[int] | None,
        target_chunk: Sequence[int] | None,
        itemsize: int,
        memory_nbytes: int,
        processes: int = 1,
    ) -> RechunkPlan: ...
    # Shape of a super-block; one target chunk where no source chunk reaches into two.
    super_block: Final[list[int]]
    super_blocks: Final[int]
    source_chunks: Final[int]  # Chunks of the source's grid, written or not; 0 without chunks
    # Source chunks decoded, each as often as it is; equals `source_chunks` at best.
    decodes: Final[int]
    # The most memory in use at a time: a super-block, and the chunks in work.
    memory_nbytes: Final[int]

@final
class Journal:
    """Where the chunks of a copy are noted as they are written, for a later run to use."""

    # It holds no data: it says where in the half-written target each chunk's bytes lie, and their
    # checksum.  `file` is the descriptor of a new file, open for writing; `resume_from` are those
    # of the journal and of the half-written file of a run that was killed, which are only read.
    # All may be closed afterwards.  A journal of another `identity`, which says of which source
    # and of what is made of it, is not used.  What is not there any more, or not what the journal
    # says, is made again; so is everything of a dataset whose chunks lie elsewhere in the source
    # now.  Raises `CannotWriteError`.
    def __new__(
        cls, file: int, identity: bytes, resume_from: tuple[int, int] | None = None
    ) -> Journal: ...
    noted_chunks: Final[int]  # Chunks that the run before has noted

@final
class Encoders:
    """The encoders that were chosen in a run."""

    # A dataset tries the encoder of one like it first, on a few pieces.
    def __new__(cls) -> Encoders: ...

@final
class CopyResult:
    """What copying a dataset's data came to."""

    decodes: Final[int]  # Chunks of the source that went through filters, each time they did
    chunks_written: Final[int]  # Chunks written; pieces of it for a target without chunks
    chunks_replayed: Final[int]  # Those of them that a run before had encoded
    stored_nbytes_written: Final[int]
    tuning: Final[str | None]  # The encoder chosen for deflate, and what it costs, in words
    # Where each source chunk begins that could not be read, and why (with `salvage`).
    lost_chunks: Final[list[tuple[list[int], str]]]
    # Why libhdf5 read or wrote the data; None if it did neither.
    through_libhdf5: Final[str | None]
    # Seconds spent reading super-blocks; 0 where each target chunk is read for itself.
    read_s: Final[float]
    encode_s: Final[float]  # Seconds spent gathering, encoding and writing chunks
    # Seconds from the first to the last; of many side by side, waiting included.
    elapsed_s: Final[float]

def copy_data(
    library: Library,
    source_id: int,
    target_id: int,
    *,
    label: str,
    memory_nbytes: int,
    effort: str = "as-stated",
    raw: bool = False,
    salvage: bool = False,
    journal: Journal | None = None,
    encoders: Encoders | None = None,
    likeness: bytes = ...,
    part: tuple[int, WorkShare, ChunkPlaces, int] | None = None,
    progress: Callable[[int, int, int], None] | None = None,
) -> CopyResult:
    """Copy the data of one dataset into another of the same shape and type."""
    # The source is read by the engine, the target's chunks are encoded on all threads and handed
    # to libhdf5 in order.  What the engine cannot read, and filters and layouts that it cannot
    # write, go through libhdf5.  Chunks that were never written stay so where both have the same
    # fill value.  The elements are plain bytes, and the target is fresh.  The caller must not hold
    # h5py's lock.
    # `label` begins messages, and names the dataset in the journal.  With `raw`, stored chunks are
    # copied as they are, with their filter masks: that fill values and types mean the same in both
    # files is the caller's to know, and nothing is noted.  With `salvage`, a source chunk that
    # cannot be read is filled with the fill value and listed.  `effort` is as for `Writer`;
    # `encoders` are those chosen in this run, and `likeness` is equal for datasets of the same
    # type, chunk shape and filters.  `part` is for one of several processes that copy the dataset:
    # how many there are; what divides the work; what keeps the target's index; the target's
    # descriptor. The target's handle is then of a dataset that is only like it.  `progress` is
    # called about ten times a second on this thread with the raw bytes done, the stored bytes read
    # and those written; what it raises, as what a signal handler raises, ends the work at the next
    # chunk, and is raised here.
    # Raises `UsageError` for datasets that do not go together, a raw copy that would be wrong and
    # too little memory; `CorruptDataError`, `FileChangedError`, `CannotWriteError`,
    # `LibraryError`.

@type_check_only
class Copy(Protocol):
    """One of many datasets to be copied; parameters as those of `copy_data`."""

    @property
    def source_id(self) -> int: ...
    @property
    def target_id(self) -> int: ...
    @property
    def label(self) -> str: ...
    @property
    def effort(self) -> str: ...
    @property
    def raw(self) -> bool: ...
    @property
    def likeness(self) -> bytes: ...

def copy_many(
    library: Library,
    copies: Sequence[Copy],
    *,
    memory_nbytes: int,
    salvage: bool = False,
    journal: Journal | None = None,
    encoders: Encoders,
    progress: Callable[[int, int, int], None] | None = None,
) -> list[CopyResult]:
    """Copy the data of small datasets side by side, one on each thread."""
    # Their chunks are written in the order of the datasets, as `copy_data` would one after
    # another. What is read of a dataset is kept in memory until then.  Parameters and errors are
    # those of `copy_data`; `memory_nbytes` and `progress` are for all together.

def meaning(
    library: Library, holder_id: int, part: tuple[Sequence[int], Sequence[int]] | None = None
) -> tuple[bytes, list[tuple[int, int, bytes]]]:
    """Return what elements of a dataset or attribute mean, whatever their type."""
    # `part` is where a box of a dataset begins and its sides, both empty for a scalar; None for an
    # attribute.  Gives all values but references, of variable length after their length, no
    # padding; then references in the order of the elements: a handle of the object and one of the
    # dataspace that selects a region, -1 for none, and the name of an attribute.  The caller
    # closes them. Raises `LibraryError`.

def comment(library: Library, object_id: int) -> bytes:
    """Return an object's comment, empty if it has none.  Raises `LibraryError`."""
    # `h5py.h5o.get_comment` is not right.

def same_chunks(
    library: Library,
    source_id: int,
    result_id: int,
    part: tuple[int, int],
    *,
    label: str,
    progress: Callable[[int, int, int], None] | None = None,
) -> tuple[list[int], str] | None:
    """Compare stored bytes and filter masks of all written chunks of two datasets."""
    # They have the same shape and chunk shape, in files that nothing writes.  Of so many parts of
    # the chunks only this `part`, as in (0, 1) for all.  Gives where the first chunk that differs
    # begins, and how it differs; None if none does.  `label` is the source's; the figures for
    # `progress`, as in `copy_data`, are all of stored bytes.  Raises `CorruptDataError` for a
    # chunk of the source.

@final
class Examined:
    """What was found in a dataset's stored bytes."""

    chunks: Final[int]  # Chunks that were read
    stored_nbytes: Final[int]  # Bytes that were read, as stored
    # Kind, the chunk's origin, address and stored bytes, and words; by address.
    # Kinds are ``beyond-end``, ``overlap``, ``checksum``, ``decode``, ``length``, ``trailing``
    # and ``unreadable``.
    flaws: Final[list[tuple[str, list[int], int, int, str]]]
    flaw_count: Final[int]  # How many there are, listed or not
    undecided: Final[list[list[int]]]  # Origins of chunks that only libhdf5 can decode
    undecoded: Final[str | None]  # Why chunks were read and not decoded; None if they were
    # What is wrong with the chunk index, of which no chunk was read; None for nothing.
    unsound: Final[str | None]
    elsewhere: Final[str | None]  # Why nothing can be examined in the file's bytes; None if it was

def examine_data(
    library: Library,
    dataset_id: int,
    *,
    label: str,
    most_flaws: int,
    progress: Callable[[int, int, int], None] | None = None,
) -> Examined:
    """Read and decode all that is stored of a dataset, and list what is not as it was written."""
    # At most so many flaws are listed.  `progress` is as for `copy_data`, of bytes as decoded.
    # Raises `CorruptDataError`, `OutOfMemoryError`.

def copy_tree(
    library: Library,
    source_file_id: int,
    target_file_id: int,
    dcpls: Mapping[int, int],
    progress: Callable[[int, int], object] | None = None,
    salvage: tuple[tuple[Set[int], Set[int], Set[int]], Sequence[int], Metadata | None]
    | None = None,
    unlinked: Sequence[tuple[int, bytes]] = ...,
) -> TreeCopy:
    """Copy everything of a file but the plain bytes of its datasets."""
    # Groups, links, committed types, attributes, and datasets with their creation properties.
    # Small, compact and scalar datasets get their data as well; so that of all others is there,
    # copy the data of `TreeCopy.datasets`, then call `TreeCopy.finish`.  Both files stay open
    # until then; the target has a root group only, whose creation properties are the caller's.
    # `dcpls` are creation properties (`hid_t`, alive during this call) for datasets by the address
    # of the source's; others keep theirs.  The data of virtual and external datasets is copied
    # only for those that are named there.  `progress` is called with the objects done, and their
    # number (0: not known yet), about ten times a second; what it raises, as what a signal raises,
    # ends the copy.  With `salvage` what cannot be read is left out, and listed: addresses of
    # objects that are not touched, of objects whose attributes are not, and of datasets whose data
    # is not; and of objects that are kept in a group ``lost+found`` if no link leads to them.
    # `unlinked` are objects that no link leads to, by address, with what they are called in
    # messages; they get no link in the target either.  References to all others that have none
    # become null.
    # Raises `UsageError` before anything is written, for what cannot be kept (user-defined links);
    # `CorruptDataError` and `CannotWriteError` (also for a missing filter) with the object's name;
    # `OutOfMemoryError`; `LibraryError` where libhdf5 lacks functions that only this needs.

@final
class Leads:
    """Finds what objects lead to beside their links: by references, and as committed types."""

    def __new__(cls, library: Library) -> Leads: ...
    def of(self, object_id: int) -> list[tuple[bytes | None, tuple[int, int] | None, int]]:
        """Find what an open object leads to, in an order that its chunks do not change."""
        # Each time the attribute that leads there (None: the data of a dataset); the number of the
        # element in C's order, and of the reference in it (None: it is the type); the address.
        # Each address once for the data, and once for each attribute.  What cannot be read is left
        # out.
    def open(self, file_id: int, address: int) -> int | None:
        """Open an object by its address; None if there is none.  The caller closes it."""

@final
class TreeCopy:
    """A file's tree, copied by `copy_tree`."""

    # Datasets whose data the caller has to copy: addresses in the source and the target.
    datasets: Final[list[tuple[int, int]]]
    def moved(self, address: int) -> int | None:
        """Where the copy lies of the source's object at an address; None if it has none."""
    # What is not quite as it was, in one line each that begins with the path.
    warnings: Final[list[str]]
    # With `salvage`: what cannot be read.
    # Path, attribute, where a box of elements begins and its shape, and what is wrong.
    missing: Final[list[tuple[str, str | None, tuple[list[int], list[int]] | None, str]]]
    def copy_later(self, address: int) -> None:
        """Have `finish` copy the data of the dataset of this address, through libhdf5."""
    def finish(self, progress: Callable[[int, int], object] | None = None) -> None:
        """Copy what holds references, and data of variable length; raises as `copy_tree`."""
