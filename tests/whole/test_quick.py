"""Does a quick run leave out what starts a process, and what is marked slow?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"
TESTS = """
import multiprocessing, os, subprocess, sys, threading
import pytest

def work():
    pass

@pytest.fixture
def started():
    return subprocess.run([sys.executable, "-c", ""])

def test_nothing():
    pass

def test_runs():
    subprocess.run([sys.executable, "-c", ""])

def test_forks():
    os.fork() or os._exit(0)

@pytest.mark.parametrize("how", ["spawn", "forkserver", "fork"])
def test_works(how):
    multiprocessing.get_context(how).Process(target=work).start()

def test_in_a_fixture(started):
    pass

def test_in_a_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(subprocess.run(["true"])))
    thread.start()
    thread.join()
    assert found

@pytest.mark.slow
def test_slow():
    raise AssertionError

def test_writes(tmp_path):
    (tmp_path / "a").write_bytes(bytes(33 << 20))
"""


def test_what_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text())
    (tmp_path / "test_all.py").write_text(TESTS)
    options = ("--quick", "-rA", "-p", "no:cacheprovider", "--rootdir", ".", "test_all.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options], cwd=tmp_path, capture_output=True, text=True
    )
    assert "PASSED test_all.py::test_nothing" in done.stdout
    assert "1 failed, 1 passed, 7 skipped, 1 deselected" in done.stdout, done.stdout
    assert "FAILED test_all.py::test_writes - Failed: writes more than" in done.stdout
