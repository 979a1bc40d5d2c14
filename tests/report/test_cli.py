"""What does `chunkwise report` make of files, and what does it refuse?"""

import copy
import gzip
import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from chunkwise.words import installing
from chunkwise_lab.commands.report import command
from chunkwise_lab.report.build import report
from chunkwise_lab.studies.results import Outcome, StudyResults
from tests.support.golden import assert_golden, refused
from tests.support.reports import repeats


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, list(map(str, arguments)))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with results of an experiment of cris, made up."""
    folder = tmp_path_factory.mktemp("cris")
    point = {"operation": "read", "reader": "libhdf5", "libhdf5": "default"}
    records = [
        *repeats({**point, "cache": "default"}, 0.3), *repeats({**point, "cache": "3MiB"}, 0.31)
    ]  # fmt: skip
    results = StudyResults("cris", "quick", 3, "2026-11-22T12:00:00+00:00")
    results.outcomes["default"] = Outcome(records)
    results.complete = True
    results.save(folder / "results.json.gz")
    return folder


def test_runs_of_a_study_are_told_apart(study: Path, tmp_path: Path) -> None:
    plain = tmp_path / "results.json"
    plain.write_bytes(gzip.decompress((study / "results.json.gz").read_bytes()))
    assert [one.title for one in report([study, plain]).sections] == ["cris, run 1", "cris, run 2"]
    other = StudyResults.read(plain)
    other.scale = "paper"
    other.save(plain)
    made = report([study, tmp_path])
    assert [one.title for one in made.sections] == ["cris, quick", "cris, paper"]
    assert len({chart.id for chart in made.charts}) == len(list(made.charts)) >= 2


@pytest.mark.slow
def test_the_page_and_markdown(study: Path, tmp_path: Path) -> None:
    done = run(study, "-o", tmp_path / "r.html")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "r.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    done = run(study, "-o", tmp_path / "r.md")
    assert done.exit_code == 0, done.output
    assert "## Measured on" in (tmp_path / "r.md").read_text(encoding="utf-8")


def test_other_files_are_refused_in_one_line(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = (study / "results.json.gz").read_bytes()
    values = json.loads(gzip.decompress(whole))
    damaged = {"cut": whole[:-9], "other": whole[:12] + bytes(40) + whole[52:]}
    for name, content in damaged.items():
        Path(name).mkdir()
        Path(name, "results.json.gz").write_bytes(content)
    Path("deep.json").write_bytes(b"[" * 100_000)
    Path("empty").mkdir()

    def call(content: object) -> None:
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        Path("a.json").write_bytes(raw)
        report([Path("a.json")])

    files = [
        b"{", b"[1, 2]", b'{"format": "else"}', b'{"format": "chunkwise-study", "version": 9}',
        b"\x1f\x8b\x08cut", b"\x89HDF\r\n\x1a\n\xff",
    ]  # fmt: skip
    of_results: list[dict[str, object]] = [
        {"repeat": "<b>"}, {"target": []}, {"outcomes": {"a": 1}},
        {"outcomes": {"default": {"records": []}}}, {"libraries": {"default": 1}},
    ]  # fmt: skip
    of_a_record: list[dict[str, object]] = [
        {"status": None}, {"point": {"reader": 1}}, {"point": None}, {"error": []},
        {"total_s": "x"}, {"total_s": float("inf")}, {"shape": 3, "file_nbytes": 1},
    ]  # fmt: skip

    def call_with_record(change: dict[str, object]) -> None:
        changed = copy.deepcopy(values)
        changed["outcomes"]["default"]["records"][1] |= change
        call(changed)

    assert_golden(
        "report-refused",
        refused(call, files),
        refused(lambda change: call({**values, **change}), of_results),
        refused(call_with_record, of_a_record),
        refused(lambda path: report([Path(path)]), [*damaged, "empty"]),
        refused(lambda out: command.main([str(study), "-o", out]), ["r.pdf"]),
    )
    # In words of the system, or of this Python.
    assert "cannot be written" in str(run(study, "-o", "no/r.html").exception)
    for path, words in (("none.json", "cannot be read"), ("deep.json", "no results of a study")):
        assert words in refused(lambda path: report([Path(path)]), [path])
    assert "results of a study: " in refused(lambda more: call({**values, **more}), [{"more": 1}])


def test_what_is_missing_is_named(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "plotly"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "plotly", None)
    done = run(study)
    assert installing("report") in str(done.exception)
    assert "\n" not in str(done.exception)
