"""Does a run that was stopped go on, with other axes and repeats as well?"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from chunkwise import measure
from chunkwise.errors import UsageError
from chunkwise.measure import schedule
from chunkwise.measure.results import Results
from chunkwise.measure.schedule import Step
from chunkwise.measure.space import Space
from chunkwise.trials.trial import Measurement, Trial


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("g/x", data=np.arange(800).reshape(40, 20), chunks=(10, 20))
    return path


def run(file: Path, name: str = "g/x", repeat: int = 1, **axes: list[str]) -> tuple[Results, int]:
    """Run, saving to one file, and count the trials that were made."""
    steps: list[Step] = []
    given: dict[str, Any] = {"access": ["all"], "reader": ["libhdf5"], **axes}
    results = measure.run(
        file, name, Space.of("product", **given), repeat=repeat,
        save=file.with_suffix(".jsonl"), progress=steps.append,
    )  # fmt: skip
    return results, sum(step.total > 0 for step in steps)


def test_other_axes_add_only_what_is_new(file: Path) -> None:
    assert run(file)[1] == 1
    assert run(file, cache=["default", "2MiB"])[1] == 1
    # That files are warmed again, because others are cold, makes no other trial.
    assert run(file, page_cache=["warm", "cold"])[1] == 1
    results, made = run(file, access=["all", "line:0"], cache=["2MiB"])
    assert made == 1
    assert [len(cell.measurements) for cell in results.cells] == [1, 1]


def test_more_repeats_are_added(file: Path) -> None:
    run(file)
    results, made = run(file, repeat=3)
    assert made == 2
    (cell,) = results.cells
    assert [m.repeat for m in cell.measurements] == [0, 1, 2]
    # Fewer are taken from those that there are.
    results, made = run(file, repeat=2)
    assert (made, len(results.cells[0].measurements)) == (0, 2)


@pytest.mark.parametrize("name", ["/g/x", "g/x/", "/g/x/"])
def test_slashes_around_a_name_make_no_other_dataset(file: Path, name: str) -> None:
    run(file)
    assert run(file, name)[1] == 0


def test_a_long_trial_is_given_its_time_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How long it takes is known from before the stop, not from this run."""
    timeouts = []

    def measured(trial: Trial, *_: Any) -> Measurement:
        timeouts.append(trial.timeout_s)
        return Measurement(
            trial, "ok", operations=1, total_operations=1, elapsed_s=5.0, total_s=5.0, first_s=5.0
        )

    monkeypatch.setattr(schedule, "measure_in_worker", measured)
    run(file)
    run(file, repeat=2)
    assert min(timeouts) > 5.0


def test_the_time_left_is_not_zero_before_the_end(file: Path) -> None:
    steps: list[Step] = []
    space = Space.of(access=["all"], reader=["libhdf5"], nslots=[str(n) for n in range(1, 8)])
    measure.run(file, "g/x", space, repeat=1, seconds=0.5, progress=steps.append)
    left = [step.left_s for step in steps if step.total]
    assert len(left) == 7
    assert all(seconds is not None and seconds > 0 for seconds in left[1:])


def test_what_was_killed_goes_on(file: Path) -> None:
    saved = file.with_suffix(".jsonl")
    command = [
        *(sys.executable, "-c", "from chunkwise.cli import main; main()", "bench"),
        *(str(file), "g/x", "--access", "all", "--reader", "libhdf5,h5py"),
        *("--repeat", "4", "--budget", "60", "--save", str(saved)),
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(file.parent)}
    )
    while not saved.exists() or saved.read_text().count("\n") < 3:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    before = saved.read_text().count("\n") - 1
    results, made = run(file, repeat=4, reader=["libhdf5", "h5py"])
    assert 2 <= before < 8
    assert made == 8 - before
    assert [len(cell.succeeded) for cell in results.cells] == [4, 4]


def test_estimates_are_made_again_with_far_more_time(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(trial: Trial, *_: Any) -> Measurement:
        return Measurement(
            trial, "ok", operations=1, total_operations=2, elapsed_s=1.0, total_s=1.0,
            first_s=1.0, extrapolated=trial.max_seconds < 50,
        )  # fmt: skip

    monkeypatch.setattr(schedule, "measure_in_worker", measured)
    made = []
    for budget in (10, 12, 200, 10):
        steps: list[Step] = []
        results = measure.run(
            file, "g/x", Space.of(access=["all"], reader=["libhdf5"]), repeat=1, seconds=budget,
            save=file.with_suffix(".jsonl"), progress=steps.append,
        )  # fmt: skip
        made.append(sum(step.total > 0 for step in steps))
    assert made == [1, 0, 1, 0]
    # The last one takes what there is, the first first.
    assert [len(cell.measurements) for cell in results.cells] == [1]


def test_trials_of_another_version_are_refused(file: Path) -> None:
    run(file)
    save = file.with_suffix(".jsonl")
    save.write_text(save.read_text().replace('"reader":', '"driver":'))
    with pytest.raises(UsageError, match="of another version"):
        run(file)
