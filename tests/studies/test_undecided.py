"""Is what decides the undecided claims measured more often, and nothing else?"""

import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chunkwise.measure.libraries import LibHDF5
from chunkwise.trials.trial import Measurement, Trial
from chunkwise_lab.studies.claims import judge, judge_all, undecided
from chunkwise_lab.studies.context import Context
from chunkwise_lab.studies.load import load
from chunkwise_lab.studies.probes import PROBES
from chunkwise_lab.studies.results import Outcome, StudyResults
from chunkwise_lab.studies.run import Options, run
from chunkwise_lab.studies.study import Study
from tests.support.studies import claim, row, write_study

SMALL = 1024
# Of the small cache, against 1 s with the large one: twice at the least is claimed.
SCATTERED = (3.4, 2.05, 2.5, 2.6)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return load(str(write_study(tmp_path / "tiny")))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, int | None]]:
    """Have trials measured by nobody; count them by reader and cache."""
    counts: Counter[tuple[str, int | None]] = Counter()
    slow = itertools.chain(SCATTERED, itertools.repeat(2.6))

    def measure(trial: Trial, *_: Any) -> Measurement:
        if trial.timeout_s == 5.0:
            # The trial before the first of a run, which is kept by nobody.
            return Measurement(trial, "ok", total_s=1.0, elapsed_s=1.0)
        counts[trial.reader, trial.cache_nbytes] += 1
        is_slow = trial.cache_nbytes == SMALL and trial.access == "row"
        seconds = next(slow) if is_slow else 1.0
        return Measurement(trial, "ok", total_s=seconds, elapsed_s=seconds)

    def find(asked: str | None, _: str) -> LibHDF5:
        return LibHDF5(asked, "2.0.0", (), {})

    monkeypatch.setattr("chunkwise_lab.studies.libraries._installed", dict)
    monkeypatch.setattr(sys.modules["chunkwise.measure.run"], "find_library", find)
    monkeypatch.setattr("chunkwise_lab.studies.libraries.find_one", find)
    monkeypatch.setattr("chunkwise.measure.schedule.measure_in_worker", measure)
    return counts


@pytest.fixture
def running(study: Study, tmp_path: Path) -> Callable[..., StudyResults]:
    def again(**given: Any) -> StudyResults:
        return run(study, Options("quick", tmp_path / "out", repeat=3, resume=True, **given))

    return again


def often(results: StudyResults, experiment: str) -> list[int]:
    return [len(row.records) for row in results.outcomes[experiment].rows()]


def test_what_decides_a_claim_is_measured_until_it_can_be_told(
    study: Study, made: Counter[Any], running: Callable[..., StudyResults]
) -> None:
    first = running()
    (judged,) = judge_all(study, first)
    assert judged.verdict.word == "cannot tell"
    needed = judged.verdict.repeats
    assert needed is not None
    assert needed > 3
    assert f"about {needed} repeats would tell" in judged.verdict.sentence
    # No more often than is allowed.
    assert often(running(undecided=3), "rows") == [3, 3]
    before = made.total()
    results = running(undecided=40)
    (judged,) = judge_all(study, results)
    assert (judged.verdict.word, judged.verdict.repeats) == ("holds", None)
    repeats = often(results, "rows")
    assert repeats[0] == repeats[1] >= needed
    assert often(results, "chunks") == [3, 3, 3]
    assert made.total() - before == sum(repeats) - 6
    assert results.complete
    # Nothing is lost by a run that asks for fewer, nor measured where nothing is undecided.
    before = made.total()
    for kept in (running(), running(undecided=40)):
        assert often(kept, "rows") == repeats
        assert kept.repeat == 3
    assert made.total() == before


def test_experiments_that_are_not_asked_for_stay(
    made: Counter[Any], running: Callable[..., StudyResults]
) -> None:
    running()
    before = made.total()
    running(undecided=40, only=("chunks",))
    assert made.total() == before


def test_what_decides_is_of_all_pairs_and_of_all_that_is_summed_up(study: Study) -> None:
    slow = (9.0, 2.0, 5.0)
    rows = [
        row(*(slow if cache == "1KiB" else (1.0, 1.5, 2.0)), cache=cache, size=size, step=step)
        for cache, size, step in itertools.product(("1KiB", "1MiB"), "ab", "12")
    ]
    sides = {"slow": {"cache": "1KiB"}, "fast": {"cache": "1MiB"}, "least": 2.5}
    verdict = judge(claim("ratio", over="step", **sides), rows, "median")
    assert verdict.word == "cannot tell"
    assert [dict(point) for point in verdict.decisive] == [
        {"cache": cache, "size": size} for size in "ab" for cache in ("1KiB", "1MiB")
    ]
    experiment = study.experiments[0]
    summed = claim("ratio", over="step", where={"size": "a"}, **sides)
    changed = Study(
        **{
            **vars(study),
            "experiments": (type(experiment)(**{**vars(experiment), "claims": (summed,)}),),
        }
    )
    records = [{**record, "point": one.point} for one in rows for record in one.records]
    results = StudyResults("tiny", "quick", 3, "", outcomes={"rows": Outcome(records)})
    (found,) = undecided(changed, results, 10_000, ["rows"])
    assert {tuple(sorted(point)) for point in found.points} == {
        tuple(sorted(one.point.items())) for one in rows if one.point["size"] == "a"
    }
    # An estimate by three repeats keeps none from being made; enough were made of three.
    assert [one.repeat for one in undecided(changed, results, 7, ["rows"])] == [7]
    assert not list(undecided(changed, results, 3, ["rows"]))
    assert not list(undecided(changed, results, 10_000, ["chunks"]))


PROBED = """
[[experiment]]
id = "probed"
title = "Probed"
source = "Table 1"
question = "?"
found = "-"
[[experiment.run]]
probe = "fake"
[[experiment.run]]
probe = "fake"
repeat = 1
labels = {counted = "yes"}
[[experiment.claim]]
id = "slow"
says = "Slow"
rule = "ratio"
figure = "total_s"
slow = {side = "slow"}
fast = {side = "fast"}
where = {counted = "no"}
"""


def test_a_probe_measures_what_is_open_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, bool]] = []

    def probe(context: Context) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
        is_counted = context.repeat == 1
        asked.append((context.repeat, is_counted))
        for side, seconds in (("slow", 2.5), ("fast", 1.0), ("other", 9.0)):
            point = {"side": side} | ({} if is_counted else {"counted": "no"})
            if context.wants(point):
                values = [seconds * (1 + number % 3 / 4) for number in range(context.repeat)]
                yield point, [{"status": "ok", "total_s": value} for value in values]

    monkeypatch.setitem(PROBES, "fake", probe)
    monkeypatch.setattr("chunkwise_lab.studies.libraries._installed", dict)
    study = load(str(write_study(tmp_path / "probed", PROBED)))
    results = run(study, Options("quick", tmp_path / "out", repeat=3))
    (judged,) = judge_all(study, results)
    assert judged.verdict.word == "cannot tell"
    needed = judged.verdict.repeats
    assert needed is not None
    given = Options("quick", tmp_path / "out", repeat=3, resume=True, undecided=40)
    rows = {
        (row.point["side"], row.point["counted"]): len(row.records)
        for row in run(study, given).outcomes["probed"].rows()
    }
    assert rows["slow", "no"] == rows["fast", "no"] >= needed
    assert rows["other", "no"] == 3
    # What is counted needs no repeats.
    assert rows["slow", "yes"] == 1
    assert all(repeat == 1 for repeat, is_counted in asked if is_counted)


@pytest.mark.parametrize(("slow", "wanted"), [((2.1, 2.15, 2.2), [7]), ((4.0, 4.1, 4.2), [])])
def test_what_few_repeats_tell_only_just_is_measured_more_often(
    study: Study, slow: tuple[float, ...], wanted: list[int]
) -> None:
    points = {"1KiB": slow, "1MiB": (1.0, 1.01, 0.99)}
    rows = [row(*values, cache=cache) for cache, values in points.items()]
    records = [{**record, "point": one.point} for one in rows for record in one.records]
    results = StudyResults("tiny", "quick", 3, "", outcomes={"rows": Outcome(records)})
    (judged,) = judge_all(study, results)
    assert judged.verdict.word == "holds"
    assert [one.repeat for one in undecided(study, results, 12, ["rows"])] == wanted
