"""What does one trial do, and what does it report?  Flat records: one row a trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Literal

from chunkwise.patterns.pattern import Access, Hyperslab, Union
from chunkwise.trials.breakdown import Breakdown
from chunkwise.trials.formats import NETCDF4
from chunkwise.trials.pagecache import PageCache

Operation = Literal["read", "write"]
Status = Literal["ok", "failed", "timeout"]


# What `_native` takes as properties of libhdf5 (`chunkwise._native.OpenDataset`).
PROPERTIES: Final = (
    "cache_nbytes",
    "cache_nslots",
    "cache_w0",
    "sieve_nbytes",
    "conversion_nbytes",
    "metadata_block_nbytes",
    "small_data_block_nbytes",
    "alloc_time",
)
# How a trial is bounded, and where its files happen to lie: no part of what it measures.
BOUNDS: Final = ("max_seconds", "timeout_s", "file", "storage", "data", "scratch")
# Facts about the dataset that a worker then need not ask for.
FACTS: Final = (
    "shape",
    "itemsize",
    "dtype",
    "stored_nbytes",
    "native_order",
    "filter_ids",
    "comparable",
)


@dataclass(frozen=True)
class Trial:
    """One combination of parameters, to be measured once; what is None stays as it is."""

    # What to read; for writes, a dataset without data that is like the one to write.
    file: str
    dataset: str
    access: str  # The access pattern's name
    block: tuple[int, ...]  # Its block shape in elements
    reader: str  # A name of `chunkwise.trials.readers.READERS`
    # libhdf5's chunk cache for this dataset (H5Pset_chunk_cache).
    cache_nbytes: int | None = None
    cache_nslots: int | None = None
    cache_w0: float | None = None
    comparable: bool = True  # Whether equal values mean equal bytes, so that checksums compare
    max_seconds: float = 1.0  # Stop after the operation that brings the timed ones to this
    timeout_s: float = 10.0  # Wall-clock seconds after which the worker is ended
    # As in `chunkwise.patterns.pattern.Access`.
    order: tuple[int, ...] | None = None
    seed: int | None = None
    limit: int | None = None
    slabs: tuple[Hyperslab | Union, ...] | None = None
    page_cache: PageCache = "warm"  # ``cold``: the worker drops the file from memory first
    # Whether the worker reads the file into memory first: another trial may have dropped it.
    warm_first: bool = False
    chunks: tuple[int, ...] | None = None  # How the data is chunked; None for data that is not
    filters: str = "none"
    format: str = NETCDF4  # A name of `chunkwise.trials.readers.FORMATS`
    operation: Operation = "read"  # ``write``: to a new file
    threads: int | None = None  # That chunkwise may use
    engine_cache_nbytes: int | None = None  # Of chunkwise's own cache of decoded chunks
    # The path of a libhdf5, or of the Python whose h5py brings one; None for h5py's here.
    libhdf5: str | None = None
    sieve_nbytes: int | None = None  # For contiguous data (H5Pset_sieve_buf_size)
    conversion_nbytes: int | None = None  # For converting elements (H5Pset_buffer)
    metadata_block_nbytes: int | None = None  # H5Pset_meta_block_size
    small_data_block_nbytes: int | None = None  # H5Pset_small_data_block_size
    alloc_time: str | None = None  # ``early``, ``late``, ``incremental``
    zlib_path: str | None = None  # The zlib that libhdf5 is to call; None is its own
    cells: int | None = None  # As in `chunkwise.patterns.pattern.Access`
    reopen: bool = False  # Whether each operation opens the file again, as a part of it
    check: bool = False  # Whether each element that is read is compared with `data`
    # Facts about the dataset.
    shape: tuple[int, ...] = ()
    itemsize: int = 0
    storage: str = ""  # The file that holds the elements: an external link leads to another
    stored_nbytes: int = 0  # Bytes that they take there
    dtype: str = ""  # NumPy's name of their type
    native_order: bool = True  # Whether they are stored in this machine's byte order
    filter_ids: tuple[int, ...] = ()  # HDF5's numbers of the filters
    # A file with all elements, in C order: for writes, and for reads that are checked.
    data: str | None = None
    scratch: str | None = None  # For writes: the folder to write to

    @property
    def pattern(self) -> Access:
        """What is read, in which order."""
        return Access(
            self.access, self.block, self.order, self.seed, self.limit, self.slabs, self.cells
        )

    @property
    def properties(self) -> dict[str, Any]:
        """The properties of libhdf5 that are not left as they are."""
        named = {name: getattr(self, name) for name in PROPERTIES}
        # A size or a w0 of 0 equals False, and is given all the same.
        return {k: value for k, value in named.items() if value is not None and value is not False}

    def to_json(self) -> dict[str, Any]:
        """Return the trial as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Trial:
        """Undo `to_json`; what is missing has its default."""
        return cls(**{name: _frozen(value) for name, value in values.items()})


def _frozen(value: Any) -> Any:
    """Turn JSON's lists back into tuples."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


@dataclass(frozen=True)
class Measurement:
    """The result of one trial; a failed trial leaves some fields None (docs/bench.md, JSON)."""

    trial: Trial
    status: Status
    error: str | None = None
    repeat: int = 0
    page_cache: str = "uncontrolled"
    operations: int | None = None
    total_operations: int | None = None
    # Without opening (but with `Trial.reopen`), checksums and the loop; with the chunk index.
    elapsed_s: float | None = None
    open_s: float | None = None
    select_s: float | None = None
    read_s: float | None = None
    checked_elements: int | None = None
    wrong: bool = False
    create_s: float | None = None
    flush_s: float | None = None
    close_s: float | None = None
    sync_s: float | None = None
    written_s: float | None = None
    put_off_s: float | None = None
    extrapolated: bool = False
    # For the whole pattern; of writes `create_s`, `written_s` and `put_off_s` together.
    total_s: float | None = None
    selected_nbytes: int | None = None
    mb_per_s: float | None = None
    first_s: float | None = None
    # The mean of the second half of the operations, or of the only one.
    later_s: float | None = None
    median_s: float | None = None
    p95_s: float | None = None
    p99_s: float | None = None
    storage_nbytes: int | None = None
    cpu_s: float | None = None
    decoded_chunks: int | None = None
    fallback: str | None = None
    breakdown: Breakdown | None = None
    file_nbytes: int | None = None
    peak_rss_nbytes: int | None = None
    others_share: float | None = None  # What other programs had of the processors, 0 to 1
    actual_cache_nslots: int | None = None
    actual_cache_nbytes: int | None = None
    actual_cache_w0: float | None = None
    # By number of operations, the first 1, 2, 4, ... and all; empty if bytes do not compare.
    checksums: dict[int, int] = field(default_factory=dict)
    environment: dict[str, str | int] = field(default_factory=dict)

    @property
    def mean_s(self) -> float | None:
        """Seconds per operation over the whole pattern."""
        if self.total_s is None or not self.total_operations:
            return None
        return self.total_s / self.total_operations

    @property
    def judged_share(self) -> float:
        """What a judge counts of its seconds: those in which the process had a processor."""
        # Reads from memory wait for nothing but a processor that others have: what is left is the
        # same on a busy machine as on a quiet one.  Several threads have more processor time than
        # that, and their waiting stays in.
        from_memory = self.trial.page_cache == "warm" and self.trial.operation == "read"
        if not from_memory or not self.cpu_s or not self.elapsed_s:
            return 1.0
        return min(1.0, self.cpu_s / self.elapsed_s)

    def to_record(self) -> dict[str, Any]:
        """Return one flat row: the trial's parameters, the figures, the environment."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        trial: Trial = own.pop("trial")
        own["asked_page_cache"] = trial.page_cache
        environment: dict[str, str | int] = own.pop("environment")
        # Flat as well; the seconds of the walk stand there already.
        breakdown = {f"time_{k}": v for k, v in (own.pop("breakdown") or {}).items()}
        breakdown.pop("time_elapsed_s", None)
        own["checksums"] = {str(count): crc for count, crc in self.checksums.items()}
        return {**trial.to_json(), **own, **breakdown, **environment}


def from_worker(trial: Trial, values: Mapping[str, Any]) -> Measurement:
    """Build a measurement from the JSON object that a worker wrote."""
    checksums = {int(count): int(crc) for count, crc in values.get("checksums", {}).items()}
    return Measurement(trial, **{**values, "checksums": checksums})
