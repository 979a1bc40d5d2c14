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


# What stands in for PyTorch, in which a worker learns what it is as in its own loop: the dataset
# is unpickled by then, in a process that is started anew.
WORKER = """
class WorkerInfo:
    def __init__(self, /, **given):
        for name, value in given.items():
            setattr(self, name, value)

_worker_info = None

def _worker_loop(dataset, number, workers, done):
    global _worker_info
    _worker_info = WorkerInfo(id=number, num_workers=workers, seed=number, dataset=dataset)
    value = dataset[5]
    import chunkwise
    done.put((float(value), *chunkwise.settings()[:2]))
"""
LOADER = """
import multiprocessing, sys
{imported}

class Opened:
    def __init__(self, path):
        import chunkwise
        self.images = chunkwise.open(path)["images"]

    def __getitem__(self, index):
        return self.images[index][3, 4]

class OpenedLater:
    def __init__(self, path):
        self.path = path

    def __getitem__(self, index):
        import chunkwise
        return chunkwise.open(self.path)["images"][index][3, 4]

class Patched(OpenedLater):
    def __getitem__(self, index):
        import chunkwise, h5py
        with chunkwise.patch_h5py(), h5py.File(self.path) as f:
            return f["images"][index][3, 4]

if __name__ == "__main__":
    import torch.utils.data._utils.worker as worker
    method, name, path = sys.argv[1:]
    context = multiprocessing.get_context(method)
    dataset, done = globals()[name](path), context.Queue()
    asked = [(dataset, number, 4, done) for number in range(4)]
    workers = [context.Process(target=worker._worker_loop, args=one) for one in asked]
    [one.start() for one in workers]
    found = [done.get(timeout=60) for _ in workers]
    [one.join(60) for one in workers]
    import chunkwise
    print(*chunkwise.settings()[:2])
    [print(*one) for one in found]
"""
IMPORTED = {
    "before": "import chunkwise\nimport torch",
    "after": "import torch\nimport chunkwise",
    "later": "",
}


# Each of two meets each of the third once.
SIBLINGS = [
    (method, imported, ("Opened", "OpenedLater", "Patched")[(row + column) % 3])
    for row, method in enumerate(METHODS)
    for column, imported in enumerate(IMPORTED)
]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "imported", "dataset"), SIBLINGS)
def test_workers_find_their_siblings(
    tmp_path: Path, method: str, imported: str, dataset: str
) -> None:
    """However they are started, and whenever they import chunkwise."""
    package = tmp_path
    for name in ("torch", "utils", "data", "_utils"):
        package /= name
        package.mkdir()
        (package / "__init__.py").touch()
    (tmp_path / "torch/__init__.py").write_text("import torch.utils.data._utils.worker\n")
    (package / "worker.py").write_text(WORKER)
    (tmp_path / "program.py").write_text(LOADER.format(imported=IMPORTED[imported]))
    with h5py.File(tmp_path / "images.h5", "w") as f:
        values = np.arange(64 * 20 * 30, dtype="f8").reshape(64, 20, 30)
        f.create_dataset("images", data=values, chunks=(4, 20, 30), compression=1)
    words = [sys.executable, "program.py", method, dataset, "images.h5"]
    done = ran(words, cwd=tmp_path, timeout=120)
    assert (done.stderr, done.returncode) == ("", 0)
    (threads, cache), *workers = [line.split() for line in done.stdout.splitlines()]
    share = [str(values[5, 3, 4]), str(max(1, int(threads) // 4)), str(int(cache) // 4)]
    assert workers == [share] * 4


TOLD = """
import os, sys, types, warnings
worker = sys.modules["torch.utils.data._utils.worker"] = types.ModuleType("worker")
class WorkerInfo:
    def __init__(self, /, **given):
        self.__dict__.update(given)
worker.WorkerInfo = WorkerInfo
worker._worker_info = WorkerInfo(id=0, num_workers=4)
from pathlib import Path
import chunkwise.memory
cache = chunkwise.settings().cache_nbytes
assert os.fork() or not os._exit(chunkwise.settings().cache_nbytes != cache)
assert os.wait()[1] == 0
worker._worker_info = None
chunkwise.settings(cache_nbytes="256MiB")
proc, cgroup = map(Path, sys.argv[1:3])
limited = chunkwise.memory.total_nbytes
chunkwise.memory.total_nbytes = lambda: limited(proc, cgroup)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    [WorkerInfo(id=number, num_workers=4) for number in range(4)]
print(*(str(one.message) for one in said))
"""


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("limit_mib", [1000, 1100])
def test_caches_beyond_the_memory_are_told_of(
    tmp_path: Path, version: int, limit_mib: int
) -> None:
    """Once for all workers, by the limit of the control group; a share is taken once, too."""
    proc = tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text(f"MemTotal: {64 << 20} kB\n")
    (proc / "self/cgroup").write_text("0::/job\n" if version == 2 else "5:memory:/job\n")
    group = tmp_path / "cgroup" / ("job" if version == 2 else "memory/job")
    group.mkdir(parents=True)
    name = "memory.max" if version == 2 else "memory.limit_in_bytes"
    (group / name).write_text(f"{limit_mib << 20}\n")
    done = ran([sys.executable, "-c", TOLD, proc, tmp_path / "cgroup"], timeout=60)
    assert done.returncode == 0, done.stderr
    expected = "4 workers keep up to 256.0 MiB of chunks each, and there are 1000.0 MiB of memory"
    assert done.stdout.startswith(expected) == (limit_mib == 1000), done.stdout
    assert done.stdout.count("\n") == 1
