"""Which rank encodes a chunk, and which pieces of boxes does it need for that?

All ranks know all boxes, so each finds the same answers alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import add

import numpy as np
import numpy.typing as npt

from chunkwise.grammar import Shape
from chunkwise.grammar.boxes import Box, chunk_counts
from chunkwise.mpi.boxes import covered, in_chunks, in_elements

Numbers = npt.NDArray[np.int32]


class Owners:
    """The rank that each chunk belongs to, since it was written to for the first time."""

    # A chunk goes to the rank whose box covers most of it, of equals to the lowest, and stays
    # there until `forget`: that rank may hold parts of it that are not in the file.

    def __init__(self, shape: Shape, chunk: Shape) -> None:
        self.shape, self.chunk = shape, chunk
        # One more than the rank, 0 for nobody; its pages take memory when they are written to.
        self._ranks: Numbers = np.zeros(chunk_counts(shape, chunk), np.int32)
        self._known = False

    def take(self, boxes: Sequence[Box | None]) -> None:
        """Give the chunks that boxes touch to ranks, as far as they have none."""
        self._known = True
        flat, most, ranks = [], [], []
        for rank, box in enumerate(boxes):
            if box is None:
                continue
            touched = in_chunks(box, self.chunk)
            held = self._ranks[touched.slices]
            free = held == 0
            if not free.any():
                continue
            inner = self._whole(box)
            if inner is not None:
                within = inner.within(touched).slices
                # Nobody else has a part of these.
                held[within][free[within]] = rank + 1
                free[within] = False
                if not free.any():
                    continue
            at = free.nonzero()
            counts = covered(box, self.chunk)
            places = tuple(map(add, at, touched.start))
            flat.append(np.ravel_multi_index(places, self._ranks.shape))
            most.append(counts[at])
            ranks.append(np.full(len(at[0]), rank + 1, np.int32))
        if flat:
            chunks, counts = np.concatenate(flat), np.concatenate(most)
            numbers = np.concatenate(ranks)
            # The last that is written stays: of most elements, and of the lowest rank.
            order = np.lexsort((-numbers, counts))
            self._ranks.reshape(-1)[chunks[order]] = numbers[order]

    def _whole(self, box: Box) -> Box | None:
        """Give the chunks that lie in a box with all their elements."""
        begin = chunk_counts(box.start, self.chunk)
        # At the dataset's end a chunk is whole without what lies beyond.
        end = tuple(
            -(-b // n) if b == most else b // n
            for b, n, most in zip(box.end, self.chunk, self.shape, strict=True)
        )
        whole = Box.between(begin, end)
        return whole if min(whole.shape, default=1) > 0 else None

    def pieces(self, box: Box | None, rank: int, limit: int) -> Iterator[Box]:
        """Cut what of a box belongs to a rank into boxes."""
        if box is None:
            return
        touched = in_chunks(box, self.chunk)
        yield from self._cut(self._ranks[touched.slices] == rank + 1, touched, box, limit)

    def _cut(
        self, wanted: npt.NDArray[np.bool_], chunks: Box, box: Box, limit: int
    ) -> Iterator[Box]:
        if not wanted.any():
            return
        piece = in_elements(chunks, self.chunk).common(box)
        lengths = wanted.shape
        if wanted.size == 1 or (piece.size <= limit and wanted.all()):
            yield piece
            return
        # Along the slowest dimension first: such parts lie together in memory.
        axis = next(at for at, n in enumerate(lengths) if n > 1)
        before, middle = (slice(None),) * axis, lengths[axis] // 2
        first = Box(chunks.start, (*lengths[:axis], middle, *lengths[axis + 1 :]))
        rest = first.moved(tuple(middle * (at == axis) for at in range(len(lengths)))).start
        yield from self._cut(wanted[(*before, slice(None, middle))], first, box, limit)
        second = Box.between(rest, chunks.end)
        yield from self._cut(wanted[(*before, slice(middle, None))], second, box, limit)

    def forget(self) -> None:
        """Let chunks go to other ranks: nobody holds anything of them any more."""
        if self._known:
            self._ranks = np.zeros(chunk_counts(self.shape, self.chunk), np.int32)
            self._known = False

    def grow(self, shape: Shape) -> None:
        """Follow the dataset, which is larger now."""
        self.shape, former = shape, self._ranks
        self._ranks = np.zeros(chunk_counts(self.shape, self.chunk), np.int32)
        if self._known:
            self._ranks[tuple(slice(n) for n in former.shape)] = former
