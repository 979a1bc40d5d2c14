"""What happens in libhdf5's chunk cache, read by read?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

from chunkwise.errors import UsageError
from chunkwise.grammar.boxes import chunk_counts
from chunkwise.model.chunk_cache import ChunkCache, Read, slots
from chunkwise.model.followed import numbers_of
from chunkwise.viewing.costs import Costs, Setting

# A longer film is cut: it shows the same again and again.
MOST_FRAMES: Final = 6_000


def film(walk: Iterable[Any], operations: int, found: Costs, setting: Setting) -> dict[str, Any]:
    """Follow the first reads of a walk through the cache of a setting's reader, chunk by chunk."""
    # Each frame has the number of its read, a chunk by its number in the grid, its slot, whether
    # it had to be loaded, the chunks that were dropped for it, and the chunk that follows it in
    # the cache's queue (-1 at its end), from whose front chunks are dropped.
    chunk, who = setting.layout.chunks, setting.reader
    if chunk is None or who.nslots is None or who.w0 is None:
        raise UsageError("these reads pass no chunk cache of libhdf5's")
    shape, itemsize = found.shape, found.facts.itemsize
    nbytes = math.prod(chunk) * itemsize
    room = who.cache_nbytes // nbytes if who.nslots else 0
    cache = ChunkCache(room, who.w0, nbytes)
    grid = chunk_counts(shape, chunk)
    reads: list[tuple[Any, Any]] = []
    frames: list[tuple[int, int, int, bool, list[int], int]] = []
    held: set[int] = set()
    for number, selection in enumerate(walk):
        if number == operations:
            break
        start, stride, count, block = _simple(selection)
        box = tuple((n - 1) * s + b for n, s, b in zip(count, stride, block, strict=True))
        read = Read(shape, chunk, itemsize, tuple(start), box)
        touched = math.prod(read.extent)
        if touched > MOST_FRAMES:
            raise UsageError(f"one read touches {touched:,} chunks: too many to play")
        if len(frames) + touched > MOST_FRAMES:
            break
        reads.append((start, box))
        numbers = numbers_of(grid, read.first, read.extent)
        places = slots(grid, read.first, read.extent, max(1, who.nslots)).tolist()
        for one, slot, wanted in zip(numbers, places, read.wanted_nbytes(), strict=True):
            # What does not fit the cache passes by it.
            is_load = cache.access(one, slot, wanted) if room else True
            now = cache.held if is_load and room else held
            behind = cache.behind(one) if room else -1
            frames.append((number, one, slot, is_load, sorted(held - now), behind))
            held = now
    return {
        "grid": grid,
        "room": room,
        "nslots": who.nslots,
        "operations": operations,
        "reads": reads,
        "frames": frames,
    }


def _simple(selection: Any) -> Any:
    """Take a hyperslab that is a box; of others, none."""
    is_one = isinstance(selection[0][0], int)
    if not is_one or any(n > 1 and s != b for _, s, n, b in zip(*selection, strict=True)):
        what = "a read with gaps" if is_one else "a union"
        raise UsageError(f"{what} cannot be played: play a box, a line or a plane")
    return selection
