"""How is the data of a study generated?"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt

from chunkwise import patterns
from chunkwise.grammar import Pipeline
from chunkwise.trials.unions import index_of
from chunkwise_lab import sample
from chunkwise_lab.studies.study import Data, Scale

# Generated files have this time of change, so that trials on them can be found again after
# they were generated anew: the same options make the same bytes.
_MTIME_S: Final = 1_000_000_000


def dataset_of(data: Data) -> str:
    """Return the dataset's path in the file."""
    return data.dataset or sample.SAMPLES[data.sample].datasets[0]


def generate(data: Data, scale: Scale, path: Path) -> None:
    """Write a study's data to a new file."""
    options: dict[str, Any] = dict(data.options[scale])
    if data.nonzero:
        whole = path.with_suffix(".whole.h5")
        try:
            sample.write(data.sample, whole, force=True, **options)
            _keep_nonzero(whole, dataset_of(data), data.nonzero, path)
        finally:
            whole.unlink(missing_ok=True)
    else:
        sample.write(data.sample, path, **options)
    os.utime(path, (_MTIME_S, _MTIME_S))


def _keep_nonzero(source: Path, name: str, pattern: str, path: Path) -> None:
    """Copy what is not 0 into one dimension, in chunks of as many elements as before."""
    with h5py.File(source) as whole, h5py.File(path, "w") as file:
        dataset = whole[name]
        # Counted first: a dataset that can grow has another chunk index.
        length = sum(part.size for part in _nonzero(dataset, pattern))
        pipeline = Pipeline.from_dcpl(dataset.id.get_create_plist())
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_obj_track_times(False)
        dcpl.set_chunk((min(length, math.prod(dataset.chunks)),))
        pipeline.apply(dcpl)
        space = h5py.h5s.create_simple((length,))
        made = h5py.Dataset(
            h5py.h5d.create(file.id, name.encode(), dataset.id.get_type(), space, dcpl)
        )
        first = 0
        for part in _nonzero(dataset, pattern):
            made[first : first + part.size] = part
            first += part.size


def _nonzero(dataset: h5py.Dataset, pattern: str) -> Iterator[npt.NDArray[Any]]:
    """Return the part of each block of a pattern that is not 0, in one dimension."""
    found = patterns.parse(pattern, dataset.shape, dataset.dtype.itemsize, dataset.name)
    walk = found.walk(dataset.shape)
    for number in range(walk.operations):
        block = dataset[index_of(walk[number])]
        yield block[np.not_equal(block, 0)]
