"""In which shape, chunks and filters is a sample stored, and is that possible?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from chunkwise.errors import UsageError
from chunkwise.grammar import Pipeline, Shape, ShapeWord, format_shape
from chunkwise.model.chunk_shape import default_chunk
from chunkwise.words import counted
from chunkwise_lab.sample.spec import Sample

_SLAB_ELEMENTS = 2**19  # of 8 bytes while they are made, and a few arrays of them a thread

Box = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Layout:
    """What the user asked for, made definite."""

    shape: tuple[int, ...]  # In elements
    chunk: tuple[int, ...] | None  # In elements; None for contiguous storage
    pipeline: Pipeline  # The filters

    def slabs(self) -> Iterator[Box]:
        """Give the boxes, (start, count), in which the array is written, in C order.

        They cover the array once, are made of whole chunks where it is chunked,
        and hold at most half a million elements, or one chunk.
        """
        block = list(self.chunk or (1,) * len(self.shape))
        for axis in reversed(range(len(block))):
            needed = -(-self.shape[axis] // block[axis])
            times = max(1, min(needed, _SLAB_ELEMENTS // prod(block)))
            block[axis] *= times
            if times < needed:
                break
        return boxes((0,) * len(block), self.shape, tuple(block))


def boxes(start: tuple[int, ...], count: tuple[int, ...], block: tuple[int, ...]) -> Iterator[Box]:
    """Divide the box at `start` of size `count` into blocks, the last ones clipped."""
    ends = tuple(first + length for first, length in zip(start, count, strict=True))
    for corner in _corners([range(*axis) for axis in zip(start, ends, block, strict=True)]):
        clipped = (min(size, end - at) for size, end, at in zip(block, ends, corner, strict=True))
        yield corner, tuple(clipped)


def _corners(steps: Sequence[range]) -> Iterator[tuple[int, ...]]:
    """Combine ranges as itertools.product does, which would hold all of each in memory."""
    if not steps:
        yield ()
        return
    for first in steps[0]:
        for rest in _corners(steps[1:]):
            yield (first, *rest)


def make_layout(
    sample: Sample,
    shape: Shape | None,
    chunk: Shape | ShapeWord | None,
    pipeline: Pipeline | None,
    resolution: str | None,
) -> Layout:
    """Combine a sample's defaults with what the user chose (None: nothing)."""
    if resolution is not None:
        if resolution not in sample.resolutions:
            known = f"has {', '.join(sample.resolutions)}" if sample.resolutions else "has none"
            raise UsageError(f"resolution {resolution!r}: {sample.name} {known}")
        if shape is not None:
            raise UsageError("give a shape or a resolution, not both")
        shape = sample.resolutions[resolution]
    shape = sample.shape if shape is None else shape
    if len(shape) != len(sample.shape) and not (sample.any_rank and shape):
        raise UsageError(
            f"shape {format_shape(shape)}: {sample.name} has "
            f"{counted(len(sample.shape), 'dimension')}, "
            f"as in {format_shape(sample.shape)}"
        )
    if prod(shape) >= 2**63:
        raise UsageError(f"shape {format_shape(shape)} is larger than a file can hold")
    stored = _make_chunk(sample, shape, chunk)
    if stored is None:
        if pipeline is not None and pipeline.filters:
            raise UsageError(f"filters {pipeline} need chunks, and contiguous data has none")
        return Layout(shape, None, Pipeline())
    if pipeline is None:
        pipeline = Pipeline.parse(sample.filters)
    _check_scaleoffset(sample, pipeline)
    return Layout(shape, stored, pipeline)


def _check_scaleoffset(sample: Sample, pipeline: Pipeline) -> None:
    """Refuse a scale type of the wrong kind: libhdf5 would leave all chunks as they are."""
    fitting = "ds" if np.dtype(sample.dtype).kind == "f" else "in"
    for one in pipeline.filters:
        if one.name == "scaleoffset" and one.options[0] != fitting:
            raise UsageError(
                f"filter {one} does not work on {sample.dtype}: write scaleoffset:{fitting}:..."
            )


def _make_chunk(
    sample: Sample, shape: Shape, chunk: Shape | ShapeWord | None
) -> tuple[int, ...] | None:
    """The chunk's shape, or None for contiguous storage."""
    if chunk == "contiguous":
        return None
    same_rank = len(shape) == len(sample.shape)
    if chunk == "auto" or (chunk in (None, "stored") and not same_rank):
        return default_chunk(shape, np.dtype(sample.dtype).itemsize)
    if chunk is None or chunk == "stored":
        return tuple(min(pair) for pair in zip(sample.chunk, shape, strict=True))
    assert not isinstance(chunk, str)
    if len(chunk) != len(shape):
        raise UsageError(
            f"chunk {format_shape(chunk)} and shape {format_shape(shape)} differ in dimensions"
        )
    if not sample.unlimited and any(c > s for c, s in zip(chunk, shape, strict=True)):
        raise UsageError(
            f"chunk {format_shape(chunk)} is larger than the shape {format_shape(shape)}"
        )
    return chunk
