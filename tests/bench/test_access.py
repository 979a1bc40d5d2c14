"""Do access patterns cover an array exactly once, and are bad ones refused?"""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise import patterns
from chunkwise.errors import UsageError
from chunkwise.patterns import Access, count, grammar
from chunkwise.trials import unions
from chunkwise.trials.trial import Trial
from tests.support.golden import assert_golden, refused

EXTENTS = st.lists(st.integers(1, 9), min_size=1, max_size=4)


@given(
    EXTENTS.flatmap(lambda e: st.tuples(st.just(e), st.tuples(*[st.integers(1, n) for n in e])))
)
def test_blocks_tile_the_array_exactly_once(case: tuple[list[int], tuple[int, ...]]) -> None:
    shape, block = case
    backwards = tuple(reversed(range(len(shape))))
    for pattern in (
        Access("c", block),
        Access("f", block, order=backwards),
        Access("random", block, seed=3),
    ):
        walk = pattern.walk(shape)
        touched = np.zeros(shape, dtype=int)
        firsts = []
        for number in range(walk.operations):
            touched[unions.slices(walk[number])] += 1
            firsts.append(tuple(walk[number][0]))
        assert (touched == 1).all()
        assert len(firsts) == count(shape, block)
        if pattern.name == "c":
            assert firsts == sorted(firsts)  # the last dimension fastest
        if pattern.name == "f":
            assert firsts == sorted(firsts, key=lambda first: first[::-1])
        with pytest.raises(IndexError):
            walk[walk.operations]


@given(EXTENTS, st.integers(1, 2000), st.integers(1, 8))
def test_whole_is_as_much_as_the_limit_allows(shape: list[int], limit: int, itemsize: int) -> None:
    block = patterns.whole(tuple(shape), itemsize, limit)
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
        ("line:0", Access("line:0", (3, 1, 1))),
        ("series=line:0", Access("series", (3, 1, 1))),
        ("plane:1", Access("plane:1", (3, 1, 5))),
        ("random:7", Access("random:7", (1, 1, 1), seed=0, limit=7)),
        ("r=random:7:1x1x5", Access("r", (1, 1, 5), seed=0, limit=7)),
        ("r=random:1k", Access("r", (1, 1, 1), seed=0, limit=1000)),
        ("r=random:1.5 million:1x1x5", Access("r", (1, 1, 5), seed=0, limit=1_500_000)),
        ("1x:x:", Access("1x:x:", (1, 4, 5))),
        ("r=:x2x:@1,0,2", Access("r", (3, 2, 5), order=(1, 0, 2))),
        ("1x1x5@f", Access("1x1x5@f", (1, 1, 5), order=(2, 1, 0))),
        ("line:2@1,0,2", Access("line:2@1,0,2", (1, 1, 5), order=(1, 0, 2))),
        ("row=1x1x5@random", Access("row", (1, 1, 5), seed=0)),
        ("random:7@random:9", Access("random:7@random:9", (1, 1, 1), seed=9, limit=7)),
        (
            "odd=[1::2, 3, :]",
            Access("odd", (1, 1, 5), slabs=(((1, 3, 0), (1, 1, 5), (1, 1, 1), (1, 1, 5)),)),
        ),
        (
            "two=[1, 2:4] | [2, 0, ::2]",
            Access(
                "two",
                (2, 4, 5),
                slabs=(
                    (
                        ((1, 2, 0), (1, 2, 5), (1, 1, 1), (1, 2, 5)),
                        ((2, 0, 0), (1, 1, 2), (1, 1, 3), (1, 1, 1)),
                    ),
                ),
            ),
        ),
    ],
)
def test_parse(text: str, expected: Access) -> None:
    assert patterns.parse(text, (3, 4, 5), 4, "d in f") == expected


REFUSED = (
    "1x5;row=1x1x6;row=1x1x0;=1x1x1;row=stored;time;row,all;lines;Plane;line:3;random:0;"
    "random:many;random:2.5;line:1:2;1x1x5@0,0,1;1x1x5@sideways;[0:0];[::-1];[a];[0] | ;"
    "[0] | [1:1];[0] | [3];[9];list:nowhere.txt;row=1xb;row=1x:x::;:x:"
)


def test_parse_refuses() -> None:
    def parse(text: str) -> None:
        patterns.parse(text, (3, 4, 5), 4, "'d' in f.h5")

    assert_golden("access-refused", refused(parse, REFUSED.split(";")))


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
    assert {a.name: a.block for a in patterns.defaults(shape, 4)} == expected


def test_everything_is_read_in_slabs_where_it_is_large() -> None:
    everything = patterns.defaults((100_000, 1000, 10), 8)[-1]
    assert everything.name == "all"
    assert math.prod(everything.block) * 8 <= grammar.WHOLE_NBYTES
    assert everything.block[1:] == (1000, 10)


def test_a_list_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "my=list.txt"
    path.write_text("[0, :, 1:3]\n\n2, 0:4:2, 4\n")
    pattern = patterns.parse(f"list:{path}", (3, 4, 5), 4, "d in f")
    assert pattern.name == f"list:{path}"
    walk = pattern.walk((3, 4, 5))
    data = np.arange(60).reshape(3, 4, 5)
    read = [data[unions.slices(walk[i])].ravel().tolist() for i in range(walk.operations)]
    assert read == [data[0, :, 1:3].ravel().tolist(), data[2, 0:4:2, 4].ravel().tolist()]
    path.write_text("[0:2, 0] | 1, 0:2, ::2\n2\n")
    pattern = patterns.parse(f"list:{path}", (3, 4, 5), 4, "d in f")
    assert (pattern.block, pattern.elements, pattern.has_unions) == ((2, 2, 5), 13, True)
    walk = pattern.walk((3, 4, 5))
    assert [isinstance(walk[i], list) for i in range(walk.operations)] == [True, False]
    path.write_text("\n")
    with pytest.raises(UsageError, match="0 selections"):
        patterns.parse(f"list:{path}", (3, 4, 5), 4, "d in f")


def test_a_trial_survives_its_way_to_the_worker() -> None:
    for text in ("1x1x5@f", "random:7", "[::2, 1, :]", "[0] | [1:, 2]", "cells:3:5", "all"):
        pattern = patterns.parse(text, (3, 4, 5), 4, "d in f")
        trial = Trial(
            "f",
            "d",
            pattern.name,
            pattern.block,
            "h5py",
            order=pattern.order,
            seed=pattern.seed,
            limit=pattern.limit,
            slabs=pattern.slabs,
            cells=pattern.cells,
        )
        again = Trial.from_json(json.loads(json.dumps(trial.to_json())))
        assert again == trial
        assert again.pattern == pattern
