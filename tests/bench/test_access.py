"""Do access patterns cover an array exactly once, by number or name, and are bad ones refused?"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chunkwise
from chunkwise import patterns
from chunkwise.errors import SelectionError, UsageError
from chunkwise.files.around import Surroundings
from chunkwise.measure.planning import spell_out
from chunkwise.measure.space import Space
from chunkwise.measure.target import look
from chunkwise.model.chunk_shape import default_chunk
from chunkwise.patterns import Access, count, parse, stated, unbound, weight
from chunkwise.trials import unions
from chunkwise.trials.trial import Trial
from tests.support.commands import run
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
    "[0] | [1:1];[0] | [3];[9];list:nowhere.txt;row=1xb;row=1x:x::;:x:;t:time=all"
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
    assert math.prod(everything.block) * 8 <= unbound.WHOLE_NBYTES
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


# --- names of dimensions and weights -----------------------------------------------------


OF_TIME = (365, 20, 30)


class Known:
    """Names that nobody had to read from a file."""

    dimensions: Sequence[str | None] = ("time", "/grid/y", "x")


def read(text: str, shape: tuple[int, ...] = OF_TIME, around: Any = Known()) -> Access:  # noqa: B008
    return parse(text, shape, 4, "'/t' in a.h5", around)


# --- names of dimensions ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "block"),
    [
        ("time=all,y=1,x=1", "time=all,y=1,x=1", (365, 1, 1)),
        ("time=1", "time=1", (1, 20, 30)),
        ("x=10,time=1", "x=10,time=1", (1, 20, 10)),
        ("y=:,x=1", "y=:,x=1", (365, 20, 1)),
        ("map=time=1,y=all,x=all", "map", (1, 20, 30)),
        ("series=y=1,x=1", "series", (365, 1, 1)),
        # A name before a block is a name, whatever it says.
        ("time=1x20x30", "time", (1, 20, 30)),
        ("row=1x1x30", "row", (1, 1, 30)),
    ],
)
def test_dimensions_by_their_names(text: str, name: str, block: tuple[int, ...]) -> None:
    found = read(text)
    assert (found.name, found.block, found.order, found.slabs) == (name, block, None, None)


def test_an_order_goes_with_names() -> None:
    found = read("map=time=1@random:3")
    assert (found.block, found.seed) == ((1, 20, 30), 3)
    assert read("time=1@f").order == (2, 1, 0)


def test_a_file_without_names() -> None:
    class Nameless(Known):
        dimensions = ()

    for around in (Nameless(), None):
        with pytest.raises(
            SelectionError, match=r"no dimension scales.*write lengths such as 365x1x1"
        ):
            read("time=all,y=1", around=around)


WORDS_REFUSED: list[tuple[str, tuple[int, ...]]] = [
    *((text, OF_TIME) for text in ("tyme=all,y=1", "map=time=1,z=1", "y=1,y=2", "time=400"))
]


def test_words_that_do_not_fit() -> None:
    assert_golden("access-words-refused", refused(lambda one: read(*one), WORDS_REFUSED))


# --- weights ----------------------------------------------------------------------------


def test_weights() -> None:
    assert weight("map=1x20x30 weight 3") == 3.0
    assert weight("1x20x30") == 1.0
    assert read("map=time=1 weight 2.5") == read("map=time=1")
    for text in ("row weight 0", "row weight -1", "row weight much", "row weight nan"):
        with pytest.raises(UsageError, match="a weight is a number more than 0"):
            weight(text)


def test_a_weight_counts_in_the_choice_of_chunks() -> None:
    found = stated(("1x20x30 weight 3", "365x1x1 weight 0.5 "), OF_TIME, 4, None, "/t")
    weights = [(one.block, round(one.weight * one.reads, 9)) for one in found]
    assert weights == [((1, 20, 30), 3.0), ((365, 1, 1), 0.5)]
    maps, series = (
        default_chunk((365, 600, 600), 4, None, stated(texts, (365, 600, 600), 4, None, "/t"))
        for texts in (("1x600x600 weight 1e6", "line:0"), ("1x600x600", "line:0 weight 1e6"))
    )
    assert maps[0] < series[0]


# --- everywhere -------------------------------------------------------------------------


@pytest.fixture
def dated(tmp_path: Path) -> Path:
    """A file with named dimensions."""
    found = tmp_path / "a.h5"
    with h5py.File(found, "w") as file:
        shape = (120, 100, 110)
        values = np.arange(np.prod(shape), dtype="<f4").reshape(shape)
        file.create_dataset("g/t", data=values, chunks=(1, 100, 110), compression=1)
        for axis, name in enumerate(("time", "y", "x")):
            file[f"g/{name}"] = np.arange(shape[axis])
            file[f"g/{name}"].make_scale(name)
            file["g/t"].dims[axis].attach_scale(file[f"g/{name}"])
    return found


def test_a_file_tells_names(dated: Path) -> None:
    around = Surroundings(dated, "/g/t")
    assert [str(name).rpartition("/")[2] for name in around.dimensions] == ["time", "y", "x"]
    assert Surroundings(dated, "/g/time").dimensions == ()


def test_auto_in_bench_is_what_repack_takes_for_the_same_patterns(dated: Path) -> None:
    target = look(dated, "g/t")
    shape = (120, 100, 110)
    for accesses in (("time=all,y=1,x=1",), ("row", "plane:0"), ()):
        named = {"chunk": ("auto",), "access": accesses}
        space = Space({name: values for name, values in named.items() if values})
        (variant,) = {one.variant for one in spell_out(target, space).planned}
        plan = chunkwise.plan_repack(dated, chunk={"/g/t": "auto"}, access=accesses)
        (step,) = [step for step in plan.steps if step.source.path == "/g/t"]
        assert variant.chunks == step.wanted.chunk
    assert variant.chunks != default_chunk(shape, 4, shape, [(120, 1, 1)])


def test_bench_takes_them(dated: Path) -> None:
    words = ["--access", "series=y=1,x=1", "--reader", "libhdf5,chunkwise", "--repeat", "1"]
    told = run("bench", dated, "/g/t", *words, "--budget", "20s", "--json")
    assert told.code == 0, told.err
    records = json.loads(told.out)["records"]
    reads = {one["access"]: one["total_operations"] for one in records}
    assert reads == {"series": 11_000}
