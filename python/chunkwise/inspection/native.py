"""What do a file's own bytes say of all its objects, and what does it cost to list them?

`collect` describes an object that is damaged or has something that is not known here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

import h5py
import numpy as np
from h5py import h5o, h5t

from chunkwise import _native
from chunkwise.errors import UsageError
from chunkwise.files import objects
from chunkwise.files.native import open_metadata
from chunkwise.files.opening import has_variable_length
from chunkwise.grammar import Filter, Pipeline
from chunkwise.inspection import collect
from chunkwise.inspection.datatypes import ByteOrder, byte_order, describe
from chunkwise.inspection.dimensions import short
from chunkwise.inspection.facts import DatasetFacts, MetadataFacts, ObjectFacts
from chunkwise.names import HDF5_ERRORS, encode_name

# What H5Tencode writes before the message of a type.
_ENCODED: Final = b"\x03\x00"
_NUMBERS: Final = frozenset(
    [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    + ["float16", "float32", "float64"]
)


def metadata_facts(metadata: _native.Metadata | None, free_nbytes: int) -> MetadataFacts | None:
    """Count what opening and listing a file costs, which may be damaged."""
    # `free_nbytes` is what it keeps track of.  To what is unaccounted, ``h5stat -S`` adds what
    # manages free space, and takes off shared messages and the superblock's extension.  To both,
    # global heaps, in which data of variable length lies, are unaccounted.
    found = None if metadata is None else metadata.account()
    if found is None:
        return None
    facts = MetadataFacts(**found)
    return replace(facts, unaccounted_nbytes=max(0, facts.unaccounted_nbytes - free_nbytes))


class Listed(NamedTuple):
    """The objects of a file."""

    facts: list[ObjectFacts]
    # By path, the version of the message that states the type of a dataset.
    type_versions: dict[str, int]


def listed(file: h5py.File) -> Listed | None:
    """Collect the facts about each name in a file; None where only libhdf5 can."""
    metadata = open_metadata(file)
    found = None if metadata is None else metadata.listing()
    if found is None:
        return None
    try:
        return _listed(file, found)
    except HDF5_ERRORS:
        # Something that libhdf5 refuses, and the walk has words for it.
        return None


def _listed(file: h5py.File, found: list[_native.ListedName]) -> Listed:
    paths = {
        at: path for path, _, kind, _, at, *_ in found if kind == "dataset" and at is not None
    }
    collected: list[ObjectFacts] = []
    versions: dict[str, int] = {}
    by_address: Mapping[objects.Address, str] | None = None
    for path, depth, kind, target, _, attributes, stored in found:
        dataset = None if stored is None else _dataset(stored, paths)
        known = kind in ("hard_link", "user_link") or (
            attributes is not None and kind != "dataset"
        )
        if dataset is not None and stored is not None:
            versions[path] = stored["datatype"][0] >> 4
            known = True
        if known:
            count = None if attributes is None else len(attributes)
            facts = ObjectFacts(path, depth, kind, count, target=target, dataset=dataset)
        else:
            if by_address is None:
                # As libhdf5 has addresses.
                number = objects.address_of(h5o.open(file.id, b"/"))[:2]
                by_address = {objects.address_at(number, at): one for at, one in paths.items()}
            facts = collect.object_facts(file, _entry(file, path, depth, kind, target), by_address)
        collected.append(facts)
    return Listed(collected, versions)


def _entry(
    file: h5py.File, path: str, depth: int, kind: objects.Kind, target: str | None
) -> objects.Entry:
    """What the walk meets under a name, opened."""
    if kind in ("soft_link", "external_link"):
        group = h5o.open(file.id, encode_name(path.rpartition("/")[0] or "/"))
        return objects.Entry(path, depth, kind, target=target, group=group)
    return objects.Entry(path, depth, kind, h5o.open(file.id, encode_name(path)))


def _dataset(stored: _native.StoredRecord, paths: Mapping[int, str]) -> DatasetFacts | None:
    """The facts about a dataset; None where libhdf5 has to say them."""
    kind = type_of(stored["datatype"])
    allocated, written = stored["fill_times"]
    # In the file by the numbers that libhdf5 has for them.
    allocation_time = collect.ALLOCATION_TIMES.get(allocated or -1)
    fill_time = collect.FILL_TIMES.get(written)
    fill = None if kind is None else _fill(kind, stored["fill"])
    filters = _filters(tuple((number, tuple(options)) for number, options in stored["filters"]))
    if kind is None or fill is None or filters is None:
        return None
    if allocation_time is None or fill_time is None:
        return None
    shape = stored["shape"]
    logical_nbytes = None
    if not kind.variable_length:
        logical_nbytes = (0 if shape is None else math.prod(shape)) * kind.itemsize
    chunks, stored_nbytes = None, stored["stored_nbytes"]
    if stored["layout"] == "chunked":
        assert shape is not None
        chunks = collect.facts_of_census(stored["census"], shape, stored["chunk"], kind.itemsize)
    names = tuple(None if at is None else short(paths.get(at, "")) for at in stored["scales"])
    text, unavailable = filters
    return DatasetFacts(
        shape=shape,
        maxshape=None if shape is None else stored["max_shape"],
        dimensions=names if any(names) else None,
        is_scale=stored["is_scale"],
        dtype=kind.words,
        byte_order=kind.order,
        itemsize=kind.itemsize,
        variable_length=kind.variable_length,
        layout=stored["layout"],
        sources=None,
        mappings=None,
        chunks=chunks,
        filters=text,
        unavailable_filters=unavailable,
        fill_value=fill,
        fill_time=fill_time,
        allocation_time=allocation_time,
        logical_nbytes=logical_nbytes,
        stored_nbytes=stored_nbytes,
        ratio=collect.ratio_of(logical_nbytes, stored_nbytes),
    )


class StoredType(NamedTuple):
    """What a type's message says."""

    words: str
    order: ByteOrder | None
    itemsize: int
    variable_length: bool
    dtype: np.dtype[Any] | None  # As h5py has it; None of one that it does not know
    plain: np.dtype[Any] | None  # Of numbers; None of others


@lru_cache(maxsize=1000)
def type_of(message: bytes) -> StoredType | None:
    """What libhdf5 makes of a type's message; None where that is nothing."""
    try:
        datatype = h5t.decode(_ENCODED + message)
        words = describe(datatype)
        # Not what only looks like a number, such as an enumeration.
        dtype = dtype_of(datatype)
        plain = dtype if words in _NUMBERS else None
        order, nbytes = byte_order(datatype), datatype.get_size()
        return StoredType(words, order, nbytes, has_variable_length(datatype), dtype, plain)
    except HDF5_ERRORS:
        return None


def dtype_of(datatype: h5t.TypeID) -> np.dtype[Any] | None:
    """What h5py makes of a type; None of one that it does not know."""
    try:
        found: np.dtype[Any] = datatype.dtype
        return found
    except HDF5_ERRORS:
        return None


def _fill(kind: StoredType, value: bytes | None) -> str | None:
    """The fill value in words; None where libhdf5 has to convert it."""
    if not value:
        return "undefined" if value is None else "default"
    if kind.plain is None or len(value) != kind.itemsize:
        return None
    return collect.in_words(np.frombuffer(value, kind.plain)[0], kind.plain)


def _filters(
    stored: tuple[tuple[int, tuple[int, ...]], ...],
) -> tuple[str, tuple[int, ...]] | None:
    """The pipeline in words, and the filters that libhdf5 lacks; None where libhdf5 names it."""
    try:
        text = _pipeline(stored)
    except UsageError:
        return None
    return text, tuple(number for number, _ in stored if not collect.is_available(number))


@lru_cache(maxsize=1000)
def _pipeline(stored: tuple[tuple[int, tuple[int, ...]], ...]) -> str:
    return str(Pipeline(tuple(Filter.from_cd(number, options) for number, options in stored)))
