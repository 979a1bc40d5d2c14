"""Which of the chunks that a read touches are still cached when it is repeated?

libhdf5 keeps one chunk for each slot of a hash table, and as many as fit a number of bytes.  The
slot is not `cindex mod nslots`, as in paper 004: the chunk's grid coordinates are packed into one
number, each shifted by the bits of its dimension's number of chunks (``H5D__chunk_hash_val``).
A hit moves a chunk back by one place only, and chunks that were read in full go before others
(``H5D__chunk_lock``, ``H5D__chunk_cache_prune``); so in 1.10.8, 1.14 and 2.0.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import numpy.typing as npt

from chunkwise.model.readers import Reader

# A larger read is not followed: what does not fit is taken to be lost.
MOST_FOLLOWED = 512
# A read of still more chunks is taken to fill all slots there are.
MOST_LISTED = 1 << 20
FEWEST_SLOTS = 521
MANY_SLOTS = 1_000_000
# A prime; 16 GiB of pointers.
MOST_SLOTS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Read:
    """A box of elements of a chunked dataset, read at once."""

    shape: tuple[int, ...]  # Of the dataset and of a chunk, in elements
    chunk: tuple[int, ...]
    itemsize: int  # Bytes of an element
    start: tuple[int, ...]  # Where the box begins, and its shape, in elements; within the dataset
    block: tuple[int, ...]

    @property
    def first(self) -> list[int]:
        """The first chunk along each dimension."""
        return [a // c for a, c in zip(self.start, self.chunk, strict=True)]

    @property
    def extent(self) -> list[int]:
        """How many chunks the box touches along each dimension."""
        ends = zip(self.start, self.block, self.chunk, self.first, strict=True)
        return [(a + n - 1) // c - f + 1 for a, n, c, f in ends]

    @property
    def chunks(self) -> int:
        """How many chunks the box touches."""
        return math.prod(self.extent)

    @property
    def grid(self) -> list[int]:
        """How many chunks the dataset has along each dimension."""
        return [-(-n // c) for n, c in zip(self.shape, self.chunk, strict=True)]

    @property
    def chunk_nbytes(self) -> int:
        """Bytes of an unfiltered chunk."""
        return math.prod(self.chunk) * self.itemsize

    def wanted_nbytes(self) -> list[int]:
        """Bytes that are wanted of each chunk touched, in C order."""
        along = []
        for a, n, c, f, e in zip(
            self.start, self.block, self.chunk, self.first, self.extent, strict=True
        ):
            edges = [(max(a, i * c), min(a + n, (i + 1) * c)) for i in range(f, f + e)]
            along.append([end - begin for begin, end in edges])
        return [math.prod(lengths) * self.itemsize for lengths in product(*along)]


def slots(
    grid: Sequence[int], first: Sequence[int], extent: Sequence[int], nslots: int
) -> npt.NDArray[np.int64]:
    """Return the slot of each chunk of a box in the grid of chunks."""
    packed = np.zeros(1, dtype=np.uint64)
    for dimension, (start, count) in enumerate(zip(first, extent, strict=True)):
        # H5VM_log2_gen(H5VM_power2up(n)): the bits that hold 0 to n - 1.
        bits = (grid[dimension] - 1).bit_length() if dimension else 0
        along = np.arange(start, start + count, dtype=np.uint64)
        packed = ((packed[:, None] << np.uint64(bits)) ^ along[None, :]).ravel()
    return (packed % np.uint64(nslots)).astype(np.int64)


def fits(reader: Reader, chunks: int, nbytes: int) -> bool:
    """Whether a reader's cache holds this many chunks of this many bytes, if none collide."""
    has_slots = reader.nslots is None or chunks <= reader.nslots
    return has_slots and chunks * nbytes <= reader.cache_nbytes


def reloads(reader: Reader, read: Read) -> int:
    """Count the filtered chunks that are decoded again when the same read follows at once."""
    # Exact for libhdf5 up to `MOST_FOLLOWED` chunks; beyond, exact where all fit.
    chunks, nbytes = read.chunks, read.chunk_nbytes
    if nbytes > reader.cache_nbytes or reader.nslots == 0:
        return chunks
    if reader.nslots is None or reader.w0 is None:
        return 0 if fits(reader, chunks, nbytes) else chunks
    taken, lost, places = _shared(reader.nslots, read)
    # If the chunks of all used slots fit, only a collision drops one.
    if fits(reader, taken, nbytes):
        return lost
    if chunks > MOST_FOLLOWED:
        return chunks
    cache = ChunkCache(reader.cache_nbytes // nbytes, reader.w0, nbytes)
    accesses = list(zip(places.tolist(), read.wanted_nbytes(), strict=True))
    for _ in range(2):
        loads = sum(cache.access(i, *access) for i, access in enumerate(accesses))
    return loads


def collisions(reader: Reader, read: Read) -> int:
    """Count the chunks of a read that share their slot with another one of it."""
    if read.chunk_nbytes > reader.cache_nbytes or reader.w0 is None or not reader.nslots:
        return 0
    return _shared(reader.nslots, read)[1]


def _shared(nslots: int, read: Read) -> tuple[int, int, npt.NDArray[np.int64]]:
    """Count slots that a read takes, and chunks that share theirs; give the slot of each chunk."""
    # A read of too many chunks is taken to fill all slots.
    chunks = read.chunks
    if chunks > MOST_LISTED:
        return nslots, chunks, np.empty(0, np.int64)
    places = slots(read.grid, read.first, read.extent, nslots)
    held = np.bincount(places)
    alone = int(np.count_nonzero(held == 1))
    return int(np.count_nonzero(held)), chunks - alone, places


def hash_slots(chunks: int) -> int:
    """Return ``rdcc_nslots`` for a cache of this many chunks: a prime, about 100 for each."""
    # One chunk per slot: 10 slots for each; beyond a million, as many as memory allows.
    number = max(FEWEST_SLOTS, min(100 * chunks, max(10 * chunks, MANY_SLOTS)))
    return prime_from(min(number, MOST_SLOTS))


def prime_from(number: int) -> int:
    """Return the first prime that is not smaller."""
    while any(number % divisor == 0 for divisor in range(2, math.isqrt(number) + 1)):
        number += 1
    return number


@dataclass(slots=True)
class ChunkCache:
    """libhdf5's chunk cache (``H5D_rdcc_t``), for reads."""

    room: int  # Chunks that fit its bytes
    w0: float  # Its preemption policy
    nbytes: int  # Bytes of a chunk
    steps: int = 0  # Chunks that were looked at so far: what following it has taken
    # The queue, first to be dropped first; which chunks were read in full; chunk and place.
    _places: list[int] = field(default_factory=list)
    _done: list[int] = field(default_factory=list)
    _chunk_at: dict[int, int] = field(default_factory=dict)
    _place_of: dict[int, int] = field(default_factory=dict)
    # For each chunk held, its bytes not read yet, and its slot; for each slot, its chunk.
    _unread: dict[int, int] = field(default_factory=dict)
    _slot_of: dict[int, int] = field(default_factory=dict)
    _holder: dict[int, int] = field(default_factory=dict)

    def access(self, chunk: int, slot: int, wanted_nbytes: int) -> bool:
        """Read from a chunk, known by a number from 0 on; return whether it had to be loaded."""
        self.steps += 1
        load = self._holder.get(slot) != chunk
        if load:
            if slot in self._holder:
                self._drop(self._place_of[self._holder[slot]])
            self._prune()
            self._places.append(self.steps)
            self._put(chunk, self.steps)
            self._unread[chunk] = self.nbytes
            self._slot_of[chunk] = slot
            self._holder[slot] = chunk
        else:
            self._move_back(chunk)
        left = self._unread[chunk]
        self._unread[chunk] = max(0, left - wanted_nbytes)
        if left > 0 >= left - wanted_nbytes:
            insort(self._done, self._place_of[chunk])
        return load

    @property
    def held(self) -> set[int]:
        """The chunks that are in it now."""
        return set(self._slot_of)

    def behind(self, chunk: int) -> int:
        """The chunk that is dropped next after one that is held; -1 after the last."""
        next_place = bisect_right(self._places, self._place_of[chunk])
        return self._chunk_at[self._places[next_place]] if next_place < len(self._places) else -1

    def _put(self, chunk: int, place: int) -> None:
        self._chunk_at[place], self._place_of[chunk] = chunk, place

    def _move_back(self, chunk: int) -> None:
        """Let a chunk change places with the next one."""
        place = self._place_of[chunk]
        behind = bisect_right(self._places, place)
        if behind == len(self._places):
            return
        later = self._places[behind]
        other = self._chunk_at[later]
        if bool(self._unread[chunk]) != bool(self._unread[other]):
            before, after = (later, place) if self._unread[chunk] else (place, later)
            # No place lies between the two.
            self._done[bisect_left(self._done, before)] = after
        self._put(chunk, later)
        self._put(other, place)

    def _drop(self, place: int) -> None:
        chunk = self._chunk_at.pop(place)
        del self._place_of[chunk], self._places[bisect_left(self._places, place)]
        if not self._unread.pop(chunk):
            del self._done[bisect_left(self._done, place)]
        del self._holder[self._slot_of.pop(chunk)]

    def _prune(self) -> None:
        """Make room for one chunk, if that can be done."""
        # libhdf5 has two pointers that walk the queue.  The first drops chunks that were read in
        # full; `w0` of the queue behind it the second drops whatever it meets.  With a `w0` of 1
        # the second never begins, and the cache may outgrow its bytes.
        needed = len(self._places) - self.room + 1
        if needed <= 0:
            return
        head = int(len(self._places) * self.w0)
        behind = self._places[head:]
        end = behind[0] if behind else self.steps
        for place in self._done[: bisect_left(self._done, end)][:needed]:
            self._drop(place)
            needed -= 1
        for place in behind[:needed]:
            chunk = self._chunk_at.get(place)
            done = chunk is not None and not self._unread[chunk]
            self._drop(place if done else self._places[0])
