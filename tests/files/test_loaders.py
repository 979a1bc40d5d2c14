"""Do datasets serve programs whose workers load batches, as PyTorch's DataLoader does?"""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import pytest

import chunkwise
from tests.support.processes import ran

VALUES = np.random.default_rng(4).integers(0, 1000, (64, 20, 30), dtype="i4")
METHODS = ["fork", "spawn", "forkserver"]


class Samples:
    """A map-style dataset, as PyTorch has it: it may have been read before workers start."""

    def __init__(self, path: Path) -> None:
        self.images = chunkwise.open(path)["images"]

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = self.images[index]
        return found

    def __getitems__(self, indices: list[int]) -> npt.NDArray[Any]:
        # PyTorch asks for a batch at once where there is this: one read, in any order.
        found: npt.NDArray[Any] = self.images[indices]
        return found


def _work(samples: Samples, batches: list[list[int]], done: Queue[Any]) -> None:
    for batch in batches:
        done.put((batch, np.stack([samples[index] for index in batch]), samples.images[batch]))
    done.put(chunkwise.patch_stats()["engine"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "images.h5"
    with h5py.File(made, "w") as f:
        f.create_dataset("images", data=VALUES, chunks=(4, 20, 30), compression=1)
    return made


@pytest.mark.parametrize("method", METHODS)
def test_workers_read_batches(path: Path, method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    samples = Samples(path)
    # The parent's threads are running when the workers are forked.
    assert (samples[0] == VALUES[0]).all()
    order = np.random.default_rng(0).permutation(len(samples)).tolist()
    batches = [order[at : at + 8] for at in range(0, len(order), 8)]
    done = context.Queue()
    workers = [
        context.Process(target=_work, args=(samples, batches[number::2], done), daemon=True)
        for number in range(2)
    ]
    for worker in workers:
        worker.start()
    found, reads = {}, 0
    for _ in range(len(batches) + len(workers)):
        one = done.get(timeout=120)
        if isinstance(one, int):
            reads += one
            continue
        batch, singly, together = one
        found[tuple(batch)] = singly
        np.testing.assert_array_equal(singly, VALUES[batch])
        np.testing.assert_array_equal(together, VALUES[batch])
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    assert len(found) == len(batches)
    # By the engine, in each of them.
    assert reads >= len(samples) + len(batches)


@pytest.mark.parametrize("method", METHODS)
def test_pytorchs_loader(path: Path, method: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    loader = torch.utils.data.DataLoader(
        Samples(path), batch_size=8, shuffle=True, num_workers=2, multiprocessing_context=method
    )
    found = np.concatenate([batch.numpy() for batch in loader])
    assert sorted(found[:, 0, 0].tolist()) == sorted(VALUES[:, 0, 0].tolist())
    assert len(found) == len(VALUES)


# As PyTorch tells a worker what it is; imported before chunkwise, or after.
DIVIDED = """
import os, sys, types, warnings
class WorkerInfo:
    def __init__(self, **given):
        self.__dict__.update(given)
worker = types.ModuleType("worker")
worker.WorkerInfo = WorkerInfo
if sys.argv[1] == "before":
    sys.modules["torch.utils.data._utils.worker"] = worker
import chunkwise
chunkwise.settings(prefetch_nbytes=1 << 20)
sys.modules["torch.utils.data._utils.worker"] = worker
before = chunkwise.settings()
if os.fork():
    code = os.wait()[1]
    assert chunkwise.settings() == before
    os._exit(code >> 8)
import chunkwise.memory
chunkwise.memory.total_nbytes = lambda: before.cache_nbytes >> 1
with warnings.catch_warnings(record=True) as said:
    worker.WorkerInfo(id=0, num_workers=4, seed=1, dataset=None)
after = chunkwise.settings()
assert after.threads == max(1, before.threads // 4), after
assert after.cache_nbytes * 4 == before.cache_nbytes, after
assert after.prefetch_nbytes == before.prefetch_nbytes, after
assert ["4 workers keep up to" in str(one.message) for one in said] == [True], said
os._exit(0)
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_workers_of_a_loader_divide_threads_and_memory(when: str) -> None:
    done = ran([sys.executable, "-c", DIVIDED, when], timeout=60)
    assert done.returncode == 0, done.stderr
