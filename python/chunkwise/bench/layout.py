"""Which chunk shape serves steps and lines alike, and how is it given to a file?"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path

# Within libhdf5's default chunk cache in every version (1 MiB before HDF5 2.0).
CHUNK_NBYTES = 1 << 20


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


def repack_command(file: str, dataset: str, chunks: Sequence[int]) -> str:
    """Return the command that copies a file with one dataset in other chunks.

    ``nccopy`` for a variable in the root group of an ``.nc`` file, whose
    conventions it keeps; ``h5repack`` for everything else.  Filters stay.
    """
    source = Path(file)
    copy = source.with_name(f"{source.stem}_rechunked{source.suffix}").name
    name = "/" + dataset.strip("/")
    if source.suffix in (".nc", ".nc4") and name.count("/") == 1:
        spelled = f"{name[1:]}:{','.join(map(str, chunks))}"
        return shlex.join(["nccopy", "-c", spelled, file, copy])
    spelled = f"{name}:CHUNK={'x'.join(map(str, chunks))}"
    return shlex.join(["h5repack", "-l", spelled, file, copy])
