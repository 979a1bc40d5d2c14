"""Where does the time of a program go that generates data and writes it?

A profile by phases, made with clocks.  The generator is timed for the same blocks that are
then written.  The filters' part of writing is measured inside libhdf5
(`chunkwise.trials.breakdown`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import h5py
import numpy as np

from chunkwise import patterns
from chunkwise_lab import sample
from chunkwise_lab.sample.spec import Region

if TYPE_CHECKING:
    from chunkwise_lab.studies.context import Context

# In the order in which data passes through them.
PHASES: Final = ("generate", "compress", "store", "rest")


def measure(context: Context) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Give a point for each phase of each combination of the run's space.

    A record has ``total_s``, the seconds of its phase, and ``share``, in percent of all of
    them together.  ``generate`` is NumPy's time, on one thread; ``compress`` that of all
    filters; ``store`` an estimate, from writing the stored bytes bare; ``rest`` is left over:
    copying into chunks, their index, creating and closing.
    """
    for path, dataset, labels in context.data.values():
        for cell in context.measured(path, dataset):
            rounds = [
                _phases(measured.to_record(), _generating_s(path, dataset, cell.access))
                for measured in cell.measurements
            ]
            for phase in PHASES:
                yield {**labels, **cell.point, "phase": phase}, [one[phase] for one in rounds]


def _generating_s(path: str, dataset: str, pattern: patterns.Access) -> float:
    """Return the seconds that a sample's generator takes for the blocks of a pattern."""
    with h5py.File(path) as file:
        made, seed = sample.find(file.attrs["sample"]), int(file.attrs["seed"])
        shape = file[dataset].shape
    walk = pattern.walk(shape)
    begun = time.perf_counter()
    for number in range(walk.operations):
        start, _, _, block = walk[number]
        values = made.values(Region(tuple(start), tuple(block), shape, seed))
        np.broadcast_to(values, block).astype(made.dtype, order="C")
    return time.perf_counter() - begun


def _phases(record: Mapping[str, Any], generate_s: float) -> dict[str, dict[str, Any]]:
    """Split one trial's time; if it failed, or nothing is known, no phase has figures."""
    common = {
        name: record[name]
        for name in ("status", "error", "repeat", "extrapolated", "hdf5", "time_method")
        if record.get(name) is not None
    }
    filters = record.get("time_filters_s")
    if record["status"] != "ok" or filters is None:
        return {phase: dict(common) for phase in PHASES}
    compress_s = sum(seconds for seconds in filters.values() if seconds is not None)
    store_s = record.get("time_storage_s") or 0.0
    rest_s = max(0.0, record["total_s"] - compress_s - store_s)
    seconds = dict(zip(PHASES, (generate_s, compress_s, store_s, rest_s), strict=True))
    whole_s = sum(seconds.values())
    return {
        phase: {**common, "total_s": spent, "share": 100 * spent / whole_s}
        for phase, spent in seconds.items()
    }
