"""Does the demo show its three acts, and leave nothing behind when it is interrupted?"""

import importlib
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

from chunkwise_lab.sample import write

ROOT = Path(__file__).resolve().parents[2]
demo: Any = importlib.import_module("demo")


def test_the_demo_has_three_acts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ran: list[str] = []

    def run(*arguments: str, **_: Any) -> None:
        ran.append(arguments[0])
        if arguments[0] == "sample":
            write("cube", Path(arguments[2]), shape=(4, 300, 300))

    monkeypatch.setattr(demo, "run", run)
    assert demo.main() == 0
    assert ran == ["sample", "inspect", "fix"]
    printed = capsys.readouterr().out
    assert "The values are the same, to the bit." in printed
    # The file is there the next time.
    assert demo.main() == 0
    assert ran[3:] == ["inspect", "fix"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_an_interrupted_demo_leaves_no_half_file(tmp_path: Path, number: signal.Signals) -> None:
    files, scratch = tmp_path / "demo-files", tmp_path / "tmp"
    files.mkdir()
    scratch.mkdir()
    write("cube", files / "cube.h5", shape=(120, 300, 300))
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "examples/demo.py")],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("$ chunkwise fix"):
            break
    time.sleep(1)
    # As a terminal does: to all of them.
    os.killpg(process.pid, number)
    _, said = process.communicate(timeout=60)
    assert process.returncode in (128 + number, -number), said
    assert "Traceback" not in said
    names = {path.name for path in files.iterdir()}
    # The new file is there whole, or not at all.
    assert names in ({"cube.h5"}, {"cube.h5", "cube-fixed.h5"})
    if len(names) > 1:
        with h5py.File(files / "cube.h5") as before, h5py.File(files / "cube-fixed.h5") as after:
            assert np.array_equal(before["t2m"][...], after["t2m"][...])
    assert not list(scratch.iterdir())
