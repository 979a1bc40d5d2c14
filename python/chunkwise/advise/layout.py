"""Which chunk shape serves steps and lines alike, and how is it given to a file?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from chunkwise.advise.geometry import Walk, line, plane

# Within libhdf5's default chunk cache in every version (1 MiB before HDF5 2.0).
CHUNK_NBYTES = 1 << 20
# Smaller chunks cost more to find and to start than to decode.
SMALLEST_CHUNK_NBYTES = 1 << 15
# What h5repack and nccopy have in every build.  With any other filter, h5repack may
# write an empty dataset or file and still end with exit code 0.
H5REPACK_FILTERS = frozenset({"deflate", "shuffle", "fletcher32", "szip", "nbit", "scaleoffset"})
NCCOPY_FILTERS = frozenset({"deflate", "shuffle", "fletcher32"})
FEWEST_SLOTS = 521
MANY_SLOTS = 1_000_000
# A prime; 16 GiB of pointers.
MOST_SLOTS = 2**31 - 1


def line_axis(shape: Sequence[int], block: Sequence[int]) -> int:
    """Return the dimension along which a block reaches furthest through the array."""
    reach = [b / n if n > 1 else 0.0 for b, n in zip(block, shape, strict=True)]
    return reach.index(max(reach))


def balanced_chunks(
    shape: Sequence[int], itemsize: int, axis: int, limit_nbytes: int = CHUNK_NBYTES
) -> tuple[int, ...]:
    """Return a chunk shape of which lines and planes touch nearly equally many.

    A line runs along `axis`, a plane through all other dimensions.  Beginning
    with the whole array, whichever of the two has fewer chunks to touch has its
    dimension halved, until a chunk holds at most `limit_nbytes`.

    Parameters
    ----------
    shape : sequence of int
        The dataset's, in elements.
    itemsize : int
        Bytes per element.
    axis : int
        The dimension along which lines are read.
    limit_nbytes : int
        The most bytes of a chunk.
    """
    parts = [1] * len(shape)

    def chunk(i: int) -> int:
        return -(-shape[i] // parts[i])

    while math.prod(map(chunk, range(len(shape)))) * itemsize > limit_nbytes:
        others = [i for i in range(len(shape)) if i != axis and chunk(i) > 1]
        in_line = -(-shape[axis] // chunk(axis))
        in_plane = math.prod(-(-shape[i] // chunk(i)) for i in range(len(shape)) if i != axis)
        along = chunk(axis) > 1 and (in_line <= in_plane or not others)
        if not along and not others:
            break  # one element is larger than the limit
        # Of the plane's dimensions the one with the longest side: chunks stay square.
        parts[axis if along else max(others, key=chunk)] *= 2
    return tuple(map(chunk, range(len(shape))))


def working_set(
    shape: tuple[int, ...], block: tuple[int, ...], chunks: tuple[int, ...], itemsize: int
) -> int:
    """Return the bytes of the chunks that one read of a block touches."""
    return Walk(shape, block, chunks).chunks_per_operation * math.prod(chunks) * itemsize


def chunks_for_cache(
    shape: tuple[int, ...], itemsize: int, axis: int, cache_nbytes: int
) -> tuple[tuple[int, ...], int]:
    """Return chunks whose lines and planes fit a chunk cache, if there are any.

    Returns
    -------
    chunks : tuple of int
        The largest balanced shape of which the chunks of a line fit
        `cache_nbytes` and those of a plane do, too; if none does, that of
        `CHUNK_NBYTES`.
    needed_nbytes : int
        The larger of the two: more than `cache_nbytes` if no shape fits.
    """
    both = (line(shape, axis), plane(shape, axis))
    limit, found = CHUNK_NBYTES, []
    while limit >= SMALLEST_CHUNK_NBYTES:
        chunks = balanced_chunks(shape, itemsize, axis, limit)
        needed = max(working_set(shape, b, chunks, itemsize) for b in both)
        if needed <= cache_nbytes:
            return chunks, needed
        found.append((chunks, needed))
        limit //= 2
    return found[0]


def hash_slots(chunks: int) -> int:
    """Return ``rdcc_nslots`` for a cache of so many chunks: a prime, about 100 for each.

    libhdf5 keeps one chunk per slot.  Beyond a million slots, 10 for each; at most as many as
    no memory holds.
    """
    number = max(FEWEST_SLOTS, min(100 * chunks, max(10 * chunks, MANY_SLOTS)))
    number = min(number, MOST_SLOTS)
    while any(number % divisor == 0 for divisor in range(2, math.isqrt(number) + 1)):
        number += 1
    return number


def copy_name(file: str) -> str:
    """Return the name of a copy in other chunks."""
    source = Path(file)
    return source.with_name(f"{source.stem}_rechunked{source.suffix}").name


def can_repack(filters: str) -> bool:
    """Whether `h5repack` can be trusted with a pipeline such as ``shuffle+deflate:4``."""
    return _names(filters) <= H5REPACK_FILTERS


def _names(filters: str) -> set[str]:
    return set() if filters == "none" else {part.split(":")[0] for part in filters.split("+")}
