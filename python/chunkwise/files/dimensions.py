"""Which dimensions does netCDF-4 see in a file, and which of them has each variable?

Each dimension is a dimension scale of HDF5.  For a variable, netCDF-C looks first at the numbers
of dimensions that it wrote on it (``_Netcdf4Coordinates``), then whether it is itself a scale,
which is its own first dimension, then at the scales that are attached.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import h5py
import numpy as np
from h5py import h5a, h5d, h5r, h5s, h5t

from chunkwise.files.objects import Entry, address_of
from chunkwise.names import HDF5_ERRORS

# Attributes in which HDF5 and netCDF-4 keep what is said here; netCDF-C shows them to nobody.
HIDDEN: Final = frozenset(
    {
        *("CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST"),
        *("_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict", "_NCProperties"),
    }
)
# With this the name of a scale begins that stands for a dimension and holds no variable.
NO_VARIABLE: Final = b"This is a netCDF dimension but not a netCDF variable"
# Before the name of a variable that is called as a dimension, and is not its coordinate.
NOT_ITS_COORDINATE: Final = "_nc4_non_coord_"

# Where H5DSattach_scale keeps the scales of each dimension.
_LIST: Final = b"DIMENSION_LIST"
# What makes a dataset a scale, and the most bytes that it can take.
_CLASS: Final = b"CLASS"
_CLASS_NBYTES: Final = 64
_REFERENCES: Final = h5py.vlen_dtype(h5py.ref_dtype)
# Made once, since making it takes longer than reading the attribute.
_MEMORY_TYPE: Final = h5t.py_create(_REFERENCES)


class DimensionFacts(NamedTuple):
    """What HDF5 has of a dataset that bears on dimensions."""

    name: str  # In its group
    address: Hashable
    shape: tuple[int, ...]
    grows: tuple[bool, ...]  # Which dimensions have no end
    is_scale: bool
    is_variable: bool  # Not so of a scale that only stands for a dimension
    number: int | None  # ``_Netcdf4Dimid``: of a scale, that of its dimension
    numbers: tuple[int, ...]  # ``_Netcdf4Coordinates``: those of its dimensions
    attached: tuple[Hashable, ...]  # Where the last scale of each dimension is; None without

    @property
    def shown(self) -> str:
        """Its name in netCDF, and that of its dimension."""
        return self.name.removeprefix(NOT_ITS_COORDINATE)


class Members:
    """The datasets of a group, in their order."""

    def __init__(self, datasets: Iterable[DimensionFacts]) -> None:
        self.datasets = tuple(datasets)
        scales = [one for one in self.datasets if one.is_scale and one.shape]
        # Where HDF5 does not say where one is, nothing leads to it.
        placed = (one for one in scales if one.address is not None)
        self.scales: dict[Hashable, DimensionFacts] = {one.address: one for one in placed}
        self.numbered = {one.number: one for one in reversed(scales) if one.number is not None}


class Visible:
    """The dimensions that variables of a group may have: its own, and those of groups above."""

    def __init__(self, above: Iterable[Members]) -> None:
        # From the root group on: of two with one number, the nearer counts.
        self.scales: dict[Hashable, DimensionFacts] = {}
        self.numbered: dict[int, DimensionFacts] = {}
        for each in above:
            self.scales |= each.scales
            self.numbered |= each.numbered


def scales_of(
    one: DimensionFacts,
    visible: Visible,
    elsewhere: Mapping[Hashable, DimensionFacts] = MappingProxyType({}),
) -> Sequence[DimensionFacts | None]:
    """Give the scale of each dimension of a dataset; None where there is none."""
    # netCDF shows no scales of other groups as dimensions; those of `elsewhere` count.
    rank = len(one.shape)
    if rank and len(one.numbers) == rank:
        numbered = [visible.numbered.get(number) for number in one.numbers]
        if None not in numbered:
            return numbered
    attached = [
        visible.scales.get(at) or elsewhere.get(at) for at in one.attached or (None,) * rank
    ]
    if one.is_scale and rank:
        attached[0] = one
    return attached


class Named(NamedTuple):
    """What netCDF-4 says of a dataset's dimensions."""

    names: tuple[str, ...]
    shape: tuple[int, ...]  # An unlimited dimension is as long as in its longest variable


def all_named(entries: Sequence[Entry]) -> dict[str, Named]:
    """Name the dimensions of all variables of a file, by paths."""
    groups: dict[str, list[DimensionFacts]] = {
        one.path.rstrip("/"): [] for one in entries if one.kind == "group"
    }
    for entry in entries:
        if entry.kind == "dataset":
            group, _, name = entry.path.rpartition("/")
            groups[group].append(stored_of(name, entry.identifier, entry.address))
    members = {path: Members(datasets) for path, datasets in groups.items()}
    everywhere = {at: one for each in members.values() for at, one in each.scales.items()}
    scales: dict[str, tuple[DimensionFacts, Sequence[DimensionFacts | None]]] = {}
    for path, each in members.items():
        steps = path.split("/")
        above = ("/".join(steps[:depth]) for depth in range(1, len(steps) + 1))
        visible = Visible(members[group] for group in above)
        for one in each.datasets:
            scales[f"{path}/{one.name}"] = one, scales_of(one, visible, everywhere)
    lengths: dict[Hashable, int] = {}
    for one, found in scales.values():
        for scale, length in zip(found, one.shape, strict=True):
            if scale is not None and scale.grows[0]:
                known = lengths.get(scale.address, scale.shape[0])
                lengths[scale.address] = max(known, length)
    names = _all_names(members, scales)
    return {
        path: Named(
            names[path],
            tuple(
                lengths.get(scale.address, length) if scale is not None and grows else length
                for scale, length, grows in zip(found, one.shape, one.grows, strict=True)
            ),
        )
        for path, (one, found) in scales.items()
        if one.is_variable
    }


def _all_names(
    members: Mapping[str, Members],
    scales: Mapping[str, tuple[DimensionFacts, Sequence[DimensionFacts | None]]],
) -> dict[str, tuple[str, ...]]:
    """Name all dimensions: those without a scale as netCDF-C does, the deepest group first."""
    # It takes the first dimension of a group that is as long and has no place in the variable yet,
    # or makes one, whose name has the next number of all dimensions of the file.
    following = 0
    for each in members.values():
        for one in each.scales.values():
            following = max(following, (following if one.number is None else one.number) + 1)
    found: dict[str, tuple[str, ...]] = {}
    for path in _deepest_first(members):
        known: dict[tuple[int, bool], list[str]] = {}
        for one in members[path].scales.values():
            known.setdefault((one.shape[0], one.grows[0]), []).append(one.shown)
        for one in members[path].datasets:
            if not one.is_variable:
                continue
            at = f"{path}/{one.name}"
            names = [None if scale is None else scale.shown for scale in scales[at][1]]
            for place, what in enumerate(zip(one.shape, one.grows, strict=True)):
                if names[place] is None:
                    fitting = known.setdefault(what, [])
                    name = next((other for other in fitting if other not in names), None)
                    if name is None:
                        name = f"phony_dim_{following}"
                        fitting.append(name)
                        following += 1
                    names[place] = name
            found[at] = tuple(name or "" for name in names)
    return found


def _deepest_first(groups: Iterable[str]) -> Iterator[str]:
    """Give groups, which come parents first, each after those in it."""
    pending: list[str] = []
    for group in groups:
        while pending and not group.startswith(f"{pending[-1]}/"):
            yield pending.pop()
        pending.append(group)
    yield from reversed(pending)


# --- what libhdf5 says ----------------------------------------------------------------


def stored_of(name: str, dataset: h5d.DatasetID, address: Hashable) -> DimensionFacts:
    """Say what libhdf5 has of a dataset; what it cannot read is as if it were not there."""
    shape, grows = _extent(dataset)
    scale = is_scale(dataset)
    return DimensionFacts(
        name,
        address,
        shape,
        grows,
        scale,
        not (scale and _text(dataset, "NAME").startswith(NO_VARIABLE)),
        next(iter(_integers(dataset, "_Netcdf4Dimid")), None),
        _integers(dataset, "_Netcdf4Coordinates"),
        tuple(map(_address, attached_scales(dataset))),
    )


def is_scale(dataset: h5d.DatasetID) -> bool:
    """Return whether a dataset is itself a dimension scale."""
    # As H5DSis_scale, which trusts the length of a damaged attribute, and may end the process.
    try:
        if not h5a.exists(dataset, _CLASS):
            return False
        attribute = h5a.open(dataset, _CLASS)
        kind = attribute.get_type()
        if not isinstance(kind, h5t.TypeStringID) or kind.is_variable_str():
            return False
        if kind.get_size() > _CLASS_NBYTES or math.prod(attribute.shape) != 1:
            return False
        text = np.empty(attribute.shape, f"S{kind.get_size()}")
        attribute.read(text)
    except HDF5_ERRORS:
        return False
    return text.tobytes().rstrip(b"\0") == b"DIMENSION_SCALE"


def attached_scales(dataset: h5d.DatasetID) -> Iterator[h5d.DatasetID | None]:
    """Open the last scale of each dimension, as netCDF-C does; nothing without scales."""
    # H5DSiterate_scales ends the process if the attribute has fewer elements than dimensions.
    try:
        if not h5a.exists(dataset, _LIST):
            return
        attribute = h5a.open(dataset, _LIST)
        if attribute.shape != (dataset.rank,) or not _holds_references(attribute.get_type()):
            return
        lists = np.empty(attribute.shape, _REFERENCES)
        attribute.read(lists, _MEMORY_TYPE)
    except HDF5_ERRORS:
        return
    for references in lists:
        yield _scale(dataset, references)


def _address(scale: h5d.DatasetID | None) -> Hashable:
    try:
        return None if scale is None else address_of(scale)
    except HDF5_ERRORS:
        return None


def _holds_references(datatype: h5t.TypeID) -> bool:
    return isinstance(datatype, h5t.TypeVlenID) and bool(
        datatype.get_super().equal(h5t.STD_REF_OBJ)
    )


def _scale(dataset: h5d.DatasetID, references: Any) -> h5d.DatasetID | None:
    try:
        scale = h5r.dereference(references[-1], dataset) if len(references) else None
    except HDF5_ERRORS:
        return None
    return scale if isinstance(scale, h5d.DatasetID) else None


def _extent(dataset: h5d.DatasetID) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """Give shape and unlimited dimensions; none where HDF5 has none, or cannot say it."""
    try:
        space = dataset.get_space()
        if not dataset.shape:
            return (), ()
        limits = space.get_simple_extent_dims(maxdims=True)
    except HDF5_ERRORS:
        return (), ()
    return tuple(dataset.shape), tuple(limit == h5s.UNLIMITED for limit in limits)


def _integers(dataset: h5d.DatasetID, name: str) -> tuple[int, ...]:
    try:
        if not h5a.exists(dataset, name.encode()):
            return ()
        value = h5py.Dataset(dataset).attrs[name]
        return tuple(int(number) for number in np.asarray(value).reshape(-1))
    except HDF5_ERRORS:
        return ()


def _text(dataset: h5d.DatasetID, name: str) -> bytes:
    try:
        if not h5a.exists(dataset, name.encode()):
            return b""
        value = h5py.Dataset(dataset).attrs[name]
    except HDF5_ERRORS:
        return b""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
