"""Is a file whole, or not there, when a worker is killed while it is written?"""

import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

pytest.importorskip("dask.array", reason="Dask is not installed")
pytest.importorskip("distributed", reason="dask.distributed is not installed")

import dask.array as da

from chunkwise.dask import cluster as running
from chunkwise.dask import to_hdf5
from chunkwise.dask.tasks import Encoded, Where, Wrote, write
from tests.attack.dask_workers import attempt
from tests.support.clusters import cluster, left_in


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.slow
def test_a_worker_that_is_killed(seed: int, tmp_path: Path) -> None:
    attempt(seed, tmp_path)


def _spoiled(marks: str, encoded: Encoded, expected: Any, addresses: Any, where: Where) -> Wrote:
    """Write; but the first time two blocks are other ones than their places are for."""
    number = int(encoded.table[0, 0])
    mark = Path(marks, str(number))
    if number in (8, 20) and not mark.exists():
        mark.touch()
        expected = expected + np.uint64(1)
    return write(encoded, expected, addresses, where)


def test_blocks_that_are_other_ones_get_other_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a block was computed once more, and random numbers are others then."""
    marks = tmp_path / "marks"
    marks.mkdir()

    monkeypatch.setattr(running, "write", partial(_spoiled, str(marks)))
    values = np.random.default_rng(0).normal(size=(40, 500))
    with cluster() as client:
        x = da.from_array(values, chunks=(4, 500))
        done = to_hdf5(
            x, tmp_path / "a.h5", "x", client=client, filters="shuffle+deflate:1", chunks=(2, 250)
        )
    assert done.again == 2
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["x"][...], values)


DYING = """
import os, signal, sys
import dask.array as da
from distributed import Client, LocalCluster
from chunkwise.dask import to_hdf5

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    with LocalCluster(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None
    ) as made, Client(made) as client:
        to_hdf5(da.zeros((50, 10), chunks=(5, 10)), sys.argv[1], "x", progress=die)
"""


def test_what_a_killed_client_leaves_goes_with_the_next_run(tmp_path: Path) -> None:
    script, target = tmp_path / "dying.py", tmp_path / "out" / "a.h5"
    script.write_text(DYING)
    target.parent.mkdir()
    done = subprocess.run([sys.executable, script, target], timeout=100, check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(left_in(target.parent)) == 2
    to_hdf5(da.ones((50, 10), chunks=(5, 10)), target, "x", client="threads")
    assert left_in(target.parent) == ["a.h5"]


def test_who_was_given_up_writes_no_more(tmp_path: Path) -> None:
    path, lease = tmp_path / "a", tmp_path / "lease"
    path.write_bytes(bytes(8))
    lease.write_bytes(b"now")
    encoded = Encoded(np.array([[0, 3, 0]], np.uint64), (b"abc",))
    places = np.array([2], np.uint64)
    late = write(encoded, encoded.table, places, Where(str(path), str(lease), b"before"))
    assert late.expired
    assert path.read_bytes() == bytes(8)
    now = write(encoded, encoded.table, places, Where(str(path), str(lease), b"now"))
    assert not now.expired
    assert path.read_bytes() == b"\0\0abc\0\0\0"
