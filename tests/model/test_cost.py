"""One model counts what walks cost; these are its figures, counted one by one."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkwise.model.chunk_cache import fits
from chunkwise.model.cost import (
    Stored,
    decodes_by_size,
    decodes_in_no_order,
    decodes_of_walk,
    walk_cost,
)
from chunkwise.model.readers import LIBHDF5_1, LIBRARIES, UNCACHED, Reader

DAILY = Stored((365, 600, 600), (1, 600, 600), 4)


@st.composite
def walks(draw: st.DrawFn) -> tuple[Stored, tuple[int, ...]]:
    shape = tuple(draw(st.lists(st.integers(1, 8), min_size=1, max_size=3)))
    chunks, block = (tuple(draw(st.integers(1, n)) for n in shape) for _ in range(2))
    return Stored(shape, chunks, draw(st.sampled_from((1, 4)))), block


def touched(stored: Stored, block: tuple[int, ...]) -> list[set[tuple[int, ...]]]:
    """List the chunks of each read of a walk in C order."""
    starts = [range(0, n, b) for n, b in zip(stored.shape, block, strict=True)]
    return [
        set(
            product(
                *(
                    range(a // c, (min(a + b, n) - 1) // c + 1)
                    for a, b, n, c in zip(start, block, stored.shape, stored.chunks, strict=True)
                )
            )
        )
        for start in product(*starts)
    ]


@settings(max_examples=60, deadline=None)
@given(walks())
def test_what_is_counted_is_what_a_walk_touches(case: tuple[Stored, tuple[int, ...]]) -> None:
    stored, block = case
    reads = touched(stored, block)
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
    assert line.total_s(10**9, 1e9) == 360_000.0
    assert line.total_s(10**9, None) is None
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


def test_reads_in_no_order_lose_what_the_cache_has_no_room_for() -> None:
    assert decodes_in_no_order(DAILY, (1, 1, 1), LIBHDF5_1, 3650) == 10.0
    assert decodes_in_no_order(DAILY, (1, 1, 1), LIBRARIES[-1], 100) == 1.0


@given(walks(), st.sampled_from([*LIBRARIES, UNCACHED, Reader("tiny", "", 64, 3, 0.75)]))
def test_decodes_alone_are_those_of_the_whole_cost(
    walk: tuple[Stored, tuple[int, ...]], reader: Reader
) -> None:
    stored, block = walk
    whole = walk_cost(stored, block, reader).decodes
    assert decodes_of_walk(stored, block, reader) == pytest.approx(whole)
