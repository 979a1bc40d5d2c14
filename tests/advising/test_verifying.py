"""What is measured in the place of a large dataset stands for it, and the conclusion is fair."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise.advice import concluding, goals, patterns, verifying
from chunkwise.advice.answer import Advice
from chunkwise.advice.sampling import Samples
from chunkwise.advice.verifying import Part, Proof, Timing
from chunkwise.measure.target import Target, look
from chunkwise.model import worth
from chunkwise.model.layout import Layout
from chunkwise.model.readers import LIBHDF5_2
from chunkwise.model.search import Problem, Ranking
from chunkwise.model.seconds import Codec, Speed
from chunkwise.patterns import Access
from chunkwise.trials.trial import Measurement
from tests.advising.conftest import MACHINE

SHAPE = (400, 40, 60)
DEFLATE = Codec(
    "shuffle+deflate:4",
    (((), 0.5),),
    {"libhdf5": Speed(1e-5, 4e-9)},
    {"libhdf5": Speed(1e-5, 2e-8)},
)
CODECS = {"shuffle+deflate:4": DEFLATE, "none": Codec("none", (((), 1.0),))}
PRESENT = Layout((1, 40, 60), "shuffle+deflate:4")
OTHER = Layout((50, 20, 20), "shuffle+deflate:4")


@given(
    st.lists(st.integers(1, 3000), min_size=1, max_size=4),
    st.lists(st.floats(0, 1), min_size=4, max_size=4),
    st.sampled_from((1, 4, 8)),
)
def test_a_part_is_small_enough_and_within_the_dataset(
    shape: list[int], shares: list[float], itemsize: int
) -> None:
    extents = tuple(shape)
    block = tuple(max(1, round(n * share)) for n, share in zip(extents, shares, strict=False))
    most = 1 << 16
    part = verifying.part_shape(extents, itemsize, [block], most)
    assert all(1 <= p <= n for p, n in zip(part, extents, strict=True))
    assert math.prod(part) * itemsize <= most
    if math.prod(extents) * itemsize <= most:
        assert part == extents


def test_what_the_patterns_do_not_reach_through_is_cut_first() -> None:
    part = verifying.part_shape((1000, 500, 500), 4, [(1000, 1, 1)], 40 << 20)
    assert part[0] == 1000
    both = verifying.part_shape((1000, 500, 500), 4, [(1000, 1, 1), (1, 500, 500)], 40 << 20)
    # Where all dimensions are reached through, all are cut alike.
    shares = [p / n for p, n in zip(both, (1000, 500, 500), strict=True)]
    assert max(shares) <= 2 * min(shares)


def requested(*texts: str) -> tuple[patterns.Requested, ...]:
    return patterns.read(texts, SHAPE, 4, "here")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("map=1x40x60", Access("map", (1, 20, 60), seed=0, limit=400)),
        ("map=1x40x60@walk", Access("map", (1, 20, 60), order=(0, 1, 2))),
        ("map=1x40x60@f", Access("map", (1, 20, 60), order=(2, 1, 0))),
        ("random:100:5x40x5", Access("random:100:5x40x5", (5, 20, 5), seed=0, limit=100)),
        ("r=random:7", Access("r", (1, 1, 1), seed=0, limit=7)),
        ("w=10x10x10@random:3", Access("w", (10, 10, 10), seed=3)),
        ("i=[::2, 5]", Access("i", (200, 1, 60), seed=0, limit=1)),
        ("c=cells:3:9", Access("c", (200, 20, 60), seed=0, limit=9)),
    ],
)
def test_a_pattern_is_cut_to_the_part(text: str, expected: Access) -> None:
    part = Part("f", "/part", (0, 0, 0), (200, 20, 60), False)
    (one,) = requested(text)
    assert verifying.access_on(part, one) == expected
    whole = Part("f", "/x", (0, 0, 0), SHAPE, True)
    assert verifying.access_on(whole, one) is one.access


@pytest.mark.parametrize(("text", "cache"), [("map=1x40x60", "0"), ("map=1x40x60@walk", None)])
def test_single_reads_by_chunkwise_are_measured_without_its_cache(
    text: str, cache: str | None
) -> None:
    part = Part("f", "/part", (0, 0, 0), (200, 20, 60), False)
    (one,) = requested(text)
    trial = verifying._trial(part, PRESENT, one, cast("Any", None), "chunkwise")
    assert trial.get("engine-cache") == cache


def test_of_many_short_reads_those_count_that_find_the_index_read() -> None:
    trial = cast("Any", None)
    found = Measurement(
        trial, "ok", operations=11, total_operations=32, elapsed_s=1.01, later_s=0.001
    )
    assert verifying._of_one(found) == pytest.approx(0.032)
    assert verifying._of_one(Measurement(trial, "failed")) is None


def test_the_part_holds_the_datasets_own_values(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    values = np.arange(np.prod(SHAPE), dtype=">i4").reshape(SHAPE)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=(30, 20, 20), compression=1)
    target = look(path, "x")
    mix = requested("1x40x60", "400x1x1")
    with verifying.cut(target, mix, 1 << 18, str(tmp_path), lambda _: None) as part:
        assert not part.whole
        assert str(part).startswith("the part [")
        slices = tuple(slice(a, a + n) for a, n in zip(part.start, part.shape, strict=True))
        with h5py.File(part.file) as file:
            assert file["part"].dtype == ">i4"
            assert np.array_equal(file["part"][...], values[slices])
    assert not Path(part.file).exists()
    with verifying.cut(target, mix, 1 << 30, str(tmp_path), lambda _: None) as part:
        assert (part.file, part.whole) == (str(path), True)


def test_a_dataset_less_than_twice_as_large_as_a_part_is_measured_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", SHAPE, "i4", chunks=(30, 20, 20))
    target = look(path, "x")
    for most_nbytes, whole in [(target.nbytes // 2 + 1, True), (target.nbytes // 2, False)]:
        with verifying.cut(
            target, requested("1x40x60"), most_nbytes, str(tmp_path), print
        ) as part:
            assert part.whole is whole


def problem(*texts: str) -> Problem:
    return Problem(
        SHAPE, 4, tuple(one.pattern for one in requested(*texts)), LIBHDF5_2, "libhdf5", MACHINE,
        CODECS, PRESENT,
    )  # fmt: skip


# --- conclusions -----------------------------------------------------------------------------


def conclusion(
    now: tuple[float, float, float],
    then: tuple[float, float, float],
    repeats: tuple[tuple[float, ...], tuple[float, ...]] | None = None,
    **wanted: str,
) -> Advice:
    """Conclude from the seconds of two layouts: median, lowest and highest, or more repeats."""
    repeats = repeats or (now, then)
    timings = {PRESENT: {"map": Timing(*now, repeats=3)}, OTHER: {"map": Timing(*then, repeats=3)}}
    samples = {PRESENT: {"map": repeats[0]}, OTHER: {"map": repeats[1]}}
    return concluded(timings, samples, None, **wanted)


def concluded(
    timings: dict[Layout, dict[str, Timing]],
    samples: Mapping[Layout, Mapping[str, tuple[float, ...]]],
    ours: dict[str, tuple[float, ...]] | None = None,
    **wanted: str,
) -> Advice:
    goal = goals.read(wanted.get("objective", "balanced"), None)
    of = replace(problem("map=1x40x60"), objective=goal.objective)
    target = Target(
        "a.nc", "a.nc", "/t", SHAPE, "<f4", 4, True, PRESENT.chunks, PRESENT.filters,
        of.outcome(PRESENT).nbytes, 521, 1 << 20, 0.75,
    )  # fmt: skip
    known = {layout: dict(repeats) for layout, repeats in samples.items()}
    of = replace(of, most_nbytes=goal.most_nbytes(target.stored_nbytes, stated=True))
    case = concluding.Case(
        target, requested("map=1x40x60"), True, goal, of, Samples(CODECS),
        Ranking((of.outcome(OTHER), of.outcome(PRESENT)), (), 2),
        Proof(Part.all_of(target), timings, known, ours_samples=ours or {}), 1.0,
    )  # fmt: skip
    return concluding.conclude(case)


def test_what_is_clearly_faster_is_advised() -> None:
    advice = conclusion((1.0, 0.9, 1.1), (0.3, 0.28, 0.31))
    assert not advice.leave
    assert advice.best == OTHER
    assert "3.33 times as fast" in advice.reason
    assert [fix.tool for fix in advice.fixes][:3] == ["chunkwise", "nccopy", "h5repack"]
    assert advice.patterns[0].gain == pytest.approx(1 / 0.3)


@pytest.mark.parametrize(
    "then",
    [
        (0.95, 0.9, 1.0),  # too little
        (0.7, 0.6, 1.0),  # within the spread
        (1.4, 1.3, 1.5),  # slower
    ],
)
def test_what_is_not_clearly_faster_is_left(then: tuple[float, float, float]) -> None:
    advice = conclusion((1.0, 0.9, 1.1), then)
    assert advice.leave
    assert advice.best == PRESENT
    assert not advice.fixes
    assert advice.reason.startswith("Leave it")


def test_the_judge_of_bench_decides_what_is_faster() -> None:
    """One disturbed repeat hides nothing, and one lucky repeat proves nothing."""
    now = (1.0, 1.02, 0.99, 1.01, 0.98)
    disturbed = conclusion((1.0, 0.98, 1.02), (0.5, 0.49, 1.2), (now, (0.5, 0.51, 0.49, 0.5, 1.2)))
    assert disturbed.best == OTHER
    scattered = (0.85, 0.6, 1.4, 0.8, 1.1)
    left = conclusion((1.0, 0.98, 1.02), (0.85, 0.6, 1.4), (now, scattered))
    assert left.leave


@pytest.mark.parametrize("then", [0.5, 0.85])
def test_of_too_few_repeats_for_the_judge_the_model_decides(
    monkeypatch: pytest.MonkeyPatch, then: float
) -> None:
    """As it does where nothing is measured."""
    timings = {one: {"map": Timing(s, s, s)} for one, s in ((PRESENT, 1.0), (OTHER, then))}
    samples = {PRESENT: {"map": (1.0,)}, OTHER: {"map": (then,)}}
    for times, leave in ((worth.MODELLED, False), (worth.STATED, True)):
        monkeypatch.setattr(
            concluding.Case,
            "outcome",
            lambda case, one, times=times: replace(
                case.problem.outcome(one), read_s=times if one == PRESENT else 1.0
            ),
        )
        assert concluded(timings, samples).leave is leave


def test_what_chunkwise_gains_is_said_where_the_judge_is_sure() -> None:
    timings = {one: {"map": Timing(1.0, 0.99, 1.01, 3)} for one in (PRESENT, OTHER)}
    samples = {one: {"map": (1.0, 0.99, 1.01)} for one in timings}
    for ours, said in (((0.5, 0.51, 0.49), True), ((0.6, 1.2, 0.7), False), ((0.5,), False)):
        notes = concluded(timings, samples, {"map": ours}).notes
        assert any("2.00 times as fast (measured)" in note for note in notes) is said
        assert any("Without any change to the file" in note for note in notes) is said


def test_one_lucky_run_is_no_proof() -> None:
    lucky = Layout((25, 20, 20), "shuffle+deflate:4")
    timings = {
        PRESENT: {"map": Timing(1.0, 0.9, 1.1, 3)},
        OTHER: {"map": Timing(0.5, 0.45, 0.55, 3)},
        lucky: {"map": Timing(0.1, 0.1, 0.1, 1)},
    }
    samples = {PRESENT: {"map": (1.0, 0.9, 1.1)}, OTHER: {"map": (0.5, 0.45, 0.55)}}
    assert concluded(timings, samples).best == OTHER


def test_the_conclusion_names_the_cache_where_the_file_cannot_be_changed() -> None:
    advice = conclusion((1.0, 0.9, 1.1), (0.3, 0.28, 0.31))
    assert advice.cache is not None
    # Each map is one chunk: no cache is needed.
    assert advice.cache.nbytes is None
    assert "No larger chunk cache helps" in advice.cache.reason
