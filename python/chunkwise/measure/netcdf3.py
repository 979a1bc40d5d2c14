"""How does netCDF-C write the same data into a netCDF-3 file, so that a trial can read it?"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Final

from chunkwise import _native
from chunkwise.errors import ChunkwiseError, UsageError
from chunkwise.measure.target import Target
from chunkwise.trials.formats import FORMATS, holds, name_in
from chunkwise.trials.in_rust import as_numbers, netcdf_type
from chunkwise.trials.readers import netcdf_library

_SLAB_NBYTES: Final = 64 << 20


def check(target: Target, format: str) -> None:
    """Raise UsageError for a dataset that a format cannot hold."""
    if not holds(format, target.dtype):
        larger = "" if format == "64bit-data" else "64bit-data, or "
        raise UsageError(
            f"{target.where}: {FORMATS[format]} files hold no {target.dtype}; use {larger}netcdf4"
        )


def like(target: Target, format: str) -> Target:
    """Return the facts of the data as a file of this format has it."""
    return replace(
        target,
        dataset=name_in(format, target.dataset),
        chunks=None,
        filters="none",
        layout="contiguous",
        stored_nbytes=target.nbytes,
        maxshape=None,
    )


def write(target: Target, format: str, data: str, path: Path) -> Target:
    """Write a file of one variable."""
    facts = replace(like(target, format), file=str(path), storage=str(path))
    try:
        # In slabs of whole rows, each small enough to be copied.
        rows = max(1, _SLAB_NBYTES // (target.nbytes // target.shape[0]))
        walk = _native.Walk(target.shape, (min(rows, target.shape[0]), *target.shape[1:]))
        _native.NetCdf(netcdf_library()).write_walk(
            facts.file,
            facts.dataset,
            *netcdf_type(target.dtype),
            target.shape,
            None,
            [],
            None,
            as_numbers(data, target.dtype),
            walk,
            walk.operations,
            math.inf,
            format=format,
        )
    except ChunkwiseError as wrong:
        raise UsageError(f"{target.where} as {FORMATS[format]}: {wrong}") from None
    return facts
