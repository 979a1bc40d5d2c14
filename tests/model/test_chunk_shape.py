"""The default chunk shape keeps the ceiling rule, its bounds, and suits what is stated."""

import math
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkwise import patterns
from chunkwise.errors import SelectionError, UsageError
from chunkwise.model.chunk_shape import (
    BEGUN_NBYTES,
    CHUNK_NBYTES,
    GROWN_NBYTES,
    LEAST_CHUNK_NBYTES,
    MOST_WASTE,
    _best,
    are_too_small,
    default_chunk,
    expected_shape,
)
from chunkwise.model.geometry import Walk
from tests.support.versions import in_memory

CUBE = (365, 600, 600)


@st.composite
def datasets(draw: st.DrawFn) -> tuple[tuple[int, ...], int, tuple[int | None, ...] | None, Any]:
    """Shapes of few and many elements, growing or not, and blocks that fit them."""
    rank = draw(st.integers(1, 5))
    extent = st.integers(0, 9) | st.integers(0, 2000) | st.integers(10**5, 10**9)
    shape = tuple(draw(extent) for _ in range(rank))
    growth = st.none() | st.integers(0, 3000)
    maxshape = tuple(
        None if more is None else n + more for n, more in ((n, draw(growth)) for n in shape)
    )
    most = draw(st.sampled_from((None, maxshape)))
    limits = [
        max(1, n) if most is None else (m or 5000) for n, m in zip(shape, maxshape, strict=True)
    ]
    block = st.tuples(*(st.integers(1, max(1, limit)) for limit in limits))
    return (
        shape,
        draw(st.sampled_from((1, 2, 4, 8, 24, 3000))),
        most,
        draw(st.lists(block, max_size=3)),
    )


@settings(max_examples=40, deadline=None)
@given(datasets(), st.sampled_from((CHUNK_NBYTES, 1 << 16, 1000)))
def test_chunks_are_within_their_bounds_and_waste_little(case: Any, limit_nbytes: int) -> None:
    shape, itemsize, maxshape, blocks = case
    chunk = default_chunk(shape, itemsize, maxshape, blocks, limit_nbytes=limit_nbytes)
    expected = expected_shape(shape, itemsize, maxshape, blocks)
    assert len(chunk) == len(shape)
    for side, extent, limit, will_be in zip(
        chunk, shape, shape if maxshape is None else maxshape, expected, strict=True
    ):
        assert side >= 1
        assert limit is None or side <= max(1, limit)
        assert extent <= will_be
        assert math.ceil(will_be / side) * side <= will_be * (1 + MOST_WASTE)
    nbytes = math.prod(chunk) * itemsize
    assert nbytes <= limit_nbytes or set(chunk) == {1}
    if math.prod(expected) * itemsize <= limit_nbytes:
        assert chunk == expected
    # Asked again, with nothing remembered, it says the same.
    _best.cache_clear()
    assert chunk == default_chunk(shape, itemsize, maxshape, blocks, limit_nbytes=limit_nbytes)


@settings(deadline=None)
@given(st.lists(st.integers(17, 5000), min_size=1, max_size=3), st.sampled_from((1, 4, 8)))
def test_chunks_of_a_large_array_are_not_small(shape: list[int], itemsize: int) -> None:
    nbytes = math.prod(default_chunk(shape, itemsize)) * itemsize
    assert nbytes >= min(LEAST_CHUNK_NBYTES, math.prod(shape) * itemsize)


@settings(max_examples=40, deadline=None)
@given(datasets())
def test_chunks_of_filtered_data_are_not_found_too_small(case: Any) -> None:
    shape, itemsize, maxshape, blocks = case
    chunk = default_chunk(shape, itemsize, maxshape, blocks)
    count = math.prod(-(-n // c) for n, c in zip(shape, chunk, strict=True))
    assert not are_too_small(count, math.prod(chunk) * itemsize)


@settings(max_examples=40, deadline=None)
@given(datasets())
def test_libhdf5_takes_the_chunks(case: Any) -> None:
    shape, itemsize, maxshape, blocks = case
    chunk = default_chunk(shape, itemsize, maxshape, blocks)
    with in_memory() as file:
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk(chunk)
        most = tuple(h5py.h5s.UNLIMITED if n is None else n for n in maxshape or shape)
        space = h5py.h5s.create_simple(shape, most)
        kind = h5py.h5t.py_create(np.dtype(f"S{itemsize}"))
        made = h5py.h5d.create(file.id, b"x", kind, space, dcpl)
        assert made.get_create_plist().get_chunk() == chunk


@pytest.mark.parametrize(
    ("blocks", "chunk"),
    [
        ([(1, 600, 600)], (1, 300, 600)),
        ([(1, 600, 600), (1, 1, 600)], (1, 300, 600)),
        ([(365, 1, 1)], (365, 1, 600)),
        ([(30, 20, 20)], (30, 75, 100)),
    ],
)
def test_the_stated_accesses_decide(blocks: Any, chunk: tuple[int, ...]) -> None:
    found = default_chunk(CUBE, 4, access=blocks)
    decoded = {
        c: sum(Walk(CUBE, b, c).decodes_per_chunk(0) for b in blocks) for c in (found, chunk)
    }
    assert decoded[found] <= decoded[chunk]


def test_lines_and_steps_are_served_alike_when_nothing_is_stated() -> None:
    chunk = default_chunk(CUBE, 4)
    in_line = math.ceil(365 / chunk[0])
    in_plane = math.ceil(600 / chunk[1]) * math.ceil(600 / chunk[2])
    assert in_line / 4 < in_plane < in_line * 4
    # Neither of the two dimensions of a step is preferred.
    assert chunk[1] / 2 < chunk[2] < chunk[1] * 2


def test_a_dataset_that_is_made_empty_gets_chunks_of_some_size() -> None:
    assert default_chunk((0,), 8, (None,)) == (16384,)
    assert default_chunk((0, 100), 8, (None, 100)) == (163, 100)
    assert default_chunk((0,), 8, (10,)) == (10,)
    assert default_chunk((0, 512, 512), 2, (None, 512, 512)) == (1, 512, 512)
    # What one append brings fits one chunk.
    assert default_chunk((0, 4), 4, (None, 4), [(50_000, 4)]) == (50_000, 4)


@settings(deadline=None)
@given(datasets(), st.sampled_from((BEGUN_NBYTES, GROWN_NBYTES, None)))
def test_what_may_grow_begins_with_a_bounded_chunk(case: Any, room: int | None) -> None:
    shape, itemsize, maxshape, _ = case
    expected = expected_shape(shape, itemsize, maxshape, grown_nbytes=room)
    chunk = default_chunk(shape, itemsize, maxshape, grown_nbytes=room)
    if room is None:
        room = GROWN_NBYTES if 0 in shape else BEGUN_NBYTES
    now = math.prod(max(1, n) for n in shape) * itemsize
    # Neither much more than what is there ...
    assert math.prod(expected) * itemsize <= max(now, room)
    if now <= room:
        assert chunk == expected
    # ... nor so little that thousands of chunks hold what it grows to.
    if maxshape is not None and None in maxshape:
        assert math.prod(expected) * itemsize > room // 2


def test_a_dataset_that_is_made_with_something_gets_smaller_chunks() -> None:
    assert default_chunk((10,), 8, (None,)) == (2048,)
    assert default_chunk((10,), 8, (100,)) == (100,)
    assert default_chunk((3000,), 8, (None,)) == (3000,)
    assert default_chunk((5, 7), 8, (None, None)) == (292, 7)
    assert default_chunk((10,), 8) == (10,)
    # An access that is stated has room in any case.
    assert default_chunk((10,), 8, (None,), [(9999,)]) == (9999,)


def test_text_states_accesses() -> None:
    texts = ["row", "1x600x600", "line:0", "plane:1"]

    def blocks(*asked: Any) -> list[Any]:
        return [one.block for one in patterns.stated(*asked)]

    found = blocks(texts, CUBE, 4, None, "x.h5: dataset /t")
    assert found == [(1, 1, 600), (1, 600, 600), (365, 1, 1), (365, 1, 600)]
    # A block may be larger than what is there, where the dataset grows.
    assert blocks(["8x100"], (0, 100), 4, (None, 100), "x") == [(8, 100)]
    assert blocks(["row"], (0, 100), 4, (None, 100), "x") == [(1, 100)]
    with pytest.raises(SelectionError, match="leaves the array"):
        patterns.stated(["8x101"], (0, 100), 4, (None, 100), "x")
    with pytest.raises(UsageError, match="rows"):
        patterns.stated(["rows"], CUBE, 4, None, "x")


def test_row_is_a_pattern_of_bench() -> None:
    assert patterns.parse("row", (5, 6), 4, "x").block == (1, 6)
    assert np.prod(patterns.parse("r=row@random", (5, 6), 4, "x").block) == 6
