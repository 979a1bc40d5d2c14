"""How are the facts about a file's objects collected, from metadata alone?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import h5py
import numpy as np
from h5py import h5a, h5d, h5o, h5p, h5s, h5t, h5z

from chunkwise._lib import library
from chunkwise.errors import CorruptDataError, LeadsOutsideError
from chunkwise.files.causes import cause_of, has_checksum
from chunkwise.files.dimensions import is_scale
from chunkwise.files.leading import Bounds
from chunkwise.files.objects import Address, Entry, attribute_names
from chunkwise.files.opening import has_variable_length
from chunkwise.files.stored import read_fill
from chunkwise.grammar import Pipeline
from chunkwise.inspection.datatypes import byte_order, describe
from chunkwise.inspection.dimensions import dimension_names
from chunkwise.inspection.facts import ChunkFacts, DatasetFacts, Layout, ObjectFacts
from chunkwise.inspection.sources import places, sources
from chunkwise.names import HDF5_ERRORS, decode_name, encode_name, hdf5_reason
from chunkwise.verdicts import FileVerdict

if TYPE_CHECKING:
    from chunkwise._native import ChunkCensus

_LAYOUTS: dict[int, Layout] = {
    h5d.CHUNKED: "chunked",
    h5d.CONTIGUOUS: "contiguous",
    h5d.COMPACT: "compact",
    h5d.VIRTUAL: "virtual",
}
# H5D_chunk_index_t
_INDEXES: Final = {
    0: "v1 B-tree",
    1: "single chunk",
    2: "implicit",
    3: "fixed array",
    4: "extensible array",
    5: "v2 B-tree",
}
# A value longer than this says nothing more to a reader: compounds may have a thousand members.
_LONGEST: Final = 100
# A fill value lies in the object header, whose messages have a 16-bit size.
_LARGEST_NBYTES: Final = 1 << 16
FILL_TIMES: Final = {
    h5d.FILL_TIME_ALLOC: "alloc",
    h5d.FILL_TIME_NEVER: "never",
    h5d.FILL_TIME_IFSET: "if set",
}
ALLOCATION_TIMES: Final = {
    h5d.ALLOC_TIME_DEFAULT: "default",
    h5d.ALLOC_TIME_EARLY: "early",
    h5d.ALLOC_TIME_LATE: "late",
    h5d.ALLOC_TIME_INCR: "incremental",
}


def dataset_facts(
    dataset: h5d.DatasetID, paths: Mapping[Address, str] | None = None
) -> DatasetFacts:
    """Collect how a dataset is stored."""
    space = dataset.get_space()
    datatype = dataset.get_type()
    dcpl = dataset.get_create_plist()
    shape, maxshape = extent_of(space)
    itemsize = datatype.get_size()
    variable_length = has_variable_length(datatype)
    layout, mappings = layout_of(dcpl)
    codes = [dcpl.get_filter(i)[0] for i in range(dcpl.get_nfilters())]
    elements = 0 if shape is None else math.prod(shape)
    logical_nbytes = None if variable_length else elements * itemsize
    chunks, stored_nbytes, unlisted = None, None, None
    if layout == "chunked" and shape is not None:
        try:
            found = library().chunk_census(dataset.id)
            chunks = facts_of_census(found, shape, dcpl.get_chunk(), itemsize)
            stored_nbytes = found["stored_nbytes"]
        except CorruptDataError as error:
            unlisted = str(error)
    if stored_nbytes is None and layout != "virtual" and unlisted is None:
        stored_nbytes = dataset.get_storage_size()
    return DatasetFacts(
        shape=shape,
        maxshape=maxshape,
        dimensions=dimension_names(dataset, paths),
        is_scale=is_scale(dataset),
        dtype=describe(datatype),
        byte_order=byte_order(datatype),
        itemsize=itemsize,
        variable_length=variable_length,
        layout=layout,
        sources=sources(dataset, dcpl) if layout in ("virtual", "external") else None,
        mappings=mappings,
        chunks=chunks,
        filters=str(Pipeline.from_dcpl(dcpl)),
        unavailable_filters=tuple(code for code in codes if not is_available(code)),
        fill_value=fill_value(dcpl, datatype),
        fill_time=fill_time(dcpl),
        allocation_time=allocation_time(dcpl),
        logical_nbytes=logical_nbytes,
        stored_nbytes=stored_nbytes,
        ratio=ratio_of(logical_nbytes, stored_nbytes),
        unlisted=unlisted,
    )


def object_facts(
    file: h5py.File, entry: Entry, paths: Mapping[Address, str] | None = None
) -> ObjectFacts:
    """Collect the facts about one name in a file."""
    unreadable: tuple[str, ...] = ()
    attributes, dataset = None, None
    try:
        if entry.identifier is not None:
            attributes = h5a.get_num_attrs(entry.identifier)
            unreadable = unreadable_attributes(entry.identifier) if attributes else ()
        if entry.kind == "dataset":
            dataset = dataset_facts(entry.identifier, paths)
    except HDF5_ERRORS as error:
        cause = cause_of(error, checked=has_checksum(entry.identifier))
        reason = hdf5_reason(error)
        return ObjectFacts(
            entry.path,
            entry.depth,
            "unreadable",
            reason=reason,
            linked=entry.linked,
            verdict=cause.verdict,
        )
    return ObjectFacts(
        entry.path,
        entry.depth,
        entry.kind,
        attributes,
        unreadable_attributes=unreadable,
        target=entry.target,
        reason=entry.reason,
        dangling=is_dangling(file, entry),
        verdict=FileVerdict.SOUND if entry.cause is None else entry.cause.verdict,
        dataset=dataset,
        linked=entry.linked,
    )


def unreadable_attributes(identifier: Any) -> tuple[str, ...]:
    """Name the attributes of an open object that HDF5 cannot read (H5Aiterate)."""
    # Listing decodes each header, and so shows damage: 7 us for five; opening each takes 65 us.
    try:
        count = h5a.get_num_attrs(identifier)
        listed = attribute_names(identifier) if count else []
    except HDF5_ERRORS as error:
        return (f"* ({hdf5_reason(error)})",)
    if len(listed) != count:
        return (f"* ({len(listed):,} of {count:,} found)",)
    return ()


def forget_filters() -> None:
    """Ask HDF5 again which filters there are, when a dataset uses one."""
    is_available.cache_clear()


def extent_of(space: h5s.SpaceID) -> tuple[tuple[int, ...] | None, tuple[int | None, ...] | None]:
    """Give the shape, and as far as it can grow, None without end; None for a null dataspace."""
    if space.get_simple_extent_type() == h5s.NULL:
        return None, None
    limits = space.get_simple_extent_dims(maxdims=True)
    return (
        tuple(space.get_simple_extent_dims()),
        tuple(None if limit == h5s.UNLIMITED else limit for limit in limits),
    )


def layout_of(dcpl: h5py.h5p.PropDCID) -> tuple[Layout, int | None]:
    """Name where data lies, and count the mappings or raw files elsewhere."""
    layout = _LAYOUTS[dcpl.get_layout()]
    if layout == "virtual":
        return layout, dcpl.get_virtual_count()
    if layout == "contiguous" and dcpl.get_external_count():
        return "external", dcpl.get_external_count()
    return layout, None


def ratio_of(logical_nbytes: int | None, stored_nbytes: int | None) -> float | None:
    """Divide the bytes of all elements by those stored."""
    return logical_nbytes / stored_nbytes if logical_nbytes and stored_nbytes else None


@cache
def is_available(code: int) -> bool:
    """Return whether HDF5 has a filter."""
    # Asking may search the plugin folders, hence once for each filter.
    return bool(h5z.filter_avail(code))


def facts_of_census(
    found: ChunkCensus, shape: tuple[int, ...], chunk: tuple[int, ...], itemsize: int
) -> ChunkFacts:
    """Say how chunks lie of which a census was taken."""
    nbytes = math.prod(chunk) * itemsize
    grid = math.prod(-(-n // c) for n, c in zip(shape, chunk, strict=True))
    allocated = found["allocated"]
    smallest, median, largest = found["sizes"] or (None, None, None)
    # If chunks cannot be distinguished, some are missing: count none of them as edges.
    covered, pairs, adjacent, backward, span = found["placement"] or (None, 0, 0, 0, 0)
    edge_nbytes = 0 if covered is None else allocated * nbytes - covered * itemsize
    return ChunkFacts(
        shape=chunk,
        nbytes=nbytes,
        grid=grid,
        allocated=allocated,
        index=_INDEXES.get(-1 if found["index_type"] is None else found["index_type"]),
        smallest_nbytes=smallest,
        median_nbytes=median,
        largest_nbytes=largest,
        unfiltered=found["unfiltered"],
        masked=found["masked"],
        edge_nbytes=edge_nbytes,
        pairs=pairs,
        adjacent=adjacent,
        backward=backward,
        span_nbytes=span,
        order_known=found["placement"] is not None,
    )


def is_dangling(file: h5py.File, entry: Entry) -> bool:
    """Return whether a link leads nowhere, as libhdf5 follows it (H5Oexists_by_name)."""
    if entry.kind not in ("soft_link", "external_link"):
        return False
    name, link = str(file.filename), encode_name(entry.path.rpartition("/")[2])
    try:
        Bounds(name, name).check_path(entry.group, link)
        return not h5o.exists_by_name(entry.group, link)
    except LeadsOutsideError:
        # To a pipe, say: opening it might never end.  A folder is no file at all.
        target, own = (entry.target or "").partition(":")[0], Path(name).absolute()
        return any(one.is_dir() for one in places(target, own, "HDF5_EXT_PREFIX"))
    except HDF5_ERRORS:
        return True


# --- fill values -----------------------------------------------------------------------


def fill_value(dcpl: h5p.PropDCID, datatype: h5t.TypeID) -> str:
    """Say the fill value (H5Pfill_value_defined, H5Pget_fill_value)."""
    try:
        defined = dcpl.fill_value_defined()
        if defined == h5d.FILL_VALUE_UNDEFINED:
            return "undefined"
        if defined == h5d.FILL_VALUE_DEFAULT:
            return "default"
        dtype = datatype.dtype
        if dtype.subdtype is not None or dtype.itemsize > _LARGEST_NBYTES:
            # NumPy merges an array type into the array's own shape, and h5py loses it.
            return "set"
        value = np.zeros(1, dtype)
        read_fill(dcpl, datatype, value)
    except HDF5_ERRORS:
        return "set"
    return in_words(value[0], dtype)


def in_words(value: Any, dtype: np.dtype[Any]) -> str:
    """Say a fill value that is set."""
    words = _words(value, dtype)
    return words if len(words) <= _LONGEST else words[: _LONGEST - 3] + "..."


def fill_time(dcpl: h5p.PropDCID) -> str:
    """Say when the fill value is written (H5Pget_fill_time): ``never``, ``alloc``, ``if set``."""
    return FILL_TIMES[dcpl.get_fill_time()]


def allocation_time(dcpl: h5p.PropDCID) -> str:
    """Say when space is allocated (H5Pget_alloc_time): ``early``, ``late``, ``incremental``."""
    return ALLOCATION_TIMES[dcpl.get_alloc_time()]


def _words(value: Any, dtype: np.dtype[Any]) -> str:
    if dtype.names is not None:
        members = (f"{name}: {_words(value[name], dtype[name])}" for name in dtype.names)
        return "{" + ", ".join(members) + "}"
    if dtype.subdtype is not None:
        return (
            "["
            + ", ".join(_words(each, dtype.subdtype[0]) for each in value.flat[:_LONGEST])
            + "]"
        )
    if isinstance(value, bytes):
        return f"'{decode_name(bytes(value))}'"
    if dtype.kind == "V":
        return f"0x{value.tobytes().hex()}"
    if dtype.kind == "O":
        return "set"
    names = h5py.check_enum_dtype(dtype) or {}
    return next((name for name, number in names.items() if number == value), str(value))
