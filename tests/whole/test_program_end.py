"""Does a program end while its daemon threads read?"""

from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.support.processes import python

# h5py's own reads hold its lock for most of the time: without help it hangs nearly every time.
READING = """
import sys, threading
import chunkwise
file = chunkwise.open(sys.argv[1])
d = file["x"] if sys.argv[2] == "ours" else file.h5py["x"]
begun = threading.Event()
def read():
    while True:
        for row in range(600):
            assert (d[row] == row).all()
            begun.set()
assert (file["x"][7] == 7).all()
for _ in range(3):
    threading.Thread(target=read, daemon=True).start()
begun.wait()
"""


@pytest.mark.parametrize("whose", ["ours", "h5py's"])
def test_daemon_threads_that_read_keep_no_program_from_ending(whose: str, tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        rows = np.repeat(np.arange(600, dtype="i4"), 40).reshape(600, 40)
        file.create_dataset("x", data=rows, chunks=(4, 40), compression=1)
    for _ in range(3):
        python(READING, path, whose)


# The first write is a thread's, while the program ends already.
LATE = """
import atexit, sys, threading, time
import chunkwise
file = chunkwise.open(sys.argv[1], "w", sync=False)
d = file.create_dataset("x", (4, 40), "i4", chunks=(4, 40), filters="deflate:1")
ends, written = threading.Event(), threading.Event()
class Slow:
    def __array__(self, *args, **more):
        written.set()
        time.sleep(600)
def write():
    ends.wait()
    d[2] = 7
    # It refers to what was written when it is ended, so that nothing is collected.
    d[3] = Slow()
def end():
    ends.set()
    assert written.wait(100)
threading.Thread(target=write, daemon=True).start()
atexit.register(end)
"""


def test_what_is_written_while_a_program_ends_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    python(LATE, path)
    with h5py.File(path) as file:
        assert (file["x"][2] == 7).all()
