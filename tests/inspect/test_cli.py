"""Does `chunkwise inspect` take the words it documents, and print and exit as it says?"""

import ctypes
import importlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import pytest
from click.testing import CliRunner

from chunkwise.cli.main import cli
from chunkwise.errors import ChunkwiseError, CrashedError, FileFormatError, UsageError
from chunkwise.files.contained import Outcome
from chunkwise.inspection.facts import FileFacts
from tests.support.inspect_fakes import dataset, file_facts, finding
from tests.support.processes import ran

CHUNKWISE = Path(sys.executable).with_name("chunkwise")


def invoke(*arguments: str | Path, columns: int = 80) -> tuple[str, int]:
    """Run the command in this process; give what it printed and its exit code."""
    result = CliRunner().invoke(
        cli,
        ["inspect", *map(str, arguments)],
        env={"COLUMNS": str(columns)},
        standalone_mode=False,
    )
    if result.exception is not None:
        raise result.exception
    return result.output, result.return_value


def run(*arguments: str | Path, columns: int = 80) -> str:
    """Give what is printed; the code is that of what is found."""
    return invoke(*arguments, columns=columns)[0]


def each_here(
    works: Iterable[tuple[Callable[[], FileFacts], str]], *_: object
) -> Iterator[Outcome[FileFacts]]:
    """Do in this process what `contained_each` does in children."""
    for work, _what in works:
        try:
            yield Outcome(work())
        except ChunkwiseError as error:
            yield Outcome(None, error)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Let any file have three findings, and note how it was asked for."""
    asked: list[dict[str, Any]] = []

    def fake(path: str, name: str | None = None, **options: Any) -> FileFacts:
        asked.append({"path": path, "dataset": name, **options})
        if "bad" in path:
            raise FileFormatError(f"{path}: not an HDF5 file: it is a TIFF image")
        found = (finding("/t2m"), finding("/v", "filter-unavailable", severity="note"))
        facts = file_facts(path=path, findings=() if "clean" in path else found)
        return facts if name is None else replace(facts, objects=(dataset(),), metadata=None)

    monkeypatch.setattr(importlib.import_module("chunkwise.inspection"), "inspect", fake)
    # What happens in a child leaves no notes here.
    monkeypatch.setattr("chunkwise.files.contained.contained", lambda work, *_: work())
    monkeypatch.setattr("chunkwise.files.contained.contained_each", each_here)
    return asked


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder of three files with HDF5's signature and one without it."""
    monkeypatch.chdir(tmp_path)
    for name in ("wrong.nc", "bad.nc", "clean.nc"):
        (tmp_path / name).write_bytes(b"\x89HDF\r\n\x1a\n")
    (tmp_path / "notes.txt").write_text("words")
    return tmp_path


# --- one file --------------------------------------------------------------------------


def test_options_reach_their_room(folder: Path, calls: list[dict[str, Any]]) -> None:
    run("wrong.nc")
    run("wrong.nc", "t2m", "--no-sample")
    run("wrong.nc", "--for", "netcdf-c", "--for", "libhdf5-2")
    assert "Not sampled: --sample" in run(folder)
    assert "Not sampled" not in run(folder, "--sample")
    assert [(call["path"], call["dataset"]) for call in calls[:2]] == [
        ("wrong.nc", None),
        ("wrong.nc", "t2m"),
    ]
    assert [call["sample"] for call in calls] == [True, False, True] + [False] * 3 + [True] * 3
    assert calls[0]["readers"] is None
    assert [reader.name for reader in calls[2]["readers"]] == ["netcdf-c", "libhdf5-2"]
    assert "Fix (nccopy):" in run("wrong.nc", "--tool", "NCCOPY")


@pytest.mark.parametrize("arguments", [(".", "--tool", "h5py"), (".", "--all")])
def test_options_without_effect_are_refused(
    folder: Path, calls: list[dict[str, Any]], arguments: tuple[str, ...]
) -> None:
    with pytest.raises(UsageError, match="--"):
        invoke(*arguments)
    assert not calls
    assert folder.is_dir()


# --- as a linter -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "count", "code"), [("note", 2, 1), ("warning", 1, 1), ("error", 0, 0)]
)
def test_fail_on(
    folder: Path, calls: list[dict[str, Any]], level: str, count: int, code: int
) -> None:
    output, returned = invoke("wrong.nc", "--fail-on", level)
    assert returned == code
    lines = output.splitlines()
    assert len(lines) == count
    if lines:
        assert lines[0].startswith("wrong.nc: /t2m: warning: chunk-exceeds-cache: Reading a line")
    assert invoke("clean.nc", "--fail-on", "note") == ("", 0)
    _, returned = invoke("wrong.nc", "--fail-on", level, "--json")
    assert returned == code
    assert (len(calls), folder.is_dir()) == (3, True)


def test_fail_on_a_folder(folder: Path, calls: list[dict[str, Any]]) -> None:
    output, code = invoke(folder, "--fail-on", "warning")
    assert code == 1
    assert [line.split(": ")[:4] for line in output.splitlines()] == [
        [str(folder / "bad.nc"), "(file)", "error", "cannot-open"],
        [str(folder / "wrong.nc"), "/t2m", "warning", "chunk-exceeds-cache"],
    ]
    assert invoke("clean.nc", "wrong.nc", "--fail-on", "error")[1] == 0
    assert invoke("clean.nc", "bad.nc", "--fail-on", "error")[1] == 1
    assert len(calls) == 7


def test_exit_codes_of_the_process(path: Path, tmp_path: Path) -> None:
    (tmp_path / "a.tif").write_bytes(b"II*\x00" + bytes(100))

    def code(*arguments: str | Path) -> int:
        done = subprocess.run([CHUNKWISE, "inspect", *arguments], capture_output=True, text=True)
        assert "Traceback" not in done.stderr
        return done.returncode

    # Its virtual dataset has no sources, and one filter is missing.
    assert code(path, "--fail-on", "note", "--no-sample") == 1
    assert code(path, "--no-sample") == 3
    assert code(tmp_path / "a.tif", "--fail-on", "error") == 2
    assert code(tmp_path / "gone*.nc") == 2


# --- many files ------------------------------------------------------------------------


def test_named_files_that_are_not_hdf5_are_errors(
    folder: Path, calls: list[dict[str, Any]]
) -> None:
    (folder / "bad.txt").write_text("words")
    output = run("bad.txt", "clean.nc")
    assert output.splitlines()[1].split()[0] == "error"
    assert len(calls) == 2


def test_json_of_many_files_is_a_line_each(folder: Path, calls: list[dict[str, Any]]) -> None:
    given = [json.loads(line) for line in run(folder, "--json").splitlines()]
    assert len(calls) == 3
    bad, clean, wrong = sorted(given, key=lambda record: str(record["path"]))
    assert list(bad) == list(clean) == list(wrong)
    reason = "not an HDF5 file: it is a TIFF image"
    assert (bad["path"], bad["nbytes"], bad["error"]) == (str(folder / "bad.nc"), 8, reason)
    assert (bad["objects"], bad["metadata"], bad["hdf5_version"]) == ([], None, None)
    (found,) = bad["findings"]
    assert list(found) == list(wrong["findings"][0])
    assert (found["code"], found["severity"], found["path"]) == ("cannot-open", "error", None)
    assert found["summary"] == reason
    assert clean["error"] is wrong["error"] is None
    assert (clean["findings"], clean["nbytes"]) == ([], 21_000_000)
    assert wrong["findings"][0]["code"] == "chunk-exceeds-cache"


def test_findings_are_totalled_by_code(folder: Path, calls: list[dict[str, Any]]) -> None:
    lines = run(folder).splitlines()
    head = next(i for i, line in enumerate(lines) if "at most, in" in line)
    rows = [line.split() for line in lines[head + 1 : head + 4]]
    assert [(*row[:4], row[-1]) for row in rows] == [
        ("error", "cannot-open", "1", "1", str(folder / "bad.nc")),
        ("warning", "chunk-exceeds-cache", "1", "1", str(folder / "wrong.nc")),
        ("note", "filter-unavailable", "1", "1", str(folder / "wrong.nc")),
    ]
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("words", "names", "code"),
    [
        ((), ["bad.nc", "wrong.nc"], 2),
        (("--fail-on", "error"), ["bad.nc"], 1),
        (("--fail-on", "error", "--ignore", "cannot-open"), [], 0),
        (("--ignore", "cannot-open"), ["wrong.nc"], 0),
        (("--ignore", "chunk-exceeds-cache", "--fail-on", "warning"), ["bad.nc"], 1),
    ],
)
def test_quiet_prints_names_alone(
    folder: Path, calls: list[dict[str, Any]], words: tuple[str, ...], names: list[str], code: int
) -> None:
    output, returned = invoke(folder, "--quiet", *words)
    assert output.splitlines() == [str(folder / name) for name in names]
    assert returned == code
    assert len(calls) == 3


def test_quiet_and_ignore_of_one_file(folder: Path, calls: list[dict[str, Any]]) -> None:
    assert invoke("wrong.nc", "-q", "--fail-on", "warning") == ("wrong.nc\n", 1)
    assert invoke("clean.nc", "-q", "--fail-on", "note") == ("", 0)
    output = run("wrong.nc", "--ignore", "chunk-exceeds-cache")
    assert "chunk-exceeds-cache" not in output
    assert "filter-unavailable" in output
    assert len(calls) == 3
    assert folder.is_dir()


def test_an_ignored_file_that_cannot_be_opened_is_still_shown(
    folder: Path, calls: list[dict[str, Any]]
) -> None:
    output = run(folder, "--ignore", "cannot-open")
    assert re.search(r"^- .*bad\.nc  cannot be opened", output, re.MULTILINE)
    assert len(calls) == 3


def test_a_code_that_there_is_not_is_refused(folder: Path, calls: list[dict[str, Any]]) -> None:
    said = r"'edge-wast' \(did you mean 'edge-waste'\?\): there are filter-unavailable, "
    with pytest.raises(UsageError, match=said):
        invoke(folder, "--ignore", "edge-wast")
    assert not calls


def test_ctrl_c_shows_what_was_done(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fake(path: str, _name: str | None = None, **_: Any) -> FileFacts:
        if "clean" in path:
            raise KeyboardInterrupt
        return file_facts(path=path)

    monkeypatch.setattr(importlib.import_module("chunkwise.inspection"), "inspect", fake)
    output, code = invoke(folder)
    assert code == 130
    assert str(folder / "bad.nc") in output
    assert "wrong.nc" not in output
    assert "interrupted after 1 of 3 files" in output


def test_a_crash_in_libhdf5_does_not_stop_the_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fake(path: str, _name: str | None = None, **_: Any) -> FileFacts:
        if "bad" in path:
            ctypes.string_at(0)
        return file_facts(path=path)

    monkeypatch.setattr(importlib.import_module("chunkwise.inspection"), "inspect", fake)
    output, code = invoke(folder, "--fail-on", "error")
    assert code == 1
    assert re.search(r"bad\.nc: \(file\): error: cannot-open: HDF5 .* crashed on it", output)
    with pytest.raises(CrashedError, match="crashed on it"):
        invoke(folder / "bad.nc")


@pytest.mark.slow
def test_ctrl_c_ends_the_process(tmp_path: Path) -> None:
    for i in range(300):
        with h5py.File(tmp_path / f"{i}.h5", "w") as file:
            for name in range(50):
                file.create_dataset(str(name), (100,), "f4", chunks=(10,))
    with subprocess.Popen(
        [CHUNKWISE, "inspect", tmp_path, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors
    if process.returncode:  # else it was done before the signal came
        assert process.returncode == 130
        assert "interrupted after" in errors


# --- where it is run -------------------------------------------------------------------


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return kept | changes


@pytest.fixture
def many(tmp_path: Path) -> Path:
    path = tmp_path / "many.h5"
    with h5py.File(path, "w") as file:
        for i in range(1500):
            file[f"a_rather_long_name_for_a_dataset_{i}"] = i
    return path


def test_reader_that_leaves_early(many: Path) -> None:
    with subprocess.Popen(
        [CHUNKWISE, "inspect", many, "--all"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize("columns", ["", "0", "wide"])
def test_piped_output_has_80_columns_and_no_colour(path: Path, columns: str) -> None:
    output = ran([CHUNKWISE, "inspect", path], env=environment(COLUMNS=columns))
    # A filter of the file is missing.
    assert output.returncode == 3
    assert "\x1b" not in output.stdout
    assert not output.stderr
    widths = [len(line) for line in output.stdout.splitlines() if not line.startswith("    ")]
    assert 70 < max(widths) <= 80
