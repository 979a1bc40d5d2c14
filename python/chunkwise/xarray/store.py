"""What does a group of a netCDF-4 file hold, in xarray's words?"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any, Final

import xarray
from packaging.version import Version
from xarray import Variable
from xarray.backends import AbstractDataStore
from xarray.core import indexing

from chunkwise.errors import UsageError
from chunkwise.files.objects import Address, address_of
from chunkwise.xarray.facts import GroupFacts, VariableFacts
from chunkwise.xarray.native import LeftToH5netcdfError
from chunkwise.xarray.opened import SharedFile
from chunkwise.xarray.reading import ConvertedArray, ShorterArray, StoredArray
from chunkwise.xarray.tasks import Blocks

# Kinds of elements that a variable has as its dataset has them.
_AS_STORED: Final = "biufcS"
# From this version on, xarray's encoding says of each of netCDF's filters whether it is there.
_NAMES_FILTERS: Final = Version(xarray.__version__) >= Version("2026.9")


class Store(AbstractDataStore):
    """A group, as xarray asks for it."""

    def __init__(self, source: SharedFile, group: str | None, lock: Any) -> None:
        self._source, self._lock = source, lock
        if not isinstance(group, str | None):
            raise UsageError(
                f"group: it must be a string such as 'a/b', or None, not {type(group).__name__}"
            )
        self._path = "/" + (group or "").strip("/")
        self._facts = _facts_of(source, self._path)

    def get_variables(self) -> dict[str, Variable]:
        """Variables by name, which are read when they are used."""
        return {name: self._variable(name, one) for name, one in self._facts.variables.items()}

    def get_attrs(self) -> dict[str, Any]:
        """Attributes of the group."""
        return self._facts.attributes

    def get_dimensions(self) -> dict[str, int]:
        """Lengths of the group's own dimensions."""
        return {name: one.size for name, one in self._facts.dimensions.items()}

    def get_encoding(self) -> dict[str, Any]:
        """Which of the group's own dimensions may grow."""
        own = self._facts.dimensions.items()
        return {"unlimited_dims": {name for name, one in own if one.is_unlimited}}

    def _variable(self, name: str, facts: VariableFacts) -> Variable:
        dimensions, dtype = facts.dimensions, facts.dtype
        shape = tuple(self._facts.sizes[one] for one in dimensions)
        encoding: dict[str, Any] = {
            "chunksizes": facts.chunks,
            "fletcher32": facts.fletcher32,
            "shuffle": facts.shuffle,
        }
        if _NAMES_FILTERS:
            encoding |= {"contiguous": not facts.chunks, **_netcdf_filters(facts)}
        if facts.chunks:
            encoding["preferred_chunks"] = dict(zip(dimensions, facts.chunks, strict=True))
        if facts.compression == "gzip":
            encoding |= {"zlib": True, "complevel": facts.compression_opts}
        elif facts.compression is not None:
            encoding |= {
                "compression": facts.compression,
                "compression_opts": facts.compression_opts,
            }
        encoding |= {"source": self._source.name, "original_shape": shape}
        if facts.encoded_dtype is not None:
            encoding["dtype"] = facts.encoded_dtype
        elif _NAMES_FILTERS:
            encoding["dtype"] = dtype
        data: Any
        if dtype.kind in _AS_STORED:
            path = posixpath.join(self._path, facts.dataset)
            how = StoredArray if facts.stored_shape == shape else ShorterArray
            blocks = Blocks.of(dimensions, shape, dtype, facts.chunks)
            data = how(self._source, path, shape, dtype, self._lock, blocks)
        else:
            data = ConvertedArray(self._source, self._path, name, shape, dtype, self._lock)
        return Variable(dimensions, indexing.LazilyIndexedArray(data), facts.attributes, encoding)


def _netcdf_filters(facts: VariableFacts) -> dict[str, Any]:
    """Which of netCDF's filters a variable has, in the words of netCDF4's ``Variable.filters``."""
    found: dict[str, Any] = {"zlib": facts.compression == "gzip"}
    found |= dict.fromkeys(("szip", "bzip2", "blosc", "zstd"), False)
    for name, values in facts.filters.items():
        found[name] = True
        if values:
            found["complevel"] = values[0]
    return found


def group_paths(source: SharedFile, group: str | None) -> Iterator[str]:
    """Paths of a group and of all groups in it, as xarray numbers them: parents first."""
    # A link that leads back to a group above is left out.
    path = "/" + (group or "").strip("/")
    yield path
    yield from _paths_below(source, path, frozenset())


def _paths_below(source: SharedFile, path: str, above: frozenset[Address]) -> Iterator[str]:
    groups, file = _facts_of(source, path).groups, source.open().hdf5
    above |= {address_of(file[path].id)}
    for name in groups:
        where = posixpath.join(path, name)
        if address_of(file[where].id) not in above:
            yield where
            yield from _paths_below(source, where, above)


def _facts_of(source: SharedFile, path: str) -> GroupFacts:
    """From the file's own bytes, where they say it as netCDF-C does; otherwise by h5netcdf."""
    native = source.native()
    if native is not None:
        try:
            return native.group(path)
        except LeftToH5netcdfError:
            source.leave_to_libhdf5()
    # Imported where it is needed: that takes long.
    from chunkwise.xarray.through_h5netcdf import read_group

    return read_group(source, path)
