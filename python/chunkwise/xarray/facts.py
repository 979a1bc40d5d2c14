"""What is known of a group of a netCDF-4 file: its dimensions, variables and attributes?"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


class Dimension(NamedTuple):
    """A dimension: its length is that of its longest variable, if it may grow."""

    size: int
    is_unlimited: bool


@dataclass(frozen=True)
class VariableFacts:
    """A variable, and the dataset that holds it."""

    dataset: str  # The dataset's own name
    dimensions: tuple[str, ...]
    stored_shape: tuple[int, ...]
    dtype: np.dtype[Any]  # As h5py has it
    encoded_dtype: Any  # As xarray's encoding has it; None where it has none
    chunks: tuple[int, ...] | None
    fletcher32: bool
    shuffle: bool
    compression: str | None
    compression_opts: Any
    # The parameters of its other filters that netCDF has names for (`netcdf_filters`).
    filters: dict[str, Any]
    attributes: dict[str, Any]
    # Where its header is; None of what only h5py reads.
    address: int | None = None


@dataclass(frozen=True)
class GroupFacts:
    """A group: its own dimensions, variables in their order, attributes, and groups in it."""

    dimensions: dict[str, Dimension]
    # Lengths of all dimensions that its variables may have: its own, and its parents'.
    sizes: dict[str, int]
    variables: dict[str, VariableFacts]
    attributes: dict[str, Any]
    groups: tuple[str, ...]


def netcdf_filters(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of szip, bzip2, blosc and zstd, by netCDF's names."""
    # Of filters by h5py's names, or their numbers as text.
    numbered = {"szip": "4", "bzip2": "307", "blosc": "32004", "zstd": "32015"}
    found = {name: filters.get(name, filters.get(text)) for name, text in numbered.items()}
    return {name: values for name, values in found.items() if values is not None}


def decoded(value: Any, name: str, where: str) -> Any:
    """The value of an attribute for xarray: bytes are text, but for those that stand for data."""
    if not isinstance(value, bytes) or name in ("_FillValue", "missing_value"):
        return value
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        warnings.warn(
            f"'utf-8' codec can't decode bytes for attribute {name!r} of h5netcdf "
            f"object {where!r}, returning bytes undecoded.",
            UnicodeWarning,
            stacklevel=2,
        )
        return value
