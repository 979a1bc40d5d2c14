"""How fast is each filter decoded, by libhdf5's filter and by chunkwise's engine?

Writes one dataset for each filter (float32, random walks in steps of 1/16, chunks of 1 MiB),
reads each whole, through h5py with hdf5plugin, and through
chunkwise with one thread and with two, in turns, each in a process of its own with the file
in memory, and prints the best of each as a Markdown table.  What runs on one thread is measured
in processor time, which other programs on the machine disturb little; two threads by the clock.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np

import chunkwise

CHUNK = (256, 1024)
FILTERS: dict[str, dict[str, Any]] = {
    "deflate:4": {"compression": 4},
    "shuffle+deflate:4": {"shuffle": True, "compression": 4},
    "szip:nn:8": {"compression": "szip", "compression_opts": ("nn", 8)},
    "szip:ec:16": {"compression": "szip", "compression_opts": ("ec", 16)},
    "scaleoffset:ds:2": {"scaleoffset": 2},
    "bzip2:9": hdf5plugin.BZip2(9),
    "shuffle+lzf": {"shuffle": True, "compression": "lzf"},
    "blosc:blosclz:5": hdf5plugin.Blosc("blosclz", 5),
    "blosc:lz4:5": hdf5plugin.Blosc("lz4", 5),
    "blosc:lz4:5:bitshuffle": hdf5plugin.Blosc("lz4", 5, 2),
    "blosc:zlib:5": hdf5plugin.Blosc("zlib", 5),
    "blosc:zstd:5": hdf5plugin.Blosc("zstd", 5),
    "blosc2:blosclz:5": hdf5plugin.Blosc2("blosclz", 5),
    "blosc2:lz4:5": hdf5plugin.Blosc2("lz4", 5),
    "blosc2:lz4:5:bitshuffle": hdf5plugin.Blosc2("lz4", 5, 2),
    "blosc2:zstd:5": hdf5plugin.Blosc2("zstd", 5),
    "shuffle+lz4": {"shuffle": True, **hdf5plugin.LZ4()},
    "bitshuffle": hdf5plugin.Bitshuffle(cname="none"),
    "bitshuffle:lz4": hdf5plugin.Bitshuffle(cname="lz4"),
    "bitshuffle:zstd:3": hdf5plugin.Bitshuffle(cname="zstd", clevel=3),
    "zstd:3": hdf5plugin.Zstd(3),
    "shuffle+zstd:3": {"shuffle": True, **hdf5plugin.Zstd(3)},
}
READERS = {"h5py": None, "chunkwise, 1 thread": "1", "chunkwise, 2 threads": "2"}


def write(path: Path, options: dict[str, Any], nbytes: int) -> float:
    """Write the dataset; gives how many times smaller it became."""
    rows = max(1, nbytes // 4096 // CHUNK[0]) * CHUNK[0]
    steps = np.random.default_rng(0).integers(-4, 5, (rows, 1024))
    data = (np.cumsum(steps, axis=1) / 16).astype("f4")
    with h5py.File(path, "w") as f:
        d = f.create_dataset("x", data=data, chunks=CHUNK, **options)
        return float(d.nbytes / d.id.get_storage_size())


def read_once(path: str, reader: str) -> float:
    """MB/s of one reading of everything; of two threads by the clock."""
    clock = time.perf_counter if reader == "chunkwise, 2 threads" else time.process_time
    with h5py.File(path) as f:
        out = np.ones(f["x"].shape, "f4")
        if reader == "h5py":
            begun = clock()
            f["x"].read_direct(out)
        else:
            ours = chunkwise.wrap(f["x"])
            if ours.explain()["path"] != "chunked":
                return float("nan")
            begun = clock()
            ours.read(out=out)
        return float(out.nbytes / 1e6 / (clock() - begun))


def measured(path: Path, reader: str, threads: str | None) -> float:
    """As `read_once`, in another process."""
    environment = os.environ | ({"CHUNKWISE_THREADS": threads} if threads else {})
    command = [sys.executable, __file__, "--read", str(path), reader]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=128, help="size of each dataset")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="filters whose name contains this")
    parser.add_argument("--read", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        print(read_once(*options.read))
        return
    print("| filters | ratio | " + " | ".join(READERS) + " |")
    print("| --- |" + " ---: |" * (1 + len(READERS)))
    with tempfile.TemporaryDirectory() as folder:
        for name, filters in FILTERS.items():
            if options.only not in name:
                continue
            path = Path(folder) / "x.h5"
            ratio = write(path, dict(filters), options.mib << 20)
            speeds: dict[str, list[float]] = {reader: [] for reader in READERS}
            for _ in range(options.rounds):
                for reader, threads in READERS.items():
                    speeds[reader].append(measured(path, reader, threads))
            best = [f"{max(each):,.0f}" for each in speeds.values()]
            print(f"| {name} | {ratio:.1f} | " + " | ".join(best) + " |", flush=True)


if __name__ == "__main__":
    main()
