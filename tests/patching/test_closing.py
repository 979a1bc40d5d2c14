"""Does closing a file wait for the engine's reads in other threads, as it waits for libhdf5's?"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from tests.support.patched import bound_always
from tests.support.threads import HANG_S

__all__ = ["bound_always"]
pytestmark = pytest.mark.usefixtures("bound_always")

SHAPE = (512, 1024)
LAYOUTS: dict[str, dict[str, Any]] = {
    "contiguous": {},
    "chunked": {"chunks": (16, 1024), "compression": 1},
}


def _write(path: Path, value: int, layout: str) -> None:
    with h5py.File(path, "w") as f:
        f.create_dataset("x", data=np.full(SHAPE, value, "i8"), **LAYOUTS[layout])


def _patched(path: Path) -> tuple[Any, Any]:
    chunkwise.patch_h5py()
    file = h5py.File(path)
    return file, file["x"]


def _wrapped(path: Path) -> tuple[Any, Any]:
    file = h5py.File(path)
    return file, chunkwise.wrap(file["x"])


def _own(path: Path) -> tuple[Any, Any]:
    file = chunkwise.open(path)
    return file, file["x"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("opened", [_patched, _wrapped, _own])
def test_no_read_sees_what_is_written_after_closing(
    tmp_path: Path, opened: Callable[[Path], tuple[Any, Any]], layout: str
) -> None:
    path = tmp_path / "a.h5"
    _write(path, 0, layout)
    found: list[tuple[int, set[int]]] = []
    raised: list[Exception] = []

    def read(number: int, dataset: Any, first: threading.Event) -> None:
        try:
            while True:
                found.append((number, set(np.unique(dataset[...]).tolist())))
                first.set()
        except Exception as error:  # h5py's, of a closed file
            raised.append(error)

    for number in range(15):
        file, dataset = opened(path)
        assert dataset[0, 0] == number
        first = threading.Event()
        arguments = number, dataset, first
        threads = [threading.Thread(target=read, args=arguments) for _ in range(2)]
        for thread in threads:
            thread.start()
        if number % 4:  # Among reads, each time at another moment; else before them, or in one
            assert first.wait(HANG_S)
            time.sleep(0.002 * (number % 4))
        file.close()
        _write(path, number + 1, layout)
        for thread in threads:
            thread.join(HANG_S)
            assert not thread.is_alive()
    assert all(values == {number} for number, values in found)
    assert len(found) >= 11
    assert all(isinstance(error, ValueError | RuntimeError) for error in raised), raised


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file whose one dataset takes one thread far more than 0.1 s to read."""
    path = tmp_path_factory.mktemp("closing") / "long.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("x", (1536, 16384), "i8", chunks=(1, 16384), compression=9)
        f["x"][:16] = np.random.default_rng(0).integers(0, 99, (16, 16384))
        stored = [f["x"].id.read_direct_chunk((n, 0)) for n in range(16)]
        for row in range(16, 1536):
            f["x"].id.write_direct_chunk((row, 0), stored[row % 16][1])
    return path


@pytest.fixture
def one_thread() -> Iterator[None]:
    chunkwise.settings(threads=1)
    yield
    chunkwise.settings(threads="default")


@pytest.mark.usefixtures("one_thread")
def test_a_signal_handler_closes_the_file_that_its_thread_reads(long: Path) -> None:
    chunkwise.patch_h5py()
    file = h5py.File(long)
    expected = file["x"][0].sum()
    closed = []

    def close(*_: object) -> None:
        closed.append(time.perf_counter())
        file.close()

    # By processor time, of which the read alone takes so much, however busy the machine is.
    before = signal.signal(signal.SIGPROF, close)
    try:
        dataset = file["x"]
        signal.setitimer(signal.ITIMER_PROF, 0.03)
        values = dataset[...]
        ended = time.perf_counter()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    # In the middle of the read, which went on.
    assert closed
    assert closed[0] < ended
    assert not file
    assert values[0].sum() == values[-16].sum() == expected


@pytest.mark.usefixtures("one_thread")
def test_a_forked_child_does_not_wait_for_reads_of_its_parent(long: Path) -> None:
    chunkwise.patch_h5py()
    file = h5py.File(long)
    dataset = file["x"]
    dataset[0]
    # On a busy machine the fork may come when the read is over: then once more.
    for _ in range(10):
        thread = threading.Thread(target=lambda: dataset[...])
        thread.start()
        time.sleep(0.02)
        child = os.fork()
        if child == 0:
            file.close()
            os._exit(0)
        was_reading = thread.is_alive()
        thread.join(HANG_S)
        until = time.monotonic() + HANG_S
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < until:
            time.sleep(0.01)
        if ended == (0, 0):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        assert ended == (child, 0)
        if was_reading:
            return
    raise AssertionError("no fork came within a read")
