"""How much of a chunk does chunkwise decode, where bitshuffle has divided it into blocks?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from chunkwise.model.cost import Stored
from chunkwise.model.geometry import Axis

# Bitshuffle's own choice, for most sizes of elements.
BLOCK_NBYTES: Final = 8192
# To find the first wanted block; and to pass each one before it, by its length.
_FIRST_S: Final = 3e-6
_NEXT_S: Final = 2.5e-8
# Smaller chunks are decoded whole, and those of which more than this share is wanted.
_LEAST_NBYTES: Final = 128 << 10
_MOST: Final = 0.5


def finding_s(chunk_nbytes: int) -> float:
    """Predict the seconds to find the blocks of one read in a chunk, on average."""
    return _FIRST_S + chunk_nbytes / BLOCK_NBYTES / 2 * _NEXT_S


def part_nbytes(stored: Stored, block: Sequence[int]) -> float | None:
    """Return how many bytes of a chunk one read of a block decodes, on average; None for all."""
    if stored.chunk_nbytes < _LEAST_NBYTES:
        return None
    # Spans of bytes in which no block is left out, each far from the one before.
    spans, span, step = 1.0, float(stored.itemsize), float(stored.itemsize)
    wanted = float(stored.itemsize)
    sides = zip(stored.shape, block, stored.chunks, strict=True)
    for extent, side, chunk in reversed(list(sides)):
        overlap = extent / Axis(extent, side, chunk).touches
        wanted *= overlap
        if spans == 1 and step - span < BLOCK_NBYTES:
            span += (overlap - 1) * step
        else:
            spans *= overlap
        step *= chunk
    # Wherever a span begins in a block.
    blocks = spans * ((span - 1) / BLOCK_NBYTES + 1)
    nbytes = math.ceil(stored.chunk_nbytes / BLOCK_NBYTES) * BLOCK_NBYTES
    needed = blocks * BLOCK_NBYTES
    return None if max(needed, wanted) > _MOST * nbytes else needed
