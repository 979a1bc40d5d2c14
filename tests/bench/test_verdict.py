"""Does a verdict say what the times say, no more, and the same twice?"""

import importlib
import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chunkwise.errors import UsageError
from chunkwise.measure.saved import Sample
from chunkwise.measure.verdict import FACTOR_OF_FEW, FEWEST, THRESHOLD, Verdict, verdict
from chunkwise.trials.trial import Measurement, Trial

times = st.floats(1e-6, 1e5)
samples = st.lists(times, min_size=1, max_size=10)
enough = st.lists(times, min_size=FEWEST, max_size=10)
near = st.lists(st.floats(0.98, 1.02), min_size=FEWEST, max_size=10)
OPPOSITE = {"slower": "faster", "faster": "slower", "same": "same", "cannot tell": "cannot tell"}


def scaled(sample: list[float], factor: float) -> list[float]:
    return [time * factor for time in sample]


def is_on_the_edge(found: Verdict) -> bool:
    """Whether rounding could decide."""
    edges = [x for x in (found.low, found.high, found.ratio) if x is not None]
    limits = [THRESHOLD, 1 / THRESHOLD, FACTOR_OF_FEW, 1 / FACTOR_OF_FEW]
    return any(math.isclose(edge, limit, rel_tol=1e-9) for edge in edges for limit in limits)


@given(samples, samples)
def test_swapping_the_sides_swaps_slower_and_faster(base: list[float], other: list[float]) -> None:
    one, two = verdict(base, other), verdict(other, base)
    assert two.word == OPPOSITE[one.word]
    assert two.ratio == pytest.approx(1 / one.ratio)
    assert two.repeats == one.repeats
    if one.low is not None and one.high is not None:
        assert two.low == pytest.approx(1 / one.high)
        assert two.high == pytest.approx(1 / one.low)


@given(samples, samples, st.floats(1e-3, 1e3))
def test_the_unit_does_not_matter(base: list[float], other: list[float], factor: float) -> None:
    one = verdict(base, other)
    best = min(other) / min(base)
    assume(not is_on_the_edge(one))
    assume(not math.isclose(abs(math.log(best)), math.log(THRESHOLD), rel_tol=1e-9))
    assume(not math.isclose(abs(math.log(best)), math.log(FACTOR_OF_FEW), rel_tol=1e-9))
    two = verdict(scaled(base, factor), scaled(other, factor))
    assert two.word == one.word
    assert two.ratio == pytest.approx(one.ratio)


@given(samples)
def test_a_run_is_the_same_as_itself(sample: list[float]) -> None:
    assert verdict(sample, sample[::-1]).word == "same"


@given(near, near)
def test_close_times_are_the_same(base: list[float], other: list[float]) -> None:
    assert verdict(base, other).word == "same"


@given(near, near)
def test_ten_times_is_found(base: list[float], other: list[float]) -> None:
    found = verdict(base, scaled(other, 10))
    assert found.word == "slower"
    assert found.low is not None
    assert found.low < found.ratio
    assert found.low > 5


@given(enough, enough)
def test_the_interval_decides(base: list[float], other: list[float]) -> None:
    found = verdict(base, other)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.ratio <= found.high
    if found.word == "slower":
        assert found.low > THRESHOLD
    elif found.word == "faster":
        assert found.high < 1 / THRESHOLD
    elif found.word == "same":
        assert 1 / THRESHOLD < found.low <= found.high < THRESHOLD
    assert found.repeats is None or found.word == "cannot tell"


@given(enough, st.floats(1.01, 100))
def test_a_higher_threshold_finds_no_more(sample: list[float], factor: float) -> None:
    other = scaled(sample, factor)
    if verdict(sample, other, 1.5).word == "slower":
        assert verdict(sample, other, 1.1).word == "slower"


@given(samples, samples, st.floats(0.1, 10))
def test_what_a_ratio_reaches(base: list[float], other: list[float], least: float) -> None:
    found = verdict(base, other)
    assume(not is_on_the_edge(found))
    told = found.reaches(least)
    assert told is None or told == (found.ratio >= least)
    if found.word == "slower":
        assert found.reaches(THRESHOLD if len(base) >= FEWEST <= len(other) else 1.0)
    if found.word == "faster":
        assert found.reaches(1.0) is False


@pytest.mark.parametrize(
    ("base", "other", "word"),
    [
        ([1.0], [2.9], "cannot tell"),
        ([1.0], [3.1], "slower"),
        ([3.1, 3.2], [1.0], "faster"),
        ([1.0, 1.0], [1.0], "cannot tell"),
        ([1.0, 1.01, 1.02], [1.5, 1.51, 1.53], "slower"),
        ([1.0, 1.01, 1.02], [1.01, 1.02, 4.0], "same"),  # one outlier counts for little
        ([1.0, 1.01, 1.02], [1.0, 3.0, 3.01], "cannot tell"),  # at its best it is no slower
        ([1.0, 1.5, 2.1], [1.6, 2.2, 2.9], "cannot tell"),
    ],
)
def test_some_verdicts(base: list[float], other: list[float], word: str) -> None:
    assert verdict(base, other).word == word


def test_so_many_repeats_would_decide() -> None:
    base, other = [1.0, 1.1, 1.3], [1.5, 1.7, 2.1]
    found = verdict(base, other)
    assert found.word == "cannot tell"
    assert found.repeats is not None
    assert verdict([1.0], [2.0]).repeats == FEWEST
    repeated = verdict(base * found.repeats, other * found.repeats)
    assert repeated.repeats is None
    # At the threshold itself no number of repeats decides.
    assert verdict(base, scaled(base, THRESHOLD)).repeats is None


@pytest.mark.parametrize(
    ("base", "other"), [([], [1.0]), ([1.0], []), ([0.0], [1.0]), ([1.0], [math.nan])]
)
def test_no_times_no_verdict(base: list[float], other: list[float]) -> None:
    with pytest.raises(UsageError, match="above 0 seconds"):
        verdict(base, other)


@pytest.mark.parametrize("threshold", [1.0, 0.5, -1.0, math.inf, math.nan])
def test_a_threshold_is_above_1(threshold: float) -> None:
    with pytest.raises(UsageError, match="give a ratio above 1"):
        verdict([1.0], [1.0], threshold)


def test_errors_are_as_rare_as_documented() -> None:
    errors: Any = importlib.import_module("verdict_errors")
    for noise in errors.NOISES:
        for repeats in errors.REPEATS:
            wrong, *_, found_twice, contradicted = errors.figures(
                errors.by_compare, noise, repeats, 60
            )
            assert wrong <= 0.06, (noise, repeats)
            assert contradicted <= 0.02, (noise, repeats)
            assert found_twice >= 0.4, (noise, repeats)


@pytest.mark.parametrize(
    ("page_cache", "operation", "cpu_s", "share"),
    [("warm", "read", 1.0, 0.5), ("warm", "read", 3.0, 1.0), ("warm", "read", None, 1.0),
     ("cold", "read", 1.0, 1.0), ("warm", "write", 1.0, 1.0)],
)  # fmt: skip
def test_reads_from_memory_are_judged_without_waits(
    page_cache: Any, operation: Any, cpu_s: float | None, share: float
) -> None:
    trial = Trial("f", "d", "x", (1,), "h5py", page_cache=page_cache, operation=operation)
    found = Measurement(trial, "ok", total_s=8.0, elapsed_s=2.0, cpu_s=cpu_s)
    assert found.judged_share == share
    # What is read back of a saved run is judged alike.
    total_cpu_s = None if cpu_s is None else 8.0 * cpu_s / 2.0
    saved = Sample({"operation": operation}, "all", [8.0], [total_cpu_s], page_cache=page_cache)
    assert saved.worked_s == [8.0 * share]
