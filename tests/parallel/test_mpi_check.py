"""Does `chunkwise mpi-check` say what there is, once, and end with the right code?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from chunkwise.mpi.check import settings_of_file
from chunkwise.mpi.checks import Settings
from tests.support.mpi import environment, mpirun, needs_mpi
from tests.support.processes import ran


def check(n_ranks: int, *arguments: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
    return mpirun(n_ranks, "-m", "chunkwise", "mpi-check", *arguments, **more)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data.h5"
    with h5py.File(path, "w") as made:
        made.create_dataset(
            "large", (8, 1024, 512), "f8", chunks=(2, 1024, 512), compression="gzip"
        )
        made.create_dataset("tiny", (1_000_000,), "f4", chunks=(8,), compression="gzip")
        made.create_dataset("odd", (10, 100), "f4", chunks=(4, 100), shuffle=True)
        made.create_dataset("odd2", (10, 100), "f4", chunks=(4, 100), shuffle=True)
        made.create_dataset("plain", data=np.arange(9.0))
        made.create_dataset("empty", (0, 4), "f4", chunks=(4, 4), maxshape=(None, 4))
    return path


@needs_mpi
@pytest.mark.parametrize("n_ranks", [1, 2, 4])
def test_one_rank_speaks_for_all(n_ranks: int, tmp_path: Path) -> None:
    done = check(n_ranks, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.count("launcher ") == 1
    assert f"\nranks       {n_ranks} on 1 host" in done.stdout
    assert ("seen by all ranks" in done.stdout) == (n_ranks > 1)
    assert all(len(line) <= 80 or "/" in line for line in done.stdout.splitlines())
    assert list(tmp_path.iterdir()) == []


@needs_mpi
def test_json_holds_the_same(file: Path) -> None:
    done = check(2, file, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["rank"] for one in found["ranks"]["ranks"]] == [0, 1]
    assert found["ranks"]["hosts"]
    assert found["libraries"]["same_mpi"] is True
    assert found["shared"] is True
    findings = {one["code"]: one for one in found["findings"]}
    assert findings["tiny-chunks"]["evidence"].startswith("/tiny: 125,000 chunks")
    assert findings["shared-chunks"]["evidence"].endswith("2 ranks; and 1 more dataset")


@needs_mpi
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--nonsense"], "No such option"),
        ([__file__], "not an HDF5 file"),
    ],
)
def test_wrong_usage_is_one_message(arguments: list[str], said: str) -> None:
    done = check(4, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count(said) == 1
    assert "Traceback" not in done.stderr


@needs_mpi
def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    done = check(2, tmp_path / "none" / "x.h5")
    assert done.returncode == 1
    assert "[folder]" in done.stdout


@needs_mpi
def test_another_librarys_launcher_is_named() -> None:
    # As MPICH's mpiexec tells its processes.
    done = ran(
        [sys.executable, "-m", "chunkwise", "mpi-check"],
        env={**environment(), "PMI_RANK": "0", "PMI_SIZE": "3", "PMI_FD": "9"},
        timeout=60,
    )
    assert done.returncode == 1, done.stderr
    assert "[launcher]" in done.stdout
    assert "with 3 processes, of which MPI sees one" in " ".join(done.stdout.split())


@needs_mpi
def test_without_mpi4py_one_rank_says_so() -> None:
    hidden = "import sys; sys.modules['mpi4py'] = None; sys.argv[:] = ['chunkwise', 'mpi-check']"
    done = mpirun(3, "-c", f"{hidden}; from chunkwise.cli import main; main()")
    assert done.returncode == 1
    assert done.stdout.count("MPI needs mpi4py") == 1
    assert "Traceback" not in done.stderr


def test_without_a_launcher_it_says_so() -> None:
    done = ran([sys.executable, "-m", "chunkwise", "mpi-check"], timeout=60)
    assert done.returncode == 0
    assert "[not-under-mpi]" in done.stdout


def test_settings_are_read_from_a_file(file: Path) -> None:
    found = {one.path: one for one in settings_of_file(str(file), Settings(n_ranks=2))}
    assert set(found) == {"/large", "/tiny", "/odd", "/odd2"}
    large = found["/large"]
    assert (large.shape, large.chunks, large.tile) == (
        (8, 1024, 512),
        (2, 1024, 512),
        (4, 1024, 512),
    )
    assert (large.itemsize, large.filters, large.fill) == (8, ("deflate",), "ifset")
    assert found["/odd"].filters == ("shuffle",)
