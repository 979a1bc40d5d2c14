"""Is the SARIF log what the standard asks for, and does it say what the findings say?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import h5py
import numpy as np
import pytest

from chunkwise.errors import CannotWriteError
from chunkwise.inspection.finding import CODES
from chunkwise.inspection.folder import refusal
from chunkwise.inspection.sarif import sarif, save, uri
from tests.inspect.test_findings_docs import DOCS, codes_in_use
from tests.support.inspect_fakes import finding
from tests.support.processes import ran


def check(log: dict[str, Any]) -> None:
    """Raise where something that SARIF 2.1.0 requires is missing, or of another kind."""
    assert log["version"] == "2.1.0"
    assert log["$schema"].startswith("https://")
    for run in log["runs"]:
        driver = run["tool"]["driver"]
        assert isinstance(driver["name"], str)
        ids = [rule["id"] for rule in driver["rules"]]
        assert len(set(ids)) == len(ids)
        for rule in driver["rules"]:
            assert rule["shortDescription"]["text"]
            assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
        assert isinstance(run["invocations"][0]["executionSuccessful"], bool)
        assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
        for result in run["results"]:
            assert result["level"] in ("none", "note", "warning", "error")
            assert ids[result["ruleIndex"]] == result["ruleId"]
            assert result["message"]["text"]
            for name, value in result["partialFingerprints"].items():
                assert isinstance(name, str)
                assert isinstance(value, str)
            (location,) = result["locations"]
            place = location["physicalLocation"]["artifactLocation"]["uri"]
            assert place.isascii()
            assert " " not in place
            assert urlsplit(place).scheme in ("", "file")
            for logical in location.get("logicalLocations", ()):
                assert logical["fullyQualifiedName"]
                assert logical["name"]


def test_a_log_of_findings() -> None:
    found = [
        ("a/b c.nc", finding("/g/t2m", evidence={"ratio": float("inf")})),
        ("./x.nc", finding("/v\x9b\udc80", "edge-waste", severity="note")),
        ("/data/x.nc", refusal("the file is empty")),
    ]
    log = sarif(found)
    check(log)
    text = json.dumps(log, allow_nan=False)
    assert "\\udc80" not in text.replace("\\\\udc80", "")
    (run,) = log["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [
        "cannot-open", "chunk-exceeds-cache", "edge-waste",
    ]  # fmt: skip
    first, second, third = run["results"]
    assert (first["ruleId"], first["level"]) == ("chunk-exceeds-cache", "warning")
    assert first["message"]["text"].startswith("/g/t2m: Reading a line")
    (logical,) = first["locations"][0]["logicalLocations"]
    assert logical == {"fullyQualifiedName": "/g/t2m", "name": "t2m"}
    assert second["message"]["text"].isprintable() or "\n" in second["message"]["text"]
    assert third["locations"][0] == {
        "physicalLocation": {"artifactLocation": {"uri": "file:///data/x.nc"}}
    }


def test_a_log_without_findings() -> None:
    log = sarif([], complete=False)
    check(log)
    assert log["runs"][0]["results"] == []
    assert log["runs"][0]["invocations"] == [{"executionSuccessful": False}]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.nc", "a.nc"),
        ("./a b/c#1.nc", "a%20b/c%231.nc"),
        ("/data/50%.nc", "file:///data/50%25.nc"),
        ("12:30/a:b.nc", "12%3A30/a%3Ab.nc"),
        ("温\udc80.nc", "%E6%B8%A9%80.nc"),
    ],
)
def test_paths_become_uris(path: str, expected: str) -> None:
    assert uri(path) == expected
    assert unquote(expected, errors="surrogateescape").endswith(path.removeprefix("./"))


def test_fingerprints_stay_where_numbers_change() -> None:
    one, other = (
        sarif([("a.nc", finding("/x", waste_nbytes=n))])["runs"][0]["results"][0] for n in (1, 2)
    )
    assert one["partialFingerprints"] == other["partialFingerprints"]


def test_a_log_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    save(sarif([]), str(tmp_path / "a.sarif"))
    check(json.loads((tmp_path / "a.sarif").read_text()))
    with pytest.raises(CannotWriteError, match="cannot be written: No such file"):
        save(sarif([]), str(tmp_path / "none" / "a.sarif"))
    assert [path.name for path in tmp_path.iterdir()] == ["a.sarif"]


def test_the_command_writes_and_prints_logs(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.zeros((12_000, 2)), chunks=(1, 2))
    (tmp_path / "cut.h5").write_bytes((tmp_path / "a.h5").read_bytes()[:2000])
    command = [sys.executable, "-m", "chunkwise", "inspect"]
    line = [*command, ".", "--fail-on", "note", "--sarif"]
    done = subprocess.run([*line, "out.sarif"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    log = json.loads((tmp_path / "out.sarif").read_text())
    check(log)
    found = [(r["ruleId"], r["locations"][0]) for r in log["runs"][0]["results"]]
    assert [code for code, _ in found] == ["small-chunks", "cannot-open"]
    assert found[0][1]["physicalLocation"]["artifactLocation"]["uri"] == "a.h5"
    assert len(done.stdout.splitlines()) == 2
    for file, code in ((".", 1), ("a.h5", 0)):
        printed = ran([*command, file, "--sarif", "-"], cwd=tmp_path)
        assert printed.returncode == code
        check(json.loads(printed.stdout))


def test_every_code_is_listed_as_the_docs_have_it() -> None:
    assert set(CODES) == codes_in_use()
    for code, words in CODES.items():
        assert f"| {words} |" in next(
            line for line in DOCS.splitlines() if line.startswith(f"| [`{code}`]")
        )
