"""Does `chunkwise study` say what it does, and refuse what makes no sense?"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from chunkwise_lab.commands.study import command
from chunkwise_lab.studies.folder import RESULTS
from chunkwise_lab.studies.load import NAMES
from chunkwise_lab.studies.results import StudyResults
from chunkwise_lab.studies.run import Options
from chunkwise_lab.studies.study import Study
from tests.support.golden import assert_golden, mistakes
from tests.support.studies import write_study


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("chunkwise_lab.studies.libraries._installed", dict)
    return str(write_study(tmp_path / "tiny"))


def study(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments, standalone_mode=False)


def test_a_study_is_run_shown_and_printed_as_json(tiny: str) -> None:
    first = study(tiny, "--only", "rows")
    assert first.exception is None
    assert first.return_value == 0
    assert "A small cache makes reads slow." in first.output
    assert "chunkwise report studies/tiny-quick -o report.html" in first.output
    assert study(tiny, "--show").output == first.output
    again = study(tiny, "--only", "rows", "--resume", "--json")
    found: dict[str, Any] = json.loads(again.output)
    assert found["verdicts"][0]["claim"] == "cache"
    assert StudyResults.from_json(found).outcomes["rows"].rows()


def test_results_of_another_study_are_not_shown(tiny: str) -> None:
    StudyResults("other", "quick", 1, "2026-11-22T12:00:00+00:00").save("results.json.gz")
    wrong = study(tiny, "-o", ".", "--show").exception
    assert str(wrong) == ".: holds results of other, not of tiny"


@pytest.mark.usefixtures("tiny")
def test_mistakes_are_one_line() -> None:
    said = mistakes("""
study occm
study tiny --only row
study tiny --reader hdf5
study tiny -o tiny/study.toml
study tiny --dataset /x
study tiny --table 'Table 1'
study tiny --show
""")
    assert_golden("study-mistakes", said)


def test_all_studies_are_run_into_folders_of_their_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)

    asked: list[tuple[str, int | None, bool, int | None]] = []

    def made(study: Study, options: Options, _: object) -> StudyResults:
        asked.append((study.name, options.repeat, options.resume, options.undecided))
        options.out.mkdir(parents=True, exist_ok=True)
        results = StudyResults(study.name, options.scale, options.repeat or 3, "")
        results.save(options.out / RESULTS)
        return results

    monkeypatch.setattr("chunkwise_lab.commands.study.run", made)
    monkeypatch.setattr("chunkwise_lab.studies.iotest.launching.shutil.which", lambda _: None)
    result = study("--all", "-o", "out")
    assert "iotest is left out: there is no mpiexec here" in result.output
    folders = {path.parent.name for path in Path("out").glob(f"*/{RESULTS}")}
    assert folders == {f"{name}-quick" for name in NAMES} - {"iotest-quick"}
    assert Path("out/report.html").exists()
    # Half of the repeats of all, then the others; what is open after that.
    measured = [name for name in NAMES if name != "iotest"]
    first, then = asked[: len(measured)], asked[len(measured) :]
    assert first == [(name, 2, False, None) for name in measured]
    assert then == [(name, None, True, 12) for name in measured]
    # What was stopped in the second half does not begin with the first.
    asked.clear()
    study("--all", "-o", "out", "--resume")
    assert [name for name, *_ in asked] == measured
    assert "--all runs every study whole" in str(study("--all", "--only", "x").exception)


@pytest.mark.parametrize(
    ("words", "undecided"),
    [
        ("", 12),
        ("--repeat 2", None),
        ("--undecided 5", 5),
        ("--scale paper --repeat 2", None),
        ("--scale paper --undecided 30", 30),
    ],
)
def test_what_is_open_at_the_quick_scale_is_repeated(
    tiny: str, monkeypatch: pytest.MonkeyPatch, words: str, undecided: int | None
) -> None:
    asked: list[Options] = []

    def stop(_: Study, options: Options, *__: Any) -> None:
        asked.append(options)
        raise KeyboardInterrupt

    monkeypatch.setattr("chunkwise_lab.commands.study.run", stop)
    said = study(tiny, *words.split()).output
    assert [one.undecided for one in asked] == [undecided]
    # Fewer repeats than the paper's are warned of.
    assert ("2 repeats, where this scale has 3" in said) == ("paper --repeat 2" in words)
    assert "stopped; what was measured is in studies/tiny-" in said


def test_a_signal_ends_it_with_what_was_measured(tiny: str, tmp_path: Path) -> None:
    arguments = ["study", tiny, "-o", "out", "--repeat", "50"]
    process = subprocess.Popen(
        [sys.executable, "-m", "chunkwise", *arguments],
        cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    trials = tmp_path / "out" / "trials" / "rows-0-small.jsonl"
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and process.poll() is None:
        if trials.exists() and trials.read_text().count("\n") > 2:
            break
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGTERM)
    _, error = process.communicate(timeout=180)
    assert process.returncode == 128 + signal.SIGTERM
    assert f"chunkwise study {tiny} -o out --repeat 50 --resume" in error
    assert not StudyResults.read(tmp_path / "out" / RESULTS).complete
    assert not (tmp_path / "out" / "files").exists()
