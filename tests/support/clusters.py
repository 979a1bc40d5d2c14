"""A Dask cluster of this machine, for tests; they are skipped where Dask is missing."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@contextlib.contextmanager
def cluster(workers: int = 2, threads: int = 1) -> Iterator[Any]:
    """A client of a cluster of processes on the loopback interface."""
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    # A run without processes skips the test here; a cluster that may start none waits for ever.
    sys.audit("subprocess.Popen", sys.executable, [], None, None)
    with (
        distributed.LocalCluster(
            processes=True,
            n_workers=workers,
            threads_per_worker=threads,
            dashboard_address=None,
            host="127.0.0.1",
        ) as made,
        distributed.Client(made) as client,
    ):
        client.wait_for_workers(workers, timeout=180)
        yield client


class Killer:
    """Kills a worker of a cluster once, after so many seconds."""

    def __init__(self, client: Any, after_s: float, seed: int) -> None:
        self.pids = sorted(one for one in client.run(os.getpid).values())
        self.after_s, self.seed, self.killed = after_s, seed, 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        if self._ended.wait(self.after_s):
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(random.Random(self.seed).choice(self.pids), signal.SIGKILL)
            self.killed = 1


def slowly(block: Any, seconds: float = 0.02) -> Any:
    """The block, after some time."""
    time.sleep(seconds)
    return block


def left_in(folder: Path) -> list[str]:
    """Names of what is in a folder."""
    return sorted(one.name for one in folder.iterdir())
