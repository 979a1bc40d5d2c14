"""In which blocks and chunks is an array written, and as which pieces of whole chunks?"""

from __future__ import annotations

import heapq
import math
import secrets
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, product
from operator import itemgetter
from typing import Any, Final

from chunkwise.dask.tasks import Flat, FlatPlaces, Form, encode
from chunkwise.grammar import Shape
from chunkwise.grammar.boxes import Box
from chunkwise.model.chunk_shape import CHUNK_NBYTES, SMALL_CHUNK_NBYTES, default_chunk
from chunkwise.newfile.index import Places

# An array's blocks, as Dask has them: lengths along each dimension.
Blocks = tuple[tuple[int, ...], ...]

# Bytes of a task, before filters, if chunks allow that.
BLOCK_NBYTES: Final = 128 << 20
# Of blocks that were made for work in memory.
_LARGE_CHUNK_NBYTES: Final = 4 * CHUNK_NBYTES


def chosen_chunk(
    shape: Shape, itemsize: int, blocks: Blocks, maxshape: Sequence[int | None] | None = None
) -> Shape:
    """Choose the shape of the file's chunks."""
    sides = tuple(lengths[0] for lengths in blocks)
    alike = all(len(set(lengths[:-1])) < 2 and lengths[-1] <= lengths[0] for lengths in blocks)
    nbytes = math.prod(sides) * itemsize
    if alike and SMALL_CHUNK_NBYTES <= nbytes <= _LARGE_CHUNK_NBYTES:
        return sides
    chunk = default_chunk(shape, itemsize, maxshape)
    if not alike:
        return chunk
    return tuple(_part(side, c) for side, c in zip(sides, chunk, strict=True))


def _part(side: int, chunk: int) -> int:
    """The part of a block's side that is nearest to a chunk's, if one is near."""
    if side <= chunk:
        return chunk
    times = side / chunk
    near = range(max(1, math.ceil(times / 2)), math.floor(times * 2) + 1)
    fitting = [n for n in near if side % n == 0]
    if not fitting:
        return chunk
    return side // min(fitting, key=lambda n: abs(math.log(n / times)))


def aligned(
    blocks: Blocks, chunk: Shape, itemsize: int, most_nbytes: int = BLOCK_NBYTES
) -> Blocks:
    """Choose blocks of whole chunks, as near to an array's as can be."""
    ends = [_ends(lengths, side) for lengths, side in zip(blocks, chunk, strict=True)]
    # The slowest dimension is cut first: what is left lies together.
    longest = [max(map(int.__sub__, one, (0, *one)), default=1) for one in ends]
    for axis, side in enumerate(chunk):
        others = math.prod(longest) // max(1, longest[axis]) * itemsize
        if others * longest[axis] <= most_nbytes:
            break
        longest[axis] = max(side, most_nbytes // max(1, others) // side * side)
        spans, most = list(_spans(ends[axis])), longest[axis]
        ends[axis] = [at for a, b in spans for at in (*range(a + most, b, most), b)]
    return tuple(tuple(end - begin for begin, end in _spans(one)) for one in ends)


def boxes(blocks: Blocks) -> Iterator[tuple[Shape, Box]]:
    """List blocks in row-major order: the number of each along the dimensions, and its box."""
    begins = [(0, *accumulate(lengths)) for lengths in blocks]
    for number in product(*(range(len(lengths)) for lengths in blocks)):
        start, shape = (
            tuple(one[n] for one, n in zip(sides, number, strict=True))
            for sides in (begins, blocks)
        )
        yield number, Box(start, shape)


def _ends(lengths: Sequence[int], side: int) -> list[int]:
    """Where blocks end: at the ends of chunks that are nearest to where they do."""
    sums = list(accumulate(lengths))
    length = sums[-1] if sums else 0
    rounded = {min(length, (2 * end + side) // (2 * side) * side) for end in sums[:-1]}
    return sorted((rounded | {length}) - {0})


def _spans(ends: Sequence[int]) -> Iterator[tuple[int, int]]:
    return zip((0, *ends), ends, strict=False)


@dataclass(frozen=True)
class WrittenDataset:
    """A dataset of the open file."""

    name: str  # In the file
    places: Places | FlatPlaces  # Where its chunks lie, or its parts
    form: Form | Flat  # What workers need of it
    nbytes: int  # Of its elements


@dataclass(frozen=True)
class Piece:
    """A box of whole chunks."""

    target: WrittenDataset  # Of which dataset
    start: tuple[int, ...]  # The element where it begins
    nbytes: int  # Of its elements
    graph: Callable[[], Mapping[Hashable, Any]]  # Gives what a task needs before it encodes
    task: tuple[Any, ...]  # What encodes; Dask's form of a task, in `graph` or by itself


def array_pieces(arrays: Sequence[tuple[Any, WrittenDataset]]) -> Iterator[Piece]:
    """List the blocks of arrays as pieces."""
    from dask.base import optimize

    optimized = optimize(*(array for array, _ in arrays))
    graph: dict[Hashable, Any] = {}
    for array in optimized:
        graph.update(array.__dask_graph__())
    # Of each array the same part is done at any time.
    rows = [
        _pieces(array, target, graph) for array, (_, target) in zip(optimized, arrays, strict=True)
    ]
    for _, piece in heapq.merge(*rows, key=itemgetter(0)):
        yield piece


def _pieces(
    array: Any, target: WrittenDataset, graph: Mapping[Hashable, Any]
) -> Iterator[tuple[float, Piece]]:
    """List the blocks of an array, each with the part of the array that lies before it."""
    count = math.prod(array.numblocks)
    for place, (number, box) in enumerate(boxes(array.chunks)):
        key = (array.name, *number)
        nbytes = box.size * array.dtype.itemsize
        work = partial(encode, form=target.form, start=box.start)
        piece = Piece(target, box.start, nbytes, partial(_needed, graph, key), (work, key))
        yield place / count, piece


def _needed(graph: Mapping[Hashable, Any], key: Hashable) -> Mapping[Hashable, Any]:
    """The part of a graph that makes one block."""
    from dask.optimization import cull

    needed: Mapping[Hashable, Any] = cull(graph, [key])[0]
    return needed


def token() -> str:
    """What keys of one run have in common."""
    return secrets.token_hex(8)
