"""Which variables does netCDF-4 see in a file: their names, dimensions and lengths?

Only a dimension scale stands for a dimension.  netCDF-C writes a scale's number
(``_Netcdf4Dimid``) on ordinary variables, too, and the numbers of all dimensions of a variable
(``_Netcdf4Coordinates``) wherever the attached scales alone might not say them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import h5py
import numpy as np
from h5py import h5a, h5d, h5s

from chunkwise.files.objects import HDF5_ERRORS, Entry
from chunkwise.inspection.dimensions import dimension_names, is_scale

_NO_VARIABLE: Final = b"This is a netCDF dimension but not a netCDF variable"
# Before the name of a variable that is called as a dimension, and is not its coordinate.
_NOT_ITS_COORDINATE: Final = "_nc4_non_coord_"
# Names of dimensions by length, and by whether they are unlimited.
_Named = dict[tuple[int, bool], list[str]]


def is_dimension_only(dataset: h5d.DatasetID) -> bool:
    """Whether a dataset stands for a netCDF dimension that has no variable."""
    try:
        if not h5a.exists(dataset, b"NAME") or not is_scale(dataset):
            return False
        name = h5py.Dataset(dataset).attrs["NAME"]
    except HDF5_ERRORS:
        return False
    name = name if isinstance(name, bytes) else str(name).encode("utf-8", "replace")
    return name.startswith(_NO_VARIABLE)


def shown_name(path: str) -> str:
    """Return the path of a variable as netCDF shows it, without the first slash."""
    group, _, name = path.strip("/").rpartition("/")
    name = name.removeprefix(_NOT_ITS_COORDINATE)
    return f"{group}/{name}" if group else name


class Dimensions:
    """The dimensions of all datasets of a file."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        datasets = [one for one in entries if one.kind == "dataset"]
        self._paths = {one.address: one.path for one in datasets if one.address is not None}
        # The paths of scales, by the group in which they are and their number in netCDF-4.
        self._numbered: dict[tuple[str, int], str] = {}
        # How long an unlimited dimension is: as its longest variable.
        self._lengths: dict[str, int] = {}
        for one in datasets:
            if is_scale(one.identifier):
                self._add_scale(one.path, one.identifier)
        # For each dataset the path of each dimension's scale.
        self._scales = {one.path: self._scales_of(one.path, one.identifier) for one in datasets}
        for one in datasets:
            for scale, length in zip(self._scales[one.path], _shape(one.identifier), strict=True):
                if scale is not None and scale in self._lengths:
                    self._lengths[scale] = max(self._lengths[scale], length)
        self._names: dict[str, list[str]] = {}
        self._name_all(entries)

    def of(self, path: str) -> list[str]:
        """Name the dimensions of a dataset, as xarray and netCDF do."""
        return self._names[path]

    def shape(self, path: str, dataset: h5d.DatasetID) -> tuple[int, ...]:
        """Give a dataset's shape, in which each dimension is as long as its longest variable."""
        return tuple(
            max(self._lengths.get(scale or "", 0), length) if grows else length
            for scale, length, grows in zip(
                self._scales[path], _shape(dataset), _grows(dataset), strict=True
            )
        )

    def _add_scale(self, path: str, dataset: h5d.DatasetID) -> None:
        number = _integers(dataset, "_Netcdf4Dimid")
        if number:
            self._numbered.setdefault((path.rpartition("/")[0], number[0]), path)
        if any(_grows(dataset)[:1]):
            self._lengths[path] = _shape(dataset)[0]

    def _scales_of(self, path: str, dataset: h5d.DatasetID) -> tuple[str | None, ...]:
        rank = len(_shape(dataset))
        # A name in the root group comes without its slash.
        attached = tuple(
            name and f"/{name.lstrip('/')}"
            for name in dimension_names(dataset, self._paths) or (None,) * rank
        )
        if all(attached):
            return attached
        group = path.rpartition("/")[0]
        numbers = _integers(dataset, "_Netcdf4Coordinates")
        if len(numbers) == rank:
            numbered = tuple(self._of_number(group, number) for number in numbers)
            if all(numbered):
                return numbered
        if rank and is_scale(dataset):
            return (path, *attached[1:])
        return attached

    def _of_number(self, group: str, number: int) -> str | None:
        """Find the scale that has a number, in a group or in one above it."""
        while True:
            found = self._numbered.get((group, number))
            if found is not None or not group:
                return found
            group = group.rpartition("/")[0]

    def _name_all(self, entries: Sequence[Entry]) -> None:
        """Name all dimensions: those without a scale as netCDF-C does, the deepest group first."""
        # It takes the first dimension of a group that is as long and has no place in the variable
        # yet, or makes one, whose name has the next number of all dimensions of the file.
        members: dict[str, list[Entry]] = {
            one.path.rstrip("/"): [] for one in entries if one.kind == "group"
        }
        for one in entries:
            if one.kind == "dataset" and not is_dimension_only(one.identifier):
                members[one.path.rpartition("/")[0]].append(one)
        own, following = _own_dimensions(entries)
        for group in _deepest_first(members):
            known = own.setdefault(group, {})
            for one in members[group]:
                shape, grows = _shape(one.identifier), _grows(one.identifier)
                names = [scale and _last(shown_name(scale)) for scale in self._scales[one.path]]
                for place, name in enumerate(names):
                    if name is not None:
                        continue
                    fitting = known.setdefault((shape[place], grows[place]), [])
                    found = next((other for other in fitting if other not in names), None)
                    if found is None:
                        found = f"phony_dim_{following}"
                        fitting.append(found)
                        following += 1
                    names[place] = found
                self._names[one.path] = [name or "" for name in names]


def _own_dimensions(entries: Iterable[Entry]) -> tuple[dict[str, _Named], int]:
    """Give the named dimensions of each group, and the number that the next one has."""
    own: dict[str, _Named] = {}
    following = 0
    for one in entries:
        if one.kind == "dataset" and is_scale(one.identifier) and _shape(one.identifier):
            what = _shape(one.identifier)[0], _grows(one.identifier)[0]
            names = own.setdefault(one.path.rpartition("/")[0], {}).setdefault(what, [])
            names.append(_last(shown_name(one.path)))
            number = _integers(one.identifier, "_Netcdf4Dimid") or [following]
            following = max(following, number[0] + 1)
    return own, following


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _deepest_first(groups: Iterable[str]) -> Iterator[str]:
    """Give groups, which come parents first, each after those in it."""
    pending: list[str] = []
    for group in groups:
        while pending and not group.startswith(f"{pending[-1]}/"):
            yield pending.pop()
        pending.append(group)
    yield from reversed(pending)


def _shape(dataset: h5d.DatasetID) -> tuple[int, ...]:
    """Give a dataset's shape; without dimensions where HDF5 has none, or cannot say it."""
    try:
        return tuple(dataset.shape or ())
    except HDF5_ERRORS:
        return ()


def _grows(dataset: h5d.DatasetID) -> tuple[bool, ...]:
    """Say which dimensions are unlimited."""
    rank = len(_shape(dataset))
    if not rank:
        return ()
    limits = dataset.get_space().get_simple_extent_dims(maxdims=True)
    return tuple(limit == h5s.UNLIMITED for limit in limits)


def _integers(dataset: h5d.DatasetID, name: str) -> list[int]:
    try:
        if not h5a.exists(dataset, name.encode()):
            return []
        value = h5py.Dataset(dataset).attrs[name]
        return [int(number) for number in np.asarray(value).reshape(-1)]
    except HDF5_ERRORS:
        return []
