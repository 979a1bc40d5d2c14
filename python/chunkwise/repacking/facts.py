"""What must a repack know about the source file?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

import h5py
from h5py import h5d

from chunkwise.errors import UsageError
from chunkwise.files.causes import cause_of, unreadable
from chunkwise.files.filters import missing_filter
from chunkwise.files.leading import Bounds, name_of_source, places
from chunkwise.files.mended import has_lost_root
from chunkwise.files.objects import Address, decode_attributes, header_address, walk
from chunkwise.files.opening import is_plain
from chunkwise.files.stored import stored_nbytes
from chunkwise.grammar import Pipeline, Shape
from chunkwise.inspection.collect import extent_of, layout_of
from chunkwise.inspection.dimensions import coordinates
from chunkwise.inspection.facts import Layout
from chunkwise.inspection.sources import prefix_of
from chunkwise.names import HDF5_ERRORS, encode_name, hdf5_reason, printable
from chunkwise.proof.records import GOES_ON


@dataclass(frozen=True)
class SourceDataset:
    """One dataset of the source."""

    path: str  # Its first path; what it is called if no link leads to it
    names: tuple[str, ...]  # All its paths: `path`, and those of further hard links to it
    address: Address  # What distinguishes it from all other objects (`objects.address_of`)
    identifier: Any  # h5py's low-level handle
    # Lengths; None for a null dataspace, and in `maxshape` for an unlimited dimension.
    shape: tuple[int, ...] | None
    maxshape: tuple[int | None, ...]
    layout: Layout  # Where its data are
    chunk: tuple[int, ...] | None  # Chunk shape; None unless chunked
    pipeline: Pipeline  # Its filters
    itemsize: int  # Bytes of an element in the file
    nbytes: int  # Bytes of all elements; those of variable length count as their references
    stored_nbytes: int  # Bytes in the file
    # Whether stored bytes mean the same everywhere: no variable length, no references.
    plain: bool
    linked: bool = True  # Whether it has a path
    # What makes it say where other data lie, in words: ``is a dimension scale``; None for data.
    coordinates: str | None = None

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape or ())


@dataclass(frozen=True)
class Contents:
    """What a file holds."""

    sources: tuple[SourceDataset, ...]  # Its datasets, in the order of the walk
    groups: tuple[str, ...]  # The paths of its groups
    # Objects that no link leads to: their addresses, and what they are called.
    unlinked: tuple[tuple[int, bytes], ...] = ()
    # Whether an object could not be opened, or a group not be listed.
    is_whole: bool = True

    @property
    def paths(self) -> dict[str, Sequence[str]]:
        """Each dataset's first path, with all its paths."""
        return {source.path: source.names for source in self.sources}


def look(
    file: h5py.File, *, salvage: bool = False, avoid: Collection[int] = frozenset()
) -> Contents:
    """Learn what is in an open file; with `salvage`, what of it can be read."""
    where = printable(str(file.filename))
    found: list[tuple[str, Address, Any]] = []
    names: dict[str, list[str]] = {}
    groups: list[str] = []
    is_whole = not (salvage and has_lost_root(file.filename))
    unlinked: dict[str, int] = {}
    for entry in walk(file, avoid=avoid):
        if not entry.linked and entry.address is not None:
            unlinked[entry.path] = header_address(entry.address)
        if salvage and entry.kind in ("unreadable", "user_link"):
            # Who copies it meets it, too.
            is_whole = False
            continue
        if entry.kind == "unreadable":
            cause = entry.cause or cause_of(entry.reason or "", checked=False)
            raise cause.kind(
                f"{where}: '{printable(entry.path)}' cannot be kept: {cause}; what is readable is "
                "saved by chunkwise verify --salvage"
            )
        if entry.kind == "user_link":
            raise UsageError(
                f"{where}: '{printable(entry.path)}' is a link of a kind that its program "
                "defined, and cannot be kept; remove it from a copy of the file"
            )
        if entry.identifier is not None and not salvage:
            try:
                decode_attributes(entry.identifier)
            except HDF5_ERRORS as error:
                place = f"{where}: {printable(entry.path)}: an attribute of it"
                raise unreadable(place, hdf5_reason(error)) from None
        if entry.kind == "group":
            groups.append(entry.path)
        elif entry.kind == "dataset" and entry.address is not None:
            found.append((entry.path, entry.address, entry.identifier))
            names[entry.path] = [entry.path]
        elif entry.kind == "hard_link" and entry.target in names:
            names[entry.target].append(entry.path)
    sources = []
    for path, address, identifier in found:
        try:
            sources.append(source_of(path, tuple(names[path]), address, identifier))
        except HDF5_ERRORS as error:
            if salvage:
                continue
            wrong = unreadable(f"{where}: '{printable(path)}'", hdf5_reason(error))
            raise type(wrong)(f"{wrong}; {GOES_ON}") from None
    # Which datasets these are matters to rules alone.
    said = {} if salvage else coordinates({path: identifier for path, _, identifier in found})
    kept = (
        replace(source, coordinates=said.get(source.path), linked=source.path not in unlinked)
        for source in sources
    )
    names_at = ((address, encode_name(path)) for path, address in unlinked.items())
    return Contents(tuple(kept), tuple(groups), tuple(names_at), is_whole)


def source_of(
    path: str, names: tuple[str, ...], address: Address, identifier: Any
) -> SourceDataset:
    """Ask HDF5 about one open dataset."""
    space, datatype = identifier.get_space(), identifier.get_type()
    dcpl = identifier.get_create_plist()
    shape, maxshape = extent_of(space)
    itemsize = datatype.get_size()
    layout, _ = layout_of(dcpl)
    return SourceDataset(
        path=path,
        names=names,
        address=address,
        identifier=identifier,
        shape=shape,
        maxshape=maxshape or (),
        layout=layout,
        chunk=tuple(dcpl.get_chunk()) if layout == "chunked" else None,
        pipeline=Pipeline.from_dcpl(dcpl),
        itemsize=itemsize,
        nbytes=0 if shape is None else math.prod(shape) * itemsize,
        stored_nbytes=stored_nbytes(identifier),
        plain=is_plain(datatype),
    )


# The first files of thousands mostly say enough.
_LOOKED_AT: Final = 64
_VARIABLE: Final = "HDF5_VDS_PREFIX"


def missing_behind(identifier: Any) -> tuple[str, str] | None:
    """Name a file behind a virtual dataset, and the filter that it needs and that is missing."""
    for place, found, _ in _behind(identifier):
        missing = missing_filter(found.id.get_create_plist())
        if missing is not None:
            return place, missing
    return None


def stored_behind(identifier: Any) -> tuple[Shape, Pipeline] | None:
    """Return how most of the datasets behind a virtual one are stored."""
    counts: Counter[tuple[Shape, Pipeline]] = Counter()
    for _, found, extents in _behind(identifier):
        dcpl = found.id.get_create_plist()
        if dcpl.get_layout() != h5d.CHUNKED or found.id.get_type() != identifier.get_type():
            continue
        chunk = _spread(dcpl.get_chunk(), extents)
        if chunk is not None and missing_filter(dcpl) is None:
            counts[chunk, Pipeline.from_dcpl(dcpl)] += 1
    return counts.most_common(1)[0][0] if counts else None


def _behind(identifier: Any) -> Iterator[tuple[str, h5py.Dataset, Shape]]:
    """Give some of the datasets behind a virtual one, open."""
    dataset = h5py.Dataset(identifier)
    try:
        pairs = {(one.file_name, one.dset_name): one for one in dataset.virtual_sources()}
    except HDF5_ERRORS:
        return
    own = Path(str(dataset.file.filename)).absolute()
    bounds = Bounds(str(own), str(own))
    stated = dataset.id.get_access_plist().get_virtual_prefix()
    prefix = prefix_of(_VARIABLE, stated, own)
    for (name, path), one in islice(pairs.items(), _LOOKED_AT):
        file_name, path = name_of_source(name, 0) or name, name_of_source(path, 0) or path
        candidates = places(file_name, own, _VARIABLE, prefix) if name != "." else [own]
        for candidate in candidates:
            try:
                if name != ".":
                    # Opening a pipe might never end.
                    bounds.check(str(candidate), f"a source of {dataset.name}")
                opened = nullcontext(dataset.file) if name == "." else h5py.File(candidate)
                with opened as file:
                    found = file[path]
                    if isinstance(found, h5py.Dataset):
                        yield str(candidate), found, _extents(one.vspace)
            except HDF5_ERRORS:
                continue
            break


def _extents(space: Any) -> Shape:
    """Give the lengths of the box around a selection."""
    try:
        first, last = space.get_select_bounds()
    except HDF5_ERRORS:
        return (0,) * int(space.get_simple_extent_ndims())
    return tuple(end - begin + 1 for begin, end in zip(first, last, strict=True))


def _spread(chunk: Shape, extents: Shape) -> Shape | None:
    """Give a chunk the dimensions along which datasets of fewer dimensions are stacked."""
    more, left = len(extents) - len(chunk), list(chunk)
    if more < 0:
        return None
    made = []
    for extent in extents:
        if more and extent == 1:
            made.append(1)
            more -= 1
        elif left:
            made.append(left.pop(0))
    return tuple(made) if len(made) == len(extents) else None
