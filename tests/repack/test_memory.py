"""Does a repack keep within its budget of memory?"""

import subprocess
import sys
import time
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.memory import default_budget

BUDGET = 32 << 20
# What the process needs besides data: Python, NumPy, h5py, threads.
BESIDES = 200 << 20


def peak_of(words: list[str]) -> int:
    """Run a command; give the most anonymous and shared memory that it was seen to have."""
    peak = 0
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as run:
        status = Path(f"/proc/{run.pid}/status")
        while run.poll() is None:
            try:
                lines = status.read_text().splitlines()
            except OSError:
                break
            seen = [line.split() for line in lines if line.startswith(("RssAnon", "RssShmem"))]
            peak = max(peak, sum(int(line[1]) << 10 for line in seen))
            time.sleep(0.005)
        assert run.wait() == 0
    return peak


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
@pytest.mark.slow
def test_memory_stays_within_the_budget(tmp_path: Path) -> None:
    shape = (128, 1024, 1024)
    with h5py.File(tmp_path / "in.h5", "w", rdcc_nbytes=0) as file:
        made = file.create_dataset("x", shape, "i2", chunks=(1, 1024, 1024), compression=1)
        plane = np.arange(1024 * 1024, dtype="i2").reshape(1024, 1024)
        stored = zlib.compress(plane.tobytes(), 1)
        for number in range(shape[0]):
            made.id.write_direct_chunk((number, 0, 0), stored)
    with h5py.File(tmp_path / "in.h5") as file:
        assert np.array_equal(file["x"][shape[0] - 1], plane)
    words = [sys.executable, "-m", "chunkwise", "repack", str(tmp_path / "in.h5")]
    rules = ["--chunk", "x:128x32x32", "--filter", "deflate:1", "--memory", str(BUDGET)]
    assert peak_of([*words, str(tmp_path / "out.h5"), *rules]) < BUDGET + BESIDES


def test_the_default_is_a_quarter_of_what_is_free(tmp_path: Path) -> None:
    proc, group = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (group / "job" / "step").mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable: 8388608 kB\n")
    assert default_budget(proc, group) == 2 << 30
    (proc / "self" / "cgroup").write_text("0::/job/step\n")
    assert default_budget(proc, group) == 2 << 30
    (group / "job" / "memory.max").write_text(f"{4 << 30}\n")
    (group / "job" / "memory.current").write_text(f"{3 << 30}\n")
    (group / "job" / "memory.stat").write_text(f"anon 5\ninactive_file {1 << 30}\n")
    (group / "job" / "step" / "memory.max").write_text("max\n")
    (group / "job" / "step" / "memory.current").write_text("0\n")
    assert default_budget(proc, group) == 512 << 20
    (proc / "meminfo").write_text("MemAvailable: 100 kB\n")
    assert default_budget(proc, group) == 64 << 20
    assert default_budget(tmp_path / "none", tmp_path / "none") == 256 << 20
