"""Is what ranks write together through h5py left to it, in `chunkwise.wrap` too?"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.support.mpi import mpirun
from tests.support.mpi_h5py import PYTHON, needs_parallel_h5py

PROGRAM = """
import sys, h5py, numpy as np
from mpi4py import MPI
import chunkwise
comm = MPI.COMM_WORLD
count = 1 << 15
with h5py.File(sys.argv[1], "w", driver="mpio", comm=comm) as file:
    packed = file.create_dataset("packed", (2, count), "i4", chunks=(1, count), compression=1)
    # Each rank has half of each chunk.
    shared = file.create_dataset("shared", (2, count), "i4", chunks=(1, count))
    values = np.arange(2 * count).reshape(2, count)
    d = chunkwise.wrap(packed)
    assert "ranks of MPI" in d.explain_write()["reason"], d.explain_write()
    with d.collective:
        d[comm.rank] = values[comm.rank].astype("i4")
    d = chunkwise.wrap(shared)
    mine = np.s_[:, comm.rank * count // 2 : (comm.rank + 1) * count // 2]
    for kind in ("i4", "i8"):
        d[mine] = values[mine].astype(kind)
"""


@needs_parallel_h5py
@pytest.mark.slow
def test_ranks_write_what_they_have_wrapped(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    done = mpirun(2, "-c", PROGRAM, path, python=PYTHON)
    assert done.returncode == 0, done.stderr
    expected = np.arange(1 << 16).reshape(2, 1 << 15)
    with h5py.File(path) as file:
        for name in ("packed", "shared"):
            np.testing.assert_array_equal(file[name][...], expected)
