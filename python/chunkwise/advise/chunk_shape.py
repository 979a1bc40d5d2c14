"""Which chunk shape does a dataset get when nobody names one?

Chunks hold about `CHUNK_NBYTES`: fewer bytes cost more to find and to start than to decode,
more of them leave libhdf5's default cache.  Three rules choose among such shapes.

*   Chunks divide the array nearly evenly: along a dimension of d elements they have
    ceil(d / N) of them for a whole N, or slightly more ('NetCDF-4 Performance Report', 2008,
    section 5.1.2, guideline 3, with which 3162 becomes 791 and not 790, that leaves half as
    much again unused).  What edge chunks have beyond the array is at most `MOST_WASTE` of each
    dimension.
*   An array that fits one chunk is one (guideline 2).
*   Otherwise the stated accesses decide: the shape for which they decode the fewest bytes
    for each that they ask for, where no access can do with less than one chunk.  Without
    any, a line along the slowest dimension and a plane across it are meant.

Pure arithmetic on shapes: nothing is read.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from chunkwise.advise.geometry import Axis, line, plane
from chunkwise.advise.layout import CHUNK_NBYTES

# A dataset that is made to grow is taken to become at least this large: its first chunk
# must not fill a disk, nor its thousandth be of a few bytes.
GROWN_NBYTES: Final = 1 << 17
# Of what the array has along a dimension.
MOST_WASTE: Final = 1 / 16
# Chunks are not made smaller to suit an access.
_SMALLEST_NBYTES: Final = CHUNK_NBYTES // 2

_Shape = tuple[int, ...]


def default_chunk(
    shape: Sequence[int],
    itemsize: int,
    maxshape: Sequence[int | None] | None = None,
    access: Sequence[Sequence[int]] = (),
    *,
    grown_nbytes: int = GROWN_NBYTES,
) -> tuple[int, ...]:
    """Choose the shape of a dataset's chunks.

    Parameters
    ----------
    shape : sequence of int
        The dataset's, in elements; not scalar.  Extents may be 0.
    itemsize : int
        Bytes of an element.
    maxshape : sequence of int or None, optional
        As h5py has it: the most elements of each dimension, None for one that is unlimited;
        no sequence at all for a dataset that cannot grow.
    access : sequence of shapes, optional
        Blocks that will be read or written, each as often in bytes as the others; see
        `chunkwise.access.stated`, which reads them from text.
    grown_nbytes : int, optional
        Bytes that a dataset which can grow is taken to become at least.

    Returns
    -------
    tuple of int
        Each at least 1, and no larger than a dimension may become.  At most `CHUNK_NBYTES` in
        all, unless one element is larger.
    """
    extents = expected_shape(shape, itemsize, maxshape, access, grown_nbytes=grown_nbytes)
    if math.prod(extents) * itemsize <= CHUNK_NBYTES:
        return extents
    blocks = [tuple(map(min, block, extents)) for block in access] or _line_and_plane(extents)
    sides = [
        _sides(extent, {block[axis] for block in blocks}) for axis, extent in enumerate(extents)
    ]
    return _Search(extents, itemsize, blocks, sides).best()


def expected_shape(
    shape: Sequence[int],
    itemsize: int,
    maxshape: Sequence[int | None] | None = None,
    access: Sequence[Sequence[int]] = (),
    *,
    grown_nbytes: int = GROWN_NBYTES,
) -> tuple[int, ...]:
    """Return the extents for which chunks are chosen: those that it has, or will at least have.

    Parameters are those of `default_chunk`.  Dimensions that may grow have room for
    each access; the slowest of them makes up for what is missing to `grown_nbytes`.
    """
    most = tuple(shape) if maxshape is None else tuple(maxshape)
    extents = [max(1, extent) for extent in shape]
    growing = [i for i, limit in enumerate(most) if limit is None or limit > shape[i]]
    for i in growing:
        limit = most[i]
        needed = max([extents[i], *(block[i] for block in access)])
        extents[i] = needed if limit is None else min(limit, needed)
    for i in growing:
        others = math.prod(extents[:i] + extents[i + 1 :]) * max(1, itemsize)
        limit = most[i]
        needed = max(extents[i], grown_nbytes // others)
        extents[i] = needed if limit is None else min(limit, needed)
    return tuple(extents)


def _line_and_plane(shape: _Shape) -> list[_Shape]:
    """What is read when nothing is said; of an array with one dimension, parts of it."""
    axis = next(i for i, n in enumerate(shape) if n > 1)
    if math.prod(shape) == shape[axis]:
        return [(1,) * len(shape)]
    return [line(shape, axis), plane(shape, axis)]


def _sides(extent: int, blocks: set[int]) -> list[int]:
    """List lengths that a chunk may have along a dimension, ascending: about two an octave."""
    wanted = {-(-extent // parts) for parts in _parts(extent)}
    for block in blocks:
        wanted |= {min(extent, block * times) for times in _parts(extent // block)}
    return sorted(side for side in wanted if _waste(extent, side) <= MOST_WASTE)


def _parts(most: int) -> Iterator[int]:
    """Give 1, 2, 3, 4, 6, 8, 12, ... up to `most`, and that."""
    power = 1
    while power <= most:
        yield power
        if power > 1 and power // 2 * 3 <= most:
            yield power // 2 * 3
        power *= 2
    yield max(1, most)


def _waste(extent: int, side: int) -> float:
    """What chunks have beyond the array, as part of the array."""
    return -(-extent // side) * side / extent - 1


class _Search:
    """Chunk shapes made of given sides, by what the accesses cost with them."""

    def __init__(
        self, extents: _Shape, itemsize: int, blocks: list[_Shape], sides: list[list[int]]
    ) -> None:
        self.extents, self.itemsize, self.blocks, self.sides = extents, itemsize, blocks, sides
        self.costs: dict[_Shape, float] = {}

    def best(self) -> _Shape:
        """Find a shape of little cost: from the whole array, and from each block, step by step."""
        starts = [tuple(len(sides) - 1 for sides in self.sides)]
        for block in self.blocks:
            pairs = zip(self.sides, block, strict=True)
            starts.append(tuple(bisect_right(sides, side) - 1 for sides, side in pairs))
        return self.shape(min(map(self.improved, starts), key=self.cost))

    def improved(self, places: _Shape) -> _Shape:
        """Cut or lengthen to the size of a chunk, the cheapest way first; then improve."""
        while self.nbytes(places) > CHUNK_NBYTES:
            cuts = [_moved(places, i, -1) for i, place in enumerate(places) if place]
            if not cuts:
                return places  # One element is larger.
            places = min(cuts, key=self.cost)
        while self.nbytes(places) < _SMALLEST_NBYTES:
            longer = [
                one for one in self.neighbours(places) if self.nbytes(one) > self.nbytes(places)
            ]
            if not longer:
                break
            places = min(longer, key=self.cost)
        while (better := min(self.neighbours(places), key=self.cost, default=places)) != places:
            if self.cost(better) >= self.cost(places):
                break
            places = better
        return places

    def neighbours(self, places: _Shape) -> Iterator[_Shape]:
        """Give shapes with one longer side, one shorter side, or one of each."""
        smallest = min(self.nbytes(places), _SMALLEST_NBYTES)
        moves = [(i, step) for i in range(len(places)) for step in (-1, 1)]
        for i, step in moves:
            once = _moved(places, i, step)
            for candidate in (once, *(_moved(once, j, -step) for j in range(len(places)))):
                inside = all(
                    0 <= place < len(sides)
                    for place, sides in zip(candidate, self.sides, strict=True)
                )
                if inside and smallest <= self.nbytes(candidate) <= CHUNK_NBYTES:
                    yield candidate

    def shape(self, places: _Shape) -> _Shape:
        return tuple(sides[place] for sides, place in zip(self.sides, places, strict=True))

    def nbytes(self, places: _Shape) -> int:
        return math.prod(self.shape(places)) * self.itemsize

    def cost(self, places: _Shape) -> float:
        """Sum over the accesses what they decode, for each byte that they have to."""
        if places not in self.costs:
            chunk = self.shape(places)
            self.costs[places] = sum(self.amplification(block, chunk) for block in self.blocks)
        return self.costs[places]

    def amplification(self, block: _Shape, chunk: _Shape) -> float:
        """Bytes that reading a block decodes, over those that it asks for or one chunk's.

        A small block's share of a chunk is the same for chunks of every shape; it must not
        outweigh what the shape decides.
        """
        axes = [Axis(*triple) for triple in zip(self.extents, block, chunk, strict=True)]
        touched = math.prod(axis.touches / axis.positions for axis in axes)
        return touched * math.prod(chunk) / max(math.prod(block), math.prod(chunk))


def _moved(places: _Shape, axis: int, step: int) -> _Shape:
    return (*places[:axis], places[axis] + step, *places[axis + 1 :])
