"""Does a repack tell how long its phases took, so that the model can be fitted to it?"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import UsageError
from chunkwise_lab.mpi_model.measured import read_runs
from tests.support.mpi import environment, mpirun, needs_mpi
from tests.support.processes import ran

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mpi.md"
RULES = ("--chunk", "t2m:40x10x10", "--filter", "shuffle+deflate:9")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "in.nc"
    data = np.random.default_rng(0).integers(0, 9, (40, 300, 300), "i4").cumsum(0, dtype="i4")
    with h5py.File(path, "w") as file:
        file.create_dataset("t2m", data=data, chunks=(1, 300, 300), compression=1)
    return path


def run_of(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["run"]


@needs_mpi
def test_the_page_s_commands_fit_the_model(source: Path, tmp_path: Path) -> None:
    text = PAGE.read_text("utf-8").partition("### With measured runs")[2]
    found = re.search(r"^    for n in .*\n(?:    .*\n)+", text, re.MULTILINE)
    assert found is not None
    (tmp_path / "in.nc").write_bytes(source.read_bytes())
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = ran(
        ["bash", "-e", "-c", found[0]], cwd=tmp_path, env=environment(PATH=path), timeout=180
    )
    assert done.returncode == 0, done.stderr
    assert "machine     measured" in done.stdout
    assert "a chunk in the index" in done.stdout
    assert "predicted from fewer ranks, 4 ranks take" in done.stdout
    assert (tmp_path / "model.png").stat().st_size > 1000
    runs = read_runs([str(tmp_path / "runs.json")])
    assert [run.job.n_ranks for run in runs] == [1, 2, 4]
    for run in runs:
        assert run.job.nbytes == 40 * 300 * 300 * 4
        assert set(run.phases) >= {"read", "encode", "write", "verify", "other"}
        assert ("allocate" in run.phases) == ("exchange" in run.phases) == (run.job.n_ranks > 1)


def test_the_phases_of_one_thread_are_all_its_time(source: Path, tmp_path: Path) -> None:
    done = chunkwise.repack(
        source, tmp_path / "out.nc", chunk="t2m:40x30x30", filters="deflate:6", threads=1
    )
    assert done.run is not None
    phases = done.run["phases"]
    assert all(seconds >= 0 for seconds in phases.values())
    assert sum(phases.values()) == pytest.approx(done.elapsed_s, rel=0.05)
    assert phases["encode"] > phases["write"]
    assert (done.run["n_ranks"], done.run["threads"], done.run["n_chunks"]) == (1, 1, 100)
    assert done.run["stored_nbytes"] == done.datasets[0].stored_nbytes


@needs_mpi
@pytest.mark.parametrize("slow", ["allocate", "exchange", "verify"])
def test_what_is_slow_is_told_to_be(source: Path, tmp_path: Path, slow: str) -> None:
    """Half a second goes where each phase is measured, and shows there alone."""
    where = {
        "allocate": "index.Places.allocate = late(index.Places.allocate)",
        "exchange": "serving._Asking.ask = late(serving._Asking.ask)",
        "verify": "rank.Rank.compare = late(rank.Rank.compare)",
    }[slow]
    program = (
        "import sys, time\n"
        "import chunkwise.cli as cli, chunkwise.newfile.index as index\n"
        "import chunkwise.mpi.serving as serving, chunkwise.repacking.rank as rank\n"
        "first = [True]\n"
        "def late(work):\n"
        "    def worked(self, *given, **named):\n"
        "        question = given[0] if given else None\n"
        "        counts = not isinstance(question, tuple) or question[0] == 'allocate'\n"
        "        if counts and first:\n"
        "            first.clear(); time.sleep(0.5)\n"
        "        return work(self, *given, **named)\n"
        "    return worked\n"
        f"{where}\n"
        "sys.argv[0] = 'chunkwise'; cli.main()\n"
    )
    words = ("repack", source, tmp_path / "out.nc", *RULES, "--json")
    phases = run_of(mpirun(2, "-c", program, *words))["phases"]
    assert phases[slow] >= 0.5
    assert all(phases[name] < phases[slow] for name in ("read", "write") if name != slow)


@needs_mpi
def test_ranks_are_told(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.nc"
    words = ("-m", "chunkwise", "repack", source, out, *RULES, "--json")
    run = run_of(mpirun(2, *words))
    assert (run["n_ranks"], run["ranks_per_node"]) == (2, 2)
    assert run["phases"]["allocate"] > 0
    assert run["batch"] >= 1


def test_a_run_that_wrote_nothing_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["few"] = [1, 2]
    done = chunkwise.repack(tmp_path / "in.h5", tmp_path / "out.h5")
    assert done.run is None
    (tmp_path / "runs.json").write_text(json.dumps(done.as_dict()))
    with pytest.raises(UsageError, match="record 1: no chunks were written"):
        read_runs([str(tmp_path / "runs.json")])
