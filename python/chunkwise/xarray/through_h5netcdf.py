"""What is a group of a netCDF-4 file, as h5netcdf says?  Answers, which are costly, are kept."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from chunkwise.errors import DatasetNotFoundError, like
from chunkwise.files.dimensions import NOT_ITS_COORDINATE
from chunkwise.names import printable
from chunkwise.xarray.facts import Dimension, GroupFacts, VariableFacts, decoded, netcdf_filters
from chunkwise.xarray.opened import meant

if TYPE_CHECKING:
    from chunkwise.xarray.opened import SharedFile


def read_group(source: SharedFile, path: str) -> GroupFacts:
    """Facts of a group of an open file."""
    group = _find(source, path)
    known = _dimensions(group)
    sizes: dict[str, int] = {}

    def size(name: str) -> int:
        # A dimension's length may be that of the longest of its variables.
        found = sizes.get(name)
        if found is None:
            found = sizes[name] = int(known[name].size)
        return found

    here = source.open().hdf5[path]
    # If both exist, the one without is only a dimension.
    renamed = (name for name in here if name.startswith(NOT_ITS_COORDINATE))
    stored = {name.removeprefix(NOT_ITS_COORDINATE): name for name in renamed}
    variables = {}
    for name, found in group.variables.items():
        with meant(source.name, posixpath.join(path, name)):
            variables[name] = _variable(here[stored.get(name, name)], found)
            for dimension in variables[name].dimensions:
                size(dimension)
    dimensions = {
        name: Dimension(size(name), one.isunlimited()) for name, one in group.dimensions.items()
    }
    return GroupFacts(dimensions, sizes, variables, _attributes(group, path), tuple(group.groups))


def _variable(dataset: Any, found: Any) -> VariableFacts:
    dtype = dataset.dtype
    encoded: Any = None
    if h5py.check_vlen_dtype(dtype) is str:
        encoded = str
    # As xarray does, also for ASCII text of variable length: it is an object then.
    elif h5py.check_vlen_dtype(dtype) is None:
        encoded = _with_names(found, dtype)
    dimensions = tuple(found.dimensions)
    return VariableFacts(
        dataset=dataset.name.rpartition("/")[2],
        dimensions=dimensions,
        stored_shape=dataset.shape,
        dtype=dtype,
        encoded_dtype=encoded,
        chunks=dataset.chunks if dimensions else None,
        fletcher32=dataset.fletcher32,
        shuffle=dataset.shuffle,
        compression=dataset.compression,
        compression_opts=dataset.compression_opts,
        filters=netcdf_filters(dataset._filters),
        attributes=_attributes(found, dataset.name),
    )


def _find(source: SharedFile, path: str) -> Any:
    found = source.open().netcdf
    for name in filter(None, path.split("/")):
        if name not in found.groups:
            has = ", ".join(map(printable, list(found.groups)[:5])) or "none"
            raise like(DatasetNotFoundError, OSError())(
                f"{printable(source.name)}: group not found: {printable(name)} of "
                f"{printable(path)}; groups there: {has}"
            )
        found = found.groups[name]
    return found


def _dimensions(group: Any) -> dict[str, Any]:
    """Dimensions that a group's variables may have: its own, and its parents'."""
    parent = group.parent
    return {**({} if parent is None else _dimensions(parent)), **group.dimensions}


def _with_names(found: Any, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Give an enumeration's dtype the names that netCDF has for it."""
    from h5netcdf.core import EnumType

    if h5py.check_enum_dtype(dtype) is None:
        return dtype
    kind = found.datatype
    if not isinstance(kind, EnumType):
        return dtype
    return np.dtype(dtype, metadata={"enum": kind.enum_dict, "enum_name": kind.name})


def _attributes(holder: Any, where: str) -> dict[str, Any]:
    """Attributes, text decoded, without those that hold a single reference."""
    # As netCDF-C leaves them out; h5netcdf has no value for them.
    found = {}
    for name in holder.attrs:
        try:
            value = holder.attrs[name]
        except TypeError:
            if h5py.check_ref_dtype(holder.attrs._h5attrs.get_id(name).dtype) is None:
                raise
            continue
        found[name] = decoded(value, name, where)
    return found
