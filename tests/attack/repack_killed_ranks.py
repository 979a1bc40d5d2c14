"""A rank of a repack is killed (SIGKILL) at a random moment.

All ranks end within seconds.  The source stays as it was; the target is complete or not there; and
the next run, which goes on from what is there or begins anew, makes it and leaves nothing else.
"""

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np

from tests.parallel.test_repack_ranks import _ranks
from tests.support.mpi import LAUNCHER, can_start, environment
from tests.support.repacking import require_equal

SHORT = 1
# A launcher ends the others after one has died; a machine that is busy takes its time.
SECONDS = 30.0
RULES = ("--chunk", "x:40x30x30", "--filter", "shuffle+deflate:6")


def attempt(seed: int, folder: Path) -> None:
    """One repack, one rank of which is killed; nothing where there is no MPI."""
    if not can_start():
        return
    rng = np.random.default_rng(seed)
    source, target = folder / "in.h5", folder / "out.h5"
    values = rng.integers(0, 50, (40, 300, 300), "i4").cumsum(0, dtype="i4")
    with h5py.File(source, "w") as file:
        file.create_dataset("x", data=values, chunks=(1, 300, 300), compression=1)
        file.create_dataset("y", data=values[:30], chunks=(7, 100, 90))
        file["small"] = np.arange(10)
    before = hashlib.sha256(source.read_bytes()).digest()
    n_ranks, words = int(rng.integers(1, 5)), list(RULES)
    words += ["--resume"] if rng.integers(2) else []
    # Python takes its time to start: half of the attempts wait until something is written.
    begun = bool(rng.integers(2))
    after_s, victim = float(rng.uniform(0, 0.8 if begun else 2.5)), int(rng.integers(n_ranks))
    if begun:
        after_s = -after_s
    outcome, took = _killed(n_ranks, source, target, words, after_s, victim)
    assert took < SECONDS, f"seed {seed}: the others ended after {took:.1f} s"
    assert hashlib.sha256(source.read_bytes()).digest() == before, f"seed {seed}: the source"
    complete = target.exists()
    if complete:
        require_equal(source, target)
        print(f"seed {seed}: {n_ranks} ranks, {outcome}, complete")
    else:
        assert not outcome.endswith("(0)"), f"seed {seed}: {outcome}, and there is no target"
        print(f"seed {seed}: {n_ranks} ranks, {outcome}, no target")
    done = subprocess.run(
        _command(n_ranks, source, target, [*words, "--force"]),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, f"seed {seed}: the next run: {done.stderr}"
    require_equal(source, target)
    left = sorted(one.name for one in folder.iterdir())
    assert left == ["in.h5", "out.h5"], f"seed {seed}: {left}"


def _command(n_ranks: int, source: Path, target: Path, words: Sequence[str]) -> list[str]:
    assert LAUNCHER is not None
    program = [sys.executable, "-m", "chunkwise", "repack", str(source), str(target), *words]
    return [LAUNCHER, "-n", str(n_ranks), *program]


def _killed(
    n_ranks: int, source: Path, target: Path, words: Sequence[str], after_s: float, victim: int
) -> tuple[str, float]:
    """Start ranks and kill one of them; gives what came of it, and the seconds until the end.

    The moment is so long after the start, or, where it is negative, after the target was begun.
    """
    running = subprocess.Popen(
        _command(n_ranks, source, target, words),
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 20
        while after_s < 0 and running.poll() is None and time.monotonic() < until:
            if any(target.parent.glob(".out.h5.*.partial")):
                break
            time.sleep(0.002)
        time.sleep(abs(after_s))
        ranks = _ranks(running.pid)
        killed = "ended"
        if victim < len(ranks):
            os.kill(ranks[victim], signal.SIGKILL)
            killed = "killed"
        begun = time.monotonic()
        code = running.wait(60)
        return f"{killed} ({code})", time.monotonic() - begun
    finally:
        if running.poll() is None:
            running.kill()
            running.wait()
