"""How do tests start ranks that write one file by h5py?

With the Python of `make mpi`, whose h5py is built against a parallel HDF5; where it is missing,
tests skip and say so.
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.support.mpi import environment, mpirun

ROOT: Final = Path(__file__).resolve().parents[2]
PYTHON: Final = ROOT / ".venv-mpi" / "bin" / "python"
needs_parallel_h5py: Final = pytest.mark.skipif(
    shutil.which("mpirun") is None or not (ROOT / ".venv-mpi" / ".made").exists(),
    reason="needs mpirun and .venv-mpi (make mpi)",
)


def chunkwise(
    n_ranks: int, *arguments: str | Path, cwd: Path | None = None, limit_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run the command line on so many ranks."""
    return mpirun(n_ranks, "-m", "chunkwise", *arguments, python=PYTHON, timeout=limit_s, cwd=cwd)


def start(n_ranks: int, arguments: Sequence[str | Path], cwd: Path) -> subprocess.Popen[str]:
    """Start the command line on so many ranks, to be ended by the test."""
    return subprocess.Popen(
        ["mpirun", "-n", str(n_ranks), str(PYTHON), "-m", "chunkwise", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        cwd=cwd,
    )
