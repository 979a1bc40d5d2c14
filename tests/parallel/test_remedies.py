"""What mpi-check tells to do is done here as it is printed, where it is printed: does it help?

Each command and each line of code in a remedy stands between backticks.
"""

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import h5py
import numpy as np
import pytest

from chunkwise_lab.mpi_check.checks import Settings, warnings_for
from chunkwise_lab.mpi_check.environment import Rank, Ranks
from tests.support.mpi import LAUNCHER, environment, mpirun, needs_mpi
from tests.support.mpi_h5py import PYTHON, needs_parallel_h5py
from tests.support.processes import ran

GOOD: Final = Settings(
    hdf5=(1, 12, 1), mpi="Open MPI", mpi_version=(5, 0, 7), mpi_io="ompio", n_ranks=2, n_cores=2
)
# Settings against which each code line or command is printed, by its code.
CASES: Final = {
    "independent-filtered": GOOD,
    "idle-ranks": GOOD,
    "conversion-filtered": GOOD,
    "fill-at-creation": GOOD,
    "oversubscribed": replace(GOOD, n_ranks=4),
    "mpi-io": replace(GOOD, mpi_version=(4, 1, 4)),
    "romio": replace(GOOD, mpi_version=(3, 1, 3)),
}


def pasted(name: str) -> str:
    """What the remedy of a finding has between its backticks; one thing that is known to be."""
    code = "mpi-io" if name == "romio" else name
    found = [one.remedy for one in warnings_for(CASES[name]) if one.code == code]
    [text] = re.findall("`([^`]*)`", found[0])
    return str(text)


def test_every_remedy_with_a_command_or_a_line_of_code_is_run_here() -> None:
    """What is in the sources between backticks in a remedy has a case below."""
    text = "".join((CHECKS / name).read_text("utf-8") for name in ("checks.py", "check.py"))
    text = re.sub(r'""".*?"""', "", text, flags=re.DOTALL)
    # Strings that go on in the next line are one.
    text = re.sub(r'"\s*\n\s*"', "", text)
    written = set(re.findall("`([^`\n]*)`", " ".join(re.findall(r'"([^"\n]*`[^"\n]*)"', text))))
    run = {pasted(name) for name in CASES} | {
        "mpirun -n 4 chunkwise mpi-check",
        "mpirun --bind-to none",
        "mpirun --map-by slot:PE=4",
        # Slurm is no part of these tests.
        "srun --mpi=list",
    }
    assert run == written
    assert "oversubscribed" in codes_in(CHECKS / "checks.py")


def start(command: str, *more: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command as it was pasted, with what a user would write behind it."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = environment(PATH=path, **variables)
    return ran([*shlex.split(command), *map(str, more)], env=env, timeout=120)  # fmt: skip


# --- commands --------------------------------------------------------------------------


@needs_mpi
def test_more_ranks_than_cores_start_as_it_says() -> None:
    number = str(2 * (os.cpu_count() or 1))
    strict = {"OMPI_MCA_rmaps_base_oversubscribe": "0"}
    words = ("-n", number, sys.executable, "-c", "print('here')")
    assert LAUNCHER is not None
    if "Open MPI" not in start("mpirun --version").stdout:
        pytest.skip("the remedy is Open MPI's")
    assert start("mpirun", *words, **strict).returncode != 0
    done = start(pasted("oversubscribed"), *words, **strict)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("here") == int(number)


@needs_mpi
@pytest.mark.parametrize("command", ["mpirun -n 4 chunkwise mpi-check"])
def test_the_check_itself_starts_as_it_says(command: str) -> None:
    done = start(command, "--json")
    told = json.loads(done.stdout)
    assert len(told["ranks"]["ranks"]) == 4
    assert "not-under-mpi" not in {one["code"] for one in told["findings"]}


@needs_mpi
def test_ranks_that_are_bound_to_a_core_are_let_go() -> None:
    program = "import os; print(len(os.sched_getaffinity(0)))"
    words = ("-n", "1", sys.executable, "-c", program)
    done = start("mpirun --bind-to none", *words)
    assert done.stdout.split() == [str(len(os.sched_getaffinity(0)))], done.stderr
    if (os.cpu_count() or 1) >= 4:
        done = start("mpirun --map-by slot:PE=4", *words)
        assert done.stdout.split() == ["4"], done.stderr
    one = Rank(0, os.uname().nodename, (0,), 1 << 33, "")
    ranks = Ranks("mpirun", "multiple", (one, replace(one, rank=1, cores=(1,))))
    from chunkwise_lab.mpi_check import check

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "cpu_count", lambda: 8)
        [finding] = check._of_binding(ranks)
    assert "`mpirun --bind-to none`" in finding.remedy
    assert "`mpirun --map-by slot:PE=4`" in finding.remedy


WRITING = """
import sys, h5py, numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
with h5py.File(sys.argv[1], "w", driver="mpio", comm=comm) as file:
    dset = file.create_dataset("x", (8, 100), "f8", chunks=(1, 100), fill_time="never")
    with dset.collective:
        dset[comm.rank * 4 : comm.rank * 4 + 4] = comm.rank + 1.0
"""


@needs_parallel_h5py
@pytest.mark.parametrize("name", ["mpi-io", "romio"])
def test_another_component_writes(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    command = pasted(name)
    done = start(command, "-n", "2", PYTHON, "-c", WRITING, path)
    if name == "mpi-io" or done.returncode == 0:
        assert done.returncode == 0, done.stderr
        with h5py.File(path) as file:
            np.testing.assert_array_equal(file["x"][:, 0], [1, 1, 1, 1, 2, 2, 2, 2])
    else:
        # As is known of the ROMIO of Open MPI 4, to whose users it is not said.
        version = start("mpirun --version").stdout
        assert re.search(r" 4\.\d+\.\d+", version), done.stderr
    told = json.loads(start(command, "-n", "2", sys.executable, "-m", "chunkwise", "mpi-check",
                            "--json").stdout)  # fmt: skip
    assert told["mpi_io"]["name"] == ("romio" if name == "romio" else "ompio")


@pytest.mark.parametrize("minor", range(2))
@pytest.mark.parametrize("patch", range(8))
@pytest.mark.parametrize("major", [2, 3, 4, 5])
def test_a_remedy_leads_to_nothing_worse(major: int, minor: int, patch: int) -> None:
    settings = replace(GOOD, mpi_version=(major, minor, patch))
    for one in warnings_for(settings):
        if "--mca io ^ompio" in one.remedy:
            other = warnings_for(replace(settings, mpi_io="romio"))
            assert "error" not in {found.severity for found in other}, one


# --- code ------------------------------------------------------------------------------

HEAD = """
import sys, h5py, numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
file = h5py.File(sys.argv[1], "w", driver="mpio", comm=comm)
def make(**more):
    return file.create_dataset("x", (8, 100), "f8", chunks=(1, 100), compression=1, **more)
mine = slice(comm.rank * 4, comm.rank * 4 + 4)
data = np.full((4, 100), comm.rank + 1.0)
dset = make()
dxpl = h5py.h5p.create(h5py.h5p.DATASET_XFER)
dxpl.set_dxpl_mpio(h5py.h5fd.MPIO_COLLECTIVE)
"""


def written(tmp_path: Path, code: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Run a program on two ranks; gives the first column of what it has written."""
    path = tmp_path / "a.h5"
    done = mpirun(2, "-c", HEAD + code + "\nfile.close()\n", path, python=PYTHON)
    assert done.returncode == 0, done.stderr
    with h5py.File(path) as file:
        return np.asarray(file["x"][:, 0])


BOTH: Final = [1, 1, 1, 1, 2, 2, 2, 2]


@needs_parallel_h5py
def test_a_collective_write_is_not_refused(tmp_path: Path) -> None:
    refused = mpirun(2, "-c", HEAD + "dset[mine] = data\n", tmp_path / "no.h5", python=PYTHON)
    assert refused.returncode != 0
    code = f"{pasted('independent-filtered')}\n    dset[mine] = data\n"
    assert written(tmp_path, code).tolist() == BOTH


@needs_parallel_h5py
def test_a_rank_with_nothing_to_write_takes_part(tmp_path: Path) -> None:
    code = (
        "space = dset.id.get_space()\n"
        "if comm.rank:\n"
        f"    {pasted('idle-ranks')}\n"
        "else:\n"
        "    with dset.collective:\n"
        "        dset[mine] = data\n"
    )
    assert written(tmp_path, code).tolist() == [1, 1, 1, 1, 0, 0, 0, 0]


@needs_parallel_h5py
def test_what_is_converted_before_is_written(tmp_path: Path) -> None:
    narrow = "data = data.astype('>f4')\nwith dset.collective:\n    dset[mine] = "
    refused = mpirun(2, "-c", f"{HEAD}{narrow}data\n", tmp_path / "no.h5", python=PYTHON)
    assert refused.returncode != 0
    assert written(tmp_path, narrow + pasted("conversion-filtered")).tolist() == BOTH


@needs_parallel_h5py
def test_nothing_is_filled_as_it_is_made(tmp_path: Path) -> None:
    make = (
        "del file['x']\ndset = make({})\n"
        "print(dset.id.get_create_plist().get_fill_time())\nfile.close()\n"
    )
    path = tmp_path / "a.h5"
    done = mpirun(1, "-c", HEAD + make.format(pasted("fill-at-creation")), path, python=PYTHON)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(h5py.h5d.FILL_TIME_NEVER)]


# The page -------------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "mpi.md").read_text("utf-8")
CHECKS = ROOT / "python" / "chunkwise_lab" / "mpi_check"


def codes_in(source: Path) -> set[str]:
    """Each code of a finding, as it stands in the source."""
    found = set()
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Finding", "_OfHdf5"):
            for one in ast.walk(node.args[0]):
                if isinstance(one, ast.Constant) and re.fullmatch(r"[a-z0-9-]+", str(one.value)):
                    found.add(str(one.value))
    return found


def test_each_code_is_explained() -> None:
    table = PAGE.partition("| code | what happens | severity |")[2].partition("\n\n")[0]
    explained = {
        code
        for row in re.findall(r"^\|(.*?)\|", table, re.MULTILINE)
        for code in re.findall(r"`([a-z0-9-]+)`", row)
    }
    sources = ("checks.py", "check.py")
    assert explained == set().union(*(codes_in(CHECKS / name) for name in sources))
