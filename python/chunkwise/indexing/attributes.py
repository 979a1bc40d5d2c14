"""How do zarr and xarray get attributes and names of dimensions?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import h5py
import numpy as np
from h5py import h5a, h5d

from chunkwise.files.objects import HDF5_ERRORS, Address, decode_name
from chunkwise.inspecting.dimensions import dimension_names, is_scale

# What HDF5's dimension scales and netCDF-4 keep for themselves.
_OWN: Final = frozenset(
    (
        *("CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST"),
        *("_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict", "_NCProperties"),
    )
)
FILL: Final = "_FillValue"
DIMENSIONS: Final = "_ARRAY_DIMENSIONS"
_NO_VARIABLE: Final = b"This is a netCDF dimension but not a netCDF variable"
# Before the name of a variable that is called as a dimension, and is not its coordinate.
_NOT_ITS_COORDINATE: Final = "_nc4_non_coord_"


def attributes_of(identifier: Any) -> tuple[dict[str, Any], list[str]]:
    """Give an object's attributes as JSON takes them, and the names of those that are left out.

    Left out are references, compounds, complex numbers and what HDF5 cannot read.  What netCDF-4
    and dimension scales keep for themselves is in neither.
    """
    found: dict[str, Any] = {}
    lost: list[str] = []
    attributes = h5py.AttributeManager(_Holder(identifier))
    for name in _names(identifier):
        if name in _OWN:
            continue
        try:
            name.encode("utf-8")
            found[name] = _plain(attributes[name])
        except (*HDF5_ERRORS, UnicodeError):
            lost.append(name)
    return found, lost


class _Holder:
    """What h5py asks for attributes."""

    def __init__(self, identifier: Any) -> None:
        self.id = identifier


def _names(identifier: Any) -> Iterator[str]:
    for number in range(h5a.get_num_attrs(identifier)):
        yield decode_name(h5a.open(identifier, index=number).name)


def _plain(value: Any) -> Any:
    """Return an attribute's value in the types of JSON."""
    if isinstance(value, h5py.Empty):
        return ""
    array = np.asarray(value)
    if array.dtype.names is not None or array.dtype.kind in "cV":
        raise TypeError(f"an attribute of type {array.dtype}")
    values = [_scalar(one) for one in array.reshape(-1).tolist()]
    if array.ndim == 0 or array.size == 1:
        return values[0]
    if array.ndim == 1:
        return values
    return np.array(values, object).reshape(array.shape).tolist()


def _scalar(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, bool | int | float):
        return value
    raise TypeError(f"an attribute of type {type(value).__name__}")


def is_dimension_only(dataset: h5d.DatasetID) -> bool:
    """Tell whether a dataset stands for a netCDF dimension that has no variable."""
    try:
        if not h5a.exists(dataset, b"NAME") or not is_scale(dataset):
            return False
        name = h5py.AttributeManager(_Holder(dataset))["NAME"]
    except HDF5_ERRORS:
        return False
    name = name if isinstance(name, bytes) else str(name).encode("utf-8", "replace")
    return name.startswith(_NO_VARIABLE)


def shown_name(path: str) -> str:
    """Return the path of a variable as netCDF shows it, without the first slash."""
    group, _, name = path.strip("/").rpartition("/")
    name = name.removeprefix(_NOT_ITS_COORDINATE)
    return f"{group}/{name}" if group else name


class DimensionNames:
    """Names the dimensions of all datasets of a file.

    Parameters
    ----------
    paths
        The path of each dataset by its address.
    scales
        The dimension scales of the file by their numbers in netCDF-4 (``_Netcdf4Dimid``).
    lengths
        The length of each dimension scale by its path.
    """

    def __init__(
        self, paths: Mapping[Address, str], scales: Mapping[int, str], lengths: Mapping[str, int]
    ) -> None:
        self._paths, self._scales, self._lengths = paths, scales, lengths
        # For each group, the lengths of its numbered dimensions without a scale.
        self._unnamed: dict[str, list[int]] = {}

    def of(self, path: str, dataset: h5d.DatasetID) -> list[str]:
        """Name the dimensions of a dataset, as xarray and netCDF do."""
        group = path.rpartition("/")[0]
        rank = len(dataset.shape)
        known = dimension_names(dataset, self._paths) or (None,) * rank
        own = shown_name(path).rpartition("/")[2]
        numbers = _numbers(dataset)
        names: list[str] = []
        for d, (length, name) in enumerate(zip(dataset.shape, known, strict=True)):
            if name is None and is_scale(dataset):
                # The scale itself; of several dimensions netCDF-4 keeps the numbers.
                number = numbers[d] if len(numbers) == rank else None
                name = own if number is None else self._scales.get(number, own)
                name = None if name.rpartition("/")[2] in names else name
            if name is None:
                name = self._number(group, length, names)
            names.append(name.rpartition("/")[2])
        return names

    def length_of_first(self, dataset: h5d.DatasetID) -> int | None:
        """Return the length of the scale of a dataset's first dimension; None without."""
        name = (dimension_names(dataset, self._paths) or (None,))[0]
        return None if name is None else self._lengths.get(f"/{name.lstrip('/')}")

    def _number(self, group: str, length: int, taken: list[str]) -> str:
        """Name a dimension without a scale: equal lengths of a group are one, as in netCDF."""
        lengths = self._unnamed.setdefault(group, [])
        for number, other in enumerate(lengths):
            if other == length and f"phony_dim_{number}" not in taken:
                return f"phony_dim_{number}"
        lengths.append(length)
        return f"phony_dim_{len(lengths) - 1}"


def dimension_number(dataset: h5d.DatasetID) -> int | None:
    """Return the number that netCDF-4 has given to a dimension scale; None for none."""
    found = _integers(dataset, b"_Netcdf4Dimid")
    return found[0] if found else None


def _numbers(dataset: h5d.DatasetID) -> list[int]:
    return _integers(dataset, b"_Netcdf4Coordinates")


def _integers(dataset: h5d.DatasetID, name: bytes) -> list[int]:
    try:
        if not h5a.exists(dataset, name):
            return []
        value = h5py.AttributeManager(_Holder(dataset))[name.decode()]
        return [int(number) for number in np.asarray(value).reshape(-1)]
    except HDF5_ERRORS:
        return []
