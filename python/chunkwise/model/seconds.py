"""How long does a pattern take a reader, on a machine?

Counts of calls, touches, loads, runs and bytes (`traffic`), each times its rate, and the codec's
time for each loaded chunk.  The sum is linear, so the same terms fit rates (`fitting`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, fields
from typing import Any, Final

from chunkwise.model.blocks import finding_s
from chunkwise.model.readers import CHUNKWISE
from chunkwise.model.traffic import Traffic


@dataclass(frozen=True, slots=True)
class Rates:
    """What each part of a walk costs one reader, on one thread, from memory."""

    walk_s: float = 0.0  # Seconds once, whatever is read
    call_s: float = 0.0  # Seconds a call
    touch_s: float = 0.0  # Seconds for each chunk that a call touches
    crowd_s: float = 0.0  # Seconds more, for each doubling of a call's chunks beyond a dozen
    load_s: float = 0.0  # Seconds to find, fetch and keep a chunk, besides its bytes
    piece_s: float = 0.0  # Seconds for a run of bytes that is read by itself, without a chunk
    run_s: float = 0.0  # Seconds for each run that is copied
    copy_s: float = 0.0  # Seconds a byte that is copied between a chunk and the selection
    fetch_s: float = 0.0  # Seconds a stored byte that is read or written
    index_s: float = 0.0  # Seconds a chunk of the dataset, to learn where all are
    fresh_s: float = 0.0  # Seconds a byte of memory that is touched for the first time
    irregular_s: float = 0.0  # Seconds an element of a union of several dimensions
    # Seconds for each new page of memory, if the buffer is too small for huge pages.
    page_s: float = 0.0
    far_s: float = 0.0  # Seconds more for each run that is far in memory from the one before
    strip_s: float = 0.0  # Seconds for each group of runs at equal distances


# Of small pages of memory.
PAGE_NBYTES: Final = 4096
RATES: Final = tuple(one.name for one in fields(Rates))


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast chunks pass a filter pipeline, one way, on one thread."""

    start_s: float = 0.0  # Seconds a chunk
    nbyte_s: float = 0.0  # Seconds a byte before filters

    def chunk_s(self, nbytes: float) -> float:
        """Seconds of one chunk."""
        return self.start_s + nbytes * self.nbyte_s


@dataclass(frozen=True, slots=True)
class Codec:
    """What a filter pipeline makes of one dataset's chunks."""

    filters: str  # The pipeline in the grammar of filters
    # Stored bytes over raw bytes for each tried chunk shape; an empty shape is for all.
    ratios: tuple[tuple[tuple[int, ...], float], ...] = ()
    # The speed of each reader, by its name; of others that of libhdf5.
    decode: Mapping[str, Speed] = field(default_factory=dict)
    encode: Mapping[str, Speed] = field(default_factory=dict)
    # By how much places of the dataset differ: the largest ratio over the smallest.
    spread: float = 1.0
    in_blocks: bool = False  # Whether chunkwise decodes parts of chunks

    def ratio(self, chunks: Sequence[int]) -> float:
        """Return the stored share of chunks of a shape, from the shapes nearest to it."""
        # 1.0 if nothing was tried.
        total = weights = 0.0
        for shape, ratio in self.ratios:
            if not shape:
                return ratio
            pairs = zip(shape, chunks, strict=True)
            away = sum(math.log2(max(1, a) / max(1, b)) ** 2 for a, b in pairs)
            if away == 0:
                return ratio
            total += ratio / away
            weights += 1 / away
        return total / weights if weights else 1.0

    def speed(self, reader: str, *, encoding: bool = False) -> Speed:
        """Return a reader's speed; libhdf5's if it has none of its own."""
        known = self.encode if encoding else self.decode
        return known.get(reader) or known.get("libhdf5") or Speed()


@dataclass(frozen=True, slots=True)
class Storage:
    """Local storage, where the bytes do not come from memory: the system reads ahead."""

    request_s: float  # Seconds until the first byte of a request
    nbytes_per_s: float  # Bytes that follow in a second

    def seconds(self, requests: float, nbytes: float) -> float:
        """Seconds for this many requests, one after another, of this many bytes in all."""
        return requests * self.request_s + nbytes / self.nbytes_per_s


@dataclass(frozen=True, slots=True)
class Machine:
    """What a machine's readers cost, as it was measured."""

    reads: Mapping[str, Rates]  # The rates of each reader, by its name
    writes: Mapping[str, Rates]
    threads: int = 1  # Threads that chunkwise uses
    scaling: float = 1.0  # How many times as fast all of them decode as one
    cold: Storage | None = None  # The storage, where it could be measured

    def rates(self, reader: str, *, writing: bool = False) -> Rates:
        """Return a reader's rates; libhdf5's if it has none of its own."""
        known = self.writes if writing else self.reads
        return known.get(reader) or known.get("libhdf5") or Rates()

    def speedup(self, reader: str, abreast: float) -> float:
        """Return how many times as fast a reader decodes this many chunks at a time as one."""
        if reader != CHUNKWISE or self.threads < 2:
            return 1.0
        busy = min(1.0, (abreast - 1) / (self.threads - 1))
        return 1 + (self.scaling - 1) * max(0.0, busy)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "reads": {name: asdict(one) for name, one in self.reads.items()},
            "writes": {name: asdict(one) for name, one in self.writes.items()},
            "threads": self.threads,
            "scaling": self.scaling,
            "cold": None if self.cold is None else asdict(self.cold),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Machine:
        """Undo `as_dict`."""
        cold = values["cold"]
        found = cls(
            {name: Rates(**one) for name, one in values["reads"].items()},
            {name: Rates(**one) for name, one in values["writes"].items()},
            int(values["threads"]),
            float(values["scaling"]),
            None if cold is None else Storage(**cold),
        )
        rates = (*found.reads.values(), *found.writes.values())
        numbers = [float(n) for one in rates for n in astuple(one)]
        if not found.reads or not all(math.isfinite(n) and n >= 0 for n in numbers):
            raise ValueError("no rates of a machine")
        return found


def terms(found: Traffic, chunk_stored_nbytes: float) -> tuple[float, ...]:
    """List what is multiplied by each rate, in the order of `RATES`."""
    fetched = (found.loads + found.partial) * chunk_stored_nbytes + found.pieces_nbytes
    return (
        1.0,
        found.operations,
        found.touches,
        found.crowd,
        found.loads + found.partial,
        found.pieces + found.sieves,
        found.runs,
        found.copied_nbytes,
        fetched,
        found.indexed,
        found.fresh_nbytes,
        found.irregular,
        found.small_nbytes / PAGE_NBYTES,
        found.far,
        found.strips,
    )


# Terms that several threads share: loads, and the bytes that they fetch.
_SHARED: Final = frozenset({"load_s", "fetch_s"})
# The part of a walk to which each rate belongs, in words.
_PARTS: Final[Mapping[str, str]] = {
    "walk_s": "calls",
    "call_s": "calls",
    "touch_s": "chunks",
    "crowd_s": "chunks",
    "load_s": "chunks",
    "index_s": "chunks",
    "piece_s": "copying",
    "run_s": "copying",
    "copy_s": "copying",
    "fresh_s": "copying",
    "irregular_s": "copying",
    "page_s": "copying",
    "far_s": "copying",
    "strip_s": "copying",
    "fetch_s": "storage",
}
PARTS: Final = ("calls", "chunks", "filters", "copying", "storage")


def parts(
    found: Traffic,
    chunks: Sequence[int],
    itemsize: int,
    codec: Codec,
    machine: Machine,
    reader: str,
    *,
    writing: bool = False,
    storage: Storage | None = None,  # Where the bytes come from; None for memory
) -> dict[str, float]:
    """Predict the seconds of a pattern, by their parts."""
    nbytes = math.prod(chunks) * itemsize
    decoded, finding = float(nbytes), 0.0
    if codec.in_blocks and found.part_nbytes is not None:
        decoded, finding = found.part_nbytes, finding_s(nbytes)
    stored_nbytes = decoded * codec.ratio(chunks)
    rates = machine.rates(reader, writing=writing)
    speedup = machine.speedup(reader, found.abreast)
    total = dict.fromkeys(PARTS, 0.0)
    for name, count in zip(RATES, terms(found, stored_nbytes), strict=True):
        share = speedup if name in _SHARED else 1.0
        total[_PARTS[name]] += count * float(getattr(rates, name)) / share
    speed = codec.speed(reader, encoding=writing)
    codec_s = found.loads * (finding + speed.chunk_s(decoded))
    codec_s += found.partial * codec.speed(reader).chunk_s(nbytes)
    total["filters"] = codec_s / speedup
    if storage is not None:
        # What lies in a row costs one request.
        total["storage"] += storage.seconds(found.seeks, found.fetched_nbytes(stored_nbytes))
    return total
