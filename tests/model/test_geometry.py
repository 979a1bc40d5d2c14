"""Does the arithmetic on chunks agree with walking, counting and caching for real?"""

import math
from collections import OrderedDict
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chunkwise.model.chunk_cache import fits
from chunkwise.model.cost import Stored, decodes_by_size, walk_cost
from chunkwise.model.geometry import Census, Walk
from chunkwise.model.readers import LIBHDF5_1, LIBRARIES, UNCACHED, Reader
from chunkwise.trials.worker import total_seconds

AXIS = st.integers(1, 14).flatmap(
    lambda n: st.tuples(st.just(n), st.integers(1, n), st.integers(1, n + 2))
)
WALKS = st.lists(AXIS, min_size=1, max_size=3).map(
    lambda axes: Walk(*(tuple(part) for part in zip(*axes, strict=True)))
)
ChunkSet = tuple[tuple[int, ...], ...]


def chunk_sets(walk: Walk) -> list[ChunkSet]:
    """Walk for real: the chunks that each operation touches."""
    sets = []
    starts = product(*(range(0, n, b) for n, b in zip(walk.shape, walk.block, strict=True)))
    for start in starts:
        spans = [
            range(first // chunk, (min(first + block, extent) - 1) // chunk + 1)
            for first, block, extent, chunk in zip(
                start, walk.block, walk.shape, walk.chunks, strict=True
            )
        ]
        sets.append(tuple(product(*spans)))
    return sets


def decodes(sets: list[ChunkSet], capacity: int) -> int:
    """Run the walk through a least-recently-used cache and count its misses."""
    cache: OrderedDict[tuple[int, ...], None] = OrderedDict()
    misses = 0
    for touched in sets:
        for chunk in touched:
            if chunk not in cache:
                misses += 1
            cache[chunk] = None
            cache.move_to_end(chunk)
            while len(cache) > capacity:
                cache.popitem(last=False)
    return misses


@given(WALKS)
@settings(deadline=None)
def test_census_counts_what_a_walk_meets(walk: Walk) -> None:
    sets = chunk_sets(walk)
    fresh = [s not in sets[:i] for i, s in enumerate(sets)]
    same = [i > 0 and s == sets[i - 1] for i, s in enumerate(sets)]
    back = len(sets) - sum(fresh) - sum(same)
    assert walk.operations == len(sets)
    assert walk.chunk_count == len({chunk for s in sets for chunk in s})
    assert walk.chunks_per_operation >= max(map(len, sets))
    assert walk.census() == Census(sum(fresh), back, sum(same))
    for operations in {1, len(sets) // 2 + 1, len(sets)}:
        found_fresh, found_same = walk.kinds(operations)
        assert found_fresh.tolist() == fresh[:operations]
        assert found_same.tolist() == same[:operations]


@given(WALKS, st.integers(0, 40))
@example(Walk((5, 2), (3, 1), (2, 2)), 1)
@settings(deadline=None)
def test_decodes_agree_with_a_cache(walk: Walk, capacity: int) -> None:
    sets = chunk_sets(walk)
    count = walk.chunk_count
    assert walk.decodes_per_chunk(0) * count == pytest.approx(decodes(sets, 0))
    assert decodes(sets, walk.chunks_to_cache()) == count
    assert walk.decodes_per_chunk(walk.chunks_to_cache()) == 1.0
    # In between the model may err, but never promises more than a cache keeps.
    assert decodes(sets, capacity) <= walk.decodes_per_chunk(capacity) * count + 1e-6


def test_rows_of_paper_004() -> None:
    walk = Walk((60, 30, 9, 717), (1, 1, 1, 717), (4, 30, 9, 717))
    assert walk.operations == 16_200
    assert walk.decodes_per_chunk(0) == 1080  # its chapter "Adjust Chunk Cache Size"
    assert walk.decodes_per_chunk(1) == 1
    assert walk.chunks_to_cache() == 1


def test_long_axes_cost_nothing() -> None:
    walk = Walk((10**12,), (3,), (1_000_001,))
    assert walk.operations == 333_333_333_334
    assert walk.census().fresh + walk.census().same + walk.census().back == walk.operations


def cost(sets: list[ChunkSet], capacity: int) -> list[float]:
    """Seconds of each operation: 1 ms, and 100 ms for each chunk decoded."""
    return [
        0.001 + 0.1 * (decodes(sets[: i + 1], capacity) - decodes(sets[:i], capacity))
        for i in range(len(sets))
    ]


@pytest.mark.parametrize("capacity", [0, 4, 100])
def test_extrapolation_finds_the_total_whatever_the_cache(capacity: int) -> None:
    walk = Walk((8, 6, 12), (1, 1, 3), (4, 3, 12))
    seconds = cost(chunk_sets(walk), capacity)
    some = seconds[:30]
    estimate = total_seconds(some, 30, sum(some), walk.operations, walk)
    assert estimate == pytest.approx(sum(seconds), rel=0.01)


def test_extrapolation_of_lines_does_not_multiply_the_first_read() -> None:
    walk = Walk((10, 20, 20), (10, 1, 1), (1, 20, 20))
    estimate = total_seconds([1.0, 0.001, 0.001], 3, 1.002, 400, walk)
    assert estimate == pytest.approx(1.0 + 399 * 0.001)


def test_kinds_not_reached_count_as_the_dearer_one() -> None:
    walk = Walk((10, 20, 20), (10, 1, 1), (1, 20, 20))
    assert total_seconds([1.0], 1, 1.0, 400, walk) == pytest.approx(400.0)


def test_extrapolation_without_chunks_is_proportional() -> None:
    assert total_seconds([1.0, 3.0], 2, 4.0, 10, None) == 20.0
    assert total_seconds([1.0, 3.0], 2, 4.0, 2, None) == 4.0


# What walks cost ------------------------------------------------------------------------------

DAILY = Stored((365, 600, 600), (1, 600, 600), 4)


@st.composite
def walks(draw: st.DrawFn) -> tuple[Stored, tuple[int, ...]]:
    shape = tuple(draw(st.lists(st.integers(1, 8), min_size=1, max_size=3)))
    chunks, block = (tuple(draw(st.integers(1, n)) for n in shape) for _ in range(2))
    return Stored(shape, chunks, draw(st.sampled_from((1, 4)))), block


@settings(max_examples=60, deadline=None)
@given(walks())
def test_what_is_counted_is_what_a_walk_touches(case: tuple[Stored, tuple[int, ...]]) -> None:
    stored, block = case
    reads = chunk_sets(Walk(stored.shape, block, stored.chunks))
    cost = walk_cost(stored, block)
    assert cost.chunks >= max(map(len, reads))
    assert cost.decoded_nbytes == cost.chunks * stored.chunk_nbytes
    assert cost.selected_nbytes == math.prod(block) * stored.itemsize
    assert 1 <= cost.reloads <= cost.chunks
    # Nothing is kept: every chunk of every read is decoded.
    each = sum(map(len, reads)) / math.prod(stored.grid)
    assert cost.decodes == pytest.approx(each)
    assert walk_cost(stored, block, LIBHDF5_1).reloads == 0


def test_a_cache_of_a_megabyte_keeps_no_daily_map() -> None:
    line = walk_cost(DAILY, (365, 1, 1), LIBHDF5_1)
    assert (line.chunks, line.reloads, line.decodes) == (365, 365, 360_000.0)
    assert line.amplification == 360_000.0
    # Of chunks without filters, just what is asked for is read, piece by piece.
    plain = Stored(DAILY.shape, DAILY.chunks, 4, filtered=False)
    assert plain.is_read_in_pieces(LIBHDF5_1)
    assert walk_cost(plain, (365, 1, 1), LIBHDF5_1).decodes == 1.0


def test_slots_that_are_shared_lose_chunks() -> None:
    stored = Stored((400, 100, 100), (1, 10, 10), 4)
    line = (400, 1, 1)
    few = Reader("few", "few", 64 << 20, 7, 0.75)
    cost = walk_cost(stored, line, few)
    assert cost.collisions == 400
    assert cost.decodes == 100.0
    assert decodes_by_size(stored, line, few) == 1.0
    assert not fits(few, 400, stored.chunk_nbytes)
    assert fits(LIBRARIES[-1], 400, stored.chunk_nbytes)
    assert not fits(UNCACHED, 1, 1)


def test_a_walk_in_another_order() -> None:
    stored = Stored((100, 100), (10, 100), 4)
    cache = Reader("one chunk", "one chunk", 4000, 521, 0.75)
    assert walk_cost(stored, (1, 10), cache).decodes == 1.0
    assert walk_cost(stored, (1, 10), cache, order=(1, 0)).decodes == 10.0
