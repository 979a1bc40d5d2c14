"""A file that is cut while it is read gives an error; it never ends the process."""

import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

# A column is 4 bytes of each row: read through a memory map.  A cut within a page leaves
# zeros behind its end; one before a page makes touching that page a SIGBUS.
PROGRAM = """
import os, sys, threading
import numpy as np
import chunkwise

path = sys.argv[1]
size = os.path.getsize(path)
original = open(path, "rb").read()
file = chunkwise.open(path)
dataset = file["x"]
whole = dataset[:, 7]
assert path in open("/proc/self/maps").read()
outcomes = {"whole": 0, "error": 0}
over = threading.Event()

def cut():
    descriptor = os.open(path, os.O_RDWR)
    for number in range(150):
        length = size // 2 + 1024 * number + 4096 * (number % 2)
        os.ftruncate(descriptor, length)
        os.pwrite(descriptor, original[length:], length)
    over.set()

thread = threading.Thread(target=cut)
thread.start()
while not over.is_set() or not outcomes["whole"]:
    try:
        got = dataset[:, 7]
    except chunkwise.errors.CorruptDataError as error:
        assert "the file ends at byte" in str(error), error
        outcomes["error"] += 1
    else:
        # Between the cut and the writing there are zeros.
        assert ((got == whole) | (got == 0)).all()
        outcomes["whole"] += 1
thread.join()
os.truncate(path, size // 2)
try:
    dataset[:, 7]
except OSError as error:
    print("cut:", error)
with open(path, "wb") as f:
    f.write(original)
assert (dataset[:, 7] == whole).all()
print(outcomes)
"""


STORED: dict[str, dict[str, tuple[int, ...]]] = {
    "contiguous": {},
    "chunked": {"chunks": (100, 250)},
}


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("faulthandler", [False, True])
def test_a_file_cut_during_reads(tmp_path: Path, stored: str, faulthandler: bool) -> None:
    path = tmp_path / "columns.h5"
    data = np.arange(1, 2000 * 250 + 1, dtype="i4").reshape(2000, 250)
    with h5py.File(path, "w") as f:
        f.create_dataset("x", data=data, **STORED[stored])
    options = ["-X", "faulthandler"] if faulthandler else []
    command = [sys.executable, *options, "-c", PROGRAM, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert f"cut: {path}: dataset /x: the file ends at byte" in done.stdout
    assert "fetch or copy the file again" in done.stdout
