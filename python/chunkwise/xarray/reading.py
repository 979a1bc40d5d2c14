"""How is an xarray index read?  By the engine, with all its lists and points."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import numpy.typing as npt
from xarray.backends import BackendArray
from xarray.core import indexing

from chunkwise.errors import UndecodedChunkError
from chunkwise.routing.reading import counts
from chunkwise.xarray import tasks
from chunkwise.xarray.opened import SharedFile

# If points leave a dimension between them whole, this many elements are read at a time.
_AT_A_TIME = 1 << 20


class StoredArray(BackendArray):
    """A variable on storage, whose dataset has the variable's shape and elements as they are."""

    __slots__ = ("_blocks", "_lock", "_path", "_source", "dtype", "shape")

    def __init__(
        self,
        source: SharedFile,
        path: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        lock: Any,
        blocks: tasks.Blocks | None = None,
    ) -> None:
        self._source, self._path, self._lock = source, path, lock
        self.shape, self.dtype = shape, dtype
        self._blocks = blocks  # None if no block of a stored chunk is tiny

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        # As they are: there is nothing that xarray would have to make simpler first.
        paired = isinstance(key, indexing.VectorizedIndexer)
        return self._pairs(key.tuple) if paired else self._each(key.tuple)

    def _each(self, key: tuple[Any, ...]) -> Any:
        """Read every choice of one entry with every choice of the others."""
        with self._lock or contextlib.nullcontext():
            native = self._source.dataset(self._path, self.dtype)
            found = None
            # What is wrong, the other way says or reads.
            with contextlib.suppress(UndecodedChunkError):
                found = None if native is None else native.getitem(key)
            if found is None:
                return self._source.open().hdf5[self._path][key]
            counts.engine += 1
        if self._blocks is not None:
            self._blocks.count(found)
        return found

    def _pairs(self, key: tuple[Any, ...]) -> Any:
        """Read what arrays name pair by pair; their dimensions come first, then the slices'."""
        with self._lock or contextlib.nullcontext():
            return pairs(self._source.open().hdf5[self._path], key)


class ShorterArray(StoredArray):
    """A variable whose dataset holds its first part; the rest are fill values."""

    # So netCDF has it where several variables share an unlimited dimension.

    __slots__ = ()

    def _pairs(self, key: tuple[Any, ...]) -> Any:
        entries: list[Any] = list(key)
        within: list[Any] = [slice(None)] * len(key)
        at = [place for place, entry in enumerate(key) if not isinstance(entry, slice)]
        for place in at:
            wanted = np.where(key[place] < 0, key[place] + self.shape[place], key[place])
            entries[place], found = np.unique(wanted, return_inverse=True)
            within[place] = found.reshape(wanted.shape)
        result = self._each(tuple(entries))[tuple(within)]
        if at[-1] - at[0] + 1 > len(at):
            # NumPy has their dimensions first where there is something between them.
            return result
        return _first(result, at[0], np.broadcast(*(key[place] for place in at)).ndim)

    def _each(self, key: tuple[Any, ...]) -> Any:
        with self._lock or contextlib.nullcontext():
            dataset = self._source.open().hdf5[self._path]
            chosen = [np.arange(size)[entry] for size, entry in zip(self.shape, key, strict=True)]
            places = [np.atleast_1d(each) for each in chosen]
            held = [each < size for each, size in zip(places, dataset.shape, strict=True)]
            result = np.full([each.size for each in places], dataset.fillvalue, self.dtype)
            if all(each.any() for each in held):
                index = tuple(each[there] for each, there in zip(places, held, strict=True))
                result[np.ix_(*held)] = dataset[index]
        return result[tuple(slice(None) if each.ndim else 0 for each in chosen)]


class ConvertedArray(BackendArray):
    """A variable that h5netcdf makes of its dataset: text of any length, and records."""

    __slots__ = ("_group", "_lock", "_name", "_source", "dtype", "shape")

    def __init__(
        self,
        source: SharedFile,
        group: str,
        name: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        lock: Any,
    ) -> None:
        self._source, self._group, self._name, self._lock = source, group, name, lock
        self.shape, self.dtype = shape, dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER_1VECTOR, self._read
        )

    def _read(self, key: tuple[Any, ...]) -> Any:
        with self._lock or contextlib.nullcontext():
            netcdf = self._source.open().netcdf
            group = netcdf[self._group] if self._group != "/" else netcdf
            return group.variables[self._name][key]


def pairs(dataset: Any, key: tuple[Any, ...]) -> npt.NDArray[Any]:
    """Read as xarray's vectorised indices mean it."""
    at = [place for place, entry in enumerate(key) if not isinstance(entry, slice)]
    first, last = at[0], at[-1]
    between = [place for place in range(first, last) if isinstance(key[place], slice)]
    shape = np.broadcast_shapes(*(key[place].shape for place in at))
    if not between:
        return _first(dataset.vindex[key], first, len(shape))
    # Arrays pair up over neighbouring dimensions: a slice between them becomes an array, too.
    points = [np.broadcast_to(key[place], shape).reshape(-1) for place in at]
    spans = [np.arange(*key[place].indices(dataset.shape[place])) for place in between]
    step = max(1, _AT_A_TIME // max(1, int(np.prod([len(span) for span in spans]))))
    parts = []
    for start in range(0, max(1, points[0].size), step):
        entries = list(key)
        for place, column in zip(at, points, strict=True):
            entries[place] = column[start : start + step].reshape(-1, *(1,) * len(spans))
        for axis, (place, span) in enumerate(zip(between, spans, strict=True)):
            entries[place] = span.reshape(-1, *(1,) * (len(spans) - 1 - axis))
        part = dataset.vindex[tuple(entries)]
        # The points, slices before them, slices between them, slices after them.
        parts.append(np.moveaxis(part, first, 0))
    result = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return result.reshape(*shape, *result.shape[1:])


def _first(result: Any, place: int, count: int) -> npt.NDArray[Any]:
    return np.moveaxis(np.asarray(result), range(place, place + count), range(count))
