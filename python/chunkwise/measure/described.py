"""How is data described that has no file yet: its shape, its type, and data like it?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt

from chunkwise.errors import UsageError
from chunkwise.grammar import parse_shape
from chunkwise.measure.target import look

# The name in lines to paste if none was given.
DATASET: Final = "data"


def described(
    shape: str | Sequence[int], dtype: str
) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    """Read the shape and the type of a dataset that is not there yet."""
    extents = parse_shape(shape) if isinstance(shape, str) else tuple(map(int, shape))
    if not isinstance(extents, tuple) or not extents or min(extents) < 1:
        raise UsageError(
            f"--shape {shape}: write the extents in elements, each at least 1, as 8760x721x1440"
        )
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise UsageError(f"--type {dtype}: write a type as NumPy does: f4, i2, >f8, u1") from None
    if kind.kind not in "iufcb":
        raise UsageError(f"--type {dtype}: only numbers can be described before there is a file")
    return extents, kind


def source_of(like: str | os.PathLike[str]) -> tuple[str, str]:
    """Return the file and the dataset that ``--like FILE[:DATASET]`` names."""
    text = os.fspath(like)
    path, colon, name = text.rpartition(":")
    target = look(path, name) if colon and not Path(text).exists() else look(text)
    return target.file, target.dataset


def check_like(like: str | os.PathLike[str], known: h5py.Dataset, kind: np.dtype[Any]) -> None:
    """Raise UsageError if similar data has elements of another size."""
    if known.dtype.itemsize != kind.itemsize:
        raise UsageError(
            f"--like {os.fspath(like)}: '{known.name}' has elements of {known.dtype.itemsize} "
            f"bytes, and {kind.str} has {kind.itemsize}: name data of that type, as FILE:DATASET"
        )


def smooth(number: int, kind: np.dtype[np.generic], rows: int = 64) -> npt.NDArray[Any]:
    """Make up data: a walk at random along rows, its last digits noise."""
    generator = np.random.default_rng(0)
    steps = generator.normal(size=(rows, -(-number // rows))).cumsum(axis=1)
    if kind.kind in "iub":
        steps = np.abs(steps).round() % 120
    return steps.round(2).astype(kind)
