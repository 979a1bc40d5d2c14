"""How are many files read as one array?  Like the sources of a virtual dataset."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from glob import glob, has_magic
from types import TracebackType
from typing import Any, Final, NamedTuple, cast

import h5py
import numpy as np
import numpy.typing as npt

from chunkwise import _native
from chunkwise.dataset import Dataset
from chunkwise.errors import (
    FileFormatError,
    MismatchError,
    OutOfMemoryError,
    SelectionError,
    UndecodedChunkError,
    UsageError,
)
from chunkwise.file import File
from chunkwise.names import HDF5_ERRORS, is_url, printable
from chunkwise.routing.conversions import identical
from chunkwise.routing.elsewhere import file_names, leads_to, place_of
from chunkwise.routing.reading import counts
from chunkwise.selecting.indexers import OuterIndex
from chunkwise.selecting.indexing import resolve
from chunkwise.words import counted

__all__ = ["Joined", "open_many"]

Array = npt.NDArray[Any]
phil = h5py._objects.phil
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
# Attributes that say what a stored value is, by the conventions of netCDF and CF.
MEANING: Final = (
    "scale_factor",
    "add_offset",
    "units",
    "calendar",
    "_FillValue",
    "missing_value",
    "_Unsigned",
)


class Joined:
    """One dataset of many files, joined along an axis; made by `open_many`.

    ``x[index]`` reads as `Dataset` does, except masks of several dimensions.  Any number of
    threads may read at the same time.  Close it, or use it in a ``with`` statement.

    Attributes
    ----------
    paths : tuple of str
        The files, in their order.
    axis : int
        The axis along which they are joined, counted from 0.
    lengths : tuple of int
        The length of each file along that axis.
    shape : tuple of int
        The joined shape.
    dtype : numpy.dtype
        The type of each.
    """

    def __init__(
        self, paths: Sequence[str], name: str, axis: int, *, differing: bool = False
    ) -> None:
        self.paths, self._name, self._differing = tuple(paths), name, differing
        self._files: list[File] = []
        try:
            found = [self._opened(path) for path in self.paths]
            self._parts = [each.part for each in found]
            self._require_each_once(found)
            self._check(found, axis)
        except BaseException:
            self.close()
            raise

    def _opened(self, path: str) -> _Found:
        file = File(path)
        self._files.append(file)
        found = file[self._name]
        if not isinstance(found, Dataset):
            raise MismatchError(
                f"{printable(path)}: {printable(self._name)}: it is no dataset; name one that all "
                "files have"
            )
        meaning = {} if self._differing else _meaning(found)
        return _Found(found, found.shape, found.dtype, found.is_virtual, meaning)

    def _require_each_once(self, found: Sequence[_Found]) -> None:
        """Refuse a virtual dataset that has the data of another of the files."""
        names = {os.path.basename(path) for path in self.paths}  # noqa: PTH119
        places: dict[tuple[int, ...], str] = {}
        for number, (part, _, _, is_virtual, _) in enumerate(found):
            # Most are not virtual, or lead to files of other names; %b stands for a number.
            if not is_virtual or not any(
                os.path.basename(name) in names or "%" in name  # noqa: PTH119
                for name in file_names(part)
            ):
                continue
            with phil:
                behind = leads_to(h5py.Dataset(part.id))
            places = places or {
                place_of(one): path for one, path in zip(self._parts, self.paths, strict=True)
            }
            twice = next((path for place, path in places.items() if place in behind), None)
            if twice is not None:
                path = printable(self.paths[number])
                raise UsageError(
                    f"{self._where(number)}: it is virtual and has the data of "
                    f"{printable(twice)}, which would be there twice; leave {path} out of the "
                    f"files or their pattern, or read it alone: chunkwise.open({path!r})"
                )

    def _check(self, found: Sequence[_Found], axis: int) -> None:
        """Check that all fit the first."""
        first, where = found[0], self._where(0)
        shape = first.shape
        if not shape or first.dtype.subdtype is not None:
            what = "no dimension" if not shape else "arrays as elements"
            raise MismatchError(
                f"{where}: it has {what}, and cannot be joined; read each by itself"
            )
        if not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
            raise UsageError(f"{where}: axis={axis!r}: it has {counted(len(shape), 'dimension')}")
        self.axis = axis % len(shape)
        for number, part in enumerate(found):
            if part.dtype != first.dtype:
                raise MismatchError(
                    f"{self._where(number)}: its type is {part.dtype}, that of "
                    f"{printable(self.paths[0])} {first.dtype}; leave it out, or convert it"
                )
            other = part.shape or ()
            if len(other) != len(shape) or self._across(other) != self._across(shape):
                raise MismatchError(
                    f"{self._where(number)}: its shape is {other}, that of "
                    f"{printable(self.paths[0])} {shape}; all but axis {self.axis} have to be "
                    "equal: leave it out, or join along another axis"
                )
        self._require_one_meaning([part.meaning for part in found])
        self.dtype: np.dtype[Any] = first.dtype
        self.lengths = tuple(part.shape[self.axis] for part in found)
        # Where each begins, and where the last ends.
        self._bounds = np.cumsum((0, *self.lengths))
        total = int(self._bounds[-1])
        self.shape: tuple[int, ...] = (*shape[: self.axis], total, *shape[self.axis + 1 :])

    def _require_one_meaning(self, meanings: Sequence[dict[str, Any]]) -> None:
        """Refuse files in which equal stored values stand for different ones."""
        first = meanings[0]
        for number, other in enumerate(meanings):
            for name in MEANING:
                if not _same(first.get(name), other.get(name)):
                    raise MismatchError(
                        f"{self._where(number)}: its {name} is {_shown(other.get(name))}, that of "
                        f"{printable(self.paths[0])} {_shown(first.get(name))}, so that equal "
                        "stored values mean different ones: convert one of them, or join the "
                        "stored values by differing=True"
                    )

    def _across(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape[: self.axis] + shape[self.axis + 1 :]

    def _where(self, number: int) -> str:
        return f"{printable(self.paths[number])}: dataset {printable(self._name)}"

    # What an array has ----------------------------------------------------------------

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def attrs(self) -> h5py.AttributeManager:
        """The attributes of the first file's dataset."""
        return self._parts[0].attrs

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """Shape of a chunk, if all have the same and only the last file ends within one."""
        chunk = self._parts[0].chunks
        if chunk is None or any(part.chunks != chunk for part in self._parts):
            return None
        within = any(length % chunk[self.axis] for length in self.lengths[:-1])
        return None if within else cast("tuple[int, ...]", chunk)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[at] for at in range(len(self)))

    def __repr__(self) -> str:
        files = counted(len(self.paths), "file")
        name = printable(self._name)
        return f'<chunkwise joined "{name}" of {files}: shape {self.shape}, type {self.dtype}>'

    # Reading --------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        """Read as ``d[index]`` of a `Dataset` does.

        Raises
        ------
        chunkwise.errors.SelectionError
            For an index that does not fit (an IndexError, ValueError and TypeError).
        chunkwise.errors.OutOfMemoryError
            When there is too little memory for the selection (a MemoryError).
        chunkwise.errors.CorruptDataError
            When stored bytes are missing or do not decode; names file and chunk (an OSError).
        chunkwise.errors.FileChangedError
            When a file has changed since it was opened (an OSError).
        """
        label = f"{printable(self._name)} of {counted(len(self.paths), 'file')}"
        selection = resolve(self.shape, index, label)
        entries = None if selection is None else _entries(selection)
        if selection is None or entries is None:
            raise SelectionError(
                f"{label}: here an index has integers, slices, lists and masks of one dimension; "
                "read points and selections file by file"
            )
        try:
            result = np.zeros([len(entry) for entry in entries], self.dtype)
        except MemoryError as error:
            raise OutOfMemoryError(f"{label}: {error}; read it in parts") from None
        if result.size:
            self._fill(result, entries, selection)
        kept = tuple(0 if dropped else slice(None) for dropped in selection.dropped)
        found = result[kept]
        return found[()] if found.ndim == 0 else found

    def _fill(
        self, result: Array, entries: list[Array | range], selection: _native.Selection
    ) -> None:
        places = np.asarray(entries[self.axis])
        owners = np.searchsorted(self._bounds, places, side="right") - 1
        touched = np.unique(owners)
        together = self._together(touched) if len(touched) > 1 else None
        if together is not None:
            try:
                together.read(selection, result)
            except UndecodedChunkError:
                # The file's own read finds out which file, and what it means.
                pass
            else:
                counts.engine += len(touched)
                return
        index: list[Any] = [_index(entry) for entry in entries]
        into: list[Any] = [slice(None)] * self.ndim
        for owner in touched:
            mine = np.flatnonzero(owners == owner)
            index[self.axis] = _index(places[mine] - self._bounds[owner])
            into[self.axis] = _index(mine)
            result[tuple(into)] = self._parts[owner][tuple(index)]

    def _together(self, owners: Array) -> _native.Dataset | None:
        """The part of the array in these files; None if libhdf5 has to read one of them."""
        sources: list[Any] = []
        for owner in owners:
            bound = self._parts[owner]._reads().bound
            if bound is None or not identical(bound.dtype, self.dtype):
                return None
            ones, length = [1] * self.ndim, list(bound.shape)
            there, here = [0] * self.ndim, [0] * self.ndim
            here[self.axis] = int(self._bounds[owner])
            slabs = [(here, ones, ones, length)], bound.native, [(there, ones, ones, length)]
            sources.append((*slabs, [], bound.label))
        label = printable(self._name)
        made = _native.Dataset.mapped(self.shape, self.dtype, None, sources, label)
        return made if made.reason is None else None

    @property
    def oindex(self) -> OuterIndex:
        """``x.oindex[...]``: orthogonal, as ``x[...]`` is here."""
        return OuterIndex(self.__getitem__)

    def __array__(self, dtype: npt.DTypeLike = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("files cannot become an array without copying")
        found: Array = self[(slice(None),) * self.ndim]
        return found if dtype is None else found.astype(dtype, copy=False)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        # `dask.array.from_array` names it by this: the same as long as the files are.
        return (self.axis, *(part.__dask_tokenize__() for part in self._parts))

    # Closing --------------------------------------------------------------------------

    def close(self) -> None:
        """Close all files."""
        for file in self._files:
            file.close()

    def __enter__(self) -> Joined:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> Any:
        absolute = [os.path.abspath(path) for path in self.paths]  # noqa: PTH100 (not resolved)
        return _joined, (absolute, self._name, self.axis, self._differing)


class _Found(NamedTuple):
    """A file's dataset, with what is needed of it while the file is open, not parked."""

    part: Dataset
    shape: Any
    dtype: np.dtype[Any]
    is_virtual: bool
    meaning: dict[str, Any]


def _joined(paths: Sequence[str], name: str, axis: int, differing: bool) -> Joined:
    return Joined(paths, name, axis, differing=differing)


def open_many(paths: Paths, dataset: str, axis: int = 0, *, differing: bool = False) -> Joined:
    """Open a dataset of many files as one array, read when it is indexed.

    Parameters
    ----------
    paths : path-like or sequence of path-like
        Files, in order; or a pattern such as ``"run/*.h5"`` (``**`` for folders below), whose
        files are sorted by the numbers in their names: ``a9.h5`` before ``a10.h5``.
    dataset : str
        Its path in each file.
    axis : int
        The axis along which they are joined; negative from the last.
    differing : bool
        Join stored values as they are, though equal ones may mean different ones: the attributes
        ``scale_factor``, ``add_offset``, ``units``, ``calendar``, ``_FillValue``,
        ``missing_value`` or ``_Unsigned`` differ.

    Returns
    -------
    Joined
        Of the files' common dtype.

    Raises
    ------
    chunkwise.errors.FileFormatError
        When a file cannot be opened, or there is none (an OSError).
    chunkwise.errors.DatasetNotFoundError
        When a file has no such dataset (a KeyError).
    chunkwise.errors.MismatchError
        When a file has another type, another shape apart from its length along `axis`, or an
        attribute by which its values mean others (see `differing`); names the file (a TypeError).
    chunkwise.errors.UsageError
        For an axis that they do not have; for a virtual dataset that has the data of another of
        the files, such as a master file's (a ValueError).
    """
    if isinstance(paths, str | os.PathLike):
        pattern = os.fspath(paths)
        found = [pattern]
        if has_magic(pattern) and not os.path.lexists(pattern) and not is_url(pattern):
            found = sorted(glob(pattern, recursive=True), key=_by_numbers)  # noqa: PTH207
    else:
        pattern = "the list of files"
        found = [os.fspath(path) for path in paths]
    if not found:
        raise FileFormatError(
            f"{printable(pattern)}: there are no files; see what it should match"
        )
    return Joined(found, dataset, axis, differing=differing)


def _meaning(part: Dataset) -> dict[str, Any]:
    """The attributes that say what a stored value is; empty for one that cannot be read."""
    with phil:
        attributes = part.attrs
        found: dict[str, Any] = {}
        for name in MEANING:
            if name in attributes:
                try:
                    found[name] = attributes[name]
                except HDF5_ERRORS:
                    found[name] = h5py.Empty("f4")
    return found


def _same(one: Any, other: Any) -> bool:
    """Whether two attributes state the same; text of bytes as text, NaN as NaN."""
    one, other = (
        each.decode("utf-8", "surrogateescape") if isinstance(each, bytes) else each
        for each in (one, other)
    )
    if isinstance(one, str | h5py.Empty | None) or isinstance(other, str | h5py.Empty | None):
        return bool(type(one) is type(other) and one == other)
    a, b = np.atleast_1d(one), np.atleast_1d(other)
    if a.shape != b.shape:
        return False
    return bool(((a == b) | ((a != a) & (b != b))).all())


def _shown(value: Any) -> str:
    if value is None:
        return "not stated"
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(-1)[0]  # netCDF's attributes are arrays
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return repr(value) if isinstance(value, str) else printable(str(value))


def _by_numbers(path: str) -> list[tuple[int, str]]:
    return [
        (int(part), part) if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", path)
    ]


def _entries(selection: Any) -> list[Array | range] | None:
    """The choice in each dimension; None if dimensions are chosen together."""
    if selection.hyperslab is not None:
        return [_chosen(*each) for each in zip(*selection.hyperslab, strict=True)]
    entries: list[Array | range] = []
    for factor in selection.factors:
        if isinstance(factor, tuple):
            start, step, count = factor
            entries.append(range(start, start + count * step, step))
        elif len(factor) == 1:
            entries.append(np.asarray(factor[0], np.int64))
        else:
            return None
    return entries or None


def _chosen(start: int, stride: int, count: int, block: int) -> Array | range:
    if block == 1:
        return range(start, start + count * stride, stride)
    if count == 1:
        return range(start, start + block)
    found: Array = np.add.outer(start + stride * np.arange(count), np.arange(block))
    return found.reshape(-1)


def _index(entry: Array | range) -> Any:
    """The same as a slice, if it is one."""
    count = len(entry)
    if not count:
        return slice(0, 0)
    first, last = int(entry[0]), int(entry[-1])
    if isinstance(entry, range):
        step = entry.step
    else:
        steps = np.diff(entry)
        step = int(steps[0]) if count > 1 else 1
        if not step or (steps != step).any():
            return entry
    stop = last + (1 if step > 0 else -1)
    return slice(first, None if stop < 0 else stop, step)
