"""Does `dask.array.from_array` do well with a dataset of chunkwise, without anything beside it?"""

import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

pytest.importorskip("dask.array", reason="Dask is not installed")

import dask
import dask.array as da
from dask.tokenize import tokenize

import chunkwise
from chunkwise.routing.reading import counts
from tests.support.clusters import cluster

VALUES = np.random.default_rng(2).normal(size=(40, 30, 20)).astype("f4")
CHUNK = (7, 6, 5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "a.h5"
    with h5py.File(made, "w") as f:
        f.create_dataset("g/x", data=VALUES, chunks=CHUNK, compression=1)
        f.create_dataset("g/y", data=VALUES, chunks=CHUNK, compression=1)
    return made


def test_blocks_are_whole_chunks(path: Path) -> None:
    with chunkwise.open(path) as f, dask.config.set({"array.chunk-size": "10KiB"}):
        lazily = da.from_array(f["g/x"])
        assert lazily.numblocks > (1, 1, 1)
        for lengths, size in zip(lazily.chunks, CHUNK, strict=True):
            assert all(length % size == 0 for length in lengths[:-1])
        before = counts.engine
        np.testing.assert_array_equal(lazily.compute(), VALUES)
        # A read for each block.
        assert counts.engine - before == lazily.npartitions


@pytest.mark.parametrize("scheduler", ["sync", "threads", "processes"])
def test_all_schedulers(path: Path, scheduler: str) -> None:
    with chunkwise.open(path) as f:
        lazily = da.from_array(f["g/x"], chunks=(14, 30, 20))
        with dask.config.set(scheduler=scheduler, num_workers=2):
            np.testing.assert_array_equal(lazily[3:30, ::3, [1, 4]], VALUES[3:30, ::3, [1, 4]])


def test_a_cluster(path: Path) -> None:
    with cluster(), chunkwise.open(path) as f:
        lazily = da.from_array(f["g/x"], chunks=(14, 30, 20))
        np.testing.assert_array_equal(lazily.compute(), VALUES)


def test_names_are_those_of_what_is_read(path: Path, tmp_path: Path) -> None:
    def named(name: str = "g/x", file: Path = path) -> str:
        with chunkwise.open(file) as f:
            assert tokenize(f[name]) == tokenize(f[name])
            return str(da.from_array(f[name]).name)

    first = named()
    assert named() == first
    assert named("/g/x") == first
    assert named("g/y") != first
    copy = tmp_path / "copy.h5"
    copy.write_bytes(path.read_bytes())
    assert named(file=copy) != first
    with h5py.File(path, "r+") as f:
        f["g/x"][0] = 0
    os.utime(path, ns=(1, 1))
    assert named() != first


def test_what_is_written_has_a_new_name_each_time(path: Path) -> None:
    def named(f: Any) -> str:
        return str(tokenize(f["g/x"]))

    with chunkwise.open(path, "r+") as f:
        assert named(f) != named(f)
    with path.open("rb") as stream, chunkwise.File(stream) as f:
        assert named(f) != named(f)
    with h5py.File(path) as f:
        ours = chunkwise.wrap(f["g/x"])
        with chunkwise.open(path) as g:
            assert tokenize(ours) == tokenize(g["g/x"])
