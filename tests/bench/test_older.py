"""Is a reader still found by its old name, driver, in what was saved and typed?"""

from __future__ import annotations

import doctest
import json
from pathlib import Path
from typing import Any

import click
import h5py
import numpy as np
import pytest
from click.testing import CliRunner

from chunkwise import benching
from chunkwise.benching import older, spec
from chunkwise.benching.schedule import Step
from chunkwise.benching.space import Space
from chunkwise.cli import bench
from chunkwise_lab.commands import hstest, study
from chunkwise_lab.report.sources import read
from chunkwise_lab.studies.load import load
from chunkwise_lab.studies.results import StudyResults
from tests.support.studies import ROWS, write_study

PUBLISHED = Path(__file__).resolve().parents[2] / "docs/studies"
SPACE = Space.of(access=["all"], reader=["h5py"])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("driver", data=np.arange(48).reshape(8, 6), chunks=(4, 6))
    return tmp_path / "a.h5"


def aged(path: Path) -> None:
    """Write the keys of a file as they were; the dataset is called so, too."""
    text = path.read_text().replace('"reader":', '"driver":')
    path.write_text(text.replace('"version": 2', '"version": 1'))


def test_only_names_of_axes_change() -> None:
    assert doctest.testmod(older).failed == 0
    plot = {"x": "driver", "plot": [{"by": ["cache", "driver"]}], "title": "driver"}
    assert older.renewed(plot) == {
        "x": "reader", "plot": [{"by": ["cache", "reader"]}], "title": "driver",
    }  # fmt: skip


def test_saved_runs_are_read(file: Path, tmp_path: Path) -> None:
    results = benching.run(file, "driver", SPACE, repeat=1)
    saved = tmp_path / "run.json"
    saved.write_text(json.dumps(results.as_dict()))
    new = benching.load(saved)
    aged(saved)
    old = benching.load(saved)
    assert (old.data, old.samples) == (new.data, new.samples)
    assert old.data["dataset"] == "driver"
    ((source, _),) = read([saved])
    assert isinstance(source, tuple)
    assert source[0].samples == new.samples


def test_a_run_goes_on_with_older_trials(file: Path, tmp_path: Path) -> None:
    save, steps = tmp_path / "run.jsonl", list[Step]()
    benching.run(file, "driver", SPACE, repeat=1, save=save)
    aged(save)
    assert '"driver": "h5py"' in save.read_text()
    benching.run(file, "driver", SPACE, repeat=1, save=save, progress=steps.append)
    assert [step for step in steps if step.total] == []
    assert len(benching.load(save).samples) == 1


def test_plans_are_read(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[axes]\ndriver = ["h5py"]\n[[trial]]\ndriver = "libhdf5"\n')
    space = spec.read(str(plan)).space
    assert space.axes == {"reader": ("h5py",)}
    assert space.trials == ({"reader": "libhdf5"},)


def test_studies_are_read(tmp_path: Path) -> None:
    new = write_study(tmp_path / "new")
    rows = ROWS.replace("reader =", "driver =").replace('"reader"', '"driver"')
    assert rows.count("driver") > 1
    old = write_study(tmp_path / "old", rows)
    assert load(str(old)).experiments == load(str(new)).experiments


@pytest.mark.parametrize("path", sorted(PUBLISHED.glob("*.json.gz")), ids=lambda path: path.name)
def test_published_results_are_read(path: Path) -> None:
    outcomes = StudyResults.read(path).outcomes.values()
    points = [record["point"] for outcome in outcomes for record in outcome.records]
    assert any("reader" in point for point in points)
    assert not any("driver" in point for point in points)


@pytest.mark.parametrize("command", [bench.command, hstest.command, study.command])
def test_the_option_is_taken_and_not_shown(
    command: click.Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[dict[str, Any]] = []
    monkeypatch.setattr(command, "callback", lambda **values: given.append(values))
    for option in ("--reader", "--driver"):
        assert CliRunner().invoke(command, ["a.h5", option, "h5py"]).exit_code == 0
    assert given[0] == given[1]
    assert given[0]["reader"] == "h5py"
    assert "--driver" not in CliRunner().invoke(command, ["--help"]).output
