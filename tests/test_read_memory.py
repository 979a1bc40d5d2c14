"""What a read takes beside its result is bounded, whatever the file."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

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


# Reads, or repacks, in a child of its own; prints the most memory that it ever had.
HOSTILE = """
import sys
import chunkwise
from chunkwise.trials.environment import peak_rss_nbytes

path, name, what = sys.argv[1:]
if what == "repack":
    chunkwise.repack(path, path + ".new", filters="many:none", memory=2**26)
    with chunkwise.open(path + ".new") as f:
        assert not f["many"][...].any()
else:
    with chunkwise.open(path) as f:
        d = f[name]
        found = d[...] if what == "all" else d[:10]
        print(found.tolist()[:10], d.explain()["path"])
print(peak_rss_nbytes())
"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small chunks that inflate to megabytes, huge grids of few written chunks."""
    path = tmp_path_factory.mktemp("hostile") / "d.h5"
    with h5py.File(path, "w", libver="latest") as f:
        made = zlib.compressobj(9)
        zeros = b"".join(made.compress(bytes(MIB)) for _ in range(256)) + made.flush()
        f.create_dataset("one", (10,), "u1", chunks=(10,), compression=1)
        f["one"].id.write_direct_chunk((0,), zeros)
        made = zlib.compressobj(9)
        zeros = b"".join(made.compress(bytes(MIB)) for _ in range(24)) + made.flush()
        many = f.create_dataset("many", (200,), "u1", chunks=(10,), compression=1)
        for at in range(0, 200, 10):
            many.id.write_direct_chunk((at,), zeros)
        f.create_dataset("rows", (2**45,), "u1", chunks=(2**20,), compression=1)
        f["rows"].id.write_direct_chunk((0,), zlib.compress(bytes([1]) * 2**20))
        f.create_dataset("grown", (2**25,), "u1", chunks=(1,), maxshape=(None,))[5] = 1
        f.create_dataset("unwritten", (2**44,), "f8")
        f.create_dataset("ones", (10**7,), "u1", chunks=(1,), compression=1, fillvalue=3)
    return path


@pytest.mark.parametrize(
    ("name", "what", "found"),
    [
        ("one", "some", [0] * 10),
        ("many", "all", [0] * 10),
        ("rows", "some", [1] * 10),
        ("grown", "some", [0, 0, 0, 0, 0, 1, 0, 0, 0, 0]),
        ("unwritten", "some", [0.0] * 10),
        ("ones", "all", [3] * 10),
        ("many", "repack", None),
    ],
)
def test_a_small_file_takes_little_memory(
    hostile: Path, name: str, what: str, found: list[Any] | None
) -> None:
    command = [sys.executable, "-c", HOSTILE, str(hostile), name, what]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    *told, peak = done.stdout.splitlines()
    if found is not None:
        path = "contiguous" if name == "unwritten" else "chunked"
        assert told == [f"{found} {path}"]
    # Python and its libraries take 45 MiB, a list of ten million numbers 80, a repack the 64 that
    # it may.
    most = {"all": 220, "some": 110, "repack": 170}[what]
    assert int(peak) < most * MIB
