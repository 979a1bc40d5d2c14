"""May any thread read through patched h5py at any time, and forked children too?"""

import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from tests.support.patched import bound_always, engine_reads
from tests.support.reading import LEFT_TO_LIBHDF5, random_index, same
from tests.support.threads import HANG_S, run_in_threads

__all__ = ["bound_always"]
pytestmark = pytest.mark.usefixtures("bound_always")

SHAPE, CHUNK = (48, 64, 40), (16, 24, 20)
FILES, THREADS = 3, 16


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("patched_concurrency")
    paths = [folder / f"{n}.h5" for n in range(FILES)]
    for n, path in enumerate(paths):
        data = np.random.default_rng(n).integers(0, 90, SHAPE).astype("i4")
        with h5py.File(path, "w") as f:
            f.create_dataset("chunked", data=data, chunks=CHUNK, shuffle=True, compression=1)
            f.create_dataset("contiguous", data=data)
            f.create_dataset("zfp", data=data, chunks=CHUNK, **LEFT_TO_LIBHDF5)
    return paths


def test_sixteen_threads_read_several_files(paths: list[Path]) -> None:
    wholes = [{name: d[...] for name, d in h5py.File(path).items()} for path in paths]
    names = list(wholes[0])
    files = [h5py.File(path) for path in paths]
    held = [{name: f[name] for name in names} for f in files]
    chunkwise.patch_h5py()
    before = engine_reads()

    def read(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for n in range(40):
            which, name = int(rng.integers(FILES)), str(rng.choice(names))
            want, index = wholes[which][name], random_index(rng, SHAPE)
            # A dataset that all threads share, one of its own, and ways of their own.
            d = held[which][name] if n % 2 else files[which][name]
            assert np.array_equal(d[index], want[index]), (name, index)
            if n % 10 == 0:
                assert same(np.asarray(d), want)
                assert same(d.astype("f8")[3], want[3].astype("f8"))
                out = np.zeros(SHAPE[1:], "i4")
                d.read_direct(out, 5)
                assert same(out, want[5])

    run_in_threads([partial(read, seed) for seed in range(THREADS)])
    # Two of the three datasets are the engine's.
    assert engine_reads() - before > THREADS * 40 / 2
    for f in files:
        f.close()


def test_threads_open_read_and_close(paths: list[Path]) -> None:
    wholes = []
    for path in paths:
        with h5py.File(path) as f:
            wholes.append(f["chunked"][...])
    chunkwise.patch_h5py()

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(20):
            which, index = int(rng.integers(FILES)), random_index(rng, SHAPE)
            with h5py.File(paths[which]) as f:
                assert np.array_equal(f["chunked"][index], wholes[which][index])

    def toggle() -> None:
        for _ in range(20):
            with chunkwise.patch_h5py():
                pass

    run_in_threads([*(partial(work, seed) for seed in range(THREADS)), toggle])


def test_threads_patch_and_unpatch_while_others_read(paths: list[Path]) -> None:
    with h5py.File(paths[0]) as f:
        d, whole = f["chunked"], f["chunked"][...]
        stop = threading.Event()

        def read(seed: int) -> None:
            rng = np.random.default_rng(seed)
            while not stop.is_set():
                index = random_index(rng, SHAPE)
                assert np.array_equal(d[index], whole[index])
                assert np.array_equal(f["contiguous"][index], whole[index])

        def toggle() -> None:
            try:
                for _ in range(100):
                    chunkwise.patch_h5py()
                    assert same(d[3], whole[3])
                    chunkwise.unpatch_h5py()
            finally:
                stop.set()

        run_in_threads([partial(read, 1), partial(read, 2), toggle])


@pytest.mark.parametrize("face", ["patched", "wrapped"])
def test_other_threads_run_during_a_read(tmp_path: Path, face: str) -> None:
    """A thread that waits for the GIL gets on while one read is running."""
    with h5py.File(tmp_path / "large.h5", "w") as f:
        f.create_dataset("d", (64, 1 << 20), "u1", chunks=(1, 1 << 20), compression=1)[...] = 7
    ticks = 0
    started, stop = threading.Event(), threading.Event()

    def tick() -> None:
        nonlocal ticks
        started.set()
        while not stop.is_set():
            ticks += 1
            time.sleep(0)

    former = sys.getswitchinterval()
    chunkwise.patch_h5py()
    with h5py.File(tmp_path / "large.h5") as f:
        d: Any = f["d"] if face == "patched" else chunkwise.wrap(f["d"])
        d[0, 0]
        thread = threading.Thread(target=tick)
        # No thread has to give the GIL up now: what ticks, ticks while the read has.
        sys.setswitchinterval(1000)
        try:
            thread.start()
            started.wait(HANG_S)
            # A busy machine may give the other thread no turn during one of them.
            for _ in range(20):
                before = ticks
                got = d[...]
                after = ticks
                if after > before:
                    break
        finally:
            stop.set()
            sys.setswitchinterval(former)
            thread.join()
    assert got.min() == got.max() == 7
    assert after > before
