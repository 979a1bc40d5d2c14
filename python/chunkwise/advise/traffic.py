"""How many calls, chunks and bytes does an access pattern come to?

The counts that `seconds` turns into time.  For walks dimension by dimension they follow from
the shapes; for blocks at random places they are expected values; of a list of selections the
chunks are followed through a cache one by one, for as many selections as are given.

Arithmetic on shapes: nothing is read.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

import numpy as np

from chunkwise.advise.cost import Shape, Stored, decodes_by_size, decodes_of_walk
from chunkwise.advise.geometry import Axis, touched_along
from chunkwise.advise.readers import CHUNKWISE, Reader

# Start, stride, count and block, as H5Sselect_hyperslab takes them.
Hyperslab = tuple[Shape, Shape, Shape, Shape]
# Of one selection, more chunks than these are counted, but not followed through the cache.
_MOST_FOLLOWED: Final = 20_000
# So many chunks of a call cost no more each than one.
_FEW: Final = 12
# libhdf5's default (H5Pset_sieve_buf_size).
SIEVE_NBYTES: Final = 1 << 16
# Of a walk, whose collisions in the hash table are looked for.
_MOST_HASHED: Final = 65_536


@dataclass(frozen=True, slots=True)
class Pattern:
    """What is read or written, in which order, and how often.

    Attributes
    ----------
    name
        In tables.
    block
        Shape of one read or write, in elements; of a list, of its first selection.
    order
        The dimensions from the slowest to the fastest; None is C order.
    scattered
        Whether blocks are at random places, no block twice.
    operations
        How many blocks are read; None for as many as cover the array.
    selections
        Of a list of selections, those that are looked at, each a number of hyperslabs;
        None for blocks.  `operations` says how many the list has.
    weight
        How often the whole pattern is run, beside the others.
    writes
        Whether it writes a new dataset rather than reads.
    """

    name: str
    block: Shape
    order: Shape | None = None
    scattered: bool = False
    operations: int | None = None
    selections: tuple[tuple[Hyperslab, ...], ...] | None = None
    weight: float = 1.0
    writes: bool = False


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a pattern comes to; expected values where places are random.

    Attributes
    ----------
    operations
        Calls that read or write.
    touches
        Chunks touched, each as often as a call touches it.
    loads
        Chunks found, fetched and decoded; of writes, encoded and stored.
    partial
        Of writes: chunks that are read back because they were stored before they were full.
    pieces
        Runs of bytes that are read from storage one by one, where no chunk is cached.
    runs
        Runs of bytes that are copied between chunks and memory.
    selected_nbytes
        Bytes asked for.
    chunks
        Chunks of the dataset.
    abreast
        Chunks that may be decoded at the same time.
    sieves
        How often libhdf5 fills its sieve buffer with what lies around a piece.
    fresh_nbytes
        Bytes of memory that are touched for the first time: the first call's, and the cache's.
    irregular
        Elements of unions of several dimensions: libhdf5 finds the place of each by itself.
    """

    operations: float
    touches: float
    loads: float
    partial: float
    pieces: float
    runs: float
    selected_nbytes: float
    chunks: int
    abreast: float
    sieves: float = 0.0
    fresh_nbytes: float = 0.0
    irregular: float = 0.0

    @property
    def crowd(self) -> float:
        """Touches, each times the doublings of a call's chunks beyond a dozen.

        libhdf5 sorts the chunks of a call, and memory that it visits in between is cold.
        """
        each = self.touches / max(1.0, self.operations)
        return self.touches * max(0.0, math.log2(max(each, 1.0) / _FEW))


def traffic(stored: Stored, pattern: Pattern, reader: Reader) -> Traffic:
    """Count what a pattern comes to for a reader with its chunk cache.

    Parameters
    ----------
    stored
        The dataset, with elements.
    pattern
        What is read or written.
    reader
        Whose cache.
    """
    if pattern.selections is not None:
        return _listed(stored, pattern, reader)
    if pattern.scattered or pattern.operations is not None:
        return _scattered(stored, pattern, reader)
    return _walked(stored, pattern, reader)


def contiguous_traffic(shape: Shape, itemsize: int, pattern: Pattern, reader: Reader) -> Traffic:
    """Count what a pattern comes to where the dataset is not chunked.

    libhdf5 reads short pieces through its sieve buffer, chunkwise from a map of the file.
    """
    whole = Stored(shape, shape, itemsize, filtered=False)
    nobody = replace(reader, cache_nbytes=0, nslots=0)
    found = replace(traffic(whole, pattern, nobody), irregular=0.0)
    if reader.name == CHUNKWISE:
        return found
    sieves = _sieves(whole, pattern, found.operations, found.pieces)
    return replace(found, pieces=0.0, runs=found.pieces, sieves=sieves)


def _walked(stored: Stored, pattern: Pattern, reader: Reader) -> Traffic:
    walk = stored.walk(pattern.block, pattern.order)
    touches = math.prod(axis.touches for axis in walk.axes)
    each = touches / walk.operations
    if walk.chunks_per_operation <= _MOST_HASHED:
        decodes = decodes_of_walk(stored, pattern.block, reader, order=pattern.order)
    else:
        decodes = decodes_by_size(stored, pattern.block, reader, order=pattern.order)
    # A cache cannot make a chunk load more often than it is touched.
    loads = min(float(touches), decodes * walk.chunk_count)
    runs = touches * _runs_per_touch(stored, pattern.block)
    selected = float(math.prod(stored.shape) * stored.itemsize)
    return _completed(
        stored, pattern, reader, walk.operations, touches, loads, runs, selected, each
    )


def _scattered(stored: Stored, pattern: Pattern, reader: Reader) -> Traffic:
    walk = stored.walk(pattern.block)
    operations = min(walk.operations, pattern.operations or walk.operations)
    share = operations / walk.operations
    each = math.prod(touched_along(*lengths)[0] for lengths in _along(stored, pattern.block))
    touches = operations * each
    # Of so many draws, chunks that are met at all.
    met = 1 - (1 - min(1.0, each / walk.chunk_count)) ** operations
    distinct = max(min(touches, walk.chunk_count * met), 1.0)
    room = reader.cache_nbytes // stored.chunk_nbytes if stored.chunk_nbytes else 0
    lost = max(0.0, 1 - room / walk.chunk_count) if room >= each else 1.0
    if not pattern.scattered:
        # The first blocks of a walk in order.
        inner = Stored(stored.shape, stored.chunks, stored.itemsize, stored.filtered)
        decodes = decodes_by_size(inner, pattern.block, reader, order=pattern.order)
        loads = min(touches, max(1.0, decodes * walk.chunk_count * share))
    else:
        loads = distinct + (touches - distinct) * lost
    runs = touches * _runs_per_touch(stored, pattern.block)
    selected = math.prod(stored.shape) * stored.itemsize * share
    return _completed(stored, pattern, reader, operations, touches, loads, runs, selected, each)


def _listed(stored: Stored, pattern: Pattern, reader: Reader) -> Traffic:
    """Follow the chunks of the selections that are given through a cache."""
    selections = pattern.selections or ()
    total = pattern.operations or len(selections)
    room = reader.cache_nbytes // max(1, stored.chunk_nbytes)
    cache: OrderedDict[Shape, None] = OrderedDict()
    touches = loads = runs = selected = irregular = 0.0
    for parts in selections:
        chunks = _chunks_of(stored, parts)
        touches += chunks.count
        if len(parts) > 1 and len(stored.shape) > 1:
            irregular += sum(_elements(one) for one in parts)
        for hyperslab in parts:
            _, _, counts, block = hyperslab
            elements = _elements(hyperslab)
            selected += elements * stored.itemsize
            last = counts[-1] * block[-1] if _is_dense(hyperslab, -1) else block[-1]
            runs += elements / max(1, min(last, stored.chunks[-1]))
        if chunks.followed is None:
            loads += chunks.count
            cache.clear()
            continue
        for chunk in chunks.followed:
            if chunk in cache:
                cache.move_to_end(chunk)
                continue
            loads += 1
            if room:
                cache[chunk] = None
                if len(cache) > room:
                    cache.popitem(last=False)
    scale = total / max(1, len(selections))
    each = touches / max(1, len(selections))
    runs = max(runs, touches)
    found = _completed(
        stored, pattern, reader, total, touches * scale, loads * scale, runs * scale,
        selected * scale, each,
    )  # fmt: skip
    return replace(found, irregular=irregular * scale)


def _completed(
    stored: Stored,
    pattern: Pattern,
    reader: Reader,
    operations: float,
    touches: float,
    loads: float,
    runs: float,
    selected: float,
    each: float,
) -> Traffic:
    chunks = math.prod(stored.grid)
    ours = reader.name == CHUNKWISE
    pieces = partial = 0.0
    if pattern.writes:
        # What is stored before it is full is read back, decoded and encoded again.
        partial = max(0.0, loads - min(touches, chunks)) if loads > chunks else 0.0
        if not stored.filtered and stored.is_read_in_pieces(reader):
            pieces, loads, partial = runs, 0.0, 0.0
    elif not stored.filtered and (ours or stored.is_read_in_pieces(reader)):
        # Each run straight from the file: chunkwise keeps no chunk that is stored as it is.
        pieces, loads = runs, 0.0
    cached = max(stored.chunk_nbytes, reader.cache_nbytes)
    fresh = math.prod(pattern.block) * stored.itemsize + min(loads * stored.chunk_nbytes, cached)
    # chunkwise decodes the next steps' chunks of a walk ahead.
    ahead = ours and not pattern.scattered and pattern.selections is None
    abreast = max(each, min(loads, 16.0)) if ahead else each
    return Traffic(
        float(operations), float(touches), float(loads), partial, pieces,
        0.0 if pieces else runs, selected, chunks, max(1.0, abreast), 0.0, fresh,
    )  # fmt: skip


def _along(stored: Stored, block: Sequence[int]) -> list[tuple[int, int, int]]:
    return list(zip(stored.shape, block, stored.chunks, strict=True))


def _runs_per_touch(stored: Stored, block: Shape) -> float:
    """Count the runs that a block's part in one chunk is copied by, on average."""
    part, length, joined = 1.0, 1.0, True
    for extent, side, chunk in reversed(_along(stored, block)):
        axis = Axis(extent, side, chunk)
        overlap = extent / axis.touches
        part *= overlap
        if joined:
            length *= overlap
            # The next dimension goes on where this one ended, in the chunk and in memory.
            joined = min(side, extent) == chunk and extent % chunk == 0
    return max(1.0, part / length)


def _sieves(stored: Stored, pattern: Pattern, operations: float, pieces: float) -> float:
    """Count how often the sieve buffer is filled, or a long piece is read."""
    length, apart, joined = stored.itemsize, stored.itemsize, True
    for _, side, chunk in reversed(_along(stored, pattern.block)):
        if joined:
            length *= min(side, chunk)
            joined = side >= chunk
        elif side > 1:
            # The next piece lies one further along this dimension.
            break
        apart *= chunk
    each = pieces / max(1.0, operations)
    if length >= SIEVE_NBYTES or (each > 1 and apart >= SIEVE_NBYTES):
        # Each is read by itself, or with neighbours that nobody wants.
        return pieces
    span = each * (apart if each > 1 else length)
    if span < SIEVE_NBYTES and (pattern.scattered or pattern.selections is not None):
        nbytes = math.prod(stored.shape) * stored.itemsize
        return max(1.0, operations * (1 - SIEVE_NBYTES / max(nbytes, SIEVE_NBYTES)))
    if span < SIEVE_NBYTES:
        # What one call leaves in the buffer, the next one finds.
        return max(1.0, operations * span / SIEVE_NBYTES)
    return operations * -(-span // SIEVE_NBYTES)


def _elements(hyperslab: Hyperslab) -> int:
    _, _, counts, block = hyperslab
    return math.prod(c * b for c, b in zip(counts, block, strict=True))


def _is_dense(hyperslab: Hyperslab, axis: int) -> bool:
    _, stride, counts, block = hyperslab
    return counts[axis] == 1 or stride[axis] == block[axis]


@dataclass(frozen=True, slots=True)
class _Chunks:
    count: float
    followed: Iterable[Shape] | None


def _chunks_of(stored: Stored, parts: Sequence[Hyperslab]) -> _Chunks:
    """List the chunks that a selection touches, each once; None where there are too many."""
    sides = [
        [_along_chunks(*bounds) for bounds in zip(*hyperslab, stored.chunks, strict=True)]
        for hyperslab in parts
    ]
    count = sum(math.prod(map(len, along)) for along in sides)
    if count > _MOST_FOLLOWED:
        return _Chunks(min(count, math.prod(stored.grid)), None)
    found = dict.fromkeys(chunk for along in sides for chunk in product(*along))
    return _Chunks(len(found), found)


def _along_chunks(start: int, stride: int, count: int, block: int, chunk: int) -> list[int]:
    if count == 1 or stride <= max(block, chunk):
        # Without a gap that skips a chunk.
        return list(range(start // chunk, (start + (count - 1) * stride + block - 1) // chunk + 1))
    first = start + stride * np.arange(count, dtype=np.int64)
    spans = (first // chunk, (first + block - 1) // chunk)
    return sorted({i for low, high in zip(*spans, strict=True) for i in range(low, high + 1)})
