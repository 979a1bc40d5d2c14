"""What is measured: which dataset, of which shape, stored how?"""

from __future__ import annotations

import contextlib
import math
import os
from dataclasses import dataclass
from itertools import islice
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5f, h5p

from chunkwise import grammar
from chunkwise.errors import CannotJudgeError, UsageError
from chunkwise.files.causes import unread
from chunkwise.files.filters import missing_filter
from chunkwise.files.objects import walk
from chunkwise.files.opening import (
    find_dataset,
    full_name,
    has_variable_length,
    largest,
    open_h5,
)
from chunkwise.files.stored import stored_nbytes
from chunkwise.names import HDF5_ERRORS, printable

# With more objects than this, some filters are not examined: it would take seconds.
_MOST_OBJECTS = 20_000


@dataclass(frozen=True)
class Target:
    """Facts about the dataset under test."""

    file: str  # As the user named it
    storage: str  # The file that holds the dataset (an external link leads to another)
    dataset: str
    shape: tuple[int, ...]  # In elements
    dtype: str  # NumPy's name of the type that h5py gives
    itemsize: int  # Bytes per element in memory
    # False where elements hold padding, whose bytes mean nothing and differ.
    comparable: bool
    chunks: tuple[int, ...] | None  # In elements; None if the dataset is not chunked
    filters: str  # The pipeline in chunkwise's grammar, such as ``shuffle+deflate:4``
    stored_nbytes: int  # Bytes allocated in the file
    # The chunk cache that the installed h5py gives this dataset by default.
    cache_nslots: int
    cache_nbytes: int
    cache_w0: float
    # Or ``contiguous``, ``compact``, ``virtual``, ``external``: contiguous in other files.
    layout: str = "chunked"
    # The pipelines of all datasets of the file, each once: what copies it needs them.
    file_filters: tuple[str, ...] = ()
    native_order: bool = True  # Whether elements are stored in this machine's byte order
    # How far each dimension may grow, None without end; None if none may.
    maxshape: tuple[int | None, ...] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array in memory."""
        return math.prod(self.shape) * self.itemsize

    @property
    def chunk_nbytes(self) -> int:
        """Bytes of one decoded chunk; 0 if the dataset is not chunked."""
        return 0 if self.chunks is None else math.prod(self.chunks) * self.itemsize

    @property
    def where(self) -> str:
        """File and dataset, for messages."""
        return f"'{printable(self.dataset)}' in {printable(self.file)}"


def look(path: str | os.PathLike[str], dataset: str | None = None) -> Target:
    """Open a file, choose the dataset and learn what decides its speed."""
    with open_h5(path) as file:
        if dataset is None:
            found = largest(file)
            name = str(found.name)
        else:
            name = full_name(file, dataset)
            found = find_dataset(file, name)
        where = f"'{printable(name)}' in {printable(os.fspath(path))}"
        if found.file.id.get_intent() & h5f.ACC_RDWR:
            raise UsageError(
                f"{printable(found.file.filename)}: is open for writing in this process; "
                "close it first"
            )
        _refuse_what_cannot_be_timed(found, where)
        try:
            stored = stored_nbytes(found.id)
        except HDF5_ERRORS as error:
            raise unread(found.id, error) from error
        properties = found.id.get_create_plist()
        nslots, nbytes, w0 = found.id.get_access_plist().get_chunk_cache()
        return Target(
            file=os.fspath(path),
            storage=str(found.file.filename),
            dataset=name,
            shape=tuple(int(n) for n in found.shape),
            dtype=_type_name(found),
            itemsize=int(found.dtype.itemsize),
            comparable=_value_nbytes(found.dtype) == found.dtype.itemsize,
            chunks=tuple(int(n) for n in found.chunks) if found.chunks else None,
            filters=str(grammar.Pipeline.from_dcpl(properties)),
            stored_nbytes=stored,
            cache_nslots=int(nslots),
            cache_nbytes=int(nbytes),
            cache_w0=float(w0),
            layout=_layout(properties),
            file_filters=_file_filters(file),
            native_order=bool(found.dtype.isnative),
            maxshape=None if found.maxshape == found.shape else found.maxshape,
        )


def _refuse_what_cannot_be_timed(dataset: h5py.Dataset, where: str) -> None:
    if dataset.shape is None:
        raise UsageError(f"{where} has a null dataspace: there is nothing to read")
    if dataset.shape == ():
        raise UsageError(f"{where} is a scalar: one value takes one read; name an array")
    if 0 in dataset.shape:
        shape = grammar.format_shape(dataset.shape)
        raise UsageError(f"{where} has no elements (shape {shape}): there is nothing to read")
    if has_variable_length(dataset.id.get_type()):
        raise UsageError(
            f"{where} is of variable length, stored apart from its chunks: "
            "name a dataset of fixed-size elements"
        )
    try:
        has_objects = dataset.dtype.hasobject
    except HDF5_ERRORS:
        raise UsageError(f"{where} has a type that NumPy lacks: name another dataset") from None
    if has_objects:
        raise UsageError(f"{where} holds references, not numbers: name another dataset")
    missing = missing_filter(dataset.id.get_create_plist())
    if missing is not None and not _can_read(dataset):
        raise CannotJudgeError(f"{where} cannot be read here: {missing}")


def _file_filters(file: h5py.File) -> tuple[str, ...]:
    """Name the pipelines of a file's datasets; of very many, those of the first."""
    found = set()
    for entry in islice(walk(file), _MOST_OBJECTS):
        if entry.kind == "dataset":
            with contextlib.suppress(*HDF5_ERRORS):
                properties = entry.identifier.get_create_plist()
                found.add(str(grammar.Pipeline.from_dcpl(properties)))
    return tuple(sorted(found))


def _can_read(dataset: h5py.Dataset) -> bool:
    """Whether the first element can be read: an optional filter may not have been used."""
    try:
        dataset[(0,) * dataset.ndim]
    except HDF5_ERRORS:
        return False
    return True


def _layout(properties: h5p.PropDCID) -> str:
    """Name where a dataset's elements are."""
    if properties.get_external_count():
        return "external"  # H5Pget_layout calls these contiguous, too
    return {h5d.CHUNKED: "chunked", h5d.COMPACT: "compact", h5d.VIRTUAL: "virtual"}.get(
        properties.get_layout(), "contiguous"
    )


def _type_name(dataset: h5py.Dataset) -> str:
    dtype = dataset.dtype
    return "compound" if dtype.names else str(dtype.str if dtype.kind in "iufcS" else dtype)


def _value_nbytes(dtype: np.dtype[Any]) -> int:
    """Bytes of an element that belong to a value; the rest is padding."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return _value_nbytes(base) * math.prod(shape)
    if dtype.names is not None:
        return sum(_value_nbytes(dtype[name]) for name in dtype.names)
    if dtype.char == "g":
        return min(dtype.itemsize, 10)  # x86's long double: 10 bytes of 16
    if dtype.char == "G":
        return min(dtype.itemsize, 20)
    return dtype.itemsize
