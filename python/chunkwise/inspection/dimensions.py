"""Which dimension scales name the dimensions of a dataset, and which datasets are coordinates?

A dataset holds references to its scales, which are their addresses in the file.  To
find the path of an address, HDF5 searches the file from its root, 40 ms a time among
6,000 objects.  So the paths come from the walk, which meets each object anyway.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import h5py
import numpy as np
from h5py import h5a, h5d, h5i, h5r, h5t

from chunkwise.files.objects import HDF5_ERRORS, Address, address_of, decode_name
from chunkwise.names import printable

# Where H5DSattach_scale keeps the scales of each dimension.
_LIST: Final = b"DIMENSION_LIST"
# What makes a dataset a scale, and the most bytes that it can take.
_CLASS: Final = b"CLASS"
_CLASS_NBYTES: Final = 64
# Where the CF conventions name the coordinates of a variable, and the bounds of its cells.
_CF: Final = (b"coordinates", b"bounds")
_REFERENCES: Final = h5py.vlen_dtype(h5py.ref_dtype)
# Made once, since making it takes longer than reading the attribute.
_MEMORY_TYPE: Final = h5t.py_create(_REFERENCES)


def dimension_names(
    dataset: h5d.DatasetID, paths: Mapping[Address, str] | None = None
) -> tuple[str | None, ...] | None:
    """Name the dimension scales attached to a dataset."""
    names = tuple(_name(scale, paths) for scale in _scales(dataset))
    return names if any(names) else None


def is_scale(dataset: h5d.DatasetID) -> bool:
    """Tell whether a dataset is itself a dimension scale.

    As H5DSis_scale, which trusts the length of a damaged attribute, and may end the process.
    """
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


def coordinates(datasets: Mapping[str, h5d.DatasetID]) -> dict[str, str]:
    """Find the datasets of a file that only say where others lie."""
    found = {path: "is a dimension scale" for path, one in datasets.items() if is_scale(one)}
    for path, one in datasets.items():
        for name in _named_by(one):
            other = _resolved(name, path, datasets)
            if other is not None and other != path:
                found.setdefault(other, f"holds coordinates of '{printable(path)}'")
    return found


def _named_by(dataset: h5d.DatasetID) -> Iterator[str]:
    """Give the names in the attributes by which CF tells a variable's coordinates."""
    for attribute in _CF:
        try:
            if h5a.exists(dataset, attribute):
                said = h5py.Dataset(dataset).attrs[attribute.decode()]
                said = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
                yield from said.split() if isinstance(said, str) else ()
        except HDF5_ERRORS:
            continue


def _resolved(name: str, path: str, datasets: Mapping[str, h5d.DatasetID]) -> str | None:
    """Find the dataset that a name means near another one: in its group, or in one above."""
    if name.startswith("/"):
        return name if name in datasets else None
    group = path.rpartition("/")[0]
    while f"{group}/{name}" not in datasets:
        if not group:
            return None
        group = group.rpartition("/")[0]
    return f"{group}/{name}"


def _scales(dataset: h5d.DatasetID) -> Iterator[h5d.DatasetID | None]:
    """Open the last scale of each dimension, as netCDF-C does; nothing without scales.

    H5DSiterate_scales would do, but it trusts the attribute to have an element for each
    dimension, and ends the process where it has fewer.
    """
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


def _name(scale: h5d.DatasetID | None, paths: Mapping[Address, str] | None) -> str | None:
    if scale is None:
        return None
    try:
        if paths is None:
            path = decode_name(h5i.get_name(scale) or b"")
        else:
            path = paths.get(address_of(scale), "")
    except HDF5_ERRORS:
        return None
    return short(path)


def short(path: str) -> str | None:
    """Name a scale by its path; those in the root group by their names."""
    return (path[1:] if path.rfind("/") == 0 else path) or None
