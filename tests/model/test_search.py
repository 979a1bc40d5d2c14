"""A search loses to nothing that others would choose, and keeps to what was asked for."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
from h5py._hl.filters import guess_chunk
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkwise.model.chunk_shape import are_too_small, divisors
from chunkwise.model.cost import Stored
from chunkwise.model.layout import Layout
from chunkwise.model.readers import CHUNKWISE, LIBHDF5_1, LIBHDF5_2, Reader
from chunkwise.model.references import (
    aligned,
    anywhere,
    fewest_touched,
    h5py_guess,
    netcdf_default,
    references,
    square,
    within,
)
from chunkwise.model.search import (
    DOUBTED,
    MOST_CHUNK_NBYTES,
    MOST_CHUNKS,
    Problem,
    by_size,
    chosen,
    front,
    near,
    search,
)
from chunkwise.model.seconds import Codec, Machine, Rates, Speed
from chunkwise.model.traffic import Pattern, traffic

SLOW_AND_SMALL = Codec(
    "shuffle+deflate:4",
    (((10, 10, 10), 0.3),),
    {"libhdf5": Speed(2e-5, 4e-9)},
    {"libhdf5": Speed(2e-5, 2e-8)},
)
PLAIN = Codec("none")
RATES = Rates(1e-4, 1e-6, 6e-7, 4e-7, 2e-6, 2.5e-7, 4e-9, 2.5e-10, 5e-11, 8e-8)
MACHINE = Machine({"libhdf5": RATES}, {"libhdf5": RATES})
PRESENT = Layout((1, 60, 90), "shuffle+deflate:4")


def problem(
    shape: tuple[int, ...] = (365, 60, 90),
    blocks: tuple[tuple[int, ...], ...] = ((1, 60, 90), (365, 1, 1)),
    **changes: object,
) -> Problem:
    asked = tuple(Pattern(str(i), block) for i, block in enumerate(blocks))
    found = Problem(
        shape=shape,
        itemsize=4,
        patterns=asked,
        reader=LIBHDF5_2,
        reader_name="libhdf5",
        machine=MACHINE,
        codecs={one.filters: one for one in (SLOW_AND_SMALL, PLAIN)},
        present=PRESENT,
    )
    return replace(found, known={}, timed={}, **changes)  # type: ignore[arg-type]


@st.composite
def shapes_and_blocks(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    shape = tuple(draw(st.lists(st.integers(1, 2000), min_size=3, max_size=3)))
    block = st.tuples(*(st.sampled_from((1, max(1, n // 7), n)) for n in shape))
    return shape, tuple(draw(st.lists(block, min_size=1, max_size=3)))


@settings(max_examples=8, deadline=None)
@given(shapes_and_blocks(), st.sampled_from(("read", "size", "write", "balanced")))
@pytest.mark.slow
def test_no_reference_is_better_than_what_is_found(
    case: tuple[tuple[int, ...], tuple[tuple[int, ...], ...]], objective: str
) -> None:
    shape, blocks = case
    present = Layout(tuple(min(7, n) for n in shape), "shuffle+deflate:4")
    asked = problem(shape, blocks, objective=objective, present=present)
    found = search(asked)
    best = asked.score(found.ranked[0].figures)
    looked_at = {one.layout for one in found.ranked}
    assert present in looked_at
    named = dict(references(shape, 4, blocks, [1.0] * len(blocks)))
    for chunks in named.values():
        number = math.prod(-(-n // c) for n, c in zip(shape, chunks, strict=True))
        nbytes = math.prod(chunks) * 4
        if are_too_small(number, nbytes):
            continue
        if nbytes <= MOST_CHUNK_NBYTES and number <= MOST_CHUNKS:
            layout = Layout(chunks, "shuffle+deflate:4")
            assert layout in looked_at
            assert best <= asked.score(asked.outcome(layout).figures)


ENGINE = Reader(CHUNKWISE, CHUNKWISE, 1 << 30, None, None)


@st.composite
def problems(draw: st.DrawFn, extents: tuple[int, ...], ranks: tuple[int, ...]) -> Problem:
    shape = tuple(draw(st.sampled_from(extents)) for _ in range(draw(st.sampled_from(ranks))))
    patterns = []
    for i in range(draw(st.integers(1, 3))):
        block = tuple(draw(st.sampled_from((1, max(1, n // 7), n))) for n in shape)
        number = draw(st.sampled_from((None, None, 20, 500)))
        weight = draw(st.sampled_from((1.0, 3.0)))
        pattern = Pattern(
            str(i), block, scattered=number is not None, operations=number, weight=weight
        )
        patterns.append(pattern)
    return problem(
        shape,
        (),
        patterns=tuple(patterns),
        objective=draw(st.sampled_from(("read", "balanced", "write", "size"))),
        reader=draw(st.sampled_from((LIBHDF5_1, LIBHDF5_2, ENGINE))),
        present=Layout(tuple(max(1, n // 3) for n in shape), "none"),
        codecs={
            "none": PLAIN,
            SLOW_AND_SMALL.filters: replace(SLOW_AND_SMALL, ratios=(((), 0.3),)),
        },
    )


def least(asked: Problem, along: Sequence[Sequence[int]]) -> float:
    """Rate the best of all shapes of some sides."""
    return min(
        asked.score(asked.outcome(Layout(chunks, filters)).figures)
        for chunks in product(*along)
        if math.prod(chunks) * asked.itemsize <= MOST_CHUNK_NBYTES
        for filters in asked.codecs
    )


# A score is a sum of logarithms: 0.02 is two percent.
@settings(max_examples=15, deadline=None)
@given(problems((1, 6, 24, 60, 365), (2, 3)))
@pytest.mark.slow
def test_a_search_finds_what_looking_at_every_shape_finds(asked: Problem) -> None:
    blocks = zip(*(pattern.block for pattern in asked.patterns), strict=True)
    along = [divisors(n, set(sides)) for n, sides in zip(asked.shape, blocks, strict=True)]
    found = asked.score(search(asked).ranked[0].figures)
    assert found <= least(asked, along) + 0.02


@settings(max_examples=10, deadline=None)
@given(problems((1, 7, 13, 25, 32), (1, 2)))
def test_lengths_that_divide_nearly_evenly_are_enough(asked: Problem) -> None:
    found = asked.score(search(asked).ranked[0].figures)
    assert found <= least(asked, [range(1, n + 1) for n in asked.shape]) + 0.02


def test_a_search_leaps_to_what_no_step_leads_to() -> None:
    # Between this shape and those that steps end at, all others are worse.
    asked = problem((1440, 1440, 4000), (), reader=ENGINE, objective="read", patterns=(
        Pattern("0", (1, 144, 1), scattered=True, operations=500),
        Pattern("1", (144, 1, 1)),
        Pattern("2", (1440, 1440, 1)),
    ), codecs={SLOW_AND_SMALL.filters: replace(SLOW_AND_SMALL, ratios=(((), 0.3),))},
    present=Layout((480, 480, 1333), SLOW_AND_SMALL.filters))  # fmt: skip
    best = asked.score(search(asked).ranked[0].figures)
    good = asked.outcome(Layout((144, 360, 1), SLOW_AND_SMALL.filters))
    assert best <= asked.score(good.figures) + 0.02


def test_counts_are_the_same_for_all_filters_that_compress() -> None:
    asked = problem()
    for pattern in asked.patterns:
        some = asked.traffic(Layout((7, 20, 30), "shuffle+deflate:4"), pattern)
        assert asked.traffic(Layout((7, 20, 30), "lzf"), pattern) is some
        bare = asked.traffic(Layout((7, 20, 30), "none"), pattern)
        stored = Stored(asked.shape, (7, 20, 30), 4, filtered=False)
        assert bare == traffic(stored, pattern, asked.reader)


def test_one_shape_serves_maps_and_series_where_each_alone_does_not() -> None:
    found = search(problem(objective="read"))
    best = found.ranked[0].layout.chunks
    assert best is not None
    # Neither a map nor a series.
    assert 1 < best[0] < 366
    assert best != (1, 60, 90)


def test_a_file_that_is_too_large_comes_last() -> None:
    asked = problem(objective="read", most_nbytes=4_000_000)
    assert asked.fits(search(asked).ranked[0])
    free = problem(objective="read")
    assert not asked.fits(search(free).ranked[0])


def test_size_alone_takes_the_filter_that_compresses() -> None:
    found = search(problem(objective="size"))
    assert found.ranked[0].layout.filters == "shuffle+deflate:4"
    assert search(problem(objective="write")).ranked[0].layout.filters == "none"


def test_nothing_on_the_front_is_worse_in_everything_than_another() -> None:
    found = search(problem())
    for one in found.front:
        for other in found.ranked:
            worse = all(a > b for a, b in zip(one.figures, other.figures, strict=True))
            assert not worse
    assert front(found.front) == found.front


def test_what_is_to_be_measured_is_unlike_each_other_and_not_the_present_one() -> None:
    asked = problem()
    few = chosen(search(asked), asked, 6, PRESENT)
    layouts = [one.layout for one in few]
    assert len(set(layouts)) == len(layouts) == 6
    assert PRESENT not in layouts
    assert asked.score(few[0].figures) == min(asked.score(one.figures) for one in few)


def test_chunks_of_each_size_come_before_the_second_best_of_one() -> None:
    asked = problem()
    ranked = search(asked).ranked
    few = by_size(ranked, asked)
    assert sorted(map(str, few)) == sorted(map(str, ranked))
    most = asked.score(ranked[0].figures) + DOUBTED
    hopeful = [one for one in few if asked.score(one.figures) <= most]
    assert few[: len(hopeful)] == hopeful
    sizes = [round(math.log(math.prod(one.layout.chunks or asked.shape) * 4, 4)) for one in few]
    of_hopeful = sizes[: len(hopeful)]
    number = len(set(of_hopeful))
    assert number > 2
    assert len(set(of_hopeful[:number])) == number
    # Of one size, in the order of the model.
    for size in set(of_hopeful):
        same = [one for one, other in zip(hopeful, of_hopeful, strict=True) if other == size]
        assert same == sorted(same, key=ranked.index)


def test_what_is_near_differs_little_and_in_its_shape_alone() -> None:
    asked = problem()
    found = search(asked)
    best = found.ranked[0].layout
    few = near(found, asked, best, 4)
    assert few
    for one in few:
        assert one.layout.filters == best.filters
        assert one.layout != best
        pairs = zip(one.layout.chunks or (), best.chunks or (), strict=True)
        assert sum(abs(math.log2(a / b)) for a, b in pairs) <= 1.6


@pytest.mark.slow
def test_a_smaller_cache_does_not_ask_for_larger_chunks() -> None:
    sizes = []
    for reader in (LIBHDF5_1, LIBHDF5_2):
        asked = problem((3650, 600, 900), ((1, 600, 900), (3650, 1, 1)), reader=reader)
        sizes.append(math.prod(search(asked).ranked[0].layout.chunks or ()))
    assert sizes[0] <= sizes[1]


# --- references ----------------------------------------------------------------------------


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=4), st.sampled_from((1, 2, 4, 8)))
def test_the_guess_is_h5pys_own(shape: list[int], itemsize: int) -> None:
    expected = tuple(map(int, guess_chunk(tuple(shape), None, itemsize)))
    assert h5py_guess(tuple(shape), itemsize) == expected


@given(
    st.lists(st.integers(1, 3000), min_size=1, max_size=4),
    st.lists(st.integers(1, 3000), min_size=4, max_size=4),
)
def test_references_lie_within_the_array(shape: list[int], lengths: list[int]) -> None:
    extents = tuple(shape)
    blocks = [tuple(min(a, n) for a, n in zip(lengths, extents, strict=False))]
    for _, chunks in references(extents, 4, blocks, [1.0]):
        assert len(chunks) == len(extents)
        assert all(1 <= c <= n for c, n in zip(chunks, extents, strict=True))


def test_shapes_from_the_literature_for_reads_of_rows() -> None:
    # A row needs the fewest chunks where chunks are rows.
    shape, rows = (4096, 4096), [(1, 4096)]
    assert fewest_touched(shape, 4, rows, [1.0], aligned) == (64, 4096)
    assert fewest_touched(shape, 4, rows, [1.0], anywhere) == (64, 4096)
    both = [(1, 4096), (4096, 1)]
    assert fewest_touched(shape, 4, both, [1.0, 1.0], aligned) == (512, 512)
    assert fewest_touched(shape, 4, both, [100.0, 1.0], aligned) != (512, 512)


def test_a_square_uses_what_a_short_dimension_leaves() -> None:
    assert square((10000, 10000), 4) == (512, 512)
    assert square((4, 100000), 4) == (4, 65536)
    assert within((365, 600, 900), 4, (1, 600, 900)) == (1, 600, 900)


def test_an_unlimited_dimension_gets_chunks_of_1_from_netcdf() -> None:
    assert netcdf_default((100, 50, 60), 4, (None, 50, 60)) == (1, 50, 60)
    assert math.prod(netcdf_default((5000, 5000), 4)) * 4 <= 4 << 20
