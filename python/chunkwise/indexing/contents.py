"""Which parts of a file are in its index: groups, datasets, and the places of their chunks?"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import h5py
from h5py import h5a

from chunkwise.errors import CorruptDataError
from chunkwise.files.dimensions import NOT_ITS_COORDINATE, Named, all_named
from chunkwise.files.objects import Entry, walk
from chunkwise.indexing.arrays import UnfitError, Variable
from chunkwise.indexing.attributes import DIMENSIONS, FILL, attributes_of, wider
from chunkwise.indexing.records import LeftOut
from chunkwise.indexing.variables import Limits, variable_of
from chunkwise.names import HDF5_ERRORS, encode_name, hdf5_reason, printable

GROUP: Final = {"zarr_format": 2}
_LINKS: Final = {
    "hard_link": "a second name of",
    "soft_link": "a link to",
    "external_link": "a link to",
    "user_link": "a link of a program's own",
}


@dataclass
class Contents:
    """What an index has."""

    # Text of ``.zgroup``, ``.zarray`` and ``.zattrs``, by key.
    metadata: dict[str, Any] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)  # The arrays
    left_out: list[LeftOut] = field(default_factory=list)  # What it does not have
    # Variables that xarray unpacks to a wider type than of the file.
    wider: list[LeftOut] = field(default_factory=list)


def contents_of(
    file: h5py.File, limits: Limits, check: Callable[[], None], where: str
) -> Contents:
    """Look at all of a file."""
    found = Contents()
    entries = []
    for entry in walk(file):
        check()
        entries.append(entry)
    # What has no path gives none to others.
    names = all_named([one for one in entries if one.linked])
    for entry in entries:
        check()
        _add(found, entry, names, limits)
    if ".zgroup" not in found.metadata:
        raise damaged_root(where, found.left_out[0].reason)
    return found


def damaged_root(where: str, reason: str) -> CorruptDataError:
    """Make the error about a file whose root group cannot be read, and so nothing below it."""
    return CorruptDataError(f"{where}: its root group: {reason}; copy or download the file again")


def _add(found: Contents, entry: Entry, names: dict[str, Named], limits: Limits) -> None:
    try:
        if not entry.linked:
            raise UnfitError("only references lead to it: it has no path")
        if entry.kind == "group":
            _add_group(found, entry)
        elif entry.kind == "dataset":
            # Others only stand for dimensions.
            if entry.path in names:
                _add_dataset(found, entry, names[entry.path], limits)
        elif entry.kind != "named_type":
            target = f" {printable(entry.target)}" if entry.target else ""
            why = entry.reason or f"it is {_LINKS[entry.kind]}{target}"
            raise UnfitError(why)
    except UnfitError as unfit:
        found.left_out.append(LeftOut(entry.path, str(unfit)))
    except HDF5_ERRORS as error:
        found.left_out.append(LeftOut(entry.path, f"HDF5 cannot read it ({hdf5_reason(error)})"))


def _key(path: str) -> str:
    """Return the name under which zarr has an object."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise UnfitError("its name is no UTF-8") from None
    if any(part.startswith(".z") for part in path.split("/")):
        raise UnfitError("zarr keeps names that begin with .z for itself")
    group, _, name = path.strip("/").rpartition("/")
    name = name.removeprefix(NOT_ITS_COORDINATE)
    return f"{group}/{name}" if group else name


def _add_group(found: Contents, entry: Entry) -> None:
    prefix = f"{_key(entry.path)}/".lstrip("/")
    attributes = _attributes(found, entry)
    found.metadata[f"{prefix}.zgroup"] = GROUP
    found.metadata[f"{prefix}.zattrs"] = attributes


def _add_dataset(found: Contents, entry: Entry, named: Named, limits: Limits) -> None:
    key = _key(entry.path)
    if f"{key}/.zarray" in found.metadata or f"{key}/.zgroup" in found.metadata:
        raise UnfitError("zarr would have two objects of its name")
    variable = variable_of(key, entry.identifier, _fill(entry.identifier), named.shape, limits)
    attributes = _attributes(found, entry)
    if variable.array["fill_value"] is not None:
        attributes.pop(FILL, None)
    attributes[DIMENSIONS] = list(named.names)
    found.metadata[f"{key}/.zarray"] = variable.array
    found.metadata[f"{key}/.zattrs"] = attributes
    found.variables.append(variable)
    unpacked = wider(entry.identifier)
    if unpacked is not None:
        found.wider.append(LeftOut(entry.path, unpacked))


def _attributes(found: Contents, entry: Entry) -> dict[str, Any]:
    attributes, lost = attributes_of(entry.identifier)
    found.left_out.extend(LeftOut(f"{entry.path}@{name}", why) for name, why in lost.items())
    return attributes


def _fill(identifier: Any) -> Any:
    """Return the attribute ``_FillValue`` of a dataset; None without."""
    name = encode_name(FILL)
    if not h5a.exists(identifier, name):
        return None
    return h5py.Dataset(identifier).attrs[FILL]


def as_text(metadata: Any) -> str:
    """Write a piece of metadata as zarr does."""
    return json.dumps(metadata, ensure_ascii=True, separators=(",", ":"))
