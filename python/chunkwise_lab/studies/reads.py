"""How many bytes does reading ask the system for, and in how many calls?

A probe.  Linux counts both for each thread, so nothing but the reading is in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py

from chunkwise import patterns
from chunkwise.errors import UsageError
from chunkwise.grammar import parse_size
from chunkwise.measure.axes import DEFAULT
from chunkwise.measure.schedule import Step
from chunkwise.trials.unions import index_of

if TYPE_CHECKING:
    from chunkwise_lab.studies.context import Context

_COUNTS = Path("/proc/thread-self/io")


def measure(context: Context) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Count the reads of h5py for each access pattern and chunk cache of the run's axes.

    The study's file may say ``set-by``: which functions set the cache, of all datasets of a file
    (``H5Pset_cache``) or of one (``H5Pset_chunk_cache``).  Records have ``read_calls`` and
    ``read_nbytes``.
    """
    if not _COUNTS.exists():
        raise UsageError(f"reads are not counted here: there is no {_COUNTS}")
    points = context.space.points((DEFAULT,)) if context.space else ()
    for path, dataset, labels in context.data.values():
        for point in points:
            access, cache = point["access"], point["cache"]
            for by in context.settings.get("set-by", ("H5Pset_cache",)):
                context.say(Step(f"counting the reads of {access}"))
                record = _counted(path, dataset, access, cache, by)
                yield {**labels, "access": access, "cache": cache, "set-by": by}, [record]


def _counted(path: str, name: str, access: str, cache: str, by: str) -> dict[str, Any]:
    nbytes = None if cache == DEFAULT else parse_size(cache)
    with h5py.File(path, rdcc_nbytes=nbytes if by == "H5Pset_cache" else None) as file:
        dapl = h5py.h5p.create(h5py.h5p.DATASET_ACCESS)
        if nbytes is not None and by == "H5Pset_chunk_cache":
            dapl.set_chunk_cache(521, nbytes, 0.75)
        dataset = h5py.Dataset(h5py.h5d.open(file.id, name.encode(), dapl))
        pattern = patterns.parse(access, dataset.shape, dataset.dtype.itemsize, name)
        walk = pattern.walk(dataset.shape)
        idle, before = _counts(), _counts()
        for number in range(walk.operations):
            dataset[index_of(walk[number])]
        after = _counts()
    # Looking at the counts reads, too.
    calls, read = (c - 2 * b + a for a, b, c in zip(idle, before, after, strict=True))
    hdf5 = h5py.version.hdf5_version
    return {"status": "ok", "hdf5": hdf5, "read_calls": calls, "read_nbytes": read}


def _counts() -> tuple[int, int]:
    """Return the calls that read and the bytes read, of this thread until now."""
    lines = dict(line.split(": ") for line in _COUNTS.read_text().splitlines())
    return int(lines["syscr"]), int(lines["rchar"])
