"""Do access patterns cover an array exactly once, and are bad ones refused?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise.bench import access
from chunkwise.bench.access import Access
from chunkwise.errors import SelectionError, UsageError

EXTENTS = st.lists(st.integers(1, 9), min_size=1, max_size=4)


@given(
    EXTENTS.flatmap(lambda e: st.tuples(st.just(e), st.tuples(*[st.integers(1, n) for n in e])))
)
def test_blocks_tile_the_array_exactly_once(case: tuple[list[int], tuple[int, ...]]) -> None:
    shape, block = case
    touched = np.zeros(shape, dtype=int)
    firsts = []
    for selection in access.blocks(shape, block):
        touched[selection] += 1
        firsts.append(tuple(part.start for part in selection))
    assert (touched == 1).all()
    assert len(firsts) == access.count(shape, block)
    assert firsts == sorted(firsts)  # C order: the last dimension fastest


@given(EXTENTS, st.integers(1, 2000), st.integers(1, 8))
def test_whole_is_as_much_as_the_limit_allows(shape: list[int], limit: int, itemsize: int) -> None:
    block = access.whole(tuple(shape), itemsize, limit)
    nbytes = math.prod(block) * itemsize
    assert all(1 <= b <= n for b, n in zip(block, shape, strict=True))
    assert nbytes <= limit or math.prod(block) == 1
    if math.prod(shape) * itemsize <= limit:
        assert block == tuple(shape)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("row=1x1x5", Access("row", (1, 1, 5))),
        ("1x4x5", Access("1x4x5", (1, 4, 5))),
        ("all", Access("all", (3, 4, 5))),
        ("everything=all", Access("everything", (3, 4, 5))),
    ],
)
def test_parse(text: str, expected: Access) -> None:
    assert access.parse(text, (3, 4, 5), 4, "d in f") == expected


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("1x5", SelectionError, "has 2 dimensions, but 'd' in f.h5 has 3 (shape 3x4x5)"),
        ("row=1x1x6", SelectionError, "leaves the array: 'd' in f.h5 has shape 3x4x5"),
        ("row=1x1x0", UsageError, "at least 1"),
        ("=1x1x1", UsageError, "has no name"),
        ("row=stored", UsageError, "no block shape"),
        ("row=axb", UsageError, "not a whole number"),
    ],
)
def test_parse_refuses(text: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as caught:
        access.parse(text, (3, 4, 5), 4, "'d' in f.h5")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((365, 60, 60), {"step": (1, 60, 60), "line": (365, 1, 1), "all": (365, 60, 60)}),
        ((1, 50, 60), {"step": (1, 1, 60), "line": (1, 50, 1), "all": (1, 50, 60)}),
        ((20, 30), {"step": (1, 30), "line": (20, 1), "all": (20, 30)}),
        ((5000,), {"step": (1,), "part": (50,), "all": (5000,)}),
        ((7, 1), {"step": (1, 1), "all": (7, 1)}),
        ((1, 1), {"step": (1, 1)}),
    ],
)
def test_defaults(shape: tuple[int, ...], expected: dict[str, tuple[int, ...]]) -> None:
    assert {a.name: a.block for a in access.defaults(shape, 4)} == expected


def test_everything_is_read_in_slabs_where_it_is_large() -> None:
    everything = access.defaults((100_000, 1000, 10), 8)[-1]
    assert everything.name == "all"
    assert math.prod(everything.block) * 8 <= access.WHOLE_NBYTES
    assert everything.block[1:] == (1000, 10)
