"""Does each rule give the word that the figures deserve?"""

import statistics
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise_lab.studies.claims import judge
from chunkwise_lab.studies.comparing import samples
from chunkwise_lab.studies.figures import FIGURES
from chunkwise_lab.studies.results import Row
from chunkwise_lab.studies.rules import ClaimVerdict
from chunkwise_lab.studies.study import Claim
from chunkwise_lab.studies.wording import quantity, times
from tests.support.golden import assert_golden
from tests.support.studies import claim, row

SLOW, FAST = {"cache": "1MiB"}, {"cache": "3MiB"}


def ratio(slow: Row, fast: Row, **settings: Any) -> ClaimVerdict:
    return judge(claim("ratio", slow=SLOW, fast=FAST, **settings), [slow, fast], "median")


def caches(slow: tuple[float, ...], fast: tuple[float, ...]) -> tuple[Row, Row]:
    return row(*slow, cache="1MiB"), row(*fast, cache="3MiB")


PUBLISHED = (
    ("total_s", "345 s against 0.37 s"),
    ("total_s", "no figures"),
    ("file_nbytes", "62.42 against 40.05 MB"),
    ("file_nbytes", "80 GB in around 40 GB"),
    ("file_nbytes", "50 against 30 MB/s"),
)


def test_sentences() -> None:
    """Of what holds and what does not, with figures of papers, estimates, and other words."""
    slow, fast = caches((345, 346, 344), (0.37, 0.38, 0.36))
    estimated = Row(slow.point, tuple({**one, "extrapolated": True} for one in slow.records))
    others = {"slow": {"libhdf5": "@others"}, "fast": {"libhdf5": "default"}}
    builds = [
        row(1.0, 1.0, 1.0, libhdf5="default"),
        row(3.0, 3.0, 3.0, libhdf5="/usr/lib/libhdf5.so", hdf5="1.10.8"),
    ]
    loads = [
        row(1.0, extra={"time_chunk_loads": loads}, cache=cache)
        for loads, cache in ((16200, "1MiB"), (0, "3MiB"))
    ]
    sizes = [
        row(1.0, extra={"file_nbytes": nbytes}, chunk=chunk)
        for nbytes, chunk in ((2000, "790"), (1000, "791"))
    ]
    sides = {"slow": {"chunk": "790"}, "fast": {"chunk": "791"}}
    units = [
        row(seconds, extra={"file_nbytes": nbytes}, cache=cache)
        for seconds, nbytes, cache in ((203.4, 62_420_000, "1MiB"), (0.17, 40_050_000, "3MiB"))
    ]
    against = claim("best", axis="cache", value="3MiB", against="1MiB", least=1.25)
    repeated = caches((2.0, 2.1, 2.0, 2.0), (1.0, 1.0, 1.0, 1.1))
    told = (
        ratio(slow, fast, published="345 s against 0.37 s"),
        ratio(estimated, fast, words=("a small cache", "a large one")),
        ratio(*caches((0.5, 0.5, 0.5), (1.0, 1.0, 1.0))),
        judge(claim("ratio", **others), builds, "median"),
        judge(claim("ratio", "chunk_loads", slow=SLOW, fast=FAST), loads, "median"),
        judge(claim("ratio", "file_nbytes", least=2.01, **sides), sizes, "mean"),
        judge(flat(), along(1, 3, 1), "median"),
        judge(claim("trend", axis="sieve", rises=True), along(1, 3, 2), "median"),
        judge(claim("best", axis="sieve", value="2KiB"), along(2, 1, 1.5), "median"),
        judge(claim("best", axis="sieve", value="4KiB"), along(2, 1, 1.5), "median"),
        # How many repeats would tell, where it is certain and where it is not.
        ratio(*caches((2.1, 2.15, 2.05), (1.0, 1.01, 0.99))),
        ratio(*caches((1.5, 1.1, 3.5), (1.0, 1.01, 0.99))),
        judge(against, list(repeated), "median"),
        # In the unit of what was published.
        *(
            judge(claim("ratio", figure, slow=SLOW, fast=FAST, published=text), units, "median")
            for figure, text in PUBLISHED
        ),
    )
    assert_golden("study-verdicts", *(f"{one.word}: {one.sentence}" for one in told))


def test_pairs_that_differ_elsewhere_are_averaged_and_their_range_is_said() -> None:
    rows = [
        row(s, s, s, cache=cache, filter=pipeline)
        for s, cache, pipeline in (
            (8.0, "1MiB", "stored"),
            (1.0, "3MiB", "stored"),
            (2.0, "1MiB", "none"),
            (1.0, "3MiB", "none"),
        )
    ]
    told = judge(claim("ratio", slow=SLOW, fast=FAST), rows, "median")
    assert told.word == "holds"
    assert [word for word in ("4.00", "2.00", "8.00") if word not in told.sentence] == []


def along(*levels: float, axis: str = "sieve", **point: str) -> list[Row]:
    return [
        row(level, level * 1.01, level * 0.99, **{axis: f"{2**i}KiB"}, **point)
        for i, level in enumerate(levels)
    ]


def flat(standard: str = "1KiB", **settings: Any) -> Claim:
    return claim("flat", axis="sieve", standard=standard, **settings)


def nearly(nbytes: int) -> list[Row]:
    return [
        row(1.0, extra={"file_nbytes": n}, cache=c) for n, c in ((nbytes, "1MiB"), (1000, "3MiB"))
    ]


def best(value: str | tuple[str, ...], **settings: Any) -> Claim:
    return claim("best", axis="sieve", value=value, **settings)


RATIO = claim("ratio", slow=SLOW, fast=FAST)
SAME = claim("same", one=SLOW, other=FAST)
ALIKE = claim("same", "file_nbytes", one=SLOW, other=FAST, most=1.05)
RISES, FALLS = (claim("trend", axis="sieve", rises=rises) for rises in (True, False))
GAINS = best("2KiB", against="1KiB", least=2.0)
ONE = (1.0, 1.01, 0.99)
# As in a saved run: writes at 539, 5,482 and 568 MB/s against some at about 1,727.
LED, AT_1727 = (1 / 539, 1 / 5482, 1 / 568), (1 / 1727, 1 / 1730, 1 / 1690)
SIZES = [
    row(1.0, extra={"file_nbytes": nbytes}, chunk=chunk)
    for nbytes, chunk in ((2000, "790"), (1000, "791"))
]
RATES = [
    row(1.0, 1.0, 1.0, extra={"selected_nbytes": n, "elapsed_s": 1.0}, reader=reader)
    for n, reader in ((8_000_000, "chunkwise"), (2_000_000, "libhdf5"))
]
# In one of two pairs the other side is faster.
CONTRADICTING = [
    row(seconds, seconds, seconds, size=size, cache=cache)
    for size, slow in (("large", 4.0), ("small", 0.25))
    for cache, seconds in (("1MiB", slow), ("3MiB", 1.0))
]
NONE = [row(1.0, extra={"time_chunk_loads": 0}, cache=f"{n}MiB") for n in range(1, 4)]

BY_LIBHDF5 = along(1, 1.02, reader="libhdf5")
OTHER_SERIES = [row(9.0, 9.0, 9.0, sieve=f"{n}MiB", reader="chunkwise") for n in (1, 2)]


OFTEN = claim("often", slow=SLOW, fast=FAST, least=2)


def ratio_of(least: float) -> Claim:
    return claim("ratio", slow=SLOW, fast=FAST, least=least)


def sized(least: float) -> Claim:
    sides = {"slow": {"chunk": "790"}, "fast": {"chunk": "791"}}
    return claim("ratio", "file_nbytes", least=least, **sides)


@pytest.mark.parametrize(
    ("of", "rows", "word"),
    [
        (RATIO, caches((345, 346, 344), ONE), "holds"),
        (RATIO, caches((1.5, 1.51, 1.49), ONE), "weaker"),
        (RATIO, caches((1.1, 1.11, 1.09), ONE), "no longer holds"),
        (RATIO, caches((0.7, 0.71, 0.69), ONE), "reversed"),
        (RATIO, caches((2.02, 2.01, 2.0), ONE), "cannot tell"),
        # Weaker or gone: that is open, too.
        (RATIO, caches((1.25, 1.3, 1.2), ONE), "cannot tell"),
        # Fastest repeats that lead the other way decide nothing.
        (ratio_of(2.0), caches(AT_1727, LED), "cannot tell"),
        (ratio_of(2.0), caches(LED, AT_1727), "cannot tell"),
        (ratio_of(2.0), caches(LED[::2] * 2, AT_1727), "holds"),
        # A count of pairs needs as many.
        (OFTEN, caches((4.0, 4.01, 3.99), ONE), "cannot tell"),
        # Pairs that contradict each other have no mean.
        (RATIO, CONTRADICTING, "no longer holds"),
        (SAME, CONTRADICTING, "no longer holds"),
        # Sizes have no noise.
        (sized(2.0), SIZES, "holds"),
        (sized(2.01), SIZES, "weaker"),
        # Rates are the larger the better.
        (
            claim("ratio", "rate", slow={"reader": "chunkwise"}, fast={"reader": "libhdf5"}),
            RATES,
            "holds",
        ),
        (claim("best", "rate", axis="reader", value="libhdf5"), RATES, "reversed"),
        # Counts of nothing are flat and have no trend.
        (claim("flat", "chunk_loads", axis="cache", standard="2MiB"), NONE, "holds"),
        (claim("trend", "chunk_loads", axis="cache", rises=True), NONE, "no longer holds"),
        # An axis that was varied alone, and series of other values, are not mixed with others.
        (flat(), [*BY_LIBHDF5, *along(9, reader="chunkwise")], "holds"),
        (flat(), [*BY_LIBHDF5, *OTHER_SERIES], "holds"),
        # One repeat tells the coarse and nothing else.
        (RATIO, caches((345,), ONE), "holds"),
        (RATIO, caches((2.5,), ONE), "cannot tell"),
        (SAME, caches((1.05, 1.04, 1.06), ONE), "holds"),
        (SAME, caches((0.95, 0.94, 0.96), ONE), "holds"),
        (SAME, caches((1.5, 1.49, 1.51), ONE), "no longer holds"),
        (SAME, caches((0.5, 0.49, 0.51), ONE), "no longer holds"),
        (SAME, caches((1.22, 1.2, 1.24), ONE), "cannot tell"),
        (SAME, caches((1.0, 3.0, 0.5), ONE), "cannot tell"),
        # Nearly the same is weaker.
        (ALIKE, nearly(1040), "holds"),
        (ALIKE, nearly(1080), "weaker"),
        (ALIKE, nearly(1110), "no longer holds"),
        (flat(), along(1, 1.05, 1.02), "holds"),
        (flat(), along(1, 3, 1), "no longer holds"),
        (flat(), along(1, 1.22, 1), "cannot tell"),
        (flat(most=1.12), along(1, 1.249, 1), "cannot tell"),
        (flat(most=1.12), along(1, 1.35, 1), "no longer holds"),
        (flat(), along(1), "not measured"),
        (flat("9KiB"), along(1, 1), "not measured"),
        # The standard value counts, and not the extremes: 0.9 and 1.1 are 1.22 times apart.
        (flat("2KiB"), along(0.9, 1, 1.1), "holds"),
        (flat("1KiB"), along(0.9, 1, 1.1), "cannot tell"),
        (RISES, along(1, 1.5, 2), "holds"),
        (FALLS, along(1, 1.5, 2), "reversed"),
        (RISES, along(1, 1.0, 1.0), "no longer holds"),
        (RISES, along(1, 1.0, 1.08), "cannot tell"),
        # In the order of the numbers, in whatever order they were measured.
        (RISES, along(1, 1.5, 2)[::-1], "holds"),
        (best("1KiB"), along(2, 1, 1.5), "reversed"),
        (best("2KiB"), along(2, 1, 1.5), "holds"),
        (best("4KiB"), along(2, 1, 1.5), "no longer holds"),
        (best(("1KiB", "2KiB")), along(2, 1, 1.5), "holds"),
        (best("8KiB"), along(2, 1, 1.5), "not measured"),
        # The worst, but hardly worse than all others.
        (best("1KiB"), along(1.21, 1), "no longer holds"),
        (best("1KiB"), along(1.15, 1), "cannot tell"),
        # Of equals none is the best.
        (GAINS, along(3.0, 1, 1.05), "holds"),
        (GAINS, along(1.5, 1, 1.05), "weaker"),
        (GAINS, along(1.02, 1, 1.05), "no longer holds"),
        (GAINS, along(2.0, 1, 1.05), "cannot tell"),
    ],
)
def test_the_word_that_figures_deserve(of: Claim, rows: Sequence[Row], word: str) -> None:
    assert judge(of, rows, "median").word == word


def test_the_more_values_the_farther_one_must_be_to_decide() -> None:
    # Of many values the farthest is far by chance: the same figure decides where it is alone.
    words = [judge(flat(), along(1, *[1] * n, 1.37), "median").word for n in (0, 40)]
    assert words == ["no longer holds", "cannot tell"]


@given(st.lists(st.floats(0.5, 2), min_size=1, max_size=5), st.floats(1.01, 2))
def test_flat_holds_only_where_every_value_is_near_the_standard(
    levels: list[float], most: float
) -> None:
    if judge(flat(most=most), along(1, *levels), "median").word == "holds":
        assert all(1 / most <= level <= most for level in levels)


def test_repeats_are_summed_up_before_rows_are() -> None:
    # Of each row the best and the worst are dropped, whichever repeats they are.
    rows = [
        row(1.0, 2.0, 9.0, variable="t", reader="libhdf5"),
        row(9.0, 2.0, 1.0, variable="u", reader="libhdf5"),
    ]
    (sample,) = samples(rows, "total_s", "trimmed-mean", "variable", "sum")
    assert (sample.middle, sample.values) == (4.0, (10.0, 4.0, 10.0))


def test_rows_are_summed_up_over_a_label_and_half_a_sum_is_none() -> None:
    rows = [
        row(s, s, s, variable=variable, reader=reader)
        for variable, reader, s in (
            ("t", "libhdf5", 4.0),
            ("u", "libhdf5", 2.0),
            ("t", "chunkwise", 1.0),
            ("u", "chunkwise", 1.0),
        )
    ]
    sides = {"slow": {"reader": "libhdf5"}, "fast": {"reader": "chunkwise"}}
    summed = claim("ratio", over="variable", total="sum", **sides)
    assert judge(summed, rows, "mean").sentence.startswith("6.00 s with libhdf5 against 2.00 s")
    rows[3] = row(variable="u", reader="chunkwise")
    told = judge(summed, rows, "mean")
    assert told.word == "not measured"
    assert "the worker was ended by SIGKILL" in told.sentence
    # Nor is half a mean one, where the other half was never tried.
    halves = claim("ratio", over="variable", **sides)
    assert judge(halves, rows[:3], "mean").word == "not measured"


def test_what_stands_in_several_pairs_is_no_less_noisy_for_it() -> None:
    slow = row(2.1, 2.2, 2.3, cache="1MiB", sieve="1KiB")
    fast = [row(0.9, 1.0, 1.1, cache="3MiB", sieve=f"{n}KiB") for n in range(1, 9)]
    sides = {
        "slow": {**SLOW, "sieve": "1KiB"},
        "fast": FAST | {"sieve": tuple(f"{n}KiB" for n in range(1, 9))},
    }
    one = judge(claim("ratio", **sides), [slow, fast[0]], "median")
    assert (
        one.word == judge(claim("ratio", **sides), [slow, *fast], "median").word == "cannot tell"
    )


def test_what_is_estimated_is_synced_in_proportion() -> None:
    done = {"create_s": 1.0, "flush_s": 2.0, "close_s": 2.0, "sync_s": 3.0}
    whole = {**done, "written_s": 10.0, "put_off_s": 4.0, "operations": 5, "total_operations": 5}
    half = {**whole, "put_off_s": 8.0, "operations": 5, "total_operations": 10}
    figures = FIGURES["synced_s"], FIGURES["calls_synced_s"]
    assert [one.of(whole) for one in figures] == [18.0, 15.0]
    assert [one.of(half) for one in figures] == [25.0, 20.0]
    assert [one.of({"total_s": 1.0}) for one in figures] == [None, None]


@pytest.mark.parametrize("figure", FIGURES)
def test_every_figure_can_be_said(figure: str) -> None:
    unit = FIGURES[figure].unit
    assert times(2.0, figure).startswith("2.00 times as ")
    assert quantity(3.0, unit)


SECONDS = st.lists(st.floats(1e-6, 1e5), min_size=1, max_size=6).map(tuple)


@given(SECONDS, SECONDS, st.floats(1.01, 100))
def test_a_claim_holds_only_where_its_ratio_is_reached(
    slow: tuple[float, ...], fast: tuple[float, ...], least: float
) -> None:
    told = ratio(*caches(slow, fast), least=least)
    quotient = statistics.median(slow) / statistics.median(fast)
    if told.word == "holds":
        assert quotient >= least
    elif told.word == "reversed":
        assert quotient <= 1 / 1.25
    else:
        assert told.word == "cannot tell" or quotient < least
    if told.word == "weaker":
        assert quotient > 1
    assert told.sentence[-1] == "."
    assert told.sentence[0] in "123456789"


@given(SECONDS, SECONDS)
def test_which_side_is_named_first_makes_no_difference_to_the_same(
    one: tuple[float, ...], other: tuple[float, ...]
) -> None:
    rows = list(caches(one, other))
    words = {
        judge(claim("same", one=a, other=b), rows, "median").word
        for a, b in ((SLOW, FAST), (FAST, SLOW))
    }
    assert len(words) == 1


def test_what_a_bounded_write_leaves_is_no_size_of_a_file() -> None:
    written = {"status": "ok", "file_nbytes": 50, "shape": (10,), "itemsize": 10}
    sizes = [FIGURES[name].of(written) for name in ("file_nbytes", "ratio")]
    assert sizes == [50.0, 2.0]
    bounded = {**written, "extrapolated": True}
    assert [FIGURES[name].of(bounded) for name in ("file_nbytes", "ratio")] == [None, None]
    read = {"status": "ok", "extrapolated": True, "stored_nbytes": 25, "shape": (10,)}
    assert FIGURES["ratio"].of({**read, "itemsize": 10}) == 4.0


def test_an_effect_that_the_fastest_repeats_do_not_show_is_not_told() -> None:
    """Ranks that wait for each other take 11 ms, or ten times as long."""
    alone = (16.6, 11.8, 11.8, 11.9, 11.6, 16.2, 16.1, 11.1, 16.9)
    together = (31.8, 15.2, 52.6, 58.2, 11.2, 86.0, 100.9, 11.4, 110.4)
    for slow, fast in ((alone, together), (together, alone)):
        told = ratio(*caches(slow, fast), least=1.25)
        assert told.word == "cannot tell"
        assert "4.42 times as long" in told.sentence
    # Twice as slow even at its best.
    slower = tuple(2 * one for one in alone)
    assert ratio(*caches(alone, slower), least=1.25).word == "reversed"


def test_one_row_is_ranked_among_all() -> None:
    rows = [
        row(*(seconds + noise / 100 for noise in range(4)), layout=layout, io=io)
        for layout, io, seconds in (("a", "x", 1.0), ("b", "x", 2.0), ("a", "y", 3.0))
    ]

    def told(layout: str, io: str) -> Any:
        return judge(claim("first", one={"layout": layout, "io": io}), rows, "median")

    assert told("a", "x").word == "holds"
    worst = told("a", "y")
    assert worst.word == "no longer holds"
    assert worst.sentence.startswith("Number 3 of 3: 3.01 s with io y against 1.02 s with io x")
    assert told("c", "x").word == "not measured"
