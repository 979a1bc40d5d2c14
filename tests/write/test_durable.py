"""What was written is in the file, whatever happens; what cannot be is an error."""

import gc
import os
import shutil
import subprocess
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import numpy.typing as npt
import pytest

import chunkwise
from chunkwise.errors import CannotWriteError, UsageError
from tests.support.processes import python
from tests.support.threads import run_in_threads

NOISE = np.random.default_rng(0).integers(0, 255, (8, 4096), "u1")


def new(file: h5py.File, **options: object) -> chunkwise.Dataset:
    options = {"chunks": (2, 4096), "compression": 1, **options}
    return chunkwise.wrap(file.create_dataset("x", NOISE.shape, "u1", **options))


def in_file(path: Path) -> npt.NDArray[np.uint8]:
    with h5py.File(path) as file:
        return np.asarray(file["x"])


def test_closing_and_flushing_through_h5py_writes_what_waits(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    file = h5py.File(path, "w")
    d = new(file)
    d[0] = NOISE[0]
    assert d.explain_write()["dirty_chunks"] == 1
    file.flush()
    assert d.explain_write()["dirty_chunks"] == 0
    d[3] = NOISE[3]
    file.close()
    expected = np.zeros_like(NOISE)
    expected[[0, 3]] = NOISE[[0, 3]]
    np.testing.assert_array_equal(in_file(path), expected)
    with pytest.raises(UsageError):
        d[0] = 1


def test_what_nobody_refers_to_follows_the_dataset(tmp_path: Path) -> None:
    """It was resized meanwhile, and written to where it was not before."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        options = {"chunks": (10,), "maxshape": (None,), "compression": 1}
        theirs = file.create_dataset("x", (5,), "i4", **options)
        d = chunkwise.wrap(theirs)
        d[:3] = [1, 2, 3]
        theirs.resize((10,))
        theirs[5:] = 7
        del d
        gc.collect()
        assert theirs[...].tolist() == [1, 2, 3, 0, 0, 7, 7, 7, 7, 7]


def test_threads_that_keep_no_object_lose_nothing(tmp_path: Path) -> None:
    """Each ends a write to a chunk, which completes it from the file, as others begin one."""
    rows, columns = 60, 2048
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (rows, columns), "i4", chunks=(rows, columns), compression=1)

        def write(first: int) -> None:
            for row in range(first, rows, 3):
                chunkwise.wrap(file["x"])[row] = np.full(columns, row + 1, "i4")

        run_in_threads([partial(write, first) for first in range(3)])
        assert file["x"][:, 0].tolist() == list(range(1, rows + 1))


def test_a_file_closed_below_h5py_is_an_error(tmp_path: Path) -> None:
    file = h5py.File(tmp_path / "x.h5", "w")
    d = new(file)
    d[0] = NOISE[0]
    written = d._written()
    for one in (file["x"].id, d.h5py.id):
        one._close()
    file.id._close_open_objects(h5py.h5f.OBJ_ALL)
    written._dirty = True
    with pytest.raises((CannotWriteError, UsageError)):
        d[1] = NOISE[1]
    file.close()


def test_two_wrappers_are_one_writer(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        one, other = new(file), chunkwise.wrap(file["x"])
        one[0] = NOISE[0]
        other[1] = NOISE[1]
        assert one.explain_write()["dirty_chunks"] <= 1
        np.testing.assert_array_equal(other[:2], NOISE[:2])
        assert other.explain_write()["committed_chunks"] == 1


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_h5py_and_the_writer_take_turns(tmp_path: Path, libver: str) -> None:
    """libhdf5's own cache holds no copy of a chunk that was overwritten, nor its mask."""
    path = tmp_path / "x.h5"
    model = np.zeros_like(NOISE)
    with h5py.File(path, "w", libver=libver) as file:
        d, theirs = new(file), file["x"]
        for number in range(12):
            value = NOISE[:2] if number % 2 else np.full((2, 4096), number, "u1")
            first = number % 3 * 2
            if number % 4 == 3:
                theirs[first] = value[0]
                model[first] = value[0]
            else:
                d[first : first + 2] = value
                model[first : first + 2] = value
            d.flush()
            np.testing.assert_array_equal(theirs[...], model)
            np.testing.assert_array_equal(d[...], model)
    np.testing.assert_array_equal(in_file(path), model)
    h5dump = shutil.which("h5dump")
    # Debian's does not know the latest format.
    if h5dump and libver == "earliest":
        dumped = tmp_path / "dumped"
        subprocess.run([h5dump, "-d", "/x", "-b", "LE", "-o", dumped, path], check=True,
                       capture_output=True)  # fmt: skip
        assert dumped.read_bytes() == model.tobytes()


def test_a_child_writes_nothing_of_its_parents(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        d = new(file)
        d[0] = NOISE[0]
        child = os.fork()
        if child == 0:
            # Neither by asking nor by leaving.
            try:
                d[1] = NOISE[1]
            except UsageError:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert d.explain_write()["dirty_chunks"] == 1
    np.testing.assert_array_equal(in_file(path)[0], NOISE[0])


def test_an_interrupted_write_leaves_a_file_that_opens(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    program = f"""
import h5py, numpy as np, chunkwise, os, signal, threading, time
data = np.random.default_rng(0).integers(0, 255, (1 << 10, 1 << 17), "u1")
with h5py.File({str(path)!r}, "w") as file:
    d = chunkwise.wrap(file.create_dataset("x", data.shape, "u1", chunks=(8, 1 << 14),
                                           compression=9))
    d[:8] = data[:8]
    try:
        threading.Timer(0.03, os.kill, (os.getpid(), signal.SIGINT)).start()
        d[8:] = data[8:]
    except KeyboardInterrupt:
        print("interrupted")
"""
    assert python(program) == "interrupted"
    with h5py.File(path) as file:
        first = np.random.default_rng(0).integers(0, 255, (1 << 10, 1 << 17), "u1")[:8]
        np.testing.assert_array_equal(file["x"][:8], first)
