"""How are the facts about a file's objects collected?

Only metadata is read here: object headers, links and chunk indexes, never data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import h5py
from h5py import h5a, h5d, h5s, h5z

from chunkwise.errors import CorruptDataError
from chunkwise.files.causes import cause_of, has_checksum
from chunkwise.files.dimensions import is_scale
from chunkwise.files.objects import Address, Entry
from chunkwise.files.opening import has_variable_length
from chunkwise.grammar import Pipeline
from chunkwise.inspection.attributes import unreadable_attributes
from chunkwise.inspection.chunks import chunk_facts
from chunkwise.inspection.datatypes import byte_order, describe
from chunkwise.inspection.dimensions import dimension_names
from chunkwise.inspection.facts import DatasetFacts, Layout, ObjectFacts
from chunkwise.inspection.fill import allocation_time, fill_time, fill_value
from chunkwise.inspection.links import is_dangling
from chunkwise.inspection.sources import sources
from chunkwise.names import HDF5_ERRORS, hdf5_reason
from chunkwise.verdicts import Verdict

_LAYOUTS: dict[int, Layout] = {
    h5d.CHUNKED: "chunked",
    h5d.CONTIGUOUS: "contiguous",
    h5d.COMPACT: "compact",
    h5d.VIRTUAL: "virtual",
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
            chunks, stored_nbytes = chunk_facts(dataset, shape, dcpl.get_chunk(), itemsize)
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
        verdict=Verdict.SOUND if entry.cause is None else entry.cause.verdict,
        dataset=dataset,
        linked=entry.linked,
    )


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
    """Tell whether HDF5 has a filter."""
    # Asking may search the plugin folders, hence once for each filter.
    return bool(h5z.filter_avail(code))
