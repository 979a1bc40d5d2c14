"""What a pattern comes to, counted chunk by chunk."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise.advise.cost import Stored
from chunkwise.advise.readers import CHUNKWISE, LIBHDF5_1, LIBRARIES, UNCACHED, Reader
from chunkwise.advise.traffic import (
    SIEVE_NBYTES,
    Hyperslab,
    Pattern,
    contiguous_traffic,
    traffic,
)

ENGINE = Reader(CHUNKWISE, CHUNKWISE, 1 << 30, None, None)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Stored, tuple[int, ...]]:
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
    chunks, block = (tuple(draw(st.integers(1, n)) for n in shape) for _ in range(2))
    return Stored(shape, chunks, 4), block


def boxes(stored: Stored, block: tuple[int, ...]) -> list[Hyperslab]:
    """List the blocks of a walk in C order, clipped where the array ends."""
    starts = product(*(range(0, n, b) for n, b in zip(stored.shape, block, strict=True)))
    ones = (1,) * len(block)
    return [
        (
            start,
            ones,
            ones,
            tuple(min(b, n - a) for a, b, n in zip(start, block, stored.shape, strict=True)),
        )
        for start in starts
    ]


def touches(stored: Stored, box: Hyperslab) -> int:
    start, _, _, block = box
    pairs = zip(start, block, stored.chunks, strict=True)
    return math.prod((a + b - 1) // c - a // c + 1 for a, b, c in pairs)


@given(cases())
def test_calls_chunks_and_bytes_of_a_walk(case: tuple[Stored, tuple[int, ...]]) -> None:
    stored, block = case
    found = traffic(stored, Pattern("", block), UNCACHED)
    listed = boxes(stored, block)
    assert found.operations == len(listed)
    assert found.touches == sum(touches(stored, box) for box in listed)
    assert found.selected_nbytes == math.prod(stored.shape) * stored.itemsize
    assert found.chunks == math.prod(stored.grid)
    # What nobody keeps is loaded each time, but for what one read leaves to the very next.
    assert found.chunks <= found.loads <= found.touches


@given(cases())
def test_a_list_of_a_walks_blocks_is_the_walk(case: tuple[Stored, tuple[int, ...]]) -> None:
    stored, block = case
    listed = tuple((box,) for box in boxes(stored, block))
    walked = traffic(stored, Pattern("", block), ENGINE)
    found = traffic(stored, Pattern("", block, operations=len(listed), selections=listed), ENGINE)
    assert found.operations == walked.operations
    assert found.touches == walked.touches
    assert found.selected_nbytes == walked.selected_nbytes
    # A cache that holds all: each chunk once, either way.
    assert found.loads == walked.loads == found.chunks


@given(cases(), st.sampled_from([*LIBRARIES, UNCACHED, ENGINE]))
def test_a_cache_never_makes_more_loads_than_there_are_touches(
    case: tuple[Stored, tuple[int, ...]], reader: Reader
) -> None:
    stored, block = case
    for pattern in (Pattern("", block), Pattern("", block, scattered=True, operations=7)):
        found = traffic(stored, pattern, reader)
        assert 1 <= found.loads <= found.touches + 1e-9
        bare = traffic(stored, pattern, UNCACHED)
        assert found.loads <= bare.loads + 1e-9


@given(cases(), st.integers(1, 50))
def test_blocks_at_random_places_meet_no_more_chunks_than_there_are(
    case: tuple[Stored, tuple[int, ...]], number: int
) -> None:
    stored, block = case
    found = traffic(stored, Pattern("", block, scattered=True, operations=number), ENGINE)
    assert found.operations <= number
    assert found.loads <= found.chunks + 1e-9


def test_a_stride_that_skips_chunks_does_not_touch_them() -> None:
    stored = Stored((1000,), (10,), 4)
    every_100th: Hyperslab = ((0,), (100,), (10,), (1,))
    dense: Hyperslab = ((0,), (5,), (200,), (1,))
    for one, chunks in ((every_100th, 10), (dense, 100)):
        found = traffic(stored, Pattern("", (1,), operations=1, selections=((one,),)), UNCACHED)
        assert found.touches == chunks


def test_a_chunk_of_two_parts_of_a_union_is_loaded_once() -> None:
    stored = Stored((100, 100), (50, 100), 4)
    union = (((0, 0), (1, 1), (1, 1), (5, 5)), ((20, 0), (1, 1), (1, 1), (5, 5)))
    found = traffic(stored, Pattern("", (25, 5), operations=1, selections=(union,)), UNCACHED)
    assert found.loads == 1
    assert found.selected_nbytes == 2 * 5 * 5 * 4


def test_chunks_that_are_not_compressed_and_too_large_are_read_piece_by_piece() -> None:
    stored = Stored((1024, 1024), (1024, 1024), 8, filtered=False)
    found = traffic(stored, Pattern("", (1024, 1)), LIBHDF5_1)
    assert found.loads == 0
    assert found.pieces == 1024 * 1024
    rows = traffic(stored, Pattern("", (1, 1024)), LIBHDF5_1)
    assert rows.pieces == 1024


def test_contiguous_data_is_read_through_the_sieve_buffer() -> None:
    shape, row_nbytes = (16384, 512), 2048
    column = contiguous_traffic(shape, 4, Pattern("", (16384, 1)), LIBHDF5_1)
    assert column.runs == 16384 * 512
    # Each column goes through all windows of 64 KiB.
    assert column.sieves == 512 * 16384 * row_nbytes / SIEVE_NBYTES
    rows = contiguous_traffic(shape, 4, Pattern("", (1, 512)), LIBHDF5_1)
    assert rows.sieves == 16384 * row_nbytes / SIEVE_NBYTES
    points = Pattern("", (1, 1), scattered=True, operations=100)
    assert 99 < contiguous_traffic(shape, 4, points, LIBHDF5_1).sieves <= 100
    assert contiguous_traffic(shape, 4, Pattern("", (1, 512)), ENGINE).pieces == 16384


@pytest.mark.parametrize("cached", [True, False])
def test_a_chunk_that_is_stored_before_it_is_full_is_read_back(cached: bool) -> None:
    stored = Stored((100, 100), (100, 10), 4)
    reader = Reader("", "", (1 << 20) if cached else 4000, 521, 0.75)
    found = traffic(stored, Pattern("", (1, 100), writes=True), reader)
    assert found.loads == (10 if cached else 1000)
    assert found.partial == (0 if cached else 990)
