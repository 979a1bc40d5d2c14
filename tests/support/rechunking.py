"""Copies of datasets by ``_native.copy_data``, for tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.proof.values import Pair, Values

BUDGET = 64 << 20


@contextmanager
def datasets(source: Path, target: Path, **created: Any) -> Iterator[tuple[h5py.Dataset, Any]]:
    """The dataset ``d`` of `source`, and a new one like it in `target`."""
    with h5py.File(source) as old, h5py.File(target, "w", libver=("earliest", "v110")) as new:
        d = old["d"]
        given = {"shape": d.shape, "dtype": d.dtype, "fillvalue": d.fillvalue, **created}
        yield d, new.create_dataset("d", **given)


def copied(
    source: Path, target: Path, created: dict[str, Any], *, proved: bool = True, **asked: Any
) -> _native.CopyResult:
    """Copy, and prove it."""
    with datasets(source, target, **created) as (old, new):
        asked = {"label": "d", "memory_nbytes": BUDGET, **asked}
        result = _native.copy_data(library(), old.id.id, new.id.id, **asked)
    if proved and not asked.get("salvage"):
        verify(source, target)
    return result


def verify(source: Path, target: Path) -> None:
    """Compare the values of the two datasets."""
    with h5py.File(source) as old, h5py.File(target) as new:
        Values(BUDGET).compare(Pair(old["d"].id, new["d"].id))


def content(path: Path) -> npt.NDArray[Any]:
    with h5py.File(path) as file:
        found: npt.NDArray[Any] = file["d"][()]
    return found


def bits(array: npt.NDArray[Any]) -> bytes:
    return np.ascontiguousarray(array).tobytes()


def written(path: Path) -> int:
    """Chunks that are there."""
    with h5py.File(path) as file:
        count: int = file["d"].id.get_num_chunks()
    return count
