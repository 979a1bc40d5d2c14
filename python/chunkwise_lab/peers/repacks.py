"""How long does a program take that writes a file anew, and how much memory?

Each is run as a process, as its users do, from its start until storage has the file.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import h5py

from chunkwise_lab.peers.task import CannotReadError, Sample, Task

# Looked at so often: memory that is taken for less is missed.
INTERVAL_S: Final = 0.01
_MEMORY: Final = re.compile(r"Rss(?:Anon|Shmem):\s+(\d+) kB")


def run(
    argv: Sequence[str],
    source: str,
    target: str,
    dataset: str,
    unit: str = "seconds",
    keep: bool = False,
) -> Task:
    """Run a program that makes `target` of `source`; seconds, or the most memory it had."""
    program = _program(argv[0])
    files = {"{in}": source, "{out}": target}
    command = [program, *(files.get(word, word) for word in argv[1:])]
    path = Path(target)

    def measure() -> Sample:
        path.unlink(missing_ok=True)
        os.sync()  # What others left to be written is not this one's work.
        begun = time.perf_counter()
        memory = _finished(command)
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        elapsed = time.perf_counter() - begun
        with h5py.File(path) as file:
            values = file[dataset][()]
        told = {"file_nbytes": path.stat().st_size, "memory_nbytes": memory}
        if not keep:
            path.unlink()
        return Sample(elapsed if unit == "seconds" else float(memory), values, told)

    yield measure


def size(target: str) -> Task:
    """Bytes of a file that another comparison's reader has made; it goes with this."""
    path = Path(target)
    if not path.exists():
        raise CannotReadError("there is no file: the comparison before this one makes it")
    nbytes = path.stat().st_size
    path.unlink()
    yield lambda: Sample(float(nbytes))


def _program(name: str) -> str:
    found = shutil.which(name)
    if name == "chunkwise":
        # Of this environment, whichever comes first on the path.
        found = str(Path(sys.executable).with_name(name))
    if found is None:
        raise CannotReadError(f"{name} is not installed: `make tools`")
    return found


def _finished(command: Sequence[str]) -> int:
    """Run a program to its end, and return the most memory that it was seen to have."""
    most = 0
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            while process.poll() is None:
                with contextlib.suppress(OSError):
                    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
                    most = max(most, 1024 * sum(map(int, _MEMORY.findall(status))))
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(INTERVAL_S)
        except BaseException:
            process.kill()
            raise
        said = process.stderr.read() if process.stderr else ""
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: {said.strip()[-300:]}")
    return most
