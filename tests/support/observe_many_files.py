"""What do many open files take?  A process of its own tells, for `test_many_files`.

Its arguments: a folder, how many files, how many descriptors.
"""

import json
import resource
import sys
import time
from pathlib import Path

import h5py
import numpy as np

import chunkwise
from tests.support.memory import memory
from tests.support.processes import descriptors

MARK = 0x1122334455667788
DATA = np.arange(20_000, dtype="f4").reshape(100, 200)


def make_files(folder: Path, count: int) -> list[Path]:
    """Files that differ in one number, from one that libhdf5 has written."""
    template = folder / "template.h5"
    with h5py.File(template, "w") as f:
        d = f.create_dataset("g/x", data=DATA, chunks=(50, 100), compression=1)
        d.attrs["units"] = "K"
        f["number"] = np.array([MARK])
    content = template.read_bytes()
    paths = [folder / f"{i}.h5" for i in range(count)]
    for i, path in enumerate(paths):
        path.write_bytes(content.replace(MARK.to_bytes(8, "little"), i.to_bytes(8, "little")))
    return paths


def main() -> None:
    """Open all, read from each, and once more; then ask libhdf5 about each."""
    folder, count, limit = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    paths = make_files(folder, count)
    before, most_descriptors = memory("VmHWM"), 0
    begun = time.perf_counter()
    opened = 0.0
    files: list[chunkwise.File] = []
    for again in range(2):
        for i, path in enumerate(paths):
            if not again:
                files.append(chunkwise.open(path))
            assert files[i]["number"][0] == i
            x = files[i]["g/x"]
            assert (x[50 * again + 7] == DATA[50 * again + 7]).all()
            if i % 50 == 0:
                most_descriptors = max(most_descriptors, descriptors())
        opened = opened or time.perf_counter() - begun
    for file in files:
        x = file["g/x"]
        assert (x.attrs["units"], x.chunks) == ("K", (50, 100))
        assert (x[[7, 50], 3] == DATA[[7, 50], 3]).all()
    record = {
        "files": count,
        "peak_rss_nbytes": memory("VmHWM"),
        "grown_nbytes": memory("VmHWM") - before,
        "descriptors": most_descriptors,
        "open_and_read_s": round(opened, 2),
        "all_s": round(time.perf_counter() - begun, 2),
    }
    print(json.dumps(record))
