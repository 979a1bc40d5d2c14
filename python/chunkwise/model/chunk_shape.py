"""Which chunk shape serves the reads?  This function chooses wherever a shape is needed.

It takes the shape with which the stated patterns (or `usual` ones), by their weights, and a rare
read of everything take the least time by the model, with the figures of `nominal`: the same on
every machine.

*   Chunks hold `LEAST_CHUNK_NBYTES` to `CHUNK_NBYTES`; very many, `SMALL_CHUNK_NBYTES`.
*   They divide the array nearly evenly ('NetCDF-4 Performance Report', 2008, section 5.1.2,
    guideline 3: 3162 becomes 791, as 790 would leave half as much again unused), and reach beyond
    it by at most `MOST_WASTE` of each dimension.
*   An array that fits one chunk is one (guideline 2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from chunkwise.grammar import format_shape, format_size
from chunkwise.model import nominal
from chunkwise.model.cost import Stored
from chunkwise.model.geometry import canonical, touched_along
from chunkwise.model.readers import (
    CHUNKWISE,
    LIBRARIES,
    UNCACHED,
    Reader,
    everyone,
    reader,
)
from chunkwise.model.traffic import Pattern
from chunkwise.model.worth import HARMLESS
from chunkwise.names import printable

# Within libhdf5's default chunk cache in every version (1 MiB before HDF5 2.0).
CHUNK_NBYTES: Final = 1 << 20
# Smaller ones take longer to find and to start than to decode, wherever the file lies.
SMALL_CHUNK_NBYTES: Final = 1 << 15
# Single reads may gain by them; still smaller ones take as long as these.
LEAST_CHUNK_NBYTES: Final = 1 << 13
# 32x32 32-bit integers, under which rates collapse ('NetCDF-4 Performance Report', Figures 10 and
# 11).  libhdf5 2.0 spends about 5 us on a chunk before it touches its data, in which it copies
# some 20 KiB.
TINY_CHUNK_NBYTES: Final = 1 << 12
# 5 ms, but as many requests to a disk or an object store; ten times that is noticed anywhere.
MANY_CHUNKS: Final = 1_000
VERY_MANY_CHUNKS: Final = 10_000
# An empty dataset is taken to grow to this size: its chunks must be neither huge nor tiny.
GROWN_NBYTES: Final = 1 << 17
# One that is made with something in it may well stay as it is; a file may have thousands, and each
# takes a whole chunk.  Those that grow are read more slowly for it: a GiB in 0.9 s in place of
# 0.6 s, by h5py in 2.4 s in place of 0.9 s (4 KiB: 1.1 s and 7 s).
BEGUN_NBYTES: Final = 1 << 14
# Room to grow is a page of memory or of a disk.
PAGE_NBYTES: Final = 1 << 12
# Of what the array has along a dimension.
MOST_WASTE: Final = 1 / 16

# This many reads of a usual pattern: a program reads some lines, not all.
USUAL_READS: Final = 1_000
# Of this many single reads, one is of everything.
SINGLE_READS: Final = 10_000
# This many of the best shapes are examined closely.
_CLOSELY: Final = 24
# Shapes within this factor of the best are as good; the largest of them is taken.
_ABOUT: Final = 1.02
# Of shapes that must not slow reads down, this many are tried, the best first.
_TRIED: Final = 400
# More are not looked at: one length of two is left out.
_MOST_SHAPES: Final = 1 << 17

_Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Present:
    """How unfiltered data is stored, and who reads it: other chunks must not slow them down."""

    chunks: _Shape | None
    readers: tuple[Reader, ...]

    @classmethod
    def of(
        cls,
        chunks: _Shape | None,
        filters: str,
        stored_nbytes: int,
        readers: Sequence[Reader] | None = None,  # Who is named; None for everyone
    ) -> Present | None:
        """Say how data is stored; None if it has filters, or none is stored."""
        # The rule counts what is decoded, and without filters nothing is.
        if filters != "none" or not stored_nbytes:
            return None
        # chunkwise reads what is not filtered piece by piece, where others load chunks.
        return cls(chunks, tuple(readers or (*everyone(), reader(CHUNKWISE))))

    def is_served(
        self, extents: _Shape, itemsize: int, patterns: Sequence[Pattern], chunks: _Shape
    ) -> bool:
        """Whether patterns are about as fast in other chunks, for each reader, from memory."""
        before, after = (
            Stored.of(extents, one, itemsize, filtered=False) for one in (self.chunks, chunks)
        )
        return nominal.slowdown(before, after, patterns, self.readers) <= HARMLESS


def default_chunk(
    shape: Sequence[int],
    itemsize: int,
    maxshape: Sequence[int | None] | None = None,
    access: Sequence[Pattern | Sequence[int]] = (),
    *,
    grown_nbytes: int | None = None,
    limit_nbytes: int = CHUNK_NBYTES,  # The most bytes of a chunk
    readers: Sequence[Reader] = LIBRARIES,
    present: Present | None = None,  # What stated patterns must not become slower than
) -> tuple[int, ...]:
    """Choose the shape of a dataset's chunks."""
    blocks = [one.block if isinstance(one, Pattern) else tuple(one) for one in access]
    extents = expected_shape(shape, itemsize, maxshape, blocks, grown_nbytes=grown_nbytes)
    is_one = math.prod(extents) * itemsize <= limit_nbytes
    if is_one and present is None:
        return extents
    stated = [one if isinstance(one, Pattern) else single_reads(one, extents) for one in access]
    found = tuple(within(one, extents) for one in stated) or usual(extents, itemsize)
    # Patterns that are the usual ones say no more than none.
    if found == usual(extents, itemsize):
        load_s = nominal.ANYWHERE_LOAD_S
    else:
        # Larger chunks cost a walk nothing.
        is_single = present is None and any(one.of_one_read for one in found)
        load_s = nominal.LOAD_S if is_single else nominal.STORED_LOAD_S
    sought = (extents, itemsize, found, limit_nbytes, smallest(readers), load_s)
    best = extents if is_one else _best(*sought)
    if present is None or present.is_served(extents, itemsize, found, best):
        return best
    return _best(*sought, present) or best


def suited_chunk(
    shape: Sequence[int],
    itemsize: int,
    maxshape: Sequence[int | None] | None,
    access: Sequence[Pattern],  # What is stated
    present: Present | None,
    readers: Sequence[Reader] | None = None,  # Who is named; None for everyone
) -> tuple[int, ...]:
    """Choose other chunks for data that is stored, as `inspect`, `advise` and `repack` do."""
    return default_chunk(
        shape,
        itemsize,
        maxshape,
        access,
        grown_nbytes=PAGE_NBYTES,
        readers=readers or LIBRARIES,
        present=present if access else None,
    )


def usual(shape: Sequence[int], itemsize: int) -> tuple[Pattern, ...]:
    """Return the patterns that are meant if none is stated, those that `inspect` judges by."""
    # A line along each dimension and a step, all or `USUAL_READS` of them at random.
    found = []
    for block in canonical(shape, itemsize):
        number = math.prod(-(-n // b) for n, b in zip(shape, block, strict=True))
        many = number > USUAL_READS
        name = _usual_name(shape, block)
        found.append(Pattern(name, block, None, many, USUAL_READS if many else None))
    return tuple(found)


def single_reads(block: Sequence[int], shape: Sequence[int], name: str = "") -> Pattern:
    """Return the pattern of a block that is read now here, now there: one such read counts."""
    inside = tuple(map(min, block, shape))
    number = math.prod(-(-n // b) for n, b in zip(shape, inside, strict=True))
    number = min(number, USUAL_READS)
    return Pattern(name, inside, None, True, number, weight=1 / number, of_one_read=True)


def _usual_name(shape: Sequence[int], block: Sequence[int]) -> str:
    long = [axis for axis, (n, b) in enumerate(zip(shape, block, strict=True)) if n > 1 and b > 1]
    if len(shape) == 1:
        return "piece"
    return f"line-along-{long[0]}" if len(long) == 1 else "step"


def within(pattern: Pattern, extents: Sequence[int]) -> Pattern:
    """Return a pattern with a block that is no larger than the array."""
    block = tuple(map(min, pattern.block, extents))
    return pattern if block == pattern.block else replace(pattern, block=block)


def smallest(readers: Sequence[Reader]) -> Reader:
    """Return the reader with the smallest cache: what serves it serves the others."""
    return min(readers, key=lambda one: one.cache_nbytes, default=UNCACHED)


def reason(
    shape: Sequence[int], itemsize: int, chunks: Sequence[int], patterns: Sequence[Pattern]
) -> str:
    """Say in words how many chunks of a shape one read of each pattern touches."""
    said: list[str] = []
    for pattern in patterns:
        lengths = zip(shape, within(pattern, shape).block, chunks, strict=True)
        each = math.prod(touched_along(*one)[0] for one in lengths)
        nbytes = format_size(round(each * math.prod(chunks) * itemsize))
        number = f"{each:,.0f}" if each >= 9.5 else f"{each:.2g}"
        name = printable(pattern.name) or format_shape(pattern.block)
        first = not said
        unit = f" chunk{'s' * (number != '1')}" if first else ""
        said.append(
            f"{'one read of ' if first else 'of '}{name}{' touches' if first else ''} "
            f"{number}{unit} ({nbytes}{' decoded' if first else ''})"
        )
    return ", ".join(said)


def are_too_small(count: int, nbytes: int) -> bool:
    """Whether this many chunks of this many bytes take longer to find than to read."""
    fewest = MANY_CHUNKS if nbytes < TINY_CHUNK_NBYTES else VERY_MANY_CHUNKS
    return nbytes < SMALL_CHUNK_NBYTES and count >= fewest


def shrunk(chunk: Sequence[int], itemsize: int, limit_nbytes: int) -> tuple[int, ...]:
    """Return a chunk of at most this many bytes, its slowest dimensions halved first."""
    # It is larger only if a single element is.
    sides = list(chunk)
    while math.prod(sides) * itemsize > limit_nbytes and max(sides, default=1) > 1:
        slowest = next(d for d, side in enumerate(sides) if side > 1)
        sides[slowest] = -(-sides[slowest] // 2)
    return tuple(sides)


def expected_shape(
    shape: Sequence[int],
    itemsize: int,
    maxshape: Sequence[int | None] | None = None,
    access: Sequence[Sequence[int]] = (),
    *,
    grown_nbytes: int | None = None,
) -> tuple[int, ...]:
    """Return the extents for which chunks are chosen: those that it has, or will at least have."""
    # As `default_chunk`; growing dimensions have room for each access, up to `grown_nbytes`.
    if grown_nbytes is None:
        grown_nbytes = GROWN_NBYTES if 0 in shape else BEGUN_NBYTES
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


# Files have many datasets of one shape.
@lru_cache(maxsize=1024)
def _best(
    extents: _Shape,
    itemsize: int,
    patterns: tuple[Pattern, ...],
    limit_nbytes: int,
    reader: Reader,
    load_s: float,
    present: Present | None = None,
) -> _Shape:
    """Look at all shapes quickly, and at the best of them closely; empty if none serves."""
    everything = (*patterns, all_of(extents, patterns))
    longest = max(1, limit_nbytes // max(1, itemsize))
    sides = [
        # An extent may be beyond 64 bits, a chunk's length not.
        [
            side
            for side in divisors(extent, {one.block[axis] for one in patterns})
            if side <= longest
        ]
        for axis, extent in enumerate(extents)
    ]
    most_nbytes = math.prod(extents) * itemsize * (1 + MOST_WASTE) ** len(extents)
    least_nbytes = max(LEAST_CHUNK_NBYTES, min(SMALL_CHUNK_NBYTES, most_nbytes / VERY_MANY_CHUNKS))
    shapes = _bounded(
        _thinned(sides), itemsize, limit_nbytes, least_nbytes if present is None else 1
    )
    seconds = nominal.quick_s(extents, itemsize, shapes, everything, reader, load_s=load_s)
    order = np.lexsort((-shapes.prod(axis=1), seconds))
    found: list[tuple[float, _Shape]] = []
    # Lists of selections are slow to follow.
    listed = any(one.selections is not None for one in patterns)
    for place in order[: _CLOSELY if present is None or listed else _TRIED]:
        chunks = tuple(map(int, shapes[place]))
        if present is not None and (
            _is_small(extents, itemsize, chunks)
            or not present.is_served(extents, itemsize, patterns, chunks)
        ):
            continue
        stored = Stored(extents, chunks, itemsize, filtered=present is None)
        found.append((nominal.nominal_s(stored, everything, reader, load_s=load_s), chunks))
        if len(found) == _CLOSELY:
            break
    least = min(found, default=(0.0, ()))[0]
    return max(
        (chunks for seconds, chunks in found if seconds <= _ABOUT * least),
        key=lambda chunks: (math.prod(chunks), chunks),
        default=(),
    )


def all_of(shape: _Shape, patterns: Sequence[Pattern]) -> Pattern:
    """Read all of it, as often as the rarest walk, or once for ten thousand single reads."""
    often = (
        w * n / SINGLE_READS if n > 1 else w for w, n in ((p.weight, p.reads) for p in patterns)
    )
    return Pattern("", shape, weight=min((1.0, *often)))


def _is_small(extents: _Shape, itemsize: int, chunks: _Shape) -> bool:
    count = math.prod(-(-n // c) for n, c in zip(extents, chunks, strict=True))
    return are_too_small(count, math.prod(chunks) * itemsize)


def _thinned(sides: list[list[int]]) -> list[list[int]]:
    """Leave lengths out, of the dimension that has most, until the shapes are not too many."""
    while math.prod(map(len, sides)) > _MOST_SHAPES:
        most = max(range(len(sides)), key=lambda axis: len(sides[axis]))
        # The whole dimension stays.
        sides[most] = sides[most][::-2][::-1]
    return sides


def _bounded(
    sides: list[list[int]], itemsize: int, limit_nbytes: int, least_nbytes: float
) -> npt.NDArray[np.int64]:
    """List the shapes that are neither too large nor too small, a row for each."""
    grids = np.meshgrid(*(np.array(one, np.int64) for one in sides), indexing="ij")
    shapes = np.stack([grid.ravel() for grid in grids], axis=1)
    # Products of whole dimensions may be beyond 64 bits.
    nbytes = shapes.astype(np.float64).prod(axis=1) * itemsize
    fitting = nbytes <= limit_nbytes
    if not fitting.any():
        # One element may be larger than a chunk should be.
        return np.ones((1, len(sides)), np.int64)
    least = min(least_nbytes, limit_nbytes // 2, float(nbytes[fitting].max()))
    found: npt.NDArray[np.int64] = shapes[fitting & (nbytes >= least)]
    return found


def divisors(extent: int, blocks: set[int]) -> list[int]:
    """List lengths that a chunk may have along a dimension, ascending: about two an octave."""
    wanted = {-(-extent // parts) for parts in _parts(extent)}
    for block in blocks:
        wanted |= {min(extent, block * times) for times in _parts(extent // block)}
    # Chunks reach beyond the array by a part of it.
    return sorted(n for n in wanted if -(-extent // n) * n / extent - 1 <= MOST_WASTE)


def _parts(most: int) -> Iterator[int]:
    """Give 1, 2, 3, 4, 6, 8, 12, ... up to `most`, and that."""
    power = 1
    while power <= most:
        yield power
        if power > 1 and power // 2 * 3 <= most:
            yield power // 2 * 3
        power *= 2
    yield max(1, most)
