"""Is what is decoded of a chunk in blocks what a count of its blocks says?"""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkwise.model.blocks import BLOCK_NBYTES, part_nbytes
from chunkwise.model.cost import Stored
from chunkwise.model.readers import CHUNKWISE, LIBHDF5_2, Reader
from chunkwise.model.seconds import Codec, Machine, Rates, Speed, parts
from chunkwise.model.traffic import Pattern, traffic

OURS = Reader(CHUNKWISE, CHUNKWISE, 0, None, None)
ITEMSIZE = 4


@st.composite
def reads(draw: st.DrawFn) -> tuple[Stored, tuple[int, ...]]:
    chunks = draw(st.sampled_from([(40, 40, 40), (8, 128, 128), (300, 30, 10), (1, 300, 280)]))
    shape = tuple(draw(st.integers(1, 3)) * n for n in chunks)
    block = tuple(draw(st.sampled_from([1, max(1, n // 5), n])) for n in shape)
    return Stored(shape, chunks, ITEMSIZE), block


def counted(stored: Stored, block: tuple[int, ...]) -> float:
    """Count the blocks of each chunk that reads anywhere touch, and give their bytes."""
    found = []
    sides = list(zip(stored.shape, block, strict=True))
    grid = tuple(-(-n // b) for n, b in sides)
    for number in np.random.default_rng(0).permutation(math.prod(grid))[:400]:
        start = [
            int(i) * b for i, (_, b) in zip(np.unravel_index(number, grid), sides, strict=True)
        ]
        along = []
        for axis, first in enumerate(start):
            places = np.arange(first, min(first + block[axis], stored.shape[axis]))
            along.append([places[places // stored.chunks[axis] == c] % stored.chunks[axis]
                          for c in np.unique(places // stored.chunks[axis])])  # fmt: skip
        for part in product(*along):
            index = np.ravel_multi_index(np.ix_(*part), stored.chunks)
            found.append(len(np.unique(index * ITEMSIZE // BLOCK_NBYTES)))
    return float(np.mean(found)) * BLOCK_NBYTES


@settings(max_examples=60, deadline=None)
@given(reads())
def test_as_many_blocks_as_a_count_of_them(case: tuple[Stored, tuple[int, ...]]) -> None:
    stored, block = case
    found = part_nbytes(stored, block)
    whole = math.ceil(stored.chunk_nbytes / BLOCK_NBYTES) * BLOCK_NBYTES
    if found is None:
        assert counted(stored, block) > 0.25 * whole
    else:
        assert found == pytest.approx(counted(stored, block), rel=0.5)


def test_a_small_chunk_is_decoded_whole() -> None:
    assert part_nbytes(Stored((100, 100, 100), (10, 10, 10), 4), (1, 1, 1)) is None


def test_what_is_left_out_costs_neither_a_decoder_nor_a_fetch() -> None:
    """For single reads by chunkwise of what it decodes in parts, and for no other."""
    stored, pattern = Stored((80, 300, 280), (80, 100, 94), 4), Pattern("map", (1, 300, 280))
    rates = Rates(fetch_s=1e-10)
    machine = Machine({CHUNKWISE: rates, "libhdf5": rates}, {})
    speed = {"libhdf5": Speed(0.0, 1e-9)}

    def seconds(who: Reader, *, scattered: bool, in_blocks: bool) -> float:
        one = Pattern("map", pattern.block, scattered=scattered, operations=1)
        codec = Codec("x", decode=speed, in_blocks=in_blocks)
        name = CHUNKWISE if who is OURS else "libhdf5"
        found = traffic(stored, one, who)
        return sum(parts(found, stored.chunks, 4, codec, machine, name).values())

    whole = seconds(OURS, scattered=True, in_blocks=False)
    assert seconds(OURS, scattered=True, in_blocks=True) < 0.05 * whole
    assert seconds(OURS, scattered=False, in_blocks=True) == pytest.approx(whole)
    assert seconds(LIBHDF5_2, scattered=True, in_blocks=True) == pytest.approx(whole)
