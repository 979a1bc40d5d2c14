"""What does a file hold, and what of it decides how fast it can be read?

Only metadata is read: object headers, links and chunk indexes, never data.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import h5py
from h5py import h5a, h5d, h5s, h5z

from chunkwise.grammar import Pipeline
from chunkwise.inspect.datatypes import ByteOrder, byte_order, describe
from chunkwise.objects import HDF5_ERRORS, Entry, Kind, hdf5_reason, walk
from chunkwise.opening import find_dataset, has_variable_length, open_h5

Layout = Literal["chunked", "contiguous", "compact", "virtual", "external"]

_LAYOUTS: dict[int, Layout] = {
    h5d.CHUNKED: "chunked",
    h5d.CONTIGUOUS: "contiguous",
    h5d.COMPACT: "compact",
    h5d.VIRTUAL: "virtual",
}


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """How one dataset is stored.

    Attributes
    ----------
    shape
        Elements along each dimension; ``()`` for a scalar, None for a null
        dataspace, which holds no element at all.
    maxshape
        As far as it can grow; None in place of a dimension means unlimited.
        None for a null dataspace.
    dtype
        The stored type in words (`chunkwise.inspect.datatypes.describe`).
    byte_order
        ``little``, ``big``, ``vax``, ``mixed``, or None where there is none.
    itemsize
        Bytes of one element as stored; for a type of variable length, of the
        reference that stands in its place.
    variable_length
        Whether the values lie on the file's heap, whose bytes are not counted.
    layout
        ``chunked``, ``contiguous``, ``compact`` (in the object header),
        ``virtual`` (mapped from other datasets) or ``external`` (raw files).
    sources
        How many mappings a virtual dataset has, or files an external one; else None.
    chunks, chunk_nbytes
        Shape of a chunk in elements, and its bytes unfiltered; None if not chunked.
    grid_chunks
        Chunks needed to cover the shape; None if not chunked.
    allocated_chunks
        Chunks that are stored (H5Dget_num_chunks); None if not chunked.
    filters
        The pipeline in the project's grammar, ``none`` if there is none.
    unavailable_filters
        HDF5's numbers of the filters that the library in use lacks.
    logical_nbytes
        Elements times `itemsize`; None for a type of variable length.
    stored_nbytes
        Bytes that its data takes in the file (H5Dget_storage_size); None for a
        virtual dataset, whose data lies elsewhere.
    ratio
        `logical_nbytes` over `stored_nbytes`, as `h5dump -p` gives it, absent
        chunks included; None where either is None or nothing is stored.
    """

    shape: tuple[int, ...] | None
    maxshape: tuple[int | None, ...] | None
    dtype: str
    byte_order: ByteOrder | None
    itemsize: int
    variable_length: bool
    layout: Layout
    sources: int | None
    chunks: tuple[int, ...] | None
    chunk_nbytes: int | None
    grid_chunks: int | None
    allocated_chunks: int | None
    filters: str
    unavailable_filters: tuple[int, ...]
    logical_nbytes: int | None
    stored_nbytes: int | None
    ratio: float | None


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """One name in the file.

    Attributes
    ----------
    path, depth, kind, target, reason
        As in `chunkwise.objects.Entry`.
    attributes
        How many attributes the object has; None for links and unreadable objects.
    dataset
        For a dataset, how it is stored.
    """

    path: str
    depth: int
    kind: Kind
    attributes: int | None = None
    target: str | None = None
    reason: str | None = None
    dataset: DatasetFacts | None = None


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file, and its objects in the order of the walk.

    Attributes
    ----------
    path
        The file's path as given.
    nbytes
        Its size.
    userblock_nbytes
        Bytes before the HDF5 signature; 0 if there is no user block.
    hdf5_version, h5py_version
        The library that read it, such as ``2.0.0``, and h5py.
    objects
        Every name in it, or just the dataset asked for.
    """

    path: str
    nbytes: int
    userblock_nbytes: int
    hdf5_version: str
    h5py_version: str
    objects: tuple[ObjectFacts, ...]

    def as_dict(self) -> dict[str, Any]:
        """Give the facts as the dictionary that ``--json`` prints (docs/inspect.md)."""
        return {"format": "chunkwise-inspect", "version": 1, **asdict(self)}


def inspect(path: str | os.PathLike[str], dataset: str | None = None) -> FileFacts:
    """Collect the facts about a file, or about one dataset in it.

    Parameters
    ----------
    path
        An HDF5 or netCDF-4 file.
    dataset
        The path of one dataset; None collects the whole file.

    Raises
    ------
    FileFormatError
        The file cannot be opened as HDF5.
    DatasetNotFoundError, NotADatasetError, CorruptDataError
        See `chunkwise.opening.find_dataset`.
    """
    # A plugin may have been registered since the last call.
    _is_available.cache_clear()
    with open_h5(path) as file:
        if dataset is None:
            objects = tuple(_object_facts(entry) for entry in walk(file))
        else:
            found = find_dataset(file, dataset)
            name = "/" + dataset.strip("/")
            objects = (_object_facts(Entry(name, 0, "dataset", found.id)),)
        return FileFacts(
            path=os.fspath(path),
            nbytes=Path(path).stat().st_size,
            userblock_nbytes=file.userblock_size,
            hdf5_version=h5py.version.hdf5_version,
            h5py_version=h5py.version.version,
            objects=objects,
        )


def dataset_facts(dataset: h5d.DatasetID) -> DatasetFacts:
    """Collect how a dataset is stored.

    Parameters
    ----------
    dataset
        h5py's low-level identifier (``h5py.Dataset.id``).
    """
    space = dataset.get_space()
    datatype = dataset.get_type()
    dcpl = dataset.get_create_plist()
    shape, maxshape = _extent(space)
    itemsize = datatype.get_size()
    variable_length = has_variable_length(datatype)
    layout, sources = _layout(dcpl)
    elements = 0 if shape is None else math.prod(shape)
    logical_nbytes = None if variable_length else elements * itemsize
    stored_nbytes = None if layout == "virtual" else dataset.get_storage_size()
    chunks = dcpl.get_chunk() if layout == "chunked" else None
    return DatasetFacts(
        shape=shape,
        maxshape=maxshape,
        dtype=describe(datatype),
        byte_order=byte_order(datatype),
        itemsize=itemsize,
        variable_length=variable_length,
        layout=layout,
        sources=sources,
        chunks=chunks,
        chunk_nbytes=math.prod(chunks) * itemsize if chunks else None,
        grid_chunks=_grid_chunks(shape, chunks) if shape is not None and chunks else None,
        allocated_chunks=dataset.get_num_chunks() if chunks else None,
        filters=str(Pipeline.from_dcpl(dcpl)),
        unavailable_filters=tuple(_unavailable_filters(dcpl)),
        logical_nbytes=logical_nbytes,
        stored_nbytes=stored_nbytes,
        ratio=logical_nbytes / stored_nbytes if logical_nbytes and stored_nbytes else None,
    )


def _object_facts(entry: Entry) -> ObjectFacts:
    try:
        attributes = None if entry.identifier is None else h5a.get_num_attrs(entry.identifier)
        dataset = dataset_facts(entry.identifier) if entry.kind == "dataset" else None
    except HDF5_ERRORS as error:
        return ObjectFacts(entry.path, entry.depth, "unreadable", reason=hdf5_reason(error))
    return ObjectFacts(
        entry.path, entry.depth, entry.kind, attributes, entry.target, entry.reason, dataset
    )


def _extent(
    space: h5s.SpaceID,
) -> tuple[tuple[int, ...] | None, tuple[int | None, ...] | None]:
    if space.get_simple_extent_type() == h5s.NULL:
        return None, None
    limits = space.get_simple_extent_dims(maxdims=True)
    return (
        tuple(space.get_simple_extent_dims()),
        tuple(None if limit == h5s.UNLIMITED else limit for limit in limits),
    )


def _layout(dcpl: h5py.h5p.PropDCID) -> tuple[Layout, int | None]:
    layout = _LAYOUTS[dcpl.get_layout()]
    if layout == "virtual":
        return layout, dcpl.get_virtual_count()
    if layout == "contiguous" and dcpl.get_external_count():
        return "external", dcpl.get_external_count()
    return layout, None


def _grid_chunks(shape: tuple[int, ...], chunks: tuple[int, ...]) -> int:
    return math.prod(-(-extent // chunk) for extent, chunk in zip(shape, chunks, strict=True))


def _unavailable_filters(dcpl: h5py.h5p.PropDCID) -> Iterator[int]:
    for i in range(dcpl.get_nfilters()):
        code = dcpl.get_filter(i)[0]
        if not _is_available(code):
            yield code


@cache
def _is_available(code: int) -> bool:
    # Asking may search the plugin folders, hence once for each filter.
    return bool(h5z.filter_avail(code))
