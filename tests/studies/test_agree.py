"""Do the scripts that compare runs of the studies find what differs?"""

import importlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from chunkwise_lab.studies.results import StudyResults

ROOT = Path(__file__).parents[2]
SAVED = ROOT / "docs" / "studies" / "selections-quick.json.gz"


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two runs whose results are the same."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    found = [tmp_path / name / "selections-quick" for name in "ab"]
    for folder in found:
        folder.mkdir(parents=True)
        shutil.copy(SAVED, folder / "results.json.gz")
    return [str(folder.parent) for folder in found]


def slower(folder: str, times: float) -> None:
    """Let every second row of a run take so many times as long."""
    (path,) = Path(folder).glob("*/results.json.gz")
    results = StudyResults.read(path)
    for outcome in results.outcomes.values():
        for row in outcome.rows()[::2]:
            for record in row.records:
                for name in ("total_s", "elapsed_s"):
                    if name in record:
                        record[name] *= times
    results.save(path)


def test_runs_that_say_the_same_agree(
    folders: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    agree: Any = importlib.import_module("verdicts_agree")
    assert agree.main(*folders) == 0
    slower(folders[1], 100.0)
    assert agree.main(*folders, folders[0]) == 1
    said = capsys.readouterr().out
    assert "0 of 5 verdicts differ" in said
    assert f"{folders[0]}: 0 of" in said


def test_drawn_runs_of_equal_repeats_agree(
    folders: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script: Any = importlib.import_module("verdicts_drawn")
    for differs in (False, True):
        monkeypatch.setattr(
            "sys.argv", ["verdicts_drawn", "--most", "3", "--times", "1", *folders]
        )
        script.main()
        said = capsys.readouterr().out.splitlines()
        assert len(said) == 2
        assert all((": 0.0 of 5 differ" in line) is not differs for line in said)
        slower(folders[1], 100.0)
