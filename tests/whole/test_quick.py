"""Do the runs that leave something out leave out that, and nothing else?"""

import sys
from pathlib import Path

from tests.support.processes import ran

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
MIDDLE = """
import os, subprocess, sys
import pytest

def test_runs(tmp_path):
    subprocess.run([sys.executable, "-c", ""], check=True)
    subprocess.run("true", shell=True, check=True)
    os.fork() or os._exit(0)
    (tmp_path / "a").write_bytes(bytes(33 << 20))

def test_works():
    import multiprocessing
    multiprocessing.get_context("spawn").Process(target=print).start()

@pytest.mark.parametrize("command", [["/usr/bin/mpiexec", "-n", "2"], ["chromium"]])
def test_is_left_out(command):
    subprocess.run(command)

def test_is_left_out_by_the_shell():
    os.system("mpiexec -n 2 true")

@pytest.mark.slow
def test_slow():
    raise AssertionError
"""


def printed(tmp_path: Path, option: str, tests: str) -> str:
    (tmp_path / "whole").mkdir()
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text())
    (tmp_path / "test_all.py").write_text(tests)
    (tmp_path / "whole" / "test_site.py").write_text("def test_site():\n    pass\n")
    options = (option, "-rA", "-p", "no:cacheprovider", "--rootdir", ".")
    done = ran([sys.executable, "-m", "pytest", *options], cwd=tmp_path)
    return done.stdout


def test_a_quick_run_starts_no_process(tmp_path: Path) -> None:
    told = printed(tmp_path, "--quick", TESTS)
    assert "PASSED test_all.py::test_nothing" in told
    assert "1 failed, 2 passed, 7 skipped, 1 deselected" in told, told
    assert "FAILED test_all.py::test_writes - Failed: writes more than" in told


def test_a_middle_run_starts_no_ranks_and_no_browser(tmp_path: Path) -> None:
    told = printed(tmp_path, "--middle", MIDDLE)
    assert "PASSED test_all.py::test_runs" in told
    assert "starts mpiexec: not with --middle" in told
    assert "2 passed, 3 skipped, 2 deselected" in told, told
