"""How long does a parallel write take on N ranks, and what is its limit?

Ranks read and encode chunks, and send their sizes in batches to one process, which answers where
they lie; each rank writes its own bytes; then all is read again.  A phase takes as long as its
slowest part:

=========  ===================================================================
read       stored bytes of the source / what ranks, or the storage, deliver
encode     bytes / (cores x rate of one)
exchange   batches of a rank x time of an answer + those of others x time of a question
allocate   chunks x time of one: one process does it
write      stored bytes / what ranks, or the storage, take
verify     bytes / (cores x rate of one), and not faster than they are read
=========  ===================================================================
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Final

from chunkwise.errors import UsageError

PHASES: Final = ("read", "encode", "exchange", "allocate", "write", "verify")
# These may run at the same time; reading again comes after.
_PIPELINE: Final = PHASES[:-1]
LIMITS: Final[Mapping[str, str]] = {
    "read": "storage",
    "encode": "cores",
    "exchange": "exchange",
    "allocate": "index writer",
    "write": "storage",
    "verify": "verifying",
}


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What a machine does in a second."""

    encode_rate: float = 150e6  # Decoded bytes that a core reads from memory, encodes and keeps
    verify_rate: float = 500e6  # Decoded bytes that a core decodes and compares
    # Stored bytes that a rank, a node's ranks, and all ranks read or write at most.
    rank_rate: float = 1e9
    node_rate: float = 2e9
    storage_rate: float = 100e9
    index_s: float = 15e-6  # Seconds to enter a chunk in the index
    exchange_s: float = 500e-6  # Seconds that a rank waits for an answer
    # Seconds that the index writer has with a question, beside the chunks in it.
    request_s: float = 50e-6
    fixed_s: float = 0.5  # Seconds to open, lay out and close a file
    # From 0 (one phase after the other) to 1 (all but verifying at the same time)
    overlap: float = 0.0

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            too_small = value < 0 or (value == 0 and one.name not in _MAY_BE_ZERO)
            if not math.isfinite(value) or too_small:
                raise UsageError(f"{one.name} must be a number above 0, not {value!r}")
        if self.overlap > 1:
            raise UsageError(f"overlap must be from 0 to 1, not {self.overlap!r}")


_MAY_BE_ZERO: Final = ("index_s", "exchange_s", "request_s", "fixed_s", "overlap")
RATES: Final = ("encode_rate", "verify_rate", "rank_rate", "node_rate", "storage_rate")


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is written, and by how many."""

    nbytes: int  # Of all chunks, decoded
    chunk_nbytes: int  # Of a chunk, decoded
    ratio: float = 0.5  # Stored bytes divided by decoded ones
    n_ranks: int = 1  # Processes
    threads: int = 1  # By which a rank encodes
    # Cores for them; by default one a thread.  More ranks than cores gain nothing.
    n_cores: int | None = None
    ranks_per_node: int = 64  # Ranks that share a node, and what it reads or writes at most
    batch: int = 64  # Chunks of a rank in one question
    source_nbytes: int = 0  # Stored bytes that are read first: 0 for a program that makes its data
    verify: bool = True  # Whether all is read again

    def __post_init__(self) -> None:
        counts = ("n_ranks", "threads", "ranks_per_node", "batch")
        for name in ("nbytes", "chunk_nbytes", *counts):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.n_cores is not None and self.n_cores < 1:
            raise UsageError(f"n_cores must be at least 1, not {self.n_cores}")
        if not math.isfinite(self.ratio) or self.ratio <= 0 or self.source_nbytes < 0:
            raise UsageError("ratio must be above 0, and source_nbytes not below it")

    def on(self, n_ranks: int) -> Job:
        """Return the same job on other ranks, each with a core."""
        return replace(self, n_ranks=n_ranks, n_cores=None)

    @property
    def n_chunks(self) -> int:
        """How many chunks there are."""
        return -(-self.nbytes // self.chunk_nbytes)

    @property
    def stored_nbytes(self) -> float:
        """Bytes on storage."""
        return self.nbytes * self.ratio

    @property
    def busy_cores(self) -> int:
        """Cores that have something to encode."""
        threads = self.n_ranks * self.threads
        return min(threads, self.n_cores or threads, self.n_chunks)

    @property
    def nodes(self) -> int:
        """Nodes that the ranks run on."""
        return -(-self.n_ranks // self.ranks_per_node)

    @property
    def answers(self) -> float:
        """How often a rank waits for an answer; the rank that keeps an index need not."""
        if self.n_ranks == 1:
            return 0.0
        return math.ceil(self.n_chunks / (self.n_ranks * self.batch))

    @property
    def questions(self) -> float:
        """How often other ranks send requests to the index writer."""
        return math.ceil(self.n_chunks / self.batch) * (1 - 1 / self.n_ranks)


@dataclass(frozen=True)
class Prediction:
    """How long a job takes."""

    phases: Mapping[str, float]  # Seconds of each, as if it were alone
    elapsed_s: float  # Seconds of all, as far as they overlap
    limit: str  # Which phase is the longest


def predict(machine: Machine, job: Job) -> Prediction:
    """Compute how long a job takes, phase by phase."""
    stream = streamed(machine, job)
    read_again = job.stored_nbytes / stream
    decode_again = job.nbytes / (job.busy_cores * machine.verify_rate)
    phases = {
        "read": job.source_nbytes / stream,
        "encode": job.nbytes / (job.busy_cores * machine.encode_rate),
        "exchange": job.answers * machine.exchange_s + job.questions * machine.request_s,
        "allocate": job.n_chunks * machine.index_s,
        "write": job.stored_nbytes / stream,
        "verify": max(read_again, decode_again) if job.verify else 0.0,
    }
    elapsed = machine.fixed_s + together(phases, machine.overlap)
    return Prediction(phases, elapsed, max(PHASES, key=lambda phase: phases[phase]))


def streamed(machine: Machine, job: Job) -> float:
    """Return how fast stored bytes are read or written by all ranks; bytes a second."""
    writers = min(job.n_ranks, job.n_chunks)
    nodes = min(job.nodes, job.n_chunks)
    return min(writers * machine.rank_rate, nodes * machine.node_rate, machine.storage_rate)


def together(phases: Mapping[str, float], overlap: float) -> float:
    """Add the seconds of phases that run partly at the same time."""
    alone = [phases.get(name, 0.0) for name in _PIPELINE]
    longest = max(alone)
    return longest + (1 - overlap) * (sum(alone) - longest) + phases.get("verify", 0.0)


def ranks_of_one_index(machine: Machine, job: Job) -> float:
    """Return how many ranks encode as fast as the index writer enters chunks."""
    return rate_of_index(machine, job) / machine.encode_rate


def rate_of_index(machine: Machine, job: Job) -> float:
    """Return how many decoded bytes the index writer enters in a second."""
    if machine.index_s == 0:
        return math.inf
    return job.chunk_nbytes / machine.index_s


def _other_limits(machine: Machine, job: Job) -> float:
    """Seconds of the longest phase that larger chunks do not shorten."""
    phases = predict(machine, job).phases
    return max(phases["read"], phases["encode"], phases["write"])


def chunk_nbytes_needed(machine: Machine, job: Job) -> int:
    """Return how large chunks must be so that the index writer is not the limit; bytes."""
    needed = job.nbytes * machine.index_s / _other_limits(machine, job)
    return max(job.chunk_nbytes, math.ceil(needed))
