"""Do the batch scripts do what they say?  Slurm itself is played by a few lines."""

import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np

from tests.support.mpi import environment, needs_mpi

SCRIPTS = Path(__file__).resolve().parents[2] / "examples" / "slurm"
# As srun starts one task, or with --mpi two ranks.
SRUN = """#!/bin/bash
if [[ $1 == --mpi=* ]]; then shift; exec mpirun -n 2 "$@"; fi
exec "$@"
"""


def _run(folder: Path, script: str, *arguments: object, **variables: str) -> int:
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    (tools / "srun").write_text(SRUN)
    (tools / "chunkwise").write_text(f'#!/bin/bash\nexec {sys.executable} -m chunkwise "$@"\n')
    for one in tools.iterdir():
        one.chmod(0o755)
    path = f"{tools}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", str(SCRIPTS / script), *map(str, arguments)],
        env=environment(PATH=path, **variables),
        timeout=180,
        check=False,
    ).returncode


def _files(folder: Path, count: int) -> Path:
    folder.mkdir()
    for number in range(count):
        with h5py.File(folder / f"{number}.nc", "w") as file:
            file["d"] = np.full((100, 100), number)
    return folder


def test_each_task_of_an_array_takes_its_files(tmp_path: Path) -> None:
    source, out = _files(tmp_path / "archive", 5), tmp_path / "packed"
    rules = ("--chunk", "10x100", "--filter", "shuffle+deflate:4")
    for task in range(2):
        task_of = {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_COUNT": "2"}
        assert _run(tmp_path, "folder.sh", source, out, *rules, **task_of) == 0
        assert len(list(out.iterdir())) == (3, 5)[task]
    for number in range(5):
        with h5py.File(out / f"{number}.nc") as file:
            assert file["d"].chunks == (10, 100)
            assert (file["d"][...] == number).all()


def test_a_file_that_fails_leaves_the_others(tmp_path: Path) -> None:
    source, out = _files(tmp_path / "archive", 3), tmp_path / "packed"
    (source / "0.nc").write_bytes(b"no HDF5")
    alone = {"SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_TASK_COUNT": "1"}
    assert _run(tmp_path, "folder.sh", source, out, **alone) == 1
    assert sorted(one.name for one in out.iterdir()) == ["1.nc", "2.nc"]


@needs_mpi
def test_many_ranks_repack_one_file(tmp_path: Path) -> None:
    source, out = tmp_path / "in.nc", tmp_path / "out.nc"
    values = np.arange(4_000_000, dtype="i4").reshape(40, 100_000)
    with h5py.File(source, "w") as file:
        file.create_dataset("d", data=values, chunks=(1, 100_000))
    # What is there already is not replaced.
    for code in (0, 2):
        assert _run(tmp_path, "large.sh", source, out, "--chunk", "40x1000") == code
    with h5py.File(out) as file:
        assert file["d"].chunks == (40, 1000)
        np.testing.assert_array_equal(file["d"][...], values)
