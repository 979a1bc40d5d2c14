"""Under MPI, has each rank an engine of its own, and do parallel files go on to their HDF5?"""

from __future__ import annotations

import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.running import environment
from tests.running.test_programs import reads
from tests.support import mpi
from tests.support.processes import ran
from tests.support.tools import require_tool

if not environment.LIBRARY.is_file():
    pytest.skip("libchunkwise_preload.so is not built (`make install`)", allow_module_level=True)

HERE = Path(__file__).resolve().parent
RANKS = 2


def test_ranks(tmp_path: Path) -> None:
    mpirun, compiler = require_tool("mpirun"), require_tool("h5pcc")
    built = ran(
        [compiler, "-shlib", "-o", tmp_path / "ranks", HERE / "ranks.c"],
        cwd=tmp_path,
        env=mpi.environment(),
    )
    if built.returncode:
        pytest.skip(f"h5pcc does not compile: {built.stderr.splitlines()[-1:]}")
    rng = np.random.default_rng(3)
    report = tmp_path / "report"
    said, written = [], []
    values = rng.integers(0, 500, (RANKS + 1, 64, 500)).astype("f4")
    for way in ("plain", "under"):
        folder = tmp_path / way
        folder.mkdir()
        for name, field in zip((*range(RANKS), "all"), values, strict=True):
            with h5py.File(folder / f"{name}.h5", "w") as file:
                # Parallel HDF5 writes without filters here: not every build has them.
                filters = {} if name == "all" else {"compression": 1}
                file.create_dataset("x", data=field, chunks=(8, 125), **filters)
        more = environment.variables(report=str(report)) if way == "under" else {}
        done = ran(
            [mpirun, "-n", str(RANKS), tmp_path / "ranks", folder],
            timeout=100,
            env=mpi.environment(**more),
        )
        assert done.returncode == 0, done.stderr
        said.append([(folder / f"said.{rank}").read_text() for rank in range(RANKS)])
        with h5py.File(folder / "all.h5") as file:
            written.append(file["x"][...].tobytes())
    assert said[0] == said[1]
    assert written[0] == written[1] == (values[-1] + 1).tobytes()
    text = report.read_text()
    assert text.count("1 read by chunkwise") == RANKS, text
    # What they have open together is their HDF5's.
    assert text.count("/x: 1 read by libhdf5") == RANKS, text


def test_h5py_on_ranks(tmp_path: Path) -> None:
    """Each process reads for itself, also what another one reads."""
    mpirun, report = require_tool("mpirun"), tmp_path / "report"
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=np.arange(90000.0), chunks=(900,), compression=1)
    script = tmp_path / "script.py"
    script.write_text(
        "import h5py, os, sys\n"
        "with h5py.File('x.h5') as file:\n"
        "    total = float(file['x'][...].sum())\n"
        "assert total == sum(range(90000)), total\n"
    )
    done = ran(
        [mpirun, "-n", str(RANKS), sys.executable, script],
        cwd=tmp_path,
        timeout=100,
        env=mpi.environment(**environment.variables(report=str(report))),
    )
    assert done.returncode == 0, done.stderr
    assert reads(report) == RANKS
