"""Many threads, forked processes, few processors: are results right, and limits kept?"""

import os
import threading
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise import _lib, _native
from tests.support.processes import python as run_python
from tests.support.reading import LEFT_TO_LIBHDF5, outcome, random_index, same
from tests.support.threads import HANG_S, run_in_threads

SHAPE, CHUNK = (64, 96, 40), (16, 24, 20)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("concurrency") / "many.h5"
    data = np.random.default_rng(0).integers(0, 90, SHAPE).astype("i4")
    with h5py.File(path, "w") as f:
        f.create_dataset("chunked", data=data, chunks=CHUNK, shuffle=True, compression=1)
        f.create_dataset("plain", data=data, chunks=CHUNK)
        f.create_dataset("contiguous", data=data)
        f.create_dataset("zfp", data=data, chunks=CHUNK, **LEFT_TO_LIBHDF5)
        f.create_dataset("names", data=["a", "bc"] * 20)
    return path


def test_threads_read_while_h5py_reads(path: Path) -> None:
    with h5py.File(path) as f:
        whole = {name: f[name][...] for name in f}
        ours = {name: chunkwise.wrap(f[name]) for name in f if name != "names"}

        def read(seed: int) -> None:
            rng = np.random.default_rng(seed)
            for _ in range(60):
                name = rng.choice(list(ours))
                index = random_index(rng, SHAPE)
                assert np.array_equal(ours[name][index], whole[name][index]), (name, index)

        def read_by_h5py() -> None:
            rng = np.random.default_rng(99)
            for _ in range(120):
                name = rng.choice(list(whole))
                index = random_index(rng, whole[name].shape)
                f[name][index]
                assert f[name].attrs.get("none") is None

        # Among them datasets that are bound anew in every thread.
        def bind(seed: int) -> None:
            rng = np.random.default_rng(seed)
            for _ in range(30):
                index = random_index(rng, SHAPE)
                got = chunkwise.wrap(f["chunked"])[index]
                assert np.array_equal(got, whole["chunked"][index])

        works = [partial(read, seed) for seed in range(16)]
        run_in_threads([*works, read_by_h5py, partial(bind, 50), partial(bind, 51)])
    stats = chunkwise.cache_stats()
    assert stats["held_nbytes"] <= stats["budget_nbytes"]


def test_threads_open_read_and_close_files(path: Path) -> None:
    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(15):
            with chunkwise.open(path) as f:
                index = random_index(rng, SHAPE)
                d = f["chunked"]
                assert same(d[index], d.h5py[index])

    run_in_threads([partial(work, seed) for seed in range(6)])


def python(code: str, *arguments: object, **variables: str) -> str:
    """Run a program under these limits alone."""
    limits: Any = dict.fromkeys(LIMITS, "") | variables
    return run_python(code, *arguments, **limits)


LIMITS = ("CHUNKWISE_THREADS", "SLURM_CPUS_PER_TASK")
COUNT = "import chunkwise; print(chunkwise._native.thread_count())"


def processors() -> int:
    return len(os.sched_getaffinity(0))


@pytest.mark.parametrize("variable", LIMITS)
def test_variables_limit_the_threads(variable: str) -> None:
    most = int(python(COUNT))
    assert 1 <= most <= processors()
    for value, threads in (("1", 1), ("2", min(2, most)), (" 1 ", 1), ("1000", most)):
        assert int(python(COUNT, **{variable: value})) == threads
    for nonsense in ("0", "-1", "many", ""):
        assert int(python(COUNT, **{variable: nonsense})) == most


def test_the_least_limit_counts() -> None:
    for one, other in (("1", "2"), ("2", "1")):
        assert int(python(COUNT, CHUNKWISE_THREADS=one, SLURM_CPUS_PER_TASK=other)) == 1


def test_affinity_limits_the_threads() -> None:
    one = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); " + COUNT
    assert int(python(one)) == 1
    # Named once the pool is there, the limit comes too late, and must do no harm.
    late = (
        COUNT + "; os.environ['CHUNKWISE_THREADS'] = '1'; print(chunkwise._native.thread_count())"
    )
    first, second = python("import os; " + late).split()
    assert first == second


BUDGET = """
import sys, h5py, numpy as np, chunkwise
with h5py.File(sys.argv[1], "w") as f:
    # 40 chunks of 16 MiB each, next to nothing in the file.
    d = f.create_dataset("d", (40, 2048, 2048), "i4", chunks=(1, 2048, 2048), compression=1)
    for i in range(40):
        d[i, 5, 5] = i
with h5py.File(sys.argv[1]) as f:
    d = chunkwise.wrap(f["d"])
    for i in [*range(40), *range(39, -1, -3)]:
        assert d[i, 5, 5] == i
        stats = chunkwise.cache_stats()
        assert stats["held_nbytes"] <= stats["budget_nbytes"] <= 256 << 20, stats
    assert d[:, 5, 5].tolist() == list(range(40))
    assert d[:, 5, 6].sum() == 0
    stats = chunkwise.cache_stats()
    assert 0 < stats["held_nbytes"] <= stats["budget_nbytes"], stats
    del d
print(chunkwise.cache_stats()["held_nbytes"])
"""


def test_the_cache_keeps_its_budget(tmp_path: Path) -> None:
    # What is left at the end belonged to the dataset, and went with it.
    assert python(BUDGET, tmp_path / "large.h5") == "0"


@pytest.mark.parametrize("block", [(1, 1, 40), (1, 96, 1), (1, 5, 7), (3, 96, 40)])
def test_a_walk_in_c_order_decodes_each_chunk_once(path: Path, block: tuple[int, ...]) -> None:
    with h5py.File(path) as f:
        chunks = f["chunked"].id.get_num_chunks()
        assert chunks == 4 * 4 * 2
        opened = _native.OpenDataset(_lib.library(), str(path), "chunked", {})
        before = chunkwise.cache_stats()
        walk = opened.engine_walk(_native.Walk(SHAPE, block), 10**9, 1e9)
        after = chunkwise.cache_stats()
    blocks = int(np.prod([-(-n // b) for n, b in zip(SHAPE, block, strict=True)]))
    assert walk["operations"] == walk["total_operations"] == blocks
    assert after["decoded"] - before["decoded"] == chunks
    assert after["hits"] > before["hits"]


def test_what_is_let_go_as_an_exception_passes_leaves_it_alone(path: Path) -> None:
    """Ctrl-C may come just after a file was opened; closing it takes h5py's lock."""
    with pytest.raises(ZeroDivisionError):
        # Python lets go of the first while the second is on its way.
        print(_native.OpenDataset(_lib.library(), str(path), "chunked", {}), 1 // 0)
    with h5py.File(path, "r+"):
        pass  # It was closed.


def test_rows_by_index_decode_each_chunk_once(path: Path) -> None:
    with h5py.File(path) as f:
        d, whole = chunkwise.wrap(f["chunked"]), f["chunked"][...]
        before = chunkwise.cache_stats()["decoded"]
        for i in range(SHAPE[0]):
            assert same(d[i], whole[i])
        assert chunkwise.cache_stats()["decoded"] - before == f["chunked"].id.get_num_chunks()


def test_reads_do_not_wait_for_the_library(path: Path) -> None:
    """While another thread is within libhdf5, bound datasets can be read."""
    with h5py.File(path) as f:
        ours = [chunkwise.wrap(f[name]) for name in ("chunked", "plain", "contiguous")]
        want = [d[7] for d in ours]
        inside, read = threading.Event(), threading.Event()
        waited: list[bool] = []

        def hold() -> None:
            with h5py._objects.phil:
                inside.set()
                waited.append(read.wait(HANG_S / 4))

        def read_meanwhile() -> None:
            inside.wait(HANG_S)
            for d, row in zip(ours, want, strict=True):
                assert same(d[7], row)
                assert same(d.read(chunkwise.hyperslab((7, 0, 0), (1, 96, 40)))[0], row)
            read.set()

        run_in_threads([hold, read_meanwhile])
    assert waited == [True]


def test_closing_while_threads_read_gives_data_or_a_clear_error(path: Path) -> None:
    for _ in range(5):
        file = chunkwise.open(path)
        d = file["chunked"]
        row = d[3]
        begun = threading.Event()

        def read(d: chunkwise.Dataset = d, row: Any = row, begun: Any = begun) -> None:
            while True:
                got = outcome(lambda: d[3])
                begun.set()
                if isinstance(got, Exception):
                    assert isinstance(got, chunkwise.ChunkwiseError), repr(got)
                    assert "closed" in str(got)
                    return
                assert same(got, row)

        def close(file: chunkwise.File = file, begun: Any = begun) -> None:
            begun.wait(HANG_S)
            file.close()

        run_in_threads([read, read, read, close])
