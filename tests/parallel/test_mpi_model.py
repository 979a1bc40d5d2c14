"""Does `chunkwise mpi-model` say what the model says, of runs that files tell?"""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from chunkwise.errors import UsageError
from chunkwise_lab.commands.mpi_model import command
from chunkwise_lab.mpi_model.calibrate import Calibration, calibrate
from chunkwise_lab.mpi_model.measured import read_runs, run_of
from chunkwise_lab.mpi_model.model import Job, Machine, predict
from chunkwise_lab.mpi_model.text import lines
from tests.support.golden import assert_golden, refused

PAGE = Path(__file__).resolve().parents[2] / "docs/mpi.md"
RECORD = {
    "nbytes": 10**9,
    "stored_nbytes": 4 * 10**8,
    "n_chunks": 1000,
    "n_ranks": 2,
    "n_cores": 2,
    "batch": 16,
    "source_nbytes": 5 * 10**8,
    "elapsed_s": 4.2,
    "storage": "nvme",
    "phases": {"read": 0.5, "encode": 2.5, "exchange": 0.01, "allocate": 0.015, "write": 0.4,
               "verify": 0.6, "other": 0.1},
    "something else": [1],
}  # fmt: skip


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [*map(str, arguments)])


def test_a_record_is_a_run() -> None:
    one = run_of(RECORD)
    assert one.job == Job(
        nbytes=10**9, chunk_nbytes=10**6, ratio=0.4, n_ranks=2, n_cores=2, batch=16,
        source_nbytes=5 * 10**8,
    )  # fmt: skip
    assert one.storage == "nvme"
    assert one.elapsed_s == 4.2
    fitted = calibrate([one])
    assert fitted.machine.encode_rate == pytest.approx(2e8)
    assert fitted.machine.index_s == pytest.approx(15e-6)


@pytest.mark.parametrize("form", ["list", "lines", "one"])
def test_files_hold_records(form: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    records = [RECORD] if form == "one" else [RECORD, RECORD]
    if form == "list":
        path.write_text(json.dumps(records))
    else:
        path.write_text("\n".join(json.dumps(one) for one in records) + "\n")
    assert read_runs([str(path)]) == [run_of(one) for one in records]


def test_a_record_that_lacks_something_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def call(change: dict[str, Any]) -> None:
        Path("runs.json").write_text(json.dumps([RECORD, {**RECORD, **change}]))
        read_runs(["runs.json"])

    changes: list[dict[str, Any]] = [
        {"phases": None}, {"nbytes": "1GB"}, {"n_ranks": 1.5}, {"n_chunks": 0}, {"phases": [1]},
        {"phases": {"encode": True}}, {"stored_nbytes": 0},
    ]  # fmt: skip
    assert_golden("mpi-runs-refused", refused(call, changes))


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    for text in (b"", b"{", b"[3]", b"\x80"):
        path.write_bytes(text)
        assert isinstance(run(path).exception, UsageError), text


def test_without_runs_the_machine_is_assumed() -> None:
    result = run()
    assert result.exit_code == 0
    assert_golden("mpi-model", result.output)
    assert all(len(line) <= 80 for line in result.output.splitlines())


def test_its_page_shows_what_it_prints() -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = page.partition("    $ chunkwise mpi-model\n")[2].partition("\n\n")[0].splitlines()
    printed = run().output.splitlines()
    assert len(shown) > 5
    assert [line for line in shown if line != "    ..." and line[4:] not in printed] == []


def test_json_and_text_are_of_one_prediction(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    path.write_text(json.dumps([RECORD, {**RECORD, "n_ranks": 1}, {**RECORD, "n_ranks": 4}]))
    words = ("--nbytes", "1TB", "--n-ranks", "128", "--storage", "10GB")
    found = json.loads(run(path, *words, "--json").output)
    machine, job = Machine(**found["machine"]), found["job"]
    assert machine.storage_rate == 1e10
    assert job.pop("n_chunks") == -(-(10**12) // 2**20)
    expected = predict(machine, Job(**job))
    (one,) = [each for each in found["predictions"] if each["n_ranks"] == 128]
    assert one["phases"] == pytest.approx(expected.phases)
    assert one["low_s"] <= one["elapsed_s"] <= one["high_s"]
    assert [each["n_ranks"] for each in found["checked"]] == [4]
    text = run(path, *words).output
    assert f"the limit: {'storage' if one['limit'] in ('read', 'write') else ''}" in text
    assert "This is for 32 times the ranks that were measured." in " ".join(text.split())


@pytest.mark.parametrize(
    "words",
    [
        ["--nbytes", "much"],
        ["--assume", "speed=3"],
        ["--assume", "index_s=fast"],
        ["--assume", "overlap=2"],
        ["--storage", "0"],
        ["--filesystem", "none"],
        ["none.json"],
    ],
)
def test_wrong_usage_is_an_error(words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    path.write_text(json.dumps([RECORD]))
    result = run(path, *words)
    assert isinstance(result.exception, UsageError)


@pytest.mark.parametrize("n_ranks", [1, 3, 10_000])
def test_any_machine_can_be_told(n_ranks: int) -> None:
    job = Job(nbytes=1, chunk_nbytes=1 << 30, n_ranks=n_ranks, verify=False)
    for machine in (Machine(), Machine(index_s=0.0, fixed_s=0.0), Machine(index_s=1.0)):
        assert list(lines(Calibration(machine), job, [1, n_ranks]))
