"""What a pattern comes to, counted chunk by chunk."""

import math
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise.model.cost import Stored
from chunkwise.model.readers import CHUNKWISE, LIBHDF5_1, LIBHDF5_2, LIBRARIES, UNCACHED, Reader
from chunkwise.model.traffic import SIEVE_NBYTES, Hyperslab, Pattern, contiguous_traffic, traffic
from tests.model.test_geometry import walks

ENGINE = Reader(CHUNKWISE, CHUNKWISE, 1 << 30, None, None)


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


@given(walks())
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


@given(walks())
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


@given(walks(), st.sampled_from([*LIBRARIES, UNCACHED, ENGINE]))
def test_a_cache_never_makes_more_loads_than_there_are_touches(
    case: tuple[Stored, tuple[int, ...]], reader: Reader
) -> None:
    stored, block = case
    for pattern in (Pattern("", block), Pattern("", block, scattered=True, operations=7)):
        found = traffic(stored, pattern, reader)
        assert 1 <= found.loads <= found.touches + 1e-9
        bare = traffic(stored, pattern, UNCACHED)
        assert found.loads <= bare.loads + 1e-9


@given(walks(), st.integers(1, 50))
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


def test_with_a_w0_of_1_no_chunk_leaves_before_it_is_full() -> None:
    # As libhdf5 was measured to do: levels of a field in chunks of many levels, and room for one.
    stored = Stored((66, 8, 4320), (11, 8, 360), 4)
    level = Pattern("", (1, 8, 4320), writes=True)
    for w0, partial in ((0.75, 660), (1.0, 0)):
        cache = Reader("", "", stored.chunk_nbytes, 521, w0)
        assert traffic(stored, level, cache).partial == pytest.approx(partial, rel=0.1)
    # Where a chunk does not fit at all, there is no cache for it.
    none = Reader("", "", stored.chunk_nbytes - 1, 521, 1.0)
    assert traffic(stored, level, none).partial > 600


def test_a_new_chunk_that_no_cache_holds_is_stored_whole_and_then_written_in_place() -> None:
    stored = Stored((1024, 1024), (1024, 1024), 8, filtered=False)
    found = traffic(stored, Pattern("", (1, 1024), writes=True), LIBHDF5_1)
    assert (found.loads, found.partial) == (1, 0)
    assert found.pieces == 1023
    assert found.pieces_nbytes == 1023 * 1024 * 8
    assert traffic(stored, Pattern("", (1024, 1024), writes=True), LIBHDF5_1).pieces == 0


def test_unions_of_contiguous_data_share_sieve_buffers() -> None:
    # 16 rows of 4 KiB, 8 KiB from each other: 128 KiB, two buffers.
    box: Hyperslab = ((0, 0), (1, 1), (1, 1), (16, 1024))
    pattern = Pattern("", (16, 1024), operations=1, selections=((box,),), flat=True)
    found = contiguous_traffic((1024, 2048), 4, pattern, LIBHDF5_1)
    assert (found.runs, found.sieves) == (16, 2)
    far: Hyperslab = ((0, 0), (64, 1), (16, 1), (1, 1024))
    apart = replace(pattern, selections=((far,),))
    assert contiguous_traffic((1024, 2048), 4, apart, LIBHDF5_1).sieves == 16


def test_a_box_that_comes_in_one_dimension_is_read_element_by_element() -> None:
    stored = Stored((100, 100), (50, 50), 4)
    box: Hyperslab = ((0, 0), (1, 1), (1, 1), (60, 60))
    for flat, irregular in ((False, 0), (True, 3600)):
        pattern = Pattern("", (60, 60), operations=1, selections=((box,),), flat=flat)
        assert traffic(stored, pattern, LIBHDF5_1).irregular == irregular


@pytest.mark.parametrize(
    ("block", "seeks"),
    # The whole file in a row; a row of 10 chunks at a time, each after the last; a column, whose
    # chunks lie apart.
    [((100, 100), 1), ((10, 100), 1), ((100, 10), 100)],
)
def test_chunks_in_a_row_are_one_seek(block: tuple[int, ...], seeks: int) -> None:
    stored = Stored((100, 100), (10, 10), 4)
    assert traffic(stored, Pattern("", block), LIBHDF5_1).seeks == seeks


def test_of_memory_chunks_take_what_is_kept_of_them() -> None:
    small, large = Stored((4096, 4096), (64, 64), 4), Stored((4096, 4096), (4096, 4096), 4)
    whole = Pattern("", (4096, 4096))
    found = traffic(small, whole, LIBHDF5_1)
    kept = LIBHDF5_1.cache_nbytes + small.chunk_nbytes
    assert found.fresh_nbytes == 4096 * 4096 * 4 + kept
    assert found.small_nbytes == kept
    # The array comes in huge pages, libhdf5's chunk does not; chunkwise's does.
    assert traffic(large, whole, LIBHDF5_1).small_nbytes == large.chunk_nbytes
    assert traffic(large, whole, ENGINE).small_nbytes == 0
    assert traffic(small, replace(whole, writes=True), LIBHDF5_1).fresh_nbytes == kept


@pytest.mark.parametrize(("rows", "chunks"), [(1, 17), (2, 9), (3, 12), (8, 6), (16, 4)])
def test_chunks_of_libhdf5_that_are_fresh(rows: int, chunks: int) -> None:
    # As many page faults were counted in a first read of 48 MiB by h5py with HDF5 2.0 (cache of
    # 8 MiB, glibc 2.36): 2,310 to 8,210.
    stored = Stored((96, 1 << 16), (rows, 1 << 16), 8, filtered=False)
    found = traffic(stored, Pattern("", stored.shape), LIBHDF5_2)
    assert found.small_nbytes == chunks * rows * (1 << 19)


@given(walks(), st.booleans())
def test_what_is_looked_up_is_what_there_is(
    case: tuple[Stored, tuple[int, ...]], writes: bool
) -> None:
    stored, block = case
    for reader in (LIBHDF5_1, ENGINE):
        found = traffic(stored, Pattern("", block, writes=writes), reader)
        assert found.indexed == found.chunks
        assert 1 <= found.seeks <= max(1, found.loads + found.partial + found.pieces)


@given(walks(), st.integers(1, 40), st.booleans())
def test_the_first_blocks_of_a_walk_read_nothing_back_that_a_cache_holds(
    case: tuple[Stored, tuple[int, ...]], number: int, writes: bool
) -> None:
    stored, block = case
    found = traffic(stored, Pattern("", block, operations=number, writes=writes), LIBHDF5_1)
    assert found.partial == 0
    assert found.loads <= found.touches + 1e-9
    assert found.loads <= found.chunks + 1e-9


def test_of_the_first_blocks_of_a_walk_chunks_are_counted_as_of_all() -> None:
    # A level at a time, and no cache: each of a call's 12 chunks is read back but the first time.
    stored = Stored((66, 1728, 4320), (11, 8, 360), 4)
    nobody = Reader("", "", 0, 521, 0.75)
    level = Pattern("", (1, 8, 4320), order=(1, 0, 2), writes=True)
    for operations in (None, 66 * 216 // 4):
        found = traffic(stored, replace(level, operations=operations), nobody)
        assert found.loads == found.touches == 12 * found.operations
        assert found.partial == pytest.approx(found.touches * 10 / 11)
    few = Reader("", "", 1 << 30, 10, 0.75)
    first = replace(level, operations=66 * 216 // 4)
    assert traffic(stored, first, few).partial > 0.1 * traffic(stored, first, nobody).partial


def far(walk: Pattern) -> tuple[float, float]:
    """Count runs far apart in memory of a walk, and of blocks at random places, as many."""
    stored = Stored((400, 120, 180), (400, 12, 180), 4, filtered=False)
    scattered = replace(walk, scattered=True)
    return traffic(stored, walk, ENGINE).far, traffic(stored, scattered, ENGINE).far


def test_a_walk_finds_what_came_with_the_block_before() -> None:
    walked, scattered = far(Pattern("", (400, 1, 1)))
    # 16 elements of 4 bytes in a line of memory.
    assert walked == pytest.approx(scattered / 16)
    assert scattered > 0


def test_a_walk_in_longer_runs_than_lines_shares_none() -> None:
    walked, scattered = far(Pattern("", (400, 1, 60)))
    assert walked == scattered > 0
