"""Does the demo run the study, and leave nothing behind when it is interrupted?"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from chunkwise_lab.sample import write

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))
demo: Any = importlib.import_module("demo")


def test_the_demo_runs_the_study_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo-files/study/trials").mkdir(parents=True)
    ran: list[tuple[str, ...]] = []

    def run(*arguments: str) -> None:
        # What an earlier demo has measured is gone by then.
        assert arguments[0] != "study" or not (tmp_path / "demo-files/study").exists()
        ran.append(arguments)

    monkeypatch.setattr(demo, "run", run)
    assert demo.main() == 0
    assert [arguments[0] for arguments in ran] == ["sample", "inspect", "bench", "sample", "study"]
    assert ran[-1] == ("study", "cris", "-o", "demo-files/study")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_no_generated_files(
    tmp_path: Path, number: signal.Signals
) -> None:
    files, scratch = tmp_path / "demo-files", tmp_path / "tmp"
    files.mkdir()
    scratch.mkdir()
    write("cris", files / "cris.h5", shape=(8, 30, 9, 717))
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import demo; demo.newcomer = print; raise SystemExit(demo.main())",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "examples"), "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + 60
    while not list(files.glob("study/files/*.h5")):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    # As a terminal does: to all of them.
    os.killpg(process.pid, number)
    _, said = process.communicate(timeout=60)
    assert process.returncode in (128 + number, -number)
    assert "Traceback" not in said
    assert sorted(path.name for path in files.iterdir()) == ["cris.h5", "study"]
    assert not (files / "study/files").exists()
    assert not list(scratch.iterdir())
