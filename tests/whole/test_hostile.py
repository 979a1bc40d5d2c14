"""Do commands do work in proportion to what a file holds, whatever it claims?

Each case of `tests.support.hostile` goes through the commands in a child process.  Its time
and memory are limited by the system, far above what is needed.  Nothing depends on how long
something takes, but on whether it ends.
"""

import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.hostile import CASES, MOST_NBYTES, NAME
from tests.support.processes import Program

pytestmark = pytest.mark.slow

CPU_S: Final = 60
WAIT_S: Final = 300
# Of the address space, of which threads and libraries take some GiB.
SPACE_NBYTES: Final = 8 << 30
MEMORY_NBYTES: Final = 1 << 30

COMMANDS: Final = {
    "inspect": ["inspect", NAME],
    "verify": ["verify", NAME],
    "manifest": ["verify", NAME, "--write-manifest", "m.json"],
    "index": ["index", NAME, "-o", "a.json"],
    "sidecar": ["index", NAME],
    "fix": ["fix", NAME, "--dry-run"],
    # Which makes its plan first.
    "repack": ["repack", NAME, "out.h5", "--filter", "deflate:1"],
}
MEASURING: Final = {
    "bench": ["bench", NAME, "--budget", "0.5s"],
    "advise": ["advise", NAME, "x", "--access", "line:0", "--budget", "0.5s"],
}
MEASURED: Final = (
    "unwritten-contiguous-2-50",
    "unwritten-plane-2-50",
    "unwritten-small-chunks",
    "one-chunk-of-2-36",
    "external-fifo",
)


# One import for all, as it takes longer than most commands: each case is forked from it, and each
# command from that.  Some end their process themselves.  Memory is that of each command: the most
# that a process of the test's took would count the test's own, from which it was forked.
DRIVER: Final = f"""
import gc, json, os, resource, sys
import h5py
import chunkwise.fixing.render, chunkwise.indexing.api, chunkwise.inspection.render
import chunkwise.verifying.survey
from chunkwise.cli import advise, bench, fix, index, inspect, repack, verify
from chunkwise.cli.main import main

def case(folder, commands):
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, ({CPU_S}, {CPU_S}))
    resource.setrlimit(resource.RLIMIT_AS, ({SPACE_NBYTES}, {SPACE_NBYTES}))
    os.chdir(folder)
    os.environ["XDG_CACHE_HOME"] = os.path.join(folder, "cache")
    said = os.open("said", os.O_WRONLY | os.O_CREAT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, of in ((0, nothing), (1, said), (2, said)):
        os.dup2(of, descriptor)
    for arguments in commands:
        child = os.fork()
        if not child:
            sys.argv = ["chunkwise", *arguments]
            main()
            sys.exit()
        _, status, used = os.wait4(child, 0)
        code = os.waitstatus_to_exitcode(status)
        print("==", *arguments, "==", code, used.ru_maxrss * 1024, flush=True)

# Children neither go through what was imported nor copy it.
gc.freeze()
for line in sys.stdin:
    child = os.fork()
    if not child:
        case(*json.loads(line))
        os._exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def driver() -> Iterator[Program]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CHUNKWISE_CACHE", "64MiB")
        program = Program(DRIVER)
    with program:
        yield program


def run(driver: Program, folder: Path, commands: list[list[str]]) -> tuple[int, str]:
    """Give the exit code, and what was printed."""
    driver.tell(json.dumps([str(folder), commands]))
    ends = threading.Timer(WAIT_S, os.killpg, (int(driver.hear()), signal.SIGKILL))
    ends.start()
    try:
        code = int(driver.hear())
    finally:
        ends.cancel()
    return code, (folder / "said").read_text()


def check(driver: Program, name: str, folder: Path, commands: dict[str, list[str]]) -> None:
    path = CASES[name](folder)
    most = 2 * MOST_NBYTES if "attributes" not in name else 1 << 20
    assert path.stat().st_size <= most
    code, said = run(driver, folder, list(commands.values()))
    assert code == 0, said
    assert "Traceback" not in said
    ended = re.findall(r"^== .* == (-?\d+) (\d+)$", said, re.MULTILINE)
    assert len(ended) == len(commands), said
    assert {int(one) for one, _ in ended} <= {0, 1, 2, 3, 4}, said
    assert max(int(nbytes) for _, nbytes in ended) <= MEMORY_NBYTES, said


@pytest.mark.parametrize("name", CASES)
def test_commands_end_on_small_files_that_claim_much(
    name: str, driver: Program, tmp_path: Path
) -> None:
    check(driver, name, tmp_path, COMMANDS)


@pytest.mark.parametrize("name", MEASURED)
def test_measuring_ends_on_small_files_that_claim_much(
    name: str, driver: Program, tmp_path: Path
) -> None:
    check(driver, name, tmp_path, MEASURING)
