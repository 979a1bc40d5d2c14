"""What was written before a file closes is in it, and what comes later is refused."""

import threading
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.handles import pending

phil = h5py._objects.phil


def new(path: Path) -> tuple[chunkwise.File, chunkwise.Dataset]:
    file = chunkwise.open(path, "w", sync=False)
    return file, file.create_dataset("x", (4000, 50), "i4", chunks=(16, 50), filters="deflate:1")


def test_a_write_to_a_file_that_is_being_closed_is_refused(tmp_path: Path) -> None:
    file, d = new(tmp_path / "x.h5")
    d[0] = 1
    with pending.closing(file.h5py.file), pytest.raises(UsageError, match="is closing the file"):
        d[1] = 2
    d[2] = 3
    file.close()
    with h5py.File(tmp_path / "x.h5") as got:
        np.testing.assert_array_equal(got["x"][:3, 0], [1, 0, 3])


def test_one_failure_keeps_no_other_dataset_from_the_file(tmp_path: Path) -> None:
    """Closing tries each dataset, also after one could not be written."""
    path = tmp_path / "x.h5"
    file, d = new(path)
    other = file.create_dataset("y", (40, 50), "i4", chunks=(16, 50), filters="deflate:1")
    d[0], other[0] = 1, 2
    writing = d._written()
    native = writing._native

    class Failing:
        def __getattr__(self, name: str) -> object:
            return getattr(native, name)

        def flush(self) -> None:
            raise CannotWriteError("on purpose")

    writing._native = Failing()  # type: ignore[assignment]
    with pytest.raises(CannotWriteError, match="on purpose"):
        file.close()
    with h5py.File(path) as got:
        assert (got["y"][0] == 2).all()
    assert native is not None
    native.forget()


class Busy:
    """A thread that holds a writer's lock, as one does that writes."""

    def __init__(self, writing: Any, dirty: bool = False) -> None:
        self.writing, self.dirty = writing, dirty
        self.held, self.leave = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.hold)

    def hold(self) -> None:
        with self.writing._lock:
            self.writing._dirty |= self.dirty
            self.held.set()
            self.leave.wait(60)

    def begin(self) -> None:
        self.thread.start()
        self.held.wait(60)

    def end(self) -> None:
        self.leave.set()
        self.thread.join()


def test_nobody_waits_for_a_writer_who_waits_for_the_lock(tmp_path: Path) -> None:
    """With h5py's lock held, a close says that it cannot wait, and closes nothing."""
    path = tmp_path / "x.h5"
    file, d = new(path)
    d[0] = 1
    theirs = file.h5py.file
    d[1] = 2
    busy = Busy(d._written())
    busy.begin()
    with phil, pytest.raises(UsageError, match="which this one holds"):
        theirs.close()
    with pytest.raises(UsageError, match="not within a visit"):
        file.visititems(lambda _, one: one.__setitem__(2, 5))
    # A read would miss what was written.
    for read in (lambda one: one[1], lambda one: one.read_direct(np.empty(one.shape, one.dtype))):
        with pytest.raises(UsageError, match="outside of a visit"):
            file.visititems(lambda _, one, read=read: read(one))
    with chunkwise.patch_h5py(), phil, pytest.raises(UsageError, match="outside of a visit"):
        theirs["x"][1]
    busy.end()
    theirs.close()
    file.close()
    with h5py.File(path) as got:
        np.testing.assert_array_equal(got["x"][:3, 0], [1, 2, 0])


def test_an_array_is_made_though_another_thread_begins_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that was written is waited for before h5py's lock is taken, and not again within it."""
    file, d = new(tmp_path / "x.h5")
    d[0] = 1
    busy = Busy(d._written(), dirty=True)
    settle = type(busy.writing).settle

    def settled(self: Any, blocking: bool = True) -> None:
        settle(self, blocking)
        if not busy.held.is_set():
            busy.begin()

    monkeypatch.setattr(type(busy.writing), "settle", settled)
    try:
        np.testing.assert_array_equal(np.asarray(d)[:2, 0], [1, 0])
    finally:
        busy.end()
    file.close()


def test_a_file_opened_twice_and_closed_once_is_written(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as made:
        made.create_dataset("x", (40, 8), "i4", chunks=(4, 8), compression=1)
    one, other = h5py.File(path, "r+"), h5py.File(path, "r+")
    first, second = chunkwise.wrap(one["x"]), chunkwise.wrap(other["x"])
    first[0] = 1
    one.close()
    second[1] = 2
    other.close()
    with h5py.File(path) as got:
        np.testing.assert_array_equal(got["x"][:3, 0], [1, 2, 0])
