"""What does it cost to create a dataset that many ranks then write: by all, or by rank 0 alone?

In a parallel file the library allocates all chunks of a dataset when it is created, or first
opened for writing, and fills them.  If it is created collectively, the ranks share that work.  If
rank 0 creates it alone in a parallel file of its own, one process does it for all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import numpy as np
from h5py import h5d, h5f, h5s, h5t

from chunkwise.errors import WrongValueError
from chunkwise.grammar import Pipeline
from chunkwise_lab.studies.iotest.leftover import removed
from chunkwise_lab.studies.iotest.lists import access, chunked, transfer
from chunkwise_lab.studies.iotest.walk import Combination
from chunkwise_lab.studies.iotest.world import World

_FILL: Final = {"written": h5d.FILL_TIME_ALLOC, "never": h5d.FILL_TIME_NEVER}
# Who makes the dataset, and the driver that this one opens the file with.
CREATORS: Final = {
    "all ranks": "collective", "rank 0, MPI-IO": "collective", "rank 0, POSIX": "posix",
}  # fmt: skip


def measure(
    world: World, settings: Mapping[str, Any], folder: Path
) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """Make, write and close a dataset once in each way.

    ``chunks`` is the number of chunks that each rank writes, ``rows`` and ``columns`` the shape
    of one, ``filters`` the chains.  Records have ``total_s``; of it ``made_s``, until all ranks
    can write; ``elapsed_s``, in the writes, of ``selected_nbytes``; and the file's bytes,
    ``empty_nbytes`` when rank 0 alone has made the dataset, ``file_nbytes`` at the end.
    """
    file = str(folder / "creation.h5")
    for text, creator, fill in product(settings["filters"], CREATORS, _FILL):
        with removed([file] if world.rank == 0 else []):
            world.barrier()
            record = _once(world, settings, file, Pipeline.parse(text), creator, fill)
            world.barrier()
        yield {"filter": str(text), "creator": creator, "fill": fill}, record


def _once(
    world: World,
    settings: Mapping[str, Any],
    file: str,
    filters: Pipeline,
    creator: str,
    fill: str,
) -> dict[str, Any]:
    rows, columns, count = settings["rows"], settings["columns"], settings["chunks"]
    shape = (count, world.size * rows, columns)
    chunk = (1, rows, columns)
    made = chunked(chunk, filters, _FILL[fill])
    one = Combination(io="collective")
    how, all_ranks = transfer(one, filters), access(one, world.comm)
    data = np.random.default_rng(world.rank).integers(0, 2**16, chunk[1:]) / 2**16
    memory, space = h5s.create_simple(chunk), h5s.create_simple(shape)
    name = file.encode()
    empty_nbytes: int | None = None
    begun = perf_counter()
    if creator == "all ranks":
        opened = h5f.create(name, h5f.ACC_TRUNC, fapl=all_ranks)
        dataset = h5d.create(opened, b"d", h5t.NATIVE_DOUBLE, space, dcpl=made)
    else:
        if world.rank == 0:
            alone = _alone(CREATORS[creator])
            first = h5f.create(name, h5f.ACC_TRUNC, fapl=alone)
            h5d.create(first, b"d", h5t.NATIVE_DOUBLE, space, dcpl=made)
            first.close()
            empty_nbytes = Path(file).stat().st_size
        world.barrier()
        opened = h5f.open(name, h5f.ACC_RDWR, fapl=all_ranks)
        dataset = h5d.open(opened, b"d")
    made_s = perf_counter() - begun
    calls_s = 0.0
    for number in range(count):
        space.select_hyperslab((number, world.rank * rows, 0), (1, 1, 1), block=chunk)
        now = perf_counter()
        dataset.write(memory, space, data, h5t.NATIVE_DOUBLE, how)
        calls_s += perf_counter() - now
    del dataset
    opened.close()
    world.barrier()
    total_s = perf_counter() - begun
    # Read all that was written, and compare it.
    opened = h5f.open(name, h5f.ACC_RDONLY, fapl=all_ranks)
    dataset = h5d.open(opened, b"d")
    found = np.empty_like(data)
    for number in range(count):
        found.fill(np.nan)
        space.select_hyperslab((number, world.rank * rows, 0), (1, 1, 1), block=chunk)
        dataset.read(memory, space, found, h5t.NATIVE_DOUBLE, how)
        if not np.array_equal(found, data):
            raise WrongValueError(f"{file}: chunk {number} of rank {world.rank} has other values")
    del dataset
    opened.close()
    slowest = world.gather((made_s, calls_s))
    if world.rank:
        return {}
    return {
        "status": "ok",
        "total_s": total_s,
        "made_s": max(made for made, _ in slowest),
        "elapsed_s": max(calls for _, calls in slowest),
        "selected_nbytes": 8 * math.prod(shape),
        "empty_nbytes": empty_nbytes,
        "file_nbytes": Path(file).stat().st_size,
        "shape": list(shape),
        "itemsize": 8,
    }


def _alone(io: str) -> Any:
    """Return how rank 0 opens the file for itself."""
    if io == "posix":
        return access(Combination(io="posix"), None)
    from mpi4py import MPI

    return access(Combination(io=io), MPI.COMM_SELF)
