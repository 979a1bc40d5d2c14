"""Which blocks of an array does a trial read, and in which order?

An access pattern is a block shape walked over the array in C order (the last
dimension fastest), each block clipped where the array ends: how a program reads
that loops over rows, steps or lines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chunkwise import grammar
from chunkwise.errors import SelectionError, UsageError

# What `all` asks for in one read.  More is read in slabs, so that neither the
# memory nor the time of one single operation is out of all bounds.
WHOLE_NBYTES = 512 << 20


@dataclass(frozen=True)
class Access:
    """A named access pattern: read blocks of this shape, one after the other.

    Attributes
    ----------
    name : str
        What the pattern is called in tables, such as ``row`` or ``all``.
    block : tuple of int
        Block shape in elements, one number per dimension, each at least 1.
    """

    name: str
    block: tuple[int, ...]


def blocks(shape: Sequence[int], block: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Yield the walk's selections in C order, clipped at the array's edges."""
    if not shape:
        yield ()
        return
    for start in range(0, shape[0], block[0]):
        head = slice(start, min(start + block[0], shape[0]))
        for tail in blocks(shape[1:], block[1:]):
            yield (head, *tail)


def count(shape: Sequence[int], block: Sequence[int]) -> int:
    """Return the number of blocks in the walk: the operations that read it all."""
    return math.prod(-(-n // b) for n, b in zip(shape, block, strict=True))


def parse(text: str, shape: tuple[int, ...], itemsize: int, where: str) -> Access:
    """Read a pattern as a user writes it: ``row=1x1x1x717``, ``1x600x600`` or ``all``.

    Parameters
    ----------
    text : str
        ``NAME=SHAPE`` or ``SHAPE``; a shape is ``4x30x9x717`` or ``all``.
    shape : tuple of int
        The dataset's shape in elements.
    itemsize : int
        Bytes per element; decides whether `all` fits one read.
    where : str
        File and dataset, for messages.

    Raises
    ------
    UsageError
        If the text is not a pattern.
    SelectionError
        If the block has another rank than the dataset, or is larger than it.
    """
    name, equals, spelled = text.rpartition("=")
    if equals and not name:
        raise UsageError(f"access pattern '{text}' has no name: write NAME=SHAPE, or SHAPE alone")
    if spelled == "all":
        return Access(name or "all", whole(shape, itemsize))
    block = grammar.parse_shape(spelled)
    if not isinstance(block, tuple):
        raise UsageError(
            f"access pattern '{text}' is no block shape: write it as "
            f"{grammar.format_shape(shape)}, or all"
        )
    if len(block) != len(shape):
        raise SelectionError(
            f"access pattern '{text}' has {len(block)} dimensions, but {where} has "
            f"{len(shape)} (shape {grammar.format_shape(shape)}): give one number for each"
        )
    if any(b < 1 for b in block):
        raise UsageError(f"access pattern '{text}' reads nothing: each number must be at least 1")
    if any(b > n for b, n in zip(block, shape, strict=True)):
        raise SelectionError(
            f"access pattern '{text}' leaves the array: {where} has shape "
            f"{grammar.format_shape(shape)}"
        )
    return Access(name or spelled, block)


def defaults(shape: tuple[int, ...], itemsize: int) -> list[Access]:
    """Return the patterns of a plain `chunkwise bench`: one step, one line, everything.

    A *step* is one index of the slowest dimension that has more than one, and all
    of the others; a *line* is all of that dimension at one index of the others.
    With one dimension there are no lines: a step is one element, and a *part* is
    a hundredth of the array, as a window read would be.  Patterns that would
    repeat an earlier one are left out.
    """
    axis = next((i for i, n in enumerate(shape) if n > 1), len(shape) - 1)
    step = (*shape[:axis], 1, *shape[axis + 1 :])
    line = tuple(n if i == axis else 1 for i, n in enumerate(shape))
    everything = Access("all", whole(shape, itemsize))
    if math.prod(shape[axis + 1 :]) == 1:
        part = tuple(max(1, n // 100) if i == axis else 1 for i, n in enumerate(shape))
        middle = Access("part", part)
    else:
        middle = Access("line", line)
    kept: list[Access] = []
    for access in (Access("step", step), middle, everything):
        if access.block not in [earlier.block for earlier in kept]:
            kept.append(access)
    return kept


def whole(
    shape: tuple[int, ...], itemsize: int, limit_nbytes: int = WHOLE_NBYTES
) -> tuple[int, ...]:
    """Return the largest block of whole leading indexes within `limit_nbytes`.

    That is the array itself wherever it fits; otherwise slabs of it, so that
    reading everything stays a few bounded operations.
    """
    block = list(shape)
    for axis in range(len(block)):
        row_nbytes = math.prod(block[axis + 1 :]) * itemsize
        block[axis] = max(1, min(shape[axis], limit_nbytes // row_nbytes))
        if block[axis] > 1 or row_nbytes <= limit_nbytes:
            break
    return tuple(block)
