"""A worker of a Dask cluster is killed (SIGKILL) at a random moment, while a file is written.

There is the whole file, or an error soon and no file; a source stays as it was.
"""

import hashlib
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from chunkwise.errors import ChunkwiseError
from tests.support.clusters import Killer, cluster, left_in, slowly

# How many attempts the test suite makes of these is said in tests/dask/test_killed.py.
SHORT = 0
SHAPE, BLOCK, CHUNK = (120, 300, 300), (6, 300, 300), (6, 60, 60)
# Dask waits some seconds before it knows that a worker is lost; another one begins for it, which
# takes its time on a busy machine.
MOST_S = 240.0


def attempt(seed: int, folder: Path) -> None:
    """One file written, and one repacked, each with a worker killed."""
    rng = np.random.default_rng(seed)
    values = np.cumsum(rng.normal(size=SHAPE).astype("f4"), axis=0)
    with cluster() as client:
        _arrays(client, values, folder, rng, seed)
        client.wait_for_workers(2, timeout=180)
        _repacks(client, values, folder, rng, seed)


def _arrays(client: Any, values: Any, folder: Path, rng: np.random.Generator, seed: int) -> None:
    import dask.array as da

    from chunkwise.dask import to_hdf5

    target = folder / "made.h5"
    x = da.from_array(values, chunks=BLOCK).map_blocks(slowly, dtype="f4")
    begin = time.monotonic()
    with Killer(client, 1.2 * rng.random(), seed):
        try:
            to_hdf5(x, target, "x", client=client, filters="shuffle+deflate:4", chunks=CHUNK)
        except ChunkwiseError as wrong:
            print(f"seed {seed}: {wrong}")
            assert not target.exists()
    _look(target, values, folder, begin, {"made.h5"})
    target.unlink(missing_ok=True)


def _repacks(client: Any, values: Any, folder: Path, rng: np.random.Generator, seed: int) -> None:
    from chunkwise.dask import repack

    source, target = folder / "source.h5", folder / "made.h5"
    with h5py.File(source, "w") as file:
        file.create_dataset("x", data=values, chunks=(1, 300, 300), compression="gzip")
        file["y"] = np.arange(10)
    before = hashlib.sha256(source.read_bytes()).digest()
    begin = time.monotonic()
    with Killer(client, 0.8 * rng.random(), seed):
        try:
            repack(source, target, chunk=CHUNK, filters="shuffle+deflate:4", client=client)
        except ChunkwiseError as wrong:
            print(f"seed {seed}: {wrong}")
            assert not target.exists()
    assert hashlib.sha256(source.read_bytes()).digest() == before, f"seed {seed}: the source"
    _look(target, values, folder, begin, {"made.h5", "source.h5"})
    target.unlink(missing_ok=True)
    source.unlink()


def _look(target: Path, values: Any, folder: Path, begin: float, known: set[str]) -> None:
    assert time.monotonic() - begin < MOST_S
    if target.exists():
        with h5py.File(target) as file:
            np.testing.assert_array_equal(file["x"][...], values)
    assert set(left_in(folder)) <= known
