"""What is one trial asked to do, and what does it report?

A `Trial` goes to a worker process as JSON; a `Measurement` comes back as JSON.
Both are flat, so that a list of measurements is a tidy table: one row a trial,
with the machine, the library versions and every parameter in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from chunkwise.bench.access import Access, Hyperslab, Union
from chunkwise.bench.pagecache import PageCache

Status = Literal["ok", "failed", "timeout"]


@dataclass(frozen=True)
class Trial:
    """One combination of parameters, to be measured once.

    Attributes
    ----------
    file, dataset : str
        What to read.
    access : str
        The access pattern's name.
    block : tuple of int
        Its block shape in elements.
    chunks : tuple of int or None
        How the data that is read is chunked; None for data that is not.
    filters : str
        Its pipeline.
    page_cache : str
        ``warm``, or ``cold``: the worker drops the file from memory first.
    warm_first : bool
        Whether the worker reads the file into memory first, as another trial may have
        dropped it.
    order, seed, limit, slabs
        As in `chunkwise.bench.access.Access`.
    driver : str
        A name of `chunkwise.bench.drivers.DRIVERS`.
    cache_nbytes : int or None
        libhdf5's chunk cache for this dataset in bytes (H5Pset_chunk_cache);
        None leaves what the library gives by default.
    cache_nslots : int or None
        Slots of the cache's hash table; None leaves the default.
    cache_w0 : float or None
        The cache's preemption policy, 0 to 1; None leaves the default.
    comparable : bool
        Whether equal values mean equal bytes, so that checksums can be compared.
    max_seconds : float
        Stop after the operation that brings the timed reads to this.
    timeout_s : float
        Wall-clock seconds after which the worker is ended.
    """

    file: str
    dataset: str
    access: str
    block: tuple[int, ...]
    driver: str
    cache_nbytes: int | None = None
    cache_nslots: int | None = None
    cache_w0: float | None = None
    comparable: bool = True
    max_seconds: float = 1.0
    timeout_s: float = 10.0
    order: tuple[int, ...] | None = None
    seed: int | None = None
    limit: int | None = None
    slabs: tuple[Hyperslab | Union, ...] | None = None
    page_cache: PageCache = "warm"
    warm_first: bool = False
    chunks: tuple[int, ...] | None = None
    filters: str = "none"

    @property
    def pattern(self) -> Access:
        """What is read, in which order."""
        return Access(self.access, self.block, self.order, self.seed, self.limit, self.slabs)

    def to_json(self) -> dict[str, Any]:
        """Return the trial as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Trial:
        """Undo `to_json`."""
        order, slabs, chunks = (values.get(name) for name in ("order", "slabs", "chunks"))
        tuples = {
            "block": tuple(values["block"]),
            "chunks": None if chunks is None else tuple(chunks),
            "order": None if order is None else tuple(order),
            "slabs": _tuples(slabs),
        }
        return cls(**{**values, **tuples})


def _tuples(value: Any) -> Any:
    """Make tuples of lists, and of the lists in them."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


@dataclass(frozen=True)
class Measurement:
    """What one trial gave; the fields that a failed trial cannot fill are None.

    Attributes
    ----------
    trial : Trial
        What was asked.
    status : str
        ``ok``; ``failed`` (see `error`); or ``timeout``: ended after
        `timeout_s` seconds before its first bounded walk was over.
    error : str or None
        One line that says why there are no figures.
    repeat : int
        0 for the first time this combination was measured, 1 for the next, ...
    page_cache : str
        ``warm`` if the file's bytes were read once before; ``uncontrolled`` if
        the file is too large for that; ``cold`` if they were dropped and then came from
        storage; ``cold, unverified`` if that cannot be told, or less than half did.
    operations, total_operations : int or None
        Reads done, and reads that the whole pattern has.
    elapsed_s : float or None
        Seconds spent in those reads alone: opening, checksums and the loop
        around them are outside; the chunk index, read on first use, is inside.
    extrapolated : bool
        True if not all operations were done, so that `total_s` is an estimate.
    total_s : float or None
        Seconds for the whole pattern: `elapsed_s`, or what it extrapolates to.
    selected_nbytes : int or None
        Bytes asked for by the operations done.
    mb_per_s : float or None
        `selected_nbytes` per second, in 10^6 bytes.
    first_s : float or None
        Seconds of the first operation, which finds nothing in any chunk cache.
    median_s, p95_s, p99_s : float or None
        Seconds per operation done: median, 95th and 99th percentile.
    storage_nbytes : int or None
        Bytes that the process read from storage during the walk (not from the page
        cache); None where the system does not tell.
    cpu_s : float or None
        Processor seconds of all threads during the walk, checksums included.
    decoded_chunks : int or None
        Chunks that chunkwise decoded; None for the other drivers.
    stored_nbytes : int or None
        Bytes that the data takes in its file (H5Dget_storage_size).
    peak_rss_nbytes : int or None
        The worker's peak memory, Python and libraries included.
    actual_cache_nslots, actual_cache_nbytes, actual_cache_w0
        The chunk cache that the library says was in force.
    checksums : dict of int to int
        CRC-32 of all bytes read in the first 1, 2, 4, 8, ... operations and in
        all of them; empty if bytes are not comparable.
    environment : dict of str to str or int
        Machine, processors, and versions of all that took part.
    """

    trial: Trial
    status: Status
    error: str | None = None
    repeat: int = 0
    page_cache: str = "uncontrolled"
    operations: int | None = None
    total_operations: int | None = None
    elapsed_s: float | None = None
    extrapolated: bool = False
    total_s: float | None = None
    selected_nbytes: int | None = None
    mb_per_s: float | None = None
    first_s: float | None = None
    median_s: float | None = None
    p95_s: float | None = None
    p99_s: float | None = None
    storage_nbytes: int | None = None
    cpu_s: float | None = None
    decoded_chunks: int | None = None
    stored_nbytes: int | None = None
    peak_rss_nbytes: int | None = None
    actual_cache_nslots: int | None = None
    actual_cache_nbytes: int | None = None
    actual_cache_w0: float | None = None
    checksums: dict[int, int] = field(default_factory=dict)
    environment: dict[str, str | int] = field(default_factory=dict)

    @property
    def mean_s(self) -> float | None:
        """Seconds per operation over the whole pattern."""
        if self.total_s is None or not self.total_operations:
            return None
        return self.total_s / self.total_operations

    def to_record(self) -> dict[str, Any]:
        """Return one flat row: the trial's parameters, the figures, the environment."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        trial: Trial = own.pop("trial")
        own["asked_page_cache"] = trial.page_cache
        environment: dict[str, str | int] = own.pop("environment")
        own["checksums"] = {str(count): crc for count, crc in self.checksums.items()}
        return {**trial.to_json(), **own, **environment}


def from_worker(trial: Trial, values: Mapping[str, Any]) -> Measurement:
    """Build a measurement from the JSON object that a worker wrote."""
    checksums = {int(count): int(crc) for count, crc in values.get("checksums", {}).items()}
    return Measurement(trial, **{**values, "checksums": checksums})
