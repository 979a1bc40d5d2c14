"""Are the chunks that the reads of a trace touched counted right?"""

import math
from collections.abc import Iterator

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkwise_lab.report import places
from tests.support.traces import dataset, walk

Box = tuple[int, ...]


def in_order(shape: Box, start: Box, span: Box) -> Iterator[Box]:
    """Walk as the library under the program has it: on, and after the end of a row from 0."""
    here = list(start)
    while True:
        yield tuple(here)
        for axis in reversed(range(len(shape))):
            if here[axis] + 2 * span[axis] <= shape[axis]:
                here[axis] += span[axis]
                break
            here[axis] = 0
        else:
            return


@st.composite
def walks(draw: st.DrawFn) -> tuple[Box, Box, list[Box], Box, bool]:
    """A dataset, its chunks, where boxes start, their shape, and whether they are in order."""
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
    chunk = tuple(draw(st.integers(1, n)) for n in shape)
    span = tuple(draw(st.integers(1, n)) for n in shape)
    if draw(st.booleans()):
        start = [draw(st.integers(0, n - s)) for n, s in zip(shape, span, strict=True)]
        # Only in the slowest dimension can a walk be off the grid of its boxes.
        slowest = next((i for i, n in enumerate(shape) if n // span[i] > 1), 0)
        for axis in range(slowest + 1, len(shape)):
            start[axis] -= start[axis] % span[axis]
        starts = list(in_order(shape, tuple(start), span))
        return shape, chunk, starts[: draw(st.integers(1, len(starts)))], span, True
    ends = [[draw(st.integers(0, n - s)) for _ in "ab"] for n, s in zip(shape, span, strict=True)]
    times = draw(st.integers(1, 4))
    by = [int((b - a) / times) for a, b in ends]
    starts = [tuple(a + k * d for (a, _), d in zip(ends, by, strict=True)) for k in range(times)]
    return shape, chunk, starts, span, False


@settings(max_examples=60)
@given(walks())
def test_chunks_are_counted_as_read(case: tuple[Box, Box, list[Box], Box, bool]) -> None:
    shape, chunk, starts, span, ordered = case
    by = None
    if not ordered:
        by = tuple(b - a for a, b in zip(*starts[:2], strict=True)) if len(starts) > 1 else None
    one = dataset(shape, chunk, [walk(starts[0], span, len(starts), by=by, ordered=ordered)])
    cells = places.cells(one)
    assert (cells.shape, cells.chunks) == (chunk, 1)
    expected = np.zeros(tuple(-(-n // c) for n, c in zip(shape, chunk, strict=True)))
    for start in starts:
        touched = [
            slice(a // c, (a + s - 1) // c + 1) for a, s, c in zip(start, span, chunk, strict=True)
        ]
        expected[tuple(touched)] += 1
    np.testing.assert_array_equal(places.times_read(one, cells), expected)


def test_of_many_chunks_neighbours_are_counted_together() -> None:
    shape = (1000, 1000, 50)
    one = dataset(shape, (1, 1, 50), [walk((0, 0, 0), (1, 1, 50), 10**6, ordered=True)])
    cells = places.cells(one)
    assert math.prod(cells.count) <= 1 << 18
    assert cells.chunks == cells.shape[1] > 1
    counts = places.times_read(one, cells)
    # Some reads stand for all.
    assert abs(counts.sum() / 10**6 - 1) < 1e-9
    assert counts.shape == cells.count


def test_what_has_no_chunks_is_cut_into_rows() -> None:
    one = dataset((6, 4), (), [walk((2, 0), (3, 4))])
    cells = places.cells(one)
    assert (cells.count, cells.chunks) == ((6, 1), 0)
    assert places.times_read(one, cells)[:, 0].tolist() == [0, 0, 1, 1, 1, 0]
    scalar = dataset((), (), [walk((), (), 3, by=())])
    assert places.times_read(scalar, places.cells(scalar)).tolist() == 3
    # Boxes with gaps: what lies between counts as touched; boxes of nothing touch nothing.
    gaps = dataset((9,), (2,), [walk((1,), (1,), gaps=(4, 2)), walk((0,), (0,))])
    assert places.times_read(gaps, places.cells(gaps)).tolist() == [1, 1, 1, 0, 0]


def test_moments_lie_between_the_ends() -> None:
    one = walk((0,), (1,), 101, by=(1,), began=2.0, ended=4.0)
    assert list(places.moments(one, 3)) == [(2.0, 0), (3.0, 50), (4.0, 100)]
    assert list(places.moments(walk((0,), (1,), began=2.0, ended=4.0), 3)) == [(2.0, 0)]
