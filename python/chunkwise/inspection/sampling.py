"""How fast does libhdf5 read a dataset's chunks, and how small do other filters make them?

Data that cannot be read gives no sample, and no error: other rooms say what is wrong with it.
"""

from __future__ import annotations

import math
import random
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
from h5py import h5d, h5s, h5t
from h5py._objects import phil

from chunkwise._lib import library
from chunkwise.grammar import Pipeline
from chunkwise.inspection.facts import ChunkFacts, DatasetFacts, Encoding, ObjectFacts, SampleFacts
from chunkwise.names import HDF5_ERRORS

Bytes = npt.NDArray[np.uint8]

# Enough for a steady speed, and read in a fraction of a second.
SAMPLED_NBYTES: Final = 24 << 20
# Chunks differ, a few of them suffice for an average.
SAMPLED_CHUNKS: Final = 8
# More of small chunks: processors predict the branches of a few hundred KiB seen before.
UNLEARNT_NBYTES: Final = 2 << 20
MOST_CHUNKS: Final = 1_000
# One chunk beyond this is not worth its time and memory.
LARGEST_CHUNK_NBYTES: Final = 64 << 20
# 50 ms of deflate; whole chunks, because shuffle's gain depends on their length.
ENCODED_NBYTES: Final = 1 << 20
LARGEST_PART_NBYTES: Final = 4 << 20
# What codecs add at most to data that does not compress: a share, and some kilobytes.
CODEC_OVERHEAD: Final = 0.02
PAGE_NBYTES: Final = 4 << 10
# A piece of a contiguous dataset: long enough that the request itself counts little.
PIECE_NBYTES: Final = 1 << 20
# Datasets sampled of a file: those where its time goes.
SAMPLED_DATASETS: Final = 8
# h5py's own default, where a dataset has no deflate.
DEFAULT_LEVEL: Final = 4
# Candidates per chunk wanted: chunks may be absent, partial or untypically small.
_CANDIDATES: Final = 4
# Chunks that are looked at where few are stored.
_LISTED: Final = 20_000
# How far from the median a typical chunk's stored size may be, either way.
_TYPICAL: Final = 2


@dataclass(frozen=True, slots=True)
class _Box:
    """What one read takes: a box of elements, the bytes decoded for it, those stored."""

    start: tuple[int, ...]
    count: tuple[int, ...]
    raw_nbytes: int
    stored_nbytes: int


def choose(
    objects: Iterable[ObjectFacts], limit: int = SAMPLED_DATASETS
) -> tuple[ObjectFacts, ...]:
    """Choose the datasets of a file that are worth a sample."""
    fit = [one for one in objects if one.dataset is not None and _can_sample(one.dataset)]
    fit.sort(key=logical_nbytes, reverse=True)
    return tuple(fit[:limit])


def take_sample(
    dataset: h5d.DatasetID, facts: DatasetFacts, *, deadline: float | None = None
) -> SampleFacts | None:
    """Read a few stored chunks, timed, and try filters on a part of them."""
    if not _can_sample(facts):
        return None
    try:
        datatype = dataset.get_type()
        if datatype.detect_class(h5t.REFERENCE):
            return None
        if facts.chunks is None:
            boxes, passes = _pieces(facts, SAMPLED_CHUNKS), 2
        else:
            fewest = min(MOST_CHUNKS, -(-UNLEARNT_NBYTES // facts.chunks.nbytes))
            most = max(1, SAMPLED_NBYTES // facts.chunks.nbytes)
            number = min(max(SAMPLED_CHUNKS, fewest), most)
            boxes = _stored_chunks(dataset, facts, facts.chunks, number, deadline)
            _, cache_nbytes, _ = dataset.get_access_plist().get_chunk_cache()
            # This many chunks are decoded once: the first of them count little.
            again = cache_nbytes < facts.chunks.nbytes and len(boxes) <= SAMPLED_CHUNKS
            passes = 2 if again else 1
        return _measure(dataset, datatype, boxes, passes, _level(facts), deadline)
    except (*HDF5_ERRORS, MemoryError):
        return None


def _can_sample(facts: DatasetFacts) -> bool:
    readable = not facts.variable_length and not facts.unavailable_filters
    if not (readable and facts.stored_nbytes and facts.logical_nbytes):
        return False
    if facts.chunks is None:
        return facts.layout == "contiguous" and facts.itemsize <= LARGEST_CHUNK_NBYTES
    smallest, largest = facts.chunks.smallest_nbytes or 0, facts.chunks.largest_nbytes or 0
    # Other sizes for chunks without filters are damage, on which libhdf5 2.0 may crash.
    if facts.filters == "none" and not smallest == largest == facts.chunks.nbytes:
        return False
    # Stored bytes beyond a chunk's own may inflate to a thousand times as many.
    bomb = largest > facts.chunks.nbytes * (1 + CODEC_OVERHEAD) + PAGE_NBYTES
    return facts.chunks.nbytes <= LARGEST_CHUNK_NBYTES and not bomb


def logical_nbytes(one: ObjectFacts) -> int:
    """Return the bytes of a dataset before filters; 0 of other objects."""
    return (one.dataset and one.dataset.logical_nbytes) or 0


def _level(facts: DatasetFacts) -> int:
    """Give the dataset's own deflate level; 0 would say nothing about compression."""
    for one in Pipeline.parse(facts.filters).filters:
        if one.name == "deflate":
            return int(one.options[0]) or DEFAULT_LEVEL
    return DEFAULT_LEVEL


# --- what is read ----------------------------------------------------------------------


def _spread(total: int, number: int) -> list[int]:
    """Give up to `number` of `total` positions, one at random in each part of equal size."""
    # Random, since regular steps may follow a grid; the same each time, for the same diagnosis.
    if total <= number:
        return list(range(total))
    generator = random.Random(0)
    edges = [total * i // number for i in range(number + 1)]
    return [generator.randrange(a, b) for a, b in pairwise(edges)]


def _stored_chunks(
    dataset: h5d.DatasetID,
    facts: DatasetFacts,
    layout: ChunkFacts,
    number: int,
    deadline: float | None,
) -> list[_Box]:
    """Find chunks that are stored, typical ones if there are any, in the array's order."""
    typical: list[_Box] = []
    others: list[_Box] = []
    fetched = 0
    for origin in _origins(dataset, facts, layout, number * _CANDIDATES):
        found = len(typical) + len(others)
        if len(typical) == number or fetched > SAMPLED_NBYTES or (found and _is_over(deadline)):
            break
        try:
            with phil:  # some versions of h5py take no lock for it
                mask, stored = dataset.read_direct_chunk(origin)
        except HDF5_ERRORS:  # never written, or damaged
            continue
        fetched += len(stored)
        count = tuple(
            min(c, n - o) for c, n, o in zip(layout.shape, facts.shape or (), origin, strict=True)
        )
        box = _Box(origin, count, layout.nbytes, len(stored))
        median = layout.median_nbytes or layout.nbytes
        usual = median <= len(stored) * _TYPICAL and len(stored) <= median * _TYPICAL
        fits = usual and not mask and count == layout.shape
        (typical if fits else others).append(box)
    return sorted(typical or others[:number], key=lambda box: box.start)


def _origins(
    dataset: h5d.DatasetID, facts: DatasetFacts, layout: ChunkFacts, number: int
) -> Iterator[tuple[int, ...]]:
    """Give the origins of chunks that are, or may be, stored, in an order spread at any point."""
    if layout.order_known and layout.allocated * 2 < layout.grid:
        listed = library().written_origins(dataset.id, _LISTED)
        origins = [tuple(listed[i]) for i in _spread(len(listed), number)]
    else:
        grid = [-(-n // c) for n, c in zip(facts.shape or (), layout.shape, strict=True)]
        origins = [
            tuple(int(i) * c for i, c in zip(index, layout.shape, strict=True))
            for index in (_unravel(i, grid) for i in _spread(layout.grid, number))
        ]
    for first in range(_CANDIDATES):
        yield from origins[first::_CANDIDATES]


def _unravel(position: int, grid: list[int]) -> tuple[int, ...]:
    """Turn a chunk's number into its index; NumPy's own refuses numbers beyond 63 bits."""
    index = []
    for length in reversed(grid):
        position, rest = divmod(position, length)
        index.append(rest)
    return tuple(reversed(index))


def _pieces(facts: DatasetFacts, number: int) -> list[_Box]:
    """Give runs of elements of a contiguous dataset, each in one piece in the file."""
    shape = facts.shape or ()
    if not shape:
        return [_Box((), (), facts.itemsize, facts.itemsize)]
    axis, row_nbytes = len(shape) - 1, facts.itemsize
    while axis and row_nbytes * shape[axis] <= PIECE_NBYTES:
        row_nbytes *= shape[axis]
        axis -= 1
    rows = max(1, min(shape[axis], PIECE_NBYTES // row_nbytes))
    # Where a piece may begin: any index of the slower dimensions, every `rows` of this one.
    grid = [*shape[:axis], shape[axis] // rows]
    boxes = []
    for position in _spread(math.prod(grid), number):
        *slower, block = _unravel(position, grid)
        start = (*slower, block * rows, *(0 for _ in shape[axis + 1 :]))
        count = (*(1 for _ in slower), rows, *shape[axis + 1 :])
        boxes.append(_Box(start, count, rows * row_nbytes, rows * row_nbytes))
    return boxes


# --- reading and encoding --------------------------------------------------------------


def _measure(
    dataset: h5d.DatasetID,
    datatype: h5t.TypeID,
    boxes: list[_Box],
    passes: int,
    level: int,
    deadline: float | None,
) -> SampleFacts | None:
    """Read each box, keep the better of the passes, and encode a part of each."""
    itemsize = datatype.get_size()
    part_nbytes = LARGEST_PART_NBYTES // itemsize * itemsize or LARGEST_PART_NBYTES
    parts: list[bytes] = []
    elapsed: list[float] = []
    for i in range(passes):
        total_s = 0.0
        done = 0
        for box in boxes:
            # One chunk is read in any case: finding the chunks may have taken all of the time.
            if done and _is_over(deadline):
                break
            read_s, values = _read(dataset, datatype, box)
            total_s += read_s
            done += 1
            if i == 0 and sum(map(len, parts)) < ENCODED_NBYTES:
                parts.append(values[:part_nbytes].tobytes())
        if i == 0:
            boxes = boxes[:done]
        if done == len(boxes):
            elapsed.append(total_s)
        if _is_over(deadline):
            break
    if not boxes:
        return None
    return SampleFacts(
        chunks=len(boxes),
        raw_nbytes=sum(box.raw_nbytes for box in boxes),
        stored_nbytes=sum(box.stored_nbytes for box in boxes),
        read_s=min(elapsed),
        encodings=tuple(_encodings(parts, itemsize, level, deadline)),
    )


def _read(dataset: h5d.DatasetID, datatype: h5t.TypeID, box: _Box) -> tuple[float, Bytes]:
    """Read a box as it is in the file, without conversion; give the seconds and the bytes."""
    # Zeros touched before the clock starts: page faults are not the codec's.
    values = np.full(math.prod(box.count) * datatype.get_size(), 0, np.uint8)
    source = dataset.get_space()
    if box.count:
        source.select_hyperslab(box.start, box.count)
        target = h5s.create_simple(box.count)
    else:
        target = h5s.create(h5s.SCALAR)
    begin = time.perf_counter()
    dataset.read(target, source, values, datatype)
    return time.perf_counter() - begin, values


def _encodings(
    parts: list[bytes], itemsize: int, level: int, deadline: float | None
) -> Iterator[Encoding]:
    """Try deflate, and shuffle and deflate, on each part by itself, as HDF5 does on chunks."""
    raw_nbytes = sum(map(len, parts))
    for shuffled in (False, True) if itemsize > 1 else (False,):
        if _is_over(deadline):
            return
        nbytes = 0
        for part in parts:
            plain = shuffle(part, itemsize) if shuffled else part
            # HDF5 stores a chunk as it is where deflate does not make it smaller.
            nbytes += min(len(part), len(zlib.compress(plain, level)))
        name = f"shuffle+deflate:{level}" if shuffled else f"deflate:{level}"
        yield Encoding(name, raw_nbytes, nbytes)


def shuffle(data: bytes, itemsize: int) -> bytes:
    """Do what HDF5's shuffle filter does: the first bytes of all elements, then the second."""
    # Bytes beyond the last whole element stay at the end (H5Z__filter_shuffle).
    whole = len(data) // itemsize * itemsize
    planes = np.frombuffer(data, np.uint8, whole).reshape(-1, itemsize).T
    return planes.tobytes() + data[whole:]


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline
