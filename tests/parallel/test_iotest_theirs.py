"""Does a walk give hdf5-iotest's rows and file sizes?  Where `hdf5_iotest` is in PATH."""

import csv
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from chunkwise_lab.studies.iotest.table import HEADER
from tests.support.mpi import environment
from tests.support.mpi_h5py import PYTHON, chunkwise, needs_parallel_h5py
from tests.support.processes import ran

THEIRS = shutil.which("hdf5_iotest")
INI = """
[DEFAULT]
version = 0
steps = 2
arrays = 3
rows = 100
columns = 200
process-rows = {rows}
process-columns = 1
scaling = {scaling}
alignment-increment = {increment}
alignment-threshold = 0
meta-block-size = {block}
single-process = {driver}
hdf5-file = {name}.h5
csv-file = {name}.csv
"""
# All but the seconds.
SAME = tuple(name for name in HEADER if not name.endswith("[s]"))


def rows(path: Path) -> list[tuple[str, ...]]:
    with path.open() as file:
        found = list(csv.DictReader(file))
    assert tuple(found[0]) == HEADER
    return [tuple(row[name] for name in SAME) for row in found]


@needs_parallel_h5py
@pytest.mark.skipif(THEIRS is None, reason="hdf5_iotest is not in PATH")
@pytest.mark.parametrize(
    ("n_ranks", "scaling", "driver", "increment", "block"),
    [
        (1, "weak", "posix", 1, 2048),
        (1, "weak", "core", 1, 2048),
        (1, "weak", "mpi-io-uni", 1, 2048),
        (2, "weak", "posix", 65536, 65536),
        (2, "strong", "posix", 1, 2048),
    ],
)
def test_rows_and_sizes_are_the_same(
    n_ranks: int, scaling: str, driver: str, increment: int, block: int, tmp_path: Path
) -> None:
    for name in ("theirs", "ours"):
        text = INI.format(
            rows=n_ranks, scaling=scaling, driver=driver, increment=increment, block=block,
            name=name,
        )  # fmt: skip
        (tmp_path / f"{name}.ini").write_text(text)
    subprocess.run(
        ["mpirun", "-n", str(n_ranks), str(THEIRS), "theirs.ini"],
        cwd=tmp_path, env=environment(), check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    done = chunkwise(n_ranks, "study", "iotest", "--ini", "ours.ini", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert rows(tmp_path / "ours.csv") == rows(tmp_path / "theirs.csv")


@needs_parallel_h5py
@pytest.mark.skipif(THEIRS is None, reason="hdf5_iotest is not in PATH")
def test_one_command_runs_both(tmp_path: Path) -> None:
    done = ran(
        [PYTHON, "-m", "chunkwise", "study", "iotest", "--beside", str(THEIRS), "--ranks", "1",
         "--quick", "--json"],
        cwd=tmp_path, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == 48
    assert all(one["file_nbytes"]["ours"] == one["file_nbytes"]["theirs"] for one in found)
    assert list(tmp_path.iterdir()) == []
