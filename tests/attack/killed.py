"""A process that writes, appends and flushes is killed (SIGKILL) at a random moment.

What a flush has confirmed is there, also where it was written again after it; a process that dies
within a flush leaves what no rule describes.  See `docs/writing.md`.
"""

import os
import signal
import time
from pathlib import Path

import numpy as np

from tests.attack._history import examine, history, perform

SHORT = 6
LENGTH = 4000


def attempt(seed: int, folder: Path) -> None:
    """One process, killed once."""
    rng = np.random.default_rng(seed)
    path = folder / "x.h5"
    libver = str(rng.choice(["earliest", "latest"]))
    steps = history(seed, LENGTH)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            perform(
                path, libver, steps, lambda what, n: _tell(writer, f"{what} {n}\n"), sync=False
            )
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader) as told:
        lines = [told.readline()]
        time.sleep(0.1 * rng.random() ** 2)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert status in (0, signal.SIGKILL), f"seed {seed}: the writer ended with {status}"
        lines += told.readlines()
    last, number = lines[-1].split()
    flushed = [int(line.split()[1]) for line in lines if line.startswith("flushed")]
    if flushed and last not in ("flush", "closing"):
        examine(path, steps, flushed[-1], f"seed {seed}, {libver}, step {number}")


def _tell(pipe: int, line: str) -> None:
    os.write(pipe, line.encode())
