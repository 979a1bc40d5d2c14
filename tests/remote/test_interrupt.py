"""Does Ctrl-C end a read that waits, and does a program end that reads remote files?"""

import signal
import subprocess
import sys
import threading
from typing import Any

import pytest

from tests.remote.test_web import made
from tests.support.processes import Program
from tests.support.web import serving

pytest.importorskip("aiohttp")

WAITING = """
import sys, chunkwise
file = chunkwise.open(sys.argv[1])
dataset = file["group/filtered"]
dataset[0]
print("reading", flush=True)
sys.stdin.readline()
try:
    dataset[20:30]
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""

LEAVING = """
import sys, threading, chunkwise
file = chunkwise.open(sys.argv[1])
assert file["group/filtered"][7].any()
kept = file["group/plain"]
assert not [one for one in threading.enumerate() if "chunkwise" in one.name]
print("left open", flush=True)
"""


def test_ctrl_c_ends_a_read_that_waits() -> None:
    late = threading.Event()
    waits, stop = threading.Event(), threading.Event()
    answered: list[str] = []

    def waiting(_: Any) -> bool:
        if late.is_set():
            waits.set()
        if late.is_set() and not stop.wait(60):
            answered.append("late")
        return False

    with (
        serving({"/a.h5": made()}, fails=waiting) as server,
        Program(WAITING, f"{server.url}/a.h5") as program,
    ):
        assert program.hear() == "reading"
        late.set()
        program.tell("go on")
        # As soon as its read waits.
        assert waits.wait(60)
        program.process.send_signal(signal.SIGINT)
        said = program.hear()
        # The server has not answered yet.
        assert (said, answered) == ("interrupted", [])
        stop.set()


def test_a_program_that_leaves_a_file_open_ends() -> None:
    with serving({"/a.h5": made()}) as server:
        command = [sys.executable, "-c", LEAVING, f"{server.url}/a.h5"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "left open\n", "")
