"""Does the matrix find the cases that are slower, and only those?"""

import json
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise_lab.matrix import __main__ as matrix
from chunkwise_lab.matrix import work


def noisy(seconds: float, seed: int) -> list[float]:
    return list(seconds * np.random.default_rng(seed).lognormal(0, 0.2, 40))


def test_what_is_slower_by_more_than_noise() -> None:
    assert matrix.judge(noisy(1.0, 1), noisy(1.3, 2)).word == "faster"
    assert matrix.judge(noisy(1.0, 1), noisy(1.0, 2)).word != "faster"
    assert matrix.judge(noisy(1.3, 1), noisy(1.0, 2)).word == "slower"
    # A machine that slows down more than what is to be found leaves it open.
    drift = np.linspace(1, 10, 40)
    assert matrix.judge(list(drift), list(drift * 1.1)).word == "cannot tell"
    assert matrix.judge(list(drift), list(drift)).word == "same"
    # So little does not count.
    assert matrix.judge([1.0] * 40, [1.02] * 40).word != "faster"


def test_both_begin_every_other_time_until_there_is_no_doubt() -> None:
    calls: list[str] = []

    def taking(name: str, seconds: float) -> Any:
        def take() -> float:
            calls.append(name)
            return seconds

        return take

    first, second = matrix.compare(taking("a", 1.0), taking("b", 2.0), 1e9, 1000)
    assert (first, second) == ([1.0] * 10, [2.0] * 10)
    assert calls[2:10] == ["a", "b", "b", "a", "a", "b", "b", "a"]
    # Where time is up, it ends.
    assert len(matrix.compare(taking("a", 1.0), taking("b", 1.0), 8, 1000)[0]) == 5


def test_each_case_has_its_own_name() -> None:
    names = [case.name for case in work.cases()]
    assert len(names) == len(set(names)) > 500


def test_what_is_explained_loses_no_more_than_the_reason_allows() -> None:
    opening = work.Case("read", "row", "tiny")
    assert "where the data lies" in (matrix.reason(opening, 1e-4) or "")
    assert matrix.reason(opening, 1e-3) is None
    assert matrix.reason(work.Case("read", "row", "64K", phase="again"), 1e-6) is None
    kept = {opening.name: {"h5py": [1e-4] * 9, "chunkwise": [2e-4] * 9}}
    lines = matrix.table([opening], kept).splitlines()
    assert lines[1].startswith("explained: the first read of a file")
    assert lines[2].endswith("read/row/tiny/none/open")
    assert "1 case of 1 slower than h5py, 1 explained" in lines[3]


def test_cases_run(tmp_path: Path) -> None:
    tiny = [one for one in work.cases() if one.layout == "tiny-4K" and one.filters != "lzf"]
    assert {one.how for one in tiny} == {*work.READS, *work.WRITES}
    some = [work.Case("read", "row", "tiny-4K", phase=phase) for phase in work.PHASES]
    some += [work.Case("read", "box", "tiny", threads=3, wanted="f8", dtype=">f4")]
    some += [work.Case("write", how, "tiny-4K", "deflate", face="patched") for how in work.WRITES]
    for case in [*tiny, *some]:
        made = work.Work(case, tmp_path)
        if case.work == "read":
            made.check()
        for reader in work.READERS:
            assert made.seconds(reader) > 0
    assert not list(tmp_path.glob("written-*"))
    # What is patched is so no longer.
    assert "chunkwise" not in h5py.Dataset.__getitem__.__module__, chunkwise.patch_stats()


def test_another_result_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = work.Work(work.Case("read", "row", "tiny"), tmp_path)
    monkeypatch.setattr(chunkwise.Dataset, "__getitem__", lambda *_: np.zeros(3))
    with pytest.raises(AssertionError, match="read/row/tiny/none/open: another result"):
        made.check()


def test_what_is_kept_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = {"read/row/tiny/none/open": {"h5py": [1.0] * 9, "chunkwise": [2.0] * 9}}
    (tmp_path / "matrix.json").write_text(json.dumps(kept))
    arguments = ["matrix", "--folder", str(tmp_path), "--seconds", "0.01", "--most", "5"]
    monkeypatch.setattr(sys, "argv", [*arguments, "--only", "read/[re]*/tiny/none/open"])
    matrix.main()
    said = capsys.readouterr().out
    assert " 0.50 (0.49 to 0.51)   1000.000 ms  read/row/tiny/none/open" in said
    saved = json.loads((tmp_path / "matrix.json").read_text())
    assert saved["read/row/tiny/none/open"] == kept["read/row/tiny/none/open"]
    assert len(saved["read/element/tiny/none/open"]["h5py"]) == 5
    monkeypatch.setattr(sys, "argv", [*arguments, "--list"])
    matrix.main()
    assert "not measured" in capsys.readouterr().out
