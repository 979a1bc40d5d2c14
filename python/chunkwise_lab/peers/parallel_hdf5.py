"""How fast do ranks write compressed data together: chunkwise, and parallel HDF5's own way?

The pattern is hdf5-iotest's, collective, shuffle and deflate 1: array by array, so that each write
covers 1/arrays of a chunk, or a step at a time.  Times are of the slowest rank, from before the
file is made until it is closed.  Processor time counts ranks that wait in MPI as if they worked:
compare it at 1 rank.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Final

import h5py

from chunkwise import _native
from chunkwise_lab.checkout import ROOT
from chunkwise_lab.peers.task import CannotReadError, Sample, Task, succeeded, tool

PYTHONS: Final = {"chunkwise": sys.executable, "parallel HDF5": str(ROOT / ".venv-mpi/bin/python")}
# Steps, arrays, and the rows and columns of a rank.
SHAPE: Final = (24, 50, 100, 200)
SOURCE = '''
import json, os, resource, sys, time
import numpy as np
from mpi4py import MPI

case = json.loads(sys.argv[1])
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
steps, arrays, rows, columns = case["shape"]
# Tiles lie side by side along the columns.
whole = (steps, arrays, rows, columns * size)
mine = slice(rank * columns, (rank + 1) * columns)
chunks = (1, arrays, rows, columns)

def tiles(step):
    """What this rank writes in a step: hdf5-iotest's values, or with noise in the last bits."""
    a, i, j = np.ogrid[:arrays, :rows, rank * columns : (rank + 1) * columns]
    grid = whole[1] * whole[2] * whole[3]
    index = step * grid + (a * whole[2] + i) * whole[3] + j
    if case["data"] == "indices":
        return index.astype("f8")
    rng = np.random.default_rng([step, rank])
    # Five decimal digits of a field with noise, as measurements have.
    return np.round(np.sin(index / 997.0) * 100 + rng.normal(0, 1, index.shape), 3)

if case["by"] == "chunkwise":
    from chunkwise import parallel
    parallel.open  # Imported now, not while it is measured.
else:
    import h5py
data = [tiles(step) for step in range(steps)]
def write(d):
    for step in range(steps):
        if case["write"] == "step":
            d[step, :, :, mine] = data[step]
        else:
            for array in range(arrays):
                d[step, array, :, mine] = data[step][array]

def cpu_s():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

comm.Barrier()
begun, cpu_begun = time.perf_counter(), cpu_s()
if case["by"] == "chunkwise":
    with parallel.open(case["path"], "w", comm) as f:
        d = f.create_dataset("d", whole, "f8", chunks=chunks, filters="shuffle+deflate:1")
        write(d)
else:
    with h5py.File(case["path"], "w", driver="mpio", comm=comm, libver="latest") as f:
        d = f.create_dataset("d", whole, "f8", chunks=chunks, shuffle=True, compression="gzip",
                             compression_opts=1)
        with d.collective:
            write(d)
    # Ours is on storage when it is closed.
    if rank == 0:
        with open(case["path"], "rb") as f:
            os.fsync(f.fileno())
cpu_took = comm.allreduce(cpu_s() - cpu_begun)
comm.Barrier()
took = comm.allreduce(time.perf_counter() - begun, op=MPI.MAX)
if rank == 0:
    print(json.dumps({"s": took, "cpu_s": cpu_took, "nbytes": int(np.prod(whole)) * 8}))
'''


def written(by: str, ranks: int, data: str, write: str, small: bool) -> Task:
    """Write a file by this many ranks; what is in it is compared."""
    mpirun, python = tool("mpirun"), PYTHONS[by]
    if not Path(python).exists():
        raise CannotReadError("needs an h5py for MPI: `make mpi`")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "made.h5")
        shape = tuple(min(n, 4) for n in SHAPE) if small else SHAPE
        case = {"by": by, "shape": shape, "data": data, "write": write, "path": str(path)}

        def measure() -> Sample:
            done = succeeded(
                # Bound to processors, as Open MPI does it by itself.
                [mpirun, "-n", str(ranks), python, "-c", SOURCE, json.dumps(case)],
                environment={
                    "OMPI_ALLOW_RUN_AS_ROOT": "1",
                    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                    "OMPI_MCA_rmaps_base_oversubscribe": "1",
                    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
                },
                timeout_s=600.0,
                patience_s=10.0,
            )
            details = json.loads(done.out)
            crc = 0
            with h5py.File(path) as file:
                for step in range(shape[0]):
                    crc = _native.crc32(file["d"][step], crc)
            path.unlink()
            return Sample(details.pop("s"), crc, details)

        yield measure
