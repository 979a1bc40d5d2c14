"""How do tests write a file as a trial does, and keep it?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from chunkwise import _native
from chunkwise.measure.planning import trial_of
from chunkwise.measure.target import look
from chunkwise.measure.variants import prepared, variant_of
from chunkwise.patterns import parse
from chunkwise.trials.readers import READERS, Cache
from chunkwise.trials.trial import Trial

SHAPE = (20, 12, 10)


def make(path: Path, values: Any, **how: Any) -> Path:
    """Make a file with the dataset `g/x`."""
    with h5py.File(path, "w") as file:
        file.create_dataset("g/x", data=values, **how)
    return path


def counted(dtype: str = "<i4") -> Any:
    """Make an array in which no two neighbours are equal."""
    return np.arange(np.prod(SHAPE)).reshape(SHAPE).astype(dtype)


@contextmanager
def writing(
    file: Path,
    pattern: str,
    reader: str,
    chunk: str = "stored",
    filters: str = "stored",
    **parameters: Any,
) -> Iterator[Trial]:
    """Prepare a trial that writes `g/x` of a file to another one."""
    target = look(file, "g/x")
    variant = variant_of(target, chunk, filters)
    with prepared(target, [], [variant]) as made:
        like = made.writing[variant]
        access = parse(pattern, like.shape, like.itemsize, like.where)
        files = {"data": made.data, "scratch": made.folder, "operation": "write"}
        if filters.endswith("fast"):
            files["filters"] = variant.filters
        bounds = {"max_seconds": 60.0, "timeout_s": 60.0}
        yield trial_of(like, access, reader, **{**bounds, **files, **parameters})


def write(trial: Trial, path: Path) -> tuple[_native.WriteResult, Cache]:
    """Write what the trial is about, in this process, to a file that stays."""
    return READERS[trial.reader].writer()(trial, trial.pattern.walk(trial.shape), str(path))
