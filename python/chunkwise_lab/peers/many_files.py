"""How much memory and how many descriptors do thousands of open files take?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py

import chunkwise
from chunkwise import _native
from chunkwise.trials.environment import peak_rss_nbytes
from chunkwise_lab.peers.task import CannotReadError, Sample, Task

# The libraries' own: standard streams, shared libraries being loaded, the pool.
SPARE = 64


def held_open(reader: str, folder: str, dataset: str) -> Task:
    """Open every file of a folder, read a dataset of each, close none: peak resident bytes."""
    import resource  # Windows has none.

    paths = sorted(Path(folder).glob("*.h5"))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < len(paths) + SPARE:
        raise CannotReadError(f"this process may have {most:,} descriptors: too few")
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    # Never closed: with thousands open, H5Fclose looks through all of them each time, and the
    # end of the process closes them anyway.
    held: list[Any] = []

    def measure() -> Sample:
        for path in paths:
            held.append(h5py.File(path) if reader == "h5py" else chunkwise.open(path))
        crc = 0
        for opened in held:
            crc = _native.crc32(opened[dataset][:1, :-1], crc)
        descriptors = sum(1 for _ in Path("/proc/self/fd").iterdir())
        told = {"files": len(held), "descriptors": descriptors, "descriptor_limit": most}
        return Sample(float(peak_rss_nbytes() or 0), crc, told)

    yield measure
