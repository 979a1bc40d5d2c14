"""Several processes at one file, ends without a close, asyncio: right, or a clear error."""

import asyncio
import copy
import multiprocessing
import pickle
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from tests.support.processes import Program, python

VALUES = np.arange(1000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "x.h5"
    with chunkwise.open(made, "w", sync=False) as file:
        file.create_dataset("x", data=VALUES, chunks=(100,), filters="deflate:1")
    return made


def read_sum(path: Path) -> int:
    with chunkwise.open(path) as file:
        return int(np.asarray(file["x"]).sum())


def write_one(path: Path) -> None:
    with chunkwise.open(path, "r+", sync=False) as file:
        d: Any = file["x"]
        d[0] = 1


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_read_and_write_files_that_they_open(path: Path, method: str) -> None:
    with chunkwise.open(path) as file:
        # The parent's pool and cache are at work before.
        assert np.asarray(file["x"]).sum() == VALUES.sum()
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.apply(read_sum, (path,)) == VALUES.sum()
        pool.apply(write_one, (path,))
        # Not by a signal, for which the runner of tests may have a handler.
        pool.close()
        pool.join()
    assert read_sum(path) == VALUES.sum() + 1


def sum_of(one: Any) -> int:
    """Of the dataset x, by way of what was sent."""
    return int(np.asarray(one if isinstance(one, chunkwise.Dataset) else one["x"]).sum())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_what_is_open_for_reading_is_sent_to_other_processes(
    path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    with chunkwise.open(path.name, rdcc_nbytes=4096) as file, h5py.File(path) as theirs:
        sent = [file, file["/"], file["x"], chunkwise.wrap(theirs["x"])]
        monkeypatch.chdir("/")
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.map(sum_of, sent) == [VALUES.sum()] * len(sent)
            pool.close()
            pool.join()
        for one in sent:
            for again in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
                assert type(again) is type(one)
                assert again.name == one.name
                assert sum_of(again) == VALUES.sum()
        reopened = pickle.loads(pickle.dumps(file))
        assert reopened.id.get_access_plist().get_cache() == file.id.get_access_plist().get_cache()
    assert sum_of(reopened) == VALUES.sum()
    for one in (file, sent[3]):
        with pytest.raises(TypeError, match="closed"):
            pickle.dumps(one)


def test_what_is_open_for_writing_is_not_pickled(path: Path) -> None:
    with chunkwise.open(path, "r+", sync=False) as file:
        for one in (file, file["/"], file["x"]):
            with pytest.raises(TypeError, match="is open for writing"):
                pickle.dumps(one)
            with pytest.raises(TypeError, match="is open for writing"):
                copy.copy(one)


def test_tasks_read_in_threads_and_are_cancelled(path: Path) -> None:
    async def read(d: Any) -> None:
        parts = [asyncio.to_thread(d.__getitem__, slice(n, n + 50)) for n in range(0, 1000, 50)]
        np.testing.assert_array_equal(np.concatenate(await asyncio.gather(*parts)), VALUES)
        task = asyncio.create_task(asyncio.to_thread(d.__getitem__, ...))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        loop = asyncio.get_running_loop()
        np.testing.assert_array_equal(await loop.run_in_executor(None, d.read), VALUES)

    with chunkwise.open(path) as file:
        asyncio.run(read(file["x"]))


OPEN = """
import sys, chunkwise
try:
    chunkwise.open(sys.argv[1], sys.argv[2])
except chunkwise.ChunkwiseError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("mode", ["r", "r+", "w", "a"])
def test_a_second_process_is_told_that_the_file_is_open(path: Path, mode: str) -> None:
    with chunkwise.open(path, "r+", sync=False) as file:
        said = python(OPEN, path, mode)
        assert said.startswith(f"BusyError {path}: ")
        assert "close it there" in said
        np.testing.assert_array_equal(file["x"], VALUES)


FOLLOW = """
import sys, chunkwise
file = chunkwise.open(sys.argv[1], swmr=True)
d = file["x"]
print(d.explain(...)["reason"], flush=True)
for _ in sys.stdin:
    d.refresh()
    print(d.shape[0], d[...].sum(), flush=True)
"""


@pytest.mark.parametrize("writer", ["h5py", "chunkwise", "chunkwise at work"])
def test_a_reader_follows_a_writer(tmp_path: Path, writer: str) -> None:
    path = tmp_path / "x.h5"
    file = h5py.File(path, "w", libver="latest")
    theirs = file.create_dataset("x", (1,), "i4", maxshape=(None,), chunks=(10,), compression=1)
    ours = chunkwise.wrap(theirs)
    if writer == "chunkwise at work":
        ours.append(np.ones(15, "i4"))
        ours.flush()
    file.swmr_mode = True
    with Program(FOLLOW, path) as reader:
        assert reader.hear() == "None"
        for number in range(4):
            values = np.full(13, number, "i4")
            if writer == "h5py":
                theirs.resize((len(theirs) + 13,))
                theirs[-13:] = values
                theirs.flush()
            else:
                ours.append(values)
                ours[0] = number
                ours.flush()
            reader.tell()
            assert reader.hear() == f"{len(theirs)} {theirs[...].sum()}"
    assert reader.process.returncode == 0
    file.close()
