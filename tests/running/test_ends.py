"""Are all calls recorded, however many threads make them and however a process ends?"""

from __future__ import annotations

import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.running import environment, trace
from tests.running.test_in_c import made
from tests.support.processes import ran

if not environment.LIBRARY.is_file():
    pytest.skip("libchunkwise_preload.so is not built (`make install`)", allow_module_level=True)

THREADS, CALLS, ROWS = 6, 1500, 50
CHILDREN = 20


def recorded(
    folder: Path, how: str, only: bool
) -> tuple[int, int, dict[str, trace.TracedDataset]]:
    """Trace the program: its exit code, the reads of ``/x`` it made, and what is recorded."""
    with h5py.File(folder / "x.h5", "w") as file:
        values = np.arange(ROWS * 60, dtype="f4").reshape(ROWS, 60)
        file.create_dataset("x", data=values, chunks=(5, 60), compression=1)
        file["y"] = values
    told = folder / "traced"
    told.mkdir()
    given = dict(os.environ, **environment.variables(), CHUNKWISE_TRACE=str(told))
    given |= {"CHUNKWISE_READ_LEAST": "1"} | ({"CHUNKWISE_OBSERVE": "1"} if only else {})
    words: list[str | Path] = [made("ends", folder), "x.h5", how, str(THREADS), str(CALLS)]
    done = ran(words, cwd=folder, env=given, timeout=200)
    if done.returncode == 77:
        pytest.skip("this libhdf5 is not made for threads")
    if how not in ("running", "interrupted"):
        # libhdf5 may tell threads that it has ended before them.
        assert done.stderr == ""
    datasets = trace.collected(told).datasets
    return done.returncode, int(done.stdout), {one.dataset: one for one in datasets}


@pytest.mark.parametrize("only", [False, True], ids=["engine", "observed"])
def test_threads_that_have_ended(only: bool, tmp_path: Path) -> None:
    code, calls, found = recorded(tmp_path, "joined", only)
    assert (code, calls) == (0, THREADS * CALLS)
    one = found["/x"]
    assert (one.calls, one.nbytes) == (calls, calls * 60 * 4)
    assert one.by_chunkwise == (0 if only else calls)
    assert sum(run.times for run in one.runs) + one.unlisted == calls
    # By whichever thread: in the order in which they were made.
    began = [run.began for run in one.runs]
    assert len(began) < 2 or np.corrcoef(began, np.arange(len(began)))[0, 1] > 0.9


@pytest.mark.parametrize("how", ["running", "interrupted"])
def test_threads_that_read_on_as_the_process_ends(how: str, tmp_path: Path) -> None:
    code, calls, found = recorded(tmp_path, how, True)
    assert code == {"running": 0, "interrupted": 5}[how]
    # Those that were made when the process began to end, or a few more.
    assert found["/x"].calls >= calls >= THREADS * CALLS


def test_a_process_that_ends_at_once(tmp_path: Path) -> None:
    """It is not kept from it, and tells nothing."""
    assert recorded(tmp_path, "at-once", True) == (6, THREADS * CALLS, {})


def test_children_forked_while_threads_are_recorded(tmp_path: Path) -> None:
    """Each child tells its own calls, and the parent all of its own."""
    code, calls, found = recorded(tmp_path, "forking", True)
    assert code == 0, "a child has failed, or has waited for ever"
    assert (found["/x"].calls, found["/x"].processes) == (calls, 1)
    assert (found["/y"].calls, found["/y"].processes) == (CHILDREN * CALLS, CHILDREN)
    assert found["/y"].nbytes == CHILDREN * CALLS * 60 * 4
