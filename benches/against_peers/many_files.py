"""How much memory and how many descriptors do thousands of open files take?"""

from __future__ import annotations

import contextlib
import resource
from pathlib import Path
from typing import Any

import h5py

import chunkwise
from against_peers.task import CannotReadError, Sample, Task
from chunkwise import _native
from chunkwise.trials.environment import peak_rss_nbytes

# The libraries' own: standard streams, shared libraries being loaded, the pool.
SPARE = 64


def held_open(reader: str, folder: str, dataset: str) -> Task:
    """Open every file of a folder, read a dataset of each, close none: peak resident bytes.

    The limit of descriptors is raised as far as this process may.
    """
    paths = sorted(Path(folder).glob("*.h5"))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < len(paths) + SPARE:
        raise CannotReadError(f"this process may have {most:,} descriptors: too few")
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    def measure() -> Sample:
        crc = 0
        with contextlib.ExitStack() as stack:
            datasets: list[Any] = []
            for path in paths:
                if reader == "h5py":
                    datasets.append(stack.enter_context(h5py.File(path))[dataset])
                else:
                    datasets.append(stack.enter_context(chunkwise.open(path))[dataset])
            for one in datasets:
                crc = _native.crc32(one[:1, :-1], crc)
            descriptors = sum(1 for _ in Path("/proc/self/fd").iterdir())
        told = {"files": len(paths), "descriptors": descriptors, "descriptor_limit": most}
        return Sample(float(peak_rss_nbytes() or 0), crc, told)

    yield measure
