"""How do tests start a program on several ranks?"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.processes import ran

LAUNCHER: Final = shutil.which("mpirun")


def can_start() -> bool:
    """Return whether there are mpirun and mpi4py."""
    return LAUNCHER is not None and importlib.util.find_spec("mpi4py") is not None


needs_mpi: Final = pytest.mark.skipif(not can_start(), reason="needs mpirun and mpi4py")


def environment(**more: str) -> dict[str, str]:
    """The environment for mpirun, also for root and for more ranks than cores."""
    return {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        # Open MPI 4: nothing of its own about a code that is not 0.
        "OMPI_MCA_orte_execute_quiet": "1",
        # Open MPI 4 in a container that may not trace processes.
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        **more,
    }


def mpirun(
    n_ranks: int,
    *command: str | Path,
    python: str | Path = sys.executable,
    timeout: float = 180,  # More ranks than cores, on a busy machine
    cwd: Path | None = None,
    **more: str,
) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments on so many ranks; a hang fails the test."""
    assert LAUNCHER is not None
    return ran(
        [LAUNCHER, "-n", str(n_ranks), str(python), *map(str, command)],
        timeout=timeout,
        env=environment(**more),
        cwd=cwd,
    )
