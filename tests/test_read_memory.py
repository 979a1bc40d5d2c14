"""What a read takes beside its result is bounded, whatever the file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

# The result is touched first, and the high-water mark of memory begins anew after that.
PROGRAM = """
import sys
import numpy as np
import chunkwise

def memory(field):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field + ":")) * 1024

dataset = chunkwise.open(sys.argv[1])["x"]
out = np.ones(dataset.shape, dataset.dtype)
dataset.prepare()
selection = chunkwise.hyperslab((0, 0), dataset.shape)
with open("/proc/self/clear_refs", "w") as f:
    f.write("5")
before = memory("VmRSS")
dataset.read(selection, out=out)
print(memory("VmHWM") - before)
assert not out.any()
"""

MIB = 1 << 20


@pytest.mark.parametrize("threads", [1, 4])
def test_memory_beside_the_result(tmp_path: Path, threads: int) -> None:
    path = tmp_path / "large.h5"
    with h5py.File(path, "w") as f:
        d = f.create_dataset("x", (256, MIB), "u1", chunks=(8, MIB), shuffle=True, compression=1)
        # Written once: the other chunks are copies, without deflating them again.
        d[:8] = np.zeros((8, MIB), "u1")
        _, stored = d.id.read_direct_chunk((0, 0))
        for row in range(8, 256, 8):
            d.id.write_direct_chunk((row, 0), stored)
    environment = os.environ | {"CHUNKWISE_THREADS": str(threads)}
    command = [sys.executable, "-c", PROGRAM, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    # A chunk of 8 MiB between two filters for each thread, and what libraries take.
    assert int(done.stdout) < (threads * 3 * 8 + 8) * MIB
