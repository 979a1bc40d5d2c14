"""Which unions of hyperslabs does paper 003 read?  Half of the cells between random planes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np

Box = tuple[list[int], list[int]]


# As the paper's.
CUTS, SEED = 20, 3


def random_boxes(shape: Sequence[int], cuts: int | None = None, seed: int = SEED) -> list[Box]:
    """Return start and count of each selected cell; at least one."""
    cuts = min(CUTS, shape[0] // 4) if cuts is None else cuts
    rng = np.random.default_rng(seed)
    sides = []
    for size in shape:
        planes = sorted({0, size, *map(int, rng.integers(1, size, cuts))})
        sides.append([(a, b - a) for a, b in pairwise(planes)])
    cells = list(product(*sides))
    chosen = [cell for cell in cells if rng.random() < 0.5] or cells[:1]
    return [([a for a, _ in cell], [n for _, n in cell]) for cell in chosen]


def runs(
    shape: tuple[int, int], itemsize: int, boxes: Sequence[Box], offset: int
) -> list[tuple[int, int]]:
    """Return the runs of bytes that boxes of a contiguous matrix are, row by row."""
    bands: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for (row, column), (rows, columns) in boxes:
        bands.setdefault((row, rows), []).append((column, columns))
    found: list[tuple[int, int]] = []
    for (row, rows), parts in sorted(bands.items()):
        pieces = _joined(sorted(parts))
        for number in range(row, row + rows):
            begin = offset + number * shape[1] * itemsize
            found += [(begin + at * itemsize, n * itemsize) for at, n in pieces]
    return found


def _joined(parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Make one of neighbours."""
    joined: list[tuple[int, int]] = []
    for at, count in parts:
        if joined and sum(joined[-1]) == at:
            joined[-1] = (joined[-1][0], joined[-1][1] + count)
        else:
            joined.append((at, count))
    return joined
