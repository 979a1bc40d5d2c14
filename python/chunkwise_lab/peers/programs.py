"""How long does a program take to write a file that knows nothing of chunkwise?"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np

import chunkwise
from chunkwise_lab.peers.task import Sample, Task, imported, made_anew

NAME: Final = "t"
FILTERS: Final[dict[str, Any]] = {"compression": "gzip", "compression_opts": 4, "shuffle": True}


def written(
    program: str, patched: bool, file: str, dataset: str, target: str, chunk: tuple[int, ...]
) -> Task:
    """Write with shuffle and deflate 4."""
    with h5py.File(file) as opened:
        data: Any = opened[dataset][()]
    write = {"xarray": _xarray, "frames": _frames}[program](data, tuple(chunk))

    def measure() -> Sample:
        with chunkwise.patch_h5py() if patched else contextlib.nullcontext():
            return made_anew(Path(target), NAME, lambda: write(target))

    yield measure


def _xarray(data: Any, chunk: tuple[int, ...]) -> Callable[[str], None]:
    xr = imported("xarray", "h5netcdf")
    field = xr.Dataset({NAME: (("time", "y", "x"), data)})
    stored = {"zlib": True, "complevel": 4, "shuffle": True, "chunksizes": chunk}

    def write(target: str) -> None:
        field.to_netcdf(target, engine="h5netcdf", encoding={NAME: stored})

    return write


def _frames(data: Any, chunk: tuple[int, ...]) -> Callable[[str], None]:
    def write(target: str) -> None:
        with h5py.File(target, "w") as file:
            made = file.create_dataset(NAME, data.shape, data.dtype, chunks=chunk, **FILTERS)
            for begin in np.arange(0, len(data), chunk[0]):
                made[begin : begin + chunk[0]] = data[begin : begin + chunk[0]]

    return write
