"""What does the file format itself say: superblock, space management, flags?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Final

import h5py
from h5py import h5f, h5o, h5t

from chunkwise import _native, system
from chunkwise.files.native import open_metadata
from chunkwise.files.objects import address_of, header_address
from chunkwise.files.superblock import read_superblock
from chunkwise.inspection.facts import FormatFacts, ObjectFacts
from chunkwise.names import HDF5_ERRORS, encode_name

_STRATEGIES: Final = {
    h5f.FSPACE_STRATEGY_FSM_AGGR: "fsm_aggr",
    h5f.FSPACE_STRATEGY_PAGE: "page",
    h5f.FSPACE_STRATEGY_AGGR: "aggr",
    h5f.FSPACE_STRATEGY_NONE: "none",
}

_SERIES: Final = ("1.6", "1.8", "1.10", "1.12", "2.0")
# The HDF5 series that introduced each version (HDF5 file format specification, release notes).
_OF_SUPERBLOCK: Final = {0: "1.6", 1: "1.6", 2: "1.8", 3: "1.10"}
_OF_DATATYPE: Final = {3: "1.8", 4: "1.12", 5: "2.0"}
_OF_LAYOUT: Final = {4: "1.10", 5: "2.0"}
# Chunks from this size on need the data layout message of 2.0.
_LARGE_CHUNK_NBYTES: Final = 1 << 32
# An encoded datatype: two bytes, then the message, with its version in the upper half.
_DATATYPE_VERSION_AT: Final = 2


def format_facts(
    file: h5py.File,
    objects: tuple[ObjectFacts, ...],
    path: str | os.PathLike[str] | None = None,
    type_versions: Mapping[str, int] | None = None,
) -> FormatFacts:
    """Collect the settings of an open file; `type_versions` has those that are known, by path."""
    # ``oldest_reader`` is a lower bound: releases before it certainly cannot open all of
    # `objects`.  It is drawn from the superblock's version (2 needs 1.8; 3 needs 1.10), external
    # and user-defined links (1.8), chunk indexes other than the v1 B-tree and virtual datasets
    # (1.10), chunks of 4 GiB and more (2.0), the versions of datasets' layout messages (4 needs
    # 1.10, 5 2.0, which writes them with ``libver="latest"``), and those of the datatypes of
    # datasets and named types (3 needs 1.8, 4 1.12, 5 2.0, which is also what H5T_COMPLEX needs).
    # Not looked at: attributes, the versions of other header messages, and filters, without which
    # an object opens and its data cannot be read. Paged file space does not count, since older
    # releases may ignore the message that declares it (its flags do not say ``fail if unknown``).
    fcpl = file.id.get_create_plist()
    strategy, persistent, _threshold = fcpl.get_file_space_strategy()
    superblock = read_superblock(file.filename if path is None else path)
    version = fcpl.get_version()[0]
    open_here = bool(file.id.get_intent() & h5f.ACC_RDWR)
    # The mark of a file that this process has open for writing means nothing.
    flags = superblock.flags if superblock and not open_here else ()
    series = (_OF_SUPERBLOCK[version], *_needed(file, version, objects, type_versions or {}))
    return FormatFacts(
        superblock_version=version,
        oldest_reader=max(series, key=_SERIES.index),
        userblock_nbytes=fcpl.get_userblock(),
        space_strategy=_STRATEGIES.get(strategy, f"unknown ({strategy})"),
        space_persistent=bool(persistent),
        page_nbytes=fcpl.get_file_space_page_size(),
        free_nbytes=free_nbytes(file),
        flags=flags,
        being_written=system.is_being_written(path) if flags and path is not None else None,
    )


def free_nbytes(file: h5py.File) -> int:
    """Count the free space that a file keeps track of (H5Fget_freespace)."""
    try:
        return int(file.id.get_freespace())
    except HDF5_ERRORS:
        return 0


def _needed(
    file: h5py.File,
    version: int,
    objects: tuple[ObjectFacts, ...],
    type_versions: Mapping[str, int],
) -> Iterator[str]:
    """Give the series that each object needs, as far as its facts show."""
    metadata = open_metadata(file) if version >= 3 else None
    for entry in objects:
        dataset = entry.dataset
        if entry.kind in ("external_link", "user_link"):
            yield "1.8"
        if dataset is not None:
            if dataset.layout == "virtual":
                yield "1.10"
            if dataset.chunks and dataset.chunks.index not in (None, "v1 B-tree"):
                yield "1.10"
            if dataset.chunks and dataset.chunks.nbytes >= _LARGE_CHUNK_NBYTES:
                yield "2.0"
            if version >= 3:
                yield _OF_LAYOUT.get(_layout_version(metadata, file, entry.path), "1.6")
        # A program that wants new datatypes by version bounds also gets superblock 3; in an
        # older one only a type that older versions cannot hold brings its version along.
        # Elsewhere the objects need not be opened again.
        if entry.kind == "named_type" or (
            dataset is not None and (version >= 3 or "complex" in dataset.dtype)
        ):
            known = type_versions.get(entry.path)
            stated = _datatype_version(file, entry.path) if known is None else known
            yield _OF_DATATYPE.get(stated, "1.6")


def _datatype_version(file: h5py.File, path: str) -> int:
    """Give the version of a dataset's or named type's datatype message; 0 if unknown."""
    try:
        found = h5o.open(file.id, encode_name(path))
        datatype = found if isinstance(found, h5t.TypeID) else found.get_type()
        return int(datatype.encode()[_DATATYPE_VERSION_AT] >> 4)
    except HDF5_ERRORS:
        return 0


def _layout_version(metadata: _native.Metadata | None, file: h5py.File, path: str) -> int:
    """Give the version of a dataset's layout message, which no function of HDF5 says; or 0."""
    if metadata is None:
        return 0
    try:
        address = header_address(address_of(h5o.open(file.id, encode_name(path))))
    except HDF5_ERRORS:
        return 0
    return metadata.layout_version(address) or 0
