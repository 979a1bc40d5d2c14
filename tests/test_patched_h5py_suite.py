"""Do h5py's own tests come out patched as they do unpatched, test by test?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SUITE = Path(__file__).with_name("h5py_suite.py")
# A minute on a busy machine; a hang is what this ends.
HANG_S = 900


def start(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    folder.mkdir()
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, str(SUITE), "outcomes.json", *options],
            cwd=folder,
            stdout=log,
            stderr=log,
            # The tests make files there under fixed names.
            env=os.environ | {"TMPDIR": str(folder)},
        )


def finish(run: subprocess.Popen[bytes], folder: Path) -> Any:
    try:
        code = run.wait(HANG_S)
    finally:
        run.kill()
    assert code == 0, (folder / "log").read_text()[-2000:]
    return json.loads((folder / "outcomes.json").read_text())


def test_h5pys_own_tests_have_the_same_outcomes(tmp_path: Path) -> None:
    runs = [start(tmp_path / "plain"), start(tmp_path / "patched", "--patched")]
    plain = finish(runs[0], tmp_path / "plain")
    patched = finish(runs[1], tmp_path / "patched")
    passed = sum(outcome == "passed" for outcome in plain["outcomes"].values())
    assert passed > 500
    assert patched["outcomes"] == plain["outcomes"]
    # Most of h5py's tests read what they have just written, in a file that is still open.
    assert patched["stats"]["engine"] > 20
    assert sum(patched["stats"]["h5py"].values()) > 100
