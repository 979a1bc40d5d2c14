"""How many calls, chunks and bytes does an access pattern take?

For walks they follow from the shapes; at random places they are expected values; a list of
selections is followed through a cache chunk by chunk.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final

import numpy as np

from chunkwise.model.blocks import part_nbytes
from chunkwise.model.chunk_cache import ChunkCache
from chunkwise.model.cost import Shape, Stored, decodes_by_size, walk_cost
from chunkwise.model.geometry import Axis, touched_along
from chunkwise.model.readers import CHUNKWISE, Reader

# Start, stride, count and block, as H5Sselect_hyperslab takes them.
Hyperslab = tuple[Shape, Shape, Shape, Shape]
# If one selection has more chunks, they are counted, but not followed through the cache.
_MOST_FOLLOWED: Final = 20_000
# Up to this many chunks of a call each cost no more than one.
_FEW: Final = 12
# libhdf5's default (H5Pset_sieve_buf_size).
SIEVE_NBYTES: Final = 1 << 16
# What systems read ahead of a sequential reader (Linux's default).
READ_AHEAD_NBYTES: Final = 128 << 10
# Larger memory goes back to the system when freed (glibc's largest M_MMAP_THRESHOLD).
GIVEN_BACK_NBYTES: Final = 32 << 20
# Buffers from this size on come in huge pages, where there are such: NumPy asks for them, and so
# does chunkwise for its chunks.  libhdf5 does not.
HUGE_NBYTES: Final = 4 << 20
# Chunks of libhdf5 from this size on are first mapped one by one.  When such a one is freed, glibc
# takes the next ones of that size from its heap (M_MMAP_THRESHOLD): as many are fresh once more.
_MAPPED_NBYTES: Final = (1 << 20) + 1
# Runs that are so far apart are not fetched ahead by processors, whose caches hold about so much.
_FAR_NBYTES: Final = 512
_NEAR_NBYTES: Final = 4 << 20
# What they fetch beside a run, as neighbours of its lines.
_FETCHED_NBYTES: Final = 128
# What they fetch at a time, and how much of that they hold until a walk comes back to it.
_LINE_NBYTES: Final = 64
_LINES_HELD: Final = (1 << 20) // _LINE_NBYTES
# Chunks that chunkwise has under work at a time when it writes.
_UNDER_WORK: Final = 4
_AS_MUCH_AS_IT_TAKES: Final = 1 << 60
# Of a walk, whose collisions in the hash table are looked for.
_MOST_HASHED: Final = 65_536


@dataclass(frozen=True, slots=True)
class Pattern:
    """What is read or written, in which order, and how often."""

    name: str  # In tables
    block: Shape  # Shape of one read or write, in elements; of a list, of its first selection
    order: Shape | None = None  # The dimensions from the slowest to the fastest; None is C order
    scattered: bool = False  # Whether blocks are at random places, no block twice
    operations: int | None = None  # How many blocks are read; None for as many as cover the array
    # Of a list, the selections that are looked at; None for blocks.  `operations` counts all.
    selections: tuple[tuple[Hyperslab, ...], ...] | None = None
    weight: float = 1.0  # How often the whole pattern is run, beside the others
    writes: bool = False  # Whether it writes a new dataset rather than reads
    # Whether what is read comes in one dimension, as of unions, whatever the dataset has.
    flat: bool = False
    # Whether one read is what counts: `weight` then holds the share of one in all `operations`.
    of_one_read: bool = False
    # What a stated pattern was taken for, as users read it; no part of what it is.
    words: str = field(default="", compare=False)

    @property
    def reads(self) -> int:
        """How many reads take its seconds, if one counts; otherwise 1."""
        return (self.operations or 1) if self.of_one_read else 1


@dataclass(frozen=True, slots=True)
class Traffic:
    """The work of a pattern; expected values if places are random."""

    operations: float  # Calls that read or write
    touches: float  # Chunks touched, each as often as a call touches it
    loads: float  # Chunks found, fetched and decoded; of writes, encoded and stored
    # Of writes: chunks that are read back because they were stored before they were full.
    partial: float
    pieces: float  # Runs of bytes that are read from storage one by one, where no chunk is cached
    runs: float  # Runs of bytes that are copied between chunks and memory
    selected_nbytes: float  # Bytes of the selection
    chunks: int  # Chunks of the dataset
    abreast: float  # Chunks that may be decoded at the same time
    sieves: float = 0.0  # How often libhdf5 fills its sieve buffer with what lies around a piece
    # Bytes of memory that are touched for the first time: the first call's, and the cache's.
    fresh_nbytes: float = 0.0
    # Elements of several dimensions that become one: libhdf5 finds the chunk of each by itself.
    irregular: float = 0.0
    indexed: float = 0.0  # Entries of the chunk index that are looked up, or made
    seeks: float = 0.0  # Runs of bytes in the file that do not follow the one before
    # Of pieces: bytes from the first to the last of a call, which readahead may fetch.
    spanned_nbytes: float = 0.0
    # Of `fresh_nbytes`, those of buffers that are too small for huge pages.
    small_nbytes: float = 0.0
    # Bytes that are read or written piece by piece, or through the sieve buffer.
    pieces_nbytes: float = 0.0
    # Bytes of the selection that are copied out of chunks or the sieve buffer, or into them: what
    # comes straight from the file is in its place at once.
    copied_nbytes: float = 0.0
    # Pieces and runs that no processor's cache holds, each far from the one before.
    far: float = 0.0
    # Of chunkwise: groups of runs that lie at equal distances, in a chunk and in memory.
    strips: float = 0.0
    # And the bytes that it decodes of a chunk which is stored in blocks; None for all of them.
    part_nbytes: float | None = None

    def fetched_nbytes(self, chunk_stored_nbytes: float) -> float:
        """Return how many bytes come from storage, where a chunk takes that many."""
        chunks = (self.loads + self.partial) * chunk_stored_nbytes
        return chunks + max(self.pieces_nbytes, self.spanned_nbytes)

    @property
    def crowd(self) -> float:
        """Touches, each times the doublings of a call's chunks beyond a dozen."""
        # libhdf5 sorts the chunks of a call, and memory that it visits in between is cold.
        each = self.touches / max(1.0, self.operations)
        return self.touches * max(0.0, math.log2(max(each, 1.0) / _FEW))


def is_alone(pattern: Pattern, reader: str) -> bool:
    """Whether each read counts as if there were no other, without chunkwise's cache."""
    return reader == CHUNKWISE and pattern.scattered and not pattern.writes


def reader_of(pattern: Pattern, reader: Reader) -> Reader:
    """Return a reader with the cache that counts for a pattern."""
    return replace(reader, cache_nbytes=0) if is_alone(pattern, reader.name) else reader


def traffic(stored: Stored, pattern: Pattern, reader: Reader) -> Traffic:
    """Count the work of a pattern for a reader with its chunk cache."""
    if not stored.chunked:
        return contiguous_traffic(stored.shape, stored.itemsize, pattern, reader)
    if pattern.selections is not None:
        return _listed(stored, pattern, reader)
    if pattern.scattered or pattern.operations is not None:
        return _scattered(stored, pattern, reader)
    return _walked(stored, pattern, reader)


def _outgrown(stored: Stored, reader: Reader) -> Reader:
    """Give the cache what it takes by itself: with a `w0` of 1 no chunk leaves before its time."""
    # libhdf5 then drops chunks that were read or written in full alone, whatever their bytes.
    if reader.w0 is None or reader.w0 < 1 or stored.chunk_nbytes > reader.cache_nbytes:
        return reader
    return replace(reader, cache_nbytes=max(reader.cache_nbytes, _AS_MUCH_AS_IT_TAKES))


def contiguous_traffic(shape: Shape, itemsize: int, pattern: Pattern, reader: Reader) -> Traffic:
    """Count the work of a pattern if the dataset is not chunked."""
    # libhdf5 reads short pieces through its sieve buffer, chunkwise from a map of the file.
    whole = Stored(shape, shape, itemsize, filtered=False)
    nobody = replace(reader, cache_nbytes=0, nslots=0)
    # Read as pieces of one chunk that no cache holds; there is no chunk to be filled first.
    found = traffic(whole, replace(pattern, writes=False), nobody)
    each = found.pieces / max(1.0, found.operations)
    length, distance = _distance(whole, pattern, found)
    spanned = found.spanned_nbytes or found.operations * min(
        each * distance, float(whole.chunk_nbytes)
    )
    apart = each > 1 and distance >= READ_AHEAD_NBYTES
    calls = 1.0 if _is_in_order(whole, pattern) else found.operations
    found = replace(
        found,
        irregular=0.0,
        indexed=0.0,
        # Written data is already in memory.
        fresh_nbytes=0.0 if pattern.writes else found.fresh_nbytes,
        small_nbytes=0.0 if pattern.writes else found.small_nbytes,
        seeks=found.pieces if apart else calls,
        spanned_nbytes=0.0 if apart else min(spanned, calls * whole.chunk_nbytes),
    )
    if reader.name == CHUNKWISE:
        return found
    sieves = _sieves(whole, pattern, found, length, distance)
    nbytes = max(found.selected_nbytes, sieves * SIEVE_NBYTES)
    return replace(
        found,
        pieces=0.0,
        runs=found.pieces,
        sieves=sieves,
        pieces_nbytes=nbytes,
        copied_nbytes=found.selected_nbytes if length < SIEVE_NBYTES else 0.0,
        far=0.0,
    )


def _walked(stored: Stored, pattern: Pattern, reader: Reader) -> Traffic:
    walk = stored.walk(pattern.block, pattern.order)
    touches = math.prod(axis.touches for axis in walk.axes)
    each = touches / walk.operations
    decodes = _decodes(stored, pattern, reader)
    # A cache cannot make a chunk load more often than it is touched.
    loads = min(float(touches), decodes * walk.chunk_count)
    selected = float(math.prod(stored.shape) * stored.itemsize)
    chunks = math.prod(stored.grid)
    return _completed(
        stored, pattern, reader, walk.operations, touches, chunks, loads, _copied(stored, pattern),
        selected, each,
    )  # fmt: skip


def _decodes(stored: Stored, pattern: Pattern, reader: Reader) -> float:
    """Return how often a walk in order decodes each chunk."""
    holding = _outgrown(stored, reader)
    few = stored.walk(pattern.block, pattern.order).chunks_per_operation <= _MOST_HASHED
    if not few:
        return decodes_by_size(stored, pattern.block, holding, order=pattern.order)
    return walk_cost(stored, pattern.block, holding, order=pattern.order).decodes


def _scattered(stored: Stored, pattern: Pattern, reader: Reader) -> Traffic:
    walk = stored.walk(pattern.block)
    operations = min(walk.operations, pattern.operations or walk.operations)
    share = operations / walk.operations
    each = math.prod(touched_along(*lengths)[0] for lengths in _along(stored, pattern.block))
    touches = operations * each
    if pattern.scattered:
        # The share of chunks that this many draws touch.
        touched_share = 1 - (1 - min(1.0, each / walk.chunk_count)) ** operations
        distinct = max(min(touches, walk.chunk_count * touched_share), 1.0)
        room = reader.cache_nbytes // stored.chunk_nbytes if stored.chunk_nbytes else 0
        lost = max(0.0, 1 - room / walk.chunk_count) if room >= each else 1.0
        loads = distinct + (touches - distinct) * lost
    else:
        # The first blocks of a walk in order.
        distinct = max(min(touches, walk.chunk_count * share), 1.0)
        loads = min(touches, distinct * _decodes(stored, pattern, reader))
    selected = math.prod(stored.shape) * stored.itemsize * share
    found = _completed(
        stored, pattern, reader, operations, touches, distinct, loads, _copied(stored, pattern),
        selected, each,
    )  # fmt: skip
    alone = is_alone(pattern, reader.name) and not reader.cache_nbytes
    return replace(found, part_nbytes=part_nbytes(stored, pattern.block)) if alone else found


def _listed(stored: Stored, pattern: Pattern, reader: Reader) -> Traffic:
    """Follow the chunks of the selections that are given through a cache."""
    selections = pattern.selections or ()
    total = pattern.operations or len(selections)
    cache = _cache(stored, reader)
    seen: set[Shape] = set()
    touches = loads = runs = selected = irregular = spanned = 0.0
    axes = range(len(stored.shape))
    # Not as integers: their sums may be beyond 64 bits.
    strides = np.array([math.prod(stored.shape[axis + 1 :]) for axis in axes], np.float64)
    for parts in selections:
        chunks = _chunks_of(stored, parts)
        touches += chunks.count
        # Of each hyperslab, a row.
        start, stride, counts, block = np.array(parts, np.int64).swapaxes(0, 1)
        lengths = counts * block
        elements = lengths.prod(axis=1, dtype=np.float64)
        selected += float(elements.sum()) * stored.itemsize
        if (pattern.flat or len(parts) > 1) and len(stored.shape) > 1:
            irregular += float(elements.sum())
        # From the first to the last element, in C order.
        low, high = start @ strides, (start + stride * (counts - 1) + block - 1) @ strides
        spanned += float(high.max() - low.min() + 1) * stored.itemsize
        dense = (counts[:, -1] == 1) | (stride[:, -1] == block[:, -1])
        last = np.where(dense, lengths[:, -1], block[:, -1])
        runs += float((elements / np.clip(last, 1, stored.chunks[-1])).sum())
        if chunks.followed is None:
            loads += chunks.count
            cache = _cache(stored, reader)
            continue
        seen.update(chunks.followed)
        loads += sum(cache(chunk, wanted) for chunk, wanted in chunks.followed.items())
    scale = total / max(1, len(selections))
    each = touches / max(1, len(selections))
    copied = (max(1.0, runs / max(1.0, touches)), 1.0)
    distinct = min(loads, math.prod(stored.grid), max(len(seen) * scale, 1.0))
    found = _completed(
        stored, pattern, reader, total, touches * scale, distinct, loads * scale, copied,
        selected * scale, each,
    )  # fmt: skip
    return replace(found, irregular=irregular * scale, spanned_nbytes=spanned * scale)


def _cache(stored: Stored, reader: Reader) -> Callable[[Shape, int], bool]:
    """Follow chunks through an empty cache: with its elements, whether each had to be loaded."""
    room = reader.cache_nbytes // max(1, stored.chunk_nbytes)
    if not room or not reader.nslots or reader.w0 is None:
        kept: OrderedDict[Shape, None] = OrderedDict()

        def by_age(chunk: Shape, _: int) -> bool:
            load = chunk not in kept
            kept[chunk] = None
            kept.move_to_end(chunk)
            if len(kept) > room:
                kept.popitem(last=False)
            return load

        return by_age
    cache = ChunkCache(min(room, reader.nslots), reader.w0, stored.chunk_nbytes)
    grid, nslots, nbytes = stored.grid, reader.nslots, stored.itemsize
    lengths = [(length, (length - 1).bit_length()) for length in grid]

    def by_libhdf5(chunk: Shape, wanted: int) -> bool:
        number = packed = 0
        for at, (length, bits) in zip(chunk, lengths, strict=True):
            # As `chunk_cache.slots` has it.
            number, packed = number * length + at, packed << bits ^ at
        return cache.access(number, packed % nslots, wanted * nbytes)

    return by_libhdf5


def _completed(
    stored: Stored,
    pattern: Pattern,
    reader: Reader,
    operations: float,
    touches: float,
    distinct: float,
    loads: float,
    copied: tuple[float, float],  # Runs and strips of what a call takes of a chunk
    selected: float,
    each: float,
) -> Traffic:
    chunks = math.prod(stored.grid)
    ours = reader.name == CHUNKWISE
    runs, strips = (touches * one for one in copied)
    pieces = pieces_nbytes = partial = 0.0
    copied_nbytes = selected
    if pattern.writes:
        # A chunk that is stored before it is full is read back, decoded and encoded again.
        partial = max(0.0, loads - min(touches, distinct))
        if not stored.filtered and stored.is_read_in_pieces(reader):
            # libhdf5 stores a new chunk whole; later writes to it go straight to the file.
            first = min(1.0, distinct / max(1.0, touches))
            pieces, runs, loads, partial = runs * (1 - first), runs * first, distinct, 0.0
            pieces_nbytes, copied_nbytes = selected * (1 - first), selected * first
    elif not stored.filtered and (ours or stored.is_read_in_pieces(reader)):
        # Each run straight from the file: chunkwise keeps no chunk that is stored as it is.
        pieces, runs, loads, pieces_nbytes, copied_nbytes = runs, 0.0, 0.0, selected, 0.0
        if ours and pattern.selections is None:
            # Out of the map of the file, in lines of memory.
            length, apart = _stride(stored, pattern.block, stored.chunks)
            pieces_nbytes *= min(apart, length + _FETCHED_NBYTES) / length
    # chunkwise decodes the next steps' chunks of a walk ahead.
    ahead = ours and not pattern.scattered and pattern.selections is None
    abreast = max(each, min(loads, 16.0)) if ahead else each
    fresh, small = _fresh_nbytes(stored, pattern, reader, loads)
    return Traffic(
        float(operations),
        float(touches),
        float(loads),
        partial,
        pieces,
        runs,
        selected,
        chunks,
        max(1.0, abreast),
        fresh_nbytes=fresh,
        small_nbytes=small,
        pieces_nbytes=pieces_nbytes,
        copied_nbytes=copied_nbytes,
        far=_far(
            stored,
            pattern,
            reader,
            operations,
            pieces,
            (runs, selected, 1 - loads / max(1.0, touches)),
        ),
        strips=strips if ours else 0.0,
        indexed=float(chunks if ours and not pattern.writes else distinct),
        seeks=max(1.0, (loads + partial or pieces) / _chunks_in_a_row(stored, pattern)),
    )


def _far(
    stored: Stored,
    pattern: Pattern,
    reader: Reader,
    operations: float,
    pieces: float,
    copied: tuple[float, float, float],
) -> float:
    """Count runs far apart in memory: of the mapped file, and of chunks kept before."""
    # ``copied`` are runs out of chunks, their bytes, and the share of those from kept chunks.
    if pattern.selections is not None:
        return 0.0
    length, apart = _stride(stored, pattern.block, stored.chunks)
    if apart < _FAR_NBYTES:
        return 0.0
    runs, nbytes, again = copied
    # Runs that lie beside each other in the chunk, if not in the caller's array, are near.
    apart_pieces, cached_runs = (min(n, nbytes / length) for n in (pieces, runs))
    cached_runs *= max(0.0, again)
    whole = math.prod(stored.shape) * stored.itemsize
    kept = min(whole, reader.cache_nbytes)
    far = apart_pieces * (whole > _NEAR_NBYTES) + cached_runs * (kept > _NEAR_NBYTES)
    walks_on = (
        not pattern.scattered and pattern.order is None and pattern.block[-1] < stored.shape[-1]
    )
    if walks_on and max(pieces, runs) <= operations * _LINES_HELD:
        # The next block finds what came with this one's.
        far *= min(1.0, length / _LINE_NBYTES)
    return far


def _fresh_nbytes(
    stored: Stored, pattern: Pattern, reader: Reader, loads: float
) -> tuple[float, float]:
    """Count bytes of memory that are touched for the first time, and those of small buffers."""
    # The call's own, and those of chunks: as many as are kept, or are under work at a time.
    mine = 0 if pattern.writes else math.prod(pattern.block) * stored.itemsize
    each = stored.chunk_nbytes
    ours = reader.name == CHUNKWISE
    if ours:
        kept = float(each * _UNDER_WORK if pattern.writes else max(each, reader.cache_nbytes))
    else:
        # A chunk leaves the cache when the next one is there.
        kept = (reader.cache_nbytes // max(1, each) + 1) * each * (1 + (each >= _MAPPED_NBYTES))
    if each >= GIVEN_BACK_NBYTES and each > reader.cache_nbytes:
        kept = loads * each
    chunks = min(loads * each, kept)
    small = (mine if mine < HUGE_NBYTES else 0) + (0 if ours and each >= HUGE_NBYTES else chunks)
    return mine + chunks, float(small)


def _along(stored: Stored, block: Sequence[int]) -> list[tuple[int, int, int]]:
    return list(zip(stored.shape, block, stored.chunks, strict=True))


def _copied(stored: Stored, pattern: Pattern) -> tuple[float, float]:
    """Count runs and strips that a block's part in one chunk is copied by, on average."""
    # A strip has the runs along one dimension; one far from the strip before counts twice.
    part, length, joined, along, step, far = 1.0, 1.0, True, 1.0, stored.itemsize, False
    for extent, side, chunk in reversed(_along(stored, pattern.block)):
        axis = Axis(extent, side, chunk)
        overlap = extent / axis.touches
        part *= overlap
        if joined:
            length *= overlap
            # The next dimension goes on where this one ended, in the chunk and in memory.
            joined = min(side, extent) == chunk and extent % chunk == 0
        elif along == 1:
            along = overlap
        else:
            far = far or (overlap > 1 and step >= _FAR_NBYTES)
        step *= chunk
    runs = max(1.0, part / length)
    return runs, max(1.0, (1 + far) * runs / along)


def _distance(stored: Stored, pattern: Pattern, found: Traffic) -> tuple[float, float]:
    """Return the bytes of a piece of contiguous data, and from its start to the next one's."""
    if pattern.selections is not None:
        # On average: a list need not be regular.
        pieces = max(1.0, found.pieces)
        return found.selected_nbytes / pieces, found.spanned_nbytes / pieces
    return _stride(stored, pattern.block, stored.shape)


def _stride(stored: Stored, block: Shape, within: Shape) -> tuple[float, float]:
    """Return the bytes of a run of a block, and from its start to the next one's, in an array."""
    length, apart, joined = float(stored.itemsize), float(stored.itemsize), True
    for side, extent in zip(reversed(block), reversed(within), strict=True):
        if joined:
            length *= min(side, extent)
            joined = side >= extent
        elif min(side, extent) > 1:
            break
        apart *= extent
    return length, apart


def _is_in_order(stored: Stored, pattern: Pattern) -> bool:
    """Return whether calls read the file from its beginning to its end."""
    if pattern.scattered or pattern.selections is not None:
        return False
    if pattern.order is not None and pattern.order != tuple(sorted(pattern.order)):
        return False
    sides = zip(pattern.block, stored.shape, strict=True)
    partial = [axis for axis, (side, extent) in enumerate(sides) if side < extent]
    return not partial or all(side == 1 for side in pattern.block[: partial[-1]])


def _chunks_in_a_row(stored: Stored, pattern: Pattern) -> float:
    """Count chunks that are loaded one after another as they lie in the file."""
    row, along = 1.0, _along(stored, pattern.block)
    grid = stored.grid
    for axis in reversed(range(len(grid))):
        touched = touched_along(*along[axis])[0]
        row *= max(1.0, touched)
        if touched >= grid[axis]:
            continue
        first = all(touched_along(*one)[1] == 1 for one in along[:axis])
        in_order = pattern.order is None or pattern.order == tuple(sorted(pattern.order))
        if first and in_order and not pattern.scattered and pattern.selections is None:
            row *= grid[axis] / touched
            continue
        break
    return row


def _sieves(
    stored: Stored, pattern: Pattern, found: Traffic, length: float, distance: float
) -> float:
    """Count how often the sieve buffer is filled, or a long piece is read."""
    if length >= SIEVE_NBYTES:
        return found.pieces
    if pattern.selections is not None:
        each = found.pieces / max(1.0, found.operations)
        # On average: a list need not be regular.
        span = each * distance if each > 1 else length
        fills = min(each, -(-span // SIEVE_NBYTES))
    else:
        fills, span = _fills(stored, pattern.block)
    if span >= SIEVE_NBYTES:
        return found.operations * fills
    whole = math.prod(stored.shape) * stored.itemsize
    if pattern.scattered or pattern.selections is not None:
        return max(1.0, found.operations * (1 - SIEVE_NBYTES / max(whole, SIEVE_NBYTES)))
    # A call finds in the buffer what the neighbouring call before it left there.
    in_order = pattern.order is None or pattern.order == tuple(sorted(pattern.order))
    return max(1.0, whole / SIEVE_NBYTES) if in_order else found.operations


def _fills(stored: Stored, block: Shape) -> tuple[float, float]:
    """Count the sieve buffers that a block of contiguous data takes; and the bytes it spans."""
    fills, span, step = 1.0, float(stored.itemsize), float(stored.itemsize)
    for extent, side in zip(reversed(stored.shape), reversed(block), strict=True):
        number = min(side, extent)
        beyond = (number - 1) * step + span
        if step >= SIEVE_NBYTES or span >= SIEVE_NBYTES:
            fills *= number
        elif beyond >= SIEVE_NBYTES:
            # Each buffer begins where a piece does.
            fills = -(-beyond // SIEVE_NBYTES)
        span, step = beyond, step * extent
    return fills, span


@dataclass(frozen=True, slots=True)
class _Chunks:
    count: float
    followed: Mapping[Shape, int] | None  # With the elements that are wanted of each


def _chunks_of(stored: Stored, parts: Sequence[Hyperslab]) -> _Chunks:
    """List the chunks that a selection touches, each once, as libhdf5 visits them."""
    # None if there are too many.
    sides = [
        [_along_chunks(*bounds) for bounds in zip(*hyperslab, stored.chunks, strict=True)]
        for hyperslab in parts
    ]
    count = sum(math.prod(map(len, along)) for along in sides)
    if count > _MOST_FOLLOWED:
        return _Chunks(min(count, math.prod(stored.grid)), None)
    found: dict[Shape, int] = {}
    for along in sides:
        for one in product(*along):
            chunk = tuple(index for index, _ in one)
            found[chunk] = found.get(chunk, 0) + math.prod(wanted for _, wanted in one)
    return _Chunks(len(found), dict(sorted(found.items())))


def _along_chunks(
    start: int, stride: int, count: int, block: int, chunk: int
) -> list[tuple[int, int]]:
    """List the chunks along a dimension, with the elements that are wanted of each."""
    end = start + (count - 1) * stride + block
    first, last = start // chunk, (end - 1) // chunk
    if count == 1 or stride == block:
        numbers = range(first, last + 1)
        return [(i, min(end, (i + 1) * chunk) - max(start, i * chunk)) for i in numbers]
    edges = np.maximum(np.arange(first, last + 2, dtype=np.int64) * chunk - start, 0)
    # Elements before each edge: whole blocks, and a part of the next one.
    blocks = np.minimum(edges // stride, count)
    part = np.where(blocks < count, np.minimum(edges - blocks * stride, block), 0)
    wanted = np.diff(blocks * block + part)
    touched = np.flatnonzero(wanted)
    return list(zip((touched + first).tolist(), wanted[touched].tolist(), strict=True))
