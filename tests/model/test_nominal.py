"""Do thousands of shapes at once, by the main terms, rank as the model does one by one?"""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkwise.model.chunk_shape import (
    CHUNK_NBYTES,
    LEAST_CHUNK_NBYTES,
    all_of,
    are_too_small,
    default_chunk,
    divisors,
    reason,
    usual,
)
from chunkwise.model.cost import Stored
from chunkwise.model.nominal import LOAD_S, STORED_LOAD_S, nominal_s, quick_s
from chunkwise.model.readers import CHUNKWISE, LIBHDF5_1, LIBHDF5_2, Reader
from chunkwise.model.seconds import Codec, Machine, Rates, Speed, parts
from chunkwise.model.traffic import Pattern, traffic

Shape = tuple[int, ...]


@st.composite
def questions(draw: st.DrawFn) -> tuple[Shape, int, tuple[Pattern, ...]]:
    rank = draw(st.integers(1, 4))
    longest = {1: 10**7, 2: 5000, 3: 700, 4: 120}[rank]
    shape = tuple(draw(st.integers(1, longest)) for _ in range(rank))
    found = []
    for number in range(draw(st.integers(1, 3))):
        block = tuple(
            draw(st.sampled_from([1, n, max(1, n // 7)]) | st.integers(1, n)) for n in shape
        )
        order = draw(st.none() | st.permutations(range(rank)).map(tuple))
        scattered = draw(st.booleans())
        operations = draw(st.integers(1, 2000)) if scattered else None
        weight = draw(st.sampled_from([0.1, 1.0, 7.0]))
        found.append(Pattern(str(number), block, order, scattered, operations, weight=weight))
    return shape, draw(st.sampled_from([1, 4, 8])), tuple(found)


def candidates(shape: Shape, patterns: tuple[Pattern, ...]) -> np.ndarray[Any, Any]:
    sides = [divisors(n, {one.block[axis] for one in patterns}) for axis, n in enumerate(shape)]
    rng = np.random.default_rng(0)
    return np.array([[rng.choice(one) for one in sides] for _ in range(20)], np.int64)


@settings(max_examples=60, deadline=None)
@given(questions(), st.sampled_from([LIBHDF5_1, LIBHDF5_2]))
def test_many_at_once_are_counted_as_each_by_itself(case: Any, reader: Reader) -> None:
    """Of caches without a hash table, which the quick way knows nothing about."""
    shape, itemsize, patterns = case
    reader = Reader(reader.name, reader.title, reader.cache_nbytes, None, None)
    shapes = candidates(shape, patterns)
    quick = quick_s(shape, itemsize, shapes, patterns, reader)
    # The terms that it has, by the model.
    rates = Rates(touch_s=5e-7, load_s=LOAD_S, index_s=1e-6, fetch_s=1e-10)
    machine = Machine({"libhdf5": rates}, {"libhdf5": rates})
    codec = Codec("x", (((), 0.5),), {"libhdf5": Speed(0.0, 1 / (256 << 20))})
    for chunks, found in zip(shapes, quick, strict=True):
        side = tuple(map(int, chunks))
        stored = Stored(shape, side, itemsize)
        slow = sum(
            one.weight
            * sum(
                parts(
                    traffic(stored, one, reader), side, itemsize, codec, machine, "libhdf5"
                ).values()
            )
            for one in patterns
        )
        assert found == pytest.approx(slow, rel=1e-6)


@pytest.mark.parametrize("scattered", [True, False])
def test_single_reads_by_chunkwise_gain_nothing_by_its_cache(scattered: bool) -> None:
    """As many small reads as there are would otherwise be served by a few large chunks."""
    shape, shapes = (240, 300, 280), np.array([[1, 300, 280], [240, 30, 28]])
    pattern = Pattern("series", (240, 1, 1), scattered=scattered, operations=1000)

    def seconds(cache_nbytes: int) -> list[float]:
        ours = Reader(CHUNKWISE, CHUNKWISE, cache_nbytes, None, None)
        quick = quick_s(shape, 4, shapes, [pattern], ours)
        slow = [
            nominal_s(Stored(shape, tuple(map(int, one)), 4), [pattern], ours) for one in shapes
        ]
        return [*map(float, quick), *slow]

    assert (seconds(1 << 30) == seconds(0)) is scattered


@settings(max_examples=25, deadline=None)
@given(questions())
def test_nothing_that_was_left_out_is_much_better(case: Any) -> None:
    """Of shapes within the bounds, drawn at random, none takes much less by the whole model."""
    shape, itemsize, patterns = case
    if math.prod(shape) * itemsize <= CHUNK_NBYTES:
        return
    everything = (*patterns, all_of(shape, patterns))
    chosen = default_chunk(shape, itemsize, None, patterns)

    def took_s(chunks: Shape) -> float:
        # Of no pattern does one read count.
        stored = Stored(shape, chunks, itemsize)
        return nominal_s(stored, everything, LIBHDF5_1, load_s=STORED_LOAD_S)

    for chunks in candidates(shape, patterns):
        side = tuple(map(int, chunks))
        nbytes = math.prod(side) * itemsize
        count = math.prod(-(-n // c) for n, c in zip(shape, side, strict=True))
        if LEAST_CHUNK_NBYTES <= nbytes <= CHUNK_NBYTES and not are_too_small(count, nbytes):
            assert took_s(chosen) <= 1.1 * took_s(side)


def test_what_nobody_states_suits_slow_storage_too() -> None:
    shape = (365, 600, 600)
    assert math.prod(default_chunk(shape, 4)) * 4 >= 400 << 10
    # To state what is meant anyway changes nothing.
    assert default_chunk(shape, 4, None, usual(shape, 4)) == default_chunk(shape, 4)


def test_the_reason_says_what_a_read_comes_to() -> None:
    patterns = (Pattern("maps", (1, 600, 600)), Pattern("series", (365, 1, 1)))
    assert reason((365, 600, 600), 4, (73, 60, 60), patterns) == (
        "one read of maps touches 100 chunks (100.3 MiB decoded), of series 5 (5.0 MiB)"
    )
