"""Does `chunkwise mpi-check` say what there is, once, and end with the right code?"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.mpi import environment, mpirun, needs_mpi
from tests.support.processes import ran


def check(n_ranks: int, *arguments: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
    return mpirun(n_ranks, "-m", "chunkwise", "mpi-check", *arguments, **more)


@needs_mpi
@pytest.mark.parametrize("n_ranks", [1, 4])
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
def test_json_holds_the_same(tmp_path: Path) -> None:
    done = check(2, tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["rank"] for one in found["ranks"]["ranks"]] == [0, 1]
    assert found["ranks"]["hosts"]
    assert found["libraries"]["same_mpi"] is True
    assert found["shared"] is True
    assert found["findings"]


@needs_mpi
def test_wrong_usage_is_one_message() -> None:
    said = "No such option"
    done = check(4, "--nonsense")
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
