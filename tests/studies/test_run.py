"""Does a study that is stopped go on where it was, with nothing lost and nothing made twice?"""

import errno
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chunkwise import measure
from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.measure.libraries import LibHDF5
from chunkwise.measure.libraries import find as find_library
from chunkwise.measure.schedule import Step
from chunkwise.measure.space import Space
from chunkwise.trials.trial import Measurement, Trial
from chunkwise_lab.studies.folder import RESULTS
from chunkwise_lab.studies.load import load
from chunkwise_lab.studies.results import StudyResults
from chunkwise_lab.studies.run import Options, run
from chunkwise_lab.studies.study import Study
from tests.support.studies import write_study


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for no other libraries, which takes time, but for those that are named."""
    monkeypatch.setattr("chunkwise_lab.studies.libraries._installed", dict)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return load(str(write_study(tmp_path / "tiny")))


TOUCHING_S = 5.0


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Trial]:
    """Have trials measured by nobody, and count them."""
    trials: list[Trial] = []

    def find(asked: str | None, folder: str) -> LibHDF5:
        # To ask a library for its version takes a process each time.
        return find_library(asked, folder) if asked else LibHDF5(None, "2.0.0", (), {})

    # By its name, `chunkwise.measure.run` is the function.
    monkeypatch.setattr(sys.modules["chunkwise.measure.run"], "find_library", find)
    monkeypatch.setattr("chunkwise_lab.studies.libraries.find_one", find)

    def nobody_measures(trial: Trial, *_: Any) -> Measurement:
        # The trial before the first of a run is kept by nobody.
        if trial.timeout_s != TOUCHING_S:
            trials.append(trial)
        return Measurement(trial, "ok", total_s=1.0, elapsed_s=1.0)

    monkeypatch.setattr("chunkwise.measure.schedule.measure_in_worker", nobody_measures)
    return trials


def test_nobody_is_slower_for_being_the_first(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials: list[Trial] = []

    def nobody_measures(trial: Trial, *_: Any) -> Measurement:
        # Whatever is first takes ten times as long.
        trials.append(trial)
        seconds = 10.0 if len(trials) == 1 else 1.0
        return Measurement(trial, "ok", total_s=seconds, elapsed_s=seconds)

    monkeypatch.setattr("chunkwise.measure.schedule.measure_in_worker", nobody_measures)
    results = run(study, options(tmp_path, only=("rows",), repeat=2))
    assert (len(trials), trials[0].max_seconds) == (5, 2.0)
    rows = results.outcomes["rows"].rows()
    assert [row.values("total_s") for row in rows] == [(1.0, 1.0)] * 2
    # What counts needs nobody before it, and what was measured before is not touched again.
    run(study, options(tmp_path, only=("rows",), repeat=2, resume=True))
    counting = replace(study.experiments[0].runs[0], repeat=1)
    experiment = replace(study.experiments[0], runs=(counting,))
    run(replace(study, experiments=(experiment,)), Options("quick", tmp_path / "other"))
    assert len(trials) == 7


def options(tmp_path: Path, **given: Any) -> Options:
    return Options("quick", tmp_path / "out", **given)


def test_all_is_measured_and_saved(study: Study, made: list[Trial], tmp_path: Path) -> None:
    results = run(study, options(tmp_path))
    assert results.complete
    assert {name: len(one.rows()) for name, one in results.outcomes.items()} == {
        "rows": 2,
        # The cache is not chunkwise's.
        "chunks": 3,
    }
    assert len(made) == 5
    assert results.outcomes["rows"].records[0]["point"]["size"] == "small"
    assert results.environment["cpu_count"]
    saved = StudyResults.read(tmp_path / "out" / RESULTS)
    assert saved.to_json() == json.loads(json.dumps(results.to_json()))
    assert not (tmp_path / "out" / "files").exists()


def test_one_real_trial(study: Study, tmp_path: Path) -> None:
    results = run(study, options(tmp_path, only=("rows",)))
    assert [row.problem for row in results.outcomes["rows"].rows()] == [None, None]
    assert all(row.values("total_s") for row in results.outcomes["rows"].rows())


def test_a_stopped_run_goes_on_without_measuring_again(
    study: Study, made: list[Trial], tmp_path: Path
) -> None:
    def stop(_: Step) -> None:
        if len(made) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(study, options(tmp_path), stop)
    saved = StudyResults.read(tmp_path / "out" / RESULTS)
    assert not saved.complete
    assert saved.outcomes["rows"].complete
    assert not saved.outcomes["chunks"].complete
    assert not (tmp_path / "out" / "files").exists()
    with pytest.raises(UsageError, match="--resume"):
        run(study, options(tmp_path))
    results = run(study, options(tmp_path, resume=True))
    assert results.complete
    assert len(made) == 5
    assert len(results.outcomes["chunks"].rows()) == 3
    assert results.begun == saved.begun


def test_half_of_the_repeats_of_all_come_before_the_others(
    study: Study, made: list[Trial], tmp_path: Path
) -> None:
    results = run(study, options(tmp_path, repeat=5))
    assert [len(row.records) for one in results.outcomes.values() for row in one.rows()] == [5] * 5
    rows, chunks = ["rows"] * 2, ["chunks"] * 3
    order = ["chunks" if trial.access == "all" else "rows" for trial in made]
    assert order == rows * 3 + chunks * 3 + rows * 2 + chunks * 2


def test_a_run_that_was_stopped_in_its_second_half_goes_on_there(
    study: Study, made: list[Trial], tmp_path: Path
) -> None:
    def stop(_: Step) -> None:
        if len(made) == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(study, options(tmp_path, repeat=3), stop)
    # What the first half has measured is kept.
    saved = StudyResults.read(tmp_path / "out" / RESULTS)
    assert [len(row.records) for row in saved.outcomes["chunks"].rows()] == [2] * 3
    results = run(study, options(tmp_path, repeat=3, resume=True))
    assert results.complete
    assert len(made) == 15
    assert [len(row.records) for row in results.outcomes["chunks"].rows()] == [3] * 3


def test_what_was_measured_before_stays(study: Study, made: list[Trial], tmp_path: Path) -> None:
    run(study, options(tmp_path, only=("chunks",), readers=("chunkwise",)))
    assert [trial.reader for trial in made] == ["chunkwise"]
    run(study, options(tmp_path, only=("rows",), resume=True))
    results = run(study, options(tmp_path, only=("chunks",), readers=("libhdf5",), resume=True))
    # In the study's order, each with all rows.
    assert {name: len(one.rows()) for name, one in results.outcomes.items()} == {
        "rows": 2,
        "chunks": 3,
    }
    assert len(made) == 5


def test_more_repeats_add_to_those_there_are(
    study: Study, made: list[Trial], tmp_path: Path
) -> None:
    run(study, options(tmp_path, only=("rows",)))
    results = run(study, options(tmp_path, only=("rows",), repeat=2, resume=True))
    assert len(made) == 4
    assert [len(row.records) for row in results.outcomes["rows"].rows()] == [2, 2]
    with pytest.raises(UsageError, match="--repeat 2 or more"):
        run(study, options(tmp_path, only=("rows",), repeat=1, resume=True))


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"scale": "paper"}, "tiny at the scale quick, and not tiny at the scale paper"),
        ({"only": ("row",)}, r"no experiment 'row' \(did you mean 'rows'\?\)"),
        ({"readers": ("hdf5",)}, "unknown reader 'hdf5'"),
        ({"readers": ("h5py",)}, "measures nothing of this with h5py: choose from libhdf5"),
        ({"libhdf5": ("/no/such.so",)}, "/no/such.so"),
    ],
)
def test_what_makes_no_sense_is_refused_and_leaves_what_there_is(
    study: Study, tmp_path: Path, changed: dict[str, Any], says: str
) -> None:
    run(study, options(tmp_path, only=("rows",)))
    before = (tmp_path / "out" / RESULTS).read_bytes()
    with pytest.raises(UsageError, match=says):
        run(study, replace(options(tmp_path, resume=True), **changed))
    assert (tmp_path / "out" / RESULTS).read_bytes() == before


@pytest.mark.usefixtures("made")
def test_the_folder_of_another_study_is_refused(study: Study, tmp_path: Path) -> None:
    run(study, options(tmp_path, only=("rows",)))
    with pytest.raises(UsageError, match="it holds tiny at the scale quick, and not other"):
        run(replace(study, name="other"), options(tmp_path, resume=True))


@pytest.mark.parametrize("below", [False, True])
def test_a_file_is_no_folder(study: Study, tmp_path: Path, below: bool) -> None:
    (tmp_path / "out").write_text("")
    out = tmp_path / "out" / "deep" if below else tmp_path / "out"
    with pytest.raises(UsageError, match="name another one"):
        run(study, replace(options(tmp_path), out=out))


@pytest.mark.usefixtures("made")
def test_only_what_was_generated_is_removed(study: Study, tmp_path: Path) -> None:
    theirs = tmp_path / "out" / "files" / "thesis.txt"
    theirs.parent.mkdir(parents=True)
    theirs.touch()
    for resume in (False, True):
        with pytest.raises(UsageError, match="'files' in it that is not of a study"):
            run(study, options(tmp_path, resume=resume))
    assert theirs.exists()
    theirs.unlink()
    run(study, options(tmp_path, only=("rows",)))
    # As a run that was killed leaves it.
    theirs.parent.mkdir()
    (theirs.parent / "small.h5").write_bytes(b"half a file")
    results = run(study, options(tmp_path, only=("chunks",), resume=True))
    assert not results.outcomes["chunks"].skipped
    assert not theirs.parent.exists()


def test_too_little_room_is_said_before_anything(study: Study, tmp_path: Path) -> None:
    vast = replace(study, disk_nbytes={"quick": 1 << 62, "paper": 1 << 62})
    with pytest.raises(UsageError, match=r"needs about .* are free"):
        run(vast, options(tmp_path))


def test_a_trial_that_fails_is_a_row_with_its_reason(
    study: Study, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def nobody_measures(trial: Trial, *_: Any) -> Measurement:
        if trial.reader == "chunkwise":
            return Measurement(trial, "failed", "the worker was ended by SIGSEGV")
        return Measurement(trial, "ok", total_s=1.0, elapsed_s=1.0)

    monkeypatch.setattr("chunkwise.measure.schedule.measure_in_worker", nobody_measures)
    results = run(study, options(tmp_path))
    problems = [row.problem for row in results.outcomes["chunks"].rows()]
    assert problems == [None, None, "the worker was ended by SIGSEGV"]
    assert results.complete


def failing(error: Exception, after: int) -> Callable[..., Any]:
    """Make a measure.run that fails at the second dataset, say."""
    calls = 0
    real = measure.run

    def run(file: str, dataset: str, space: Space, **keywords: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > after:
            raise error
        return real(file, dataset, space, **keywords)

    return run


@pytest.mark.usefixtures("made")
def test_what_is_refused_on_this_machine_is_left_out_with_its_reason(
    study: Study, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(measure, "run", failing(UsageError("too little memory"), 1))
    results = run(study, options(tmp_path))
    assert results.outcomes["chunks"].skipped == ["too little memory"]
    assert len(results.outcomes["rows"].rows()) == 2
    assert results.complete


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left on device"), CannotWriteError("the disk is full")],
)
def test_a_full_disk_ends_it_and_keeps_what_there_is(
    study: Study, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception
) -> None:
    monkeypatch.setattr(measure, "run", failing(error, 1))
    with pytest.raises(CannotWriteError, match="make room, and go on with --resume"):
        run(study, options(tmp_path))
    saved = StudyResults.read(tmp_path / "out" / RESULTS)
    assert len(saved.outcomes["rows"].rows()) == 2
    assert not saved.complete


@pytest.mark.usefixtures("made")
def test_going_on_elsewhere_is_warned_of(study: Study, tmp_path: Path) -> None:
    saved = run(study, options(tmp_path, only=("rows",)))
    saved.environment["cpu"] = "Another"
    saved.save(tmp_path / "out" / RESULTS)
    steps: list[Step] = []
    run(study, options(tmp_path, only=("rows",), resume=True), steps.append)
    warned = [step.text for step in steps if step.warning]
    assert len(warned) == 1
    assert "was measured with cpu Another, now" in warned[0]


@pytest.mark.usefixtures("made")
def test_progress_counts_all_trials_and_the_time_that_is_left(
    study: Study, tmp_path: Path
) -> None:
    steps: list[Step] = []
    run(study, options(tmp_path), steps.append)
    assert all(step.total == 5 for step in steps)
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert steps[-1].done == 4
    left = [step.left_s for step in steps if step.left_s is not None]
    assert len(left) == len(steps)
    assert left[-1] < left[0]
    assert steps[0].text == "1/2 Rows: generating small"


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("resume", [False, True])
def test_what_is_planted_in_the_folder_is_not_followed(
    study: Study, tmp_path: Path, resume: bool
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "thesis.txt").write_text("precious")
    results = options(tmp_path).out / "results.json"
    if resume:
        run(study, options(tmp_path, only=("rows",)))
    results.parent.mkdir(exist_ok=True)
    partial = results.with_name(f"{results.name}.partial")
    partial.symlink_to(victim / "thesis.txt")
    (results.parent / "files").symlink_to(victim)
    with pytest.raises(UsageError, match="'files' in it is a link"):
        run(study, options(tmp_path, resume=resume))
    (results.parent / "files").unlink()
    run(study, options(tmp_path, resume=resume))
    assert partial.is_symlink()
    assert [path.read_text() for path in victim.iterdir()] == ["precious"]


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_in_which_another_run_measures_is_refused(
    study: Study, tmp_path: Path, resume: bool
) -> None:
    asked = options(tmp_path, resume=resume)
    steps: list[Step] = []

    def begin_another(step: Step) -> None:
        if not steps:
            steps.append(step)
            with pytest.raises(UsageError, match="another run measures in this folder"):
                run(study, asked)

    results = run(study, asked, begin_another)
    assert steps
    assert results.complete
    assert all(outcome.records for outcome in results.outcomes.values())
