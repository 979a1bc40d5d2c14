"""A rank of a program that writes a file together with others is killed at a random moment.

All ranks end within seconds, and what has the target's name is complete.
"""

from pathlib import Path

import numpy as np

from tests.parallel.test_writer import kill_one
from tests.support.mpi import can_start

SHORT = 1
# A launcher ends the others after one has died; a machine that is busy takes its time.
SECONDS = 30.0


def attempt(seed: int, folder: Path) -> None:
    """One program, one rank of which is killed; nothing where there is no MPI."""
    if not can_start():
        return
    rng = np.random.default_rng(seed)
    n_ranks = int(rng.integers(1, 5))
    took = kill_one(folder, n_ranks, int(rng.integers(n_ranks)), float(rng.uniform(0, 2.0)))
    assert took < SECONDS, f"seed {seed}: the others ended after {took:.1f} s"
