"""What does a group of a netCDF-4 file hold, in xarray's words?

h5netcdf says what HDF5's objects mean in netCDF: dimensions, variables, attributes, types.
Each answer is kept, because it may take many calls of libhdf5.
"""

from __future__ import annotations

import posixpath
import warnings
from collections.abc import Iterator
from typing import Any, Final

import h5py
import numpy as np
from h5netcdf.core import EnumType
from xarray import Variable
from xarray.backends import AbstractDataStore
from xarray.core import indexing

from chunkwise.errors import DatasetNotFoundError, UsageError, like
from chunkwise.names import printable
from chunkwise.xarray.opened import SharedFile, meant
from chunkwise.xarray.reading import ConvertedArray, ShorterArray, StoredArray

# Before the name of a variable that is called as a dimension, and is not its coordinate.
_NO_COORDINATE: Final = "_nc4_non_coord_"
# Kinds of elements that a variable has as its dataset has them.
_AS_STORED: Final = "biufcS"


class Store(AbstractDataStore):
    """A group, as xarray asks for it."""

    def __init__(self, source: SharedFile, group: str | None, lock: Any) -> None:
        self._source, self._lock = source, lock
        if not isinstance(group, str | None):
            raise UsageError(
                f"group: it must be a string such as 'a/b', or None, not {type(group).__name__}"
            )
        self._path = "/" + (group or "").strip("/")
        self._group = _find(source, self._path)
        self._dimensions = _dimensions(self._group)
        # A dimension's length may be that of the longest of its variables.
        self._sizes: dict[str, int] = {}

    def get_variables(self) -> dict[str, Variable]:
        """Variables by name, which are read when they are used."""
        here = self._source.open().hdf5[self._path]
        # If both exist, the one without is only a dimension.
        renamed = (name for name in here if name.startswith(_NO_COORDINATE))
        stored = {name.removeprefix(_NO_COORDINATE): name for name in renamed}
        made = {}
        for name, found in self._group.variables.items():
            with meant(self._source.name, posixpath.join(self._path, name)):
                made[name] = self._variable(here[stored.get(name, name)], name, found)
        return made

    def get_attrs(self) -> dict[str, Any]:
        """Attributes of the group."""
        return _attributes(self._group, self._path)

    def get_dimensions(self) -> dict[str, int]:
        """Lengths of the group's own dimensions."""
        return {name: self._size(name) for name in self._group.dimensions}

    def get_encoding(self) -> dict[str, Any]:
        """Which of the group's own dimensions may grow."""
        own = self._group.dimensions.items()
        return {"unlimited_dims": {name for name, one in own if one.isunlimited()}}

    def _size(self, name: str) -> int:
        found = self._sizes.get(name)
        if found is None:
            found = self._sizes[name] = int(self._dimensions[name].size)
        return found

    def _variable(self, dataset: Any, name: str, found: Any) -> Variable:
        dimensions = found.dimensions
        shape = tuple(map(self._size, dimensions))
        dtype = dataset.dtype
        chunks = dataset.chunks if shape else None
        encoding = {
            "chunksizes": chunks,
            "fletcher32": dataset.fletcher32,
            "shuffle": dataset.shuffle,
        }
        if chunks:
            encoding["preferred_chunks"] = dict(zip(dimensions, chunks, strict=True))
        compression = dataset.compression
        if compression == "gzip":
            encoding |= {"zlib": True, "complevel": dataset.compression_opts}
        elif compression is not None:
            encoding |= {
                "compression": compression,
                "compression_opts": dataset.compression_opts,
            }
        encoding |= {"source": self._source.name, "original_shape": shape}
        of_length = h5py.check_vlen_dtype(dtype)
        if h5py.check_string_dtype(dtype) is not None and dtype.kind == "O":
            encoding["dtype"] = str
        elif of_length is None:
            encoding["dtype"] = _with_names(found, dtype)
        data: Any
        if dtype.kind in _AS_STORED:
            path = posixpath.join(self._path, dataset.name.rpartition("/")[2])
            how = StoredArray if dataset.shape == shape else ShorterArray
            data = how(self._source, path, shape, dtype, self._lock)
        else:
            data = ConvertedArray(self._source, self._path, name, shape, dtype, self._lock)
        attributes = _attributes(found, dataset.name)
        return Variable(dimensions, indexing.LazilyIndexedArray(data), attributes, encoding)


def group_paths(source: SharedFile, group: str | None) -> Iterator[str]:
    """Paths of a group and of all groups in it, as xarray numbers them: parents first."""
    path = "/" + (group or "").strip("/")
    yield path
    for name in _find(source, path).groups:
        yield from group_paths(source, posixpath.join(path, name))


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
    if h5py.check_enum_dtype(dtype) is None:
        return dtype
    kind = found.datatype
    if not isinstance(kind, EnumType):
        return dtype
    return np.dtype(dtype, metadata={"enum": kind.enum_dict, "enum_name": kind.name})


def _attributes(holder: Any, where: str) -> dict[str, Any]:
    """Attributes, text decoded, without those that hold a single reference.

    As netCDF-C leaves them out; h5netcdf has no value for them.
    """
    found = {}
    for name in holder.attrs:
        try:
            value = holder.attrs[name]
        except TypeError:
            if h5py.check_ref_dtype(holder.attrs._h5attrs.get_id(name).dtype) is None:
                raise
            continue
        if isinstance(value, bytes) and name not in ("_FillValue", "missing_value"):
            try:
                value = value.decode("utf-8")
            except UnicodeDecodeError:
                warnings.warn(
                    f"'utf-8' codec can't decode bytes for attribute {name!r} of h5netcdf "
                    f"object {where!r}, returning bytes undecoded.",
                    UnicodeWarning,
                    stacklevel=2,
                )
        found[name] = value
    return found
