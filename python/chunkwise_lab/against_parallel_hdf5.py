"""How fast do ranks write compressed data together: chunkwise, and parallel HDF5's own way?

    make mpi
    python -m chunkwise_lab.against_parallel_hdf5 --mpi-python .venv-mpi/bin/python

The pattern is hdf5-iotest's: steps x arrays x tiles of doubles over ranks, of rank 4, in chunks
of 1 x arrays x rows x columns, shuffle and deflate 1, collective.  It is written in two ways:
array by array, as hdf5-iotest does, so that each write covers 1/arrays of a chunk; and a step at
a time, whole chunks.  Programs take turns, each pair within seconds; times are of the slowest
rank, from before the file is made until it is closed.  Files of one pair are compared by h5diff
and NumPy.  Time of all processors says more where others use the machine, but counts ranks that
wait in MPI as if they worked: compare it at 1 rank.

With --mpi-python of an h5py that was built with parallel HDF5; ours runs with the Python that
runs this, and ordinary wheels.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from chunkwise.measure.process import finished, in_turns
from chunkwise.measure.verdict import spread

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
def cpu_s():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

comm.Barrier()
begun, cpu_begun = time.perf_counter(), cpu_s()
if case["by"] == "chunkwise":
    with parallel.open(case["path"], "w", comm) as f:
        d = f.create_dataset("d", whole, "f8", chunks=chunks, filters="shuffle+deflate:1")
        for step in range(steps):
            if case["write"] == "step":
                d[step, :, :, mine] = data[step]
            else:
                for array in range(arrays):
                    d[step, array, :, mine] = data[step][array]
else:
    with h5py.File(case["path"], "w", driver="mpio", comm=comm, libver="latest") as f:
        d = f.create_dataset("d", whole, "f8", chunks=chunks, shuffle=True, compression="gzip",
                             compression_opts=1)
        with d.collective:
            for step in range(steps):
                if case["write"] == "step":
                    d[step, :, :, mine] = data[step]
                else:
                    for array in range(arrays):
                        d[step, array, :, mine] = data[step][array]
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


def write(case: dict[str, Any], python: str, ranks: int) -> tuple[float, float]:
    """Write a file, and give the rates in MB/s: by the clock, and by time of all processors."""
    done = finished(
        # Bound to processors, as Open MPI does it by itself.
        ["mpirun", "-n", str(ranks), python, "-c", SOURCE, json.dumps(case)],
        environment={
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        },
        timeout_s=600.0,
        patience_s=10.0,
    )
    if done.returncode:
        raise SystemExit(f"{case['by']} failed:\n{done.err.decode('utf-8', 'replace')}")
    told = json.loads(done.out)
    rates = [told["nbytes"] / told[key] / 1e6 for key in ("s", "cpu_s")]
    return rates[0], rates[1]


def require_equal(one: Path, other: Path) -> None:
    """Compare two files by h5diff, where it is, and by NumPy."""
    tool = shutil.which("h5diff")
    if tool is not None:
        done = finished([tool, one, other], timeout_s=600.0)
        if done.returncode:
            raise SystemExit(f"{one} and {other} differ:\n{done.out.decode()}")
    with h5py.File(one) as first, h5py.File(other) as second:
        for step in range(first["d"].shape[0]):
            if not np.array_equal(first["d"][step], second["d"][step]):
                raise SystemExit(f"step {step} differs between {one} and {other}")


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mpi-python", default=".venv-mpi/bin/python")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--shape", default="24x50x100x200", help="steps x arrays x rows x columns")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--writes", nargs="+", default=["step", "array"])
    parser.add_argument("--data", nargs="+", default=["indices", "noisy"])
    parser.add_argument("--folder", default=None)
    options = parser.parse_args()
    shape = [int(n) for n in options.shape.split("x")]
    pythons = {"chunkwise": sys.executable, "parallel HDF5": options.mpi_python}
    print(f"shape {options.shape} of f8 a rank, shuffle + deflate 1, MB/s: median (least-most)")
    print(
        "| ranks | data | a write | chunkwise | parallel HDF5 | ratio (least-most of pairs) "
        "| ratio by processor time |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for ranks in options.ranks:
            for data in options.data:
                for each in options.writes:
                    paths = {by: Path(folder, f"{by.split()[0]}.h5") for by in pythons}
                    works = {}
                    for by, python in pythons.items():
                        case = {"by": by, "shape": shape, "data": data, "write": each}
                        case["path"] = str(paths[by])
                        works[by] = partial(write, case, python, ranks)
                    rates = in_turns(works, options.repeats)
                    require_equal(*paths.values())
                    print(_row(ranks, data, each, rates), flush=True)


def _row(ranks: int, data: str, each: str, rates: dict[str, list[tuple[float, float]]]) -> str:
    shown = []
    for both in rates.values():
        clock = spread([one for one, _ in both])
        shown.append(f"{clock.median:.0f} ({clock.lowest:.0f}-{clock.highest:.0f})")
    ours, theirs = rates.values()
    for kind in (0, 1):
        pairs = spread([a[kind] / b[kind] for a, b in zip(ours, theirs, strict=True)])
        shown.append(f"{pairs.median:.1f} ({pairs.lowest:.1f}-{pairs.highest:.1f})")
    return f"| {ranks} | {data} | {each} | {' | '.join(shown)} |"


if __name__ == "__main__":
    main()
