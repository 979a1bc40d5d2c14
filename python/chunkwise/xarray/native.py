"""What is a group of a netCDF-4 file, as the file's own bytes say?

libhdf5 and h5netcdf are not asked.  What is not netCDF-C's or h5netcdf's usual way to write raises
`LeftToH5netcdfError`, and h5netcdf says what it means.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

import h5py
import numpy as np
from h5py import h5z

from chunkwise import _native
from chunkwise.errors import ChunkwiseError
from chunkwise.xarray.attributes import HIDDEN, decoded
from chunkwise.xarray.facts import Dimension, GroupFacts, VariableFacts, netcdf_filters

_NOT_A_VARIABLE: Final = b"This is a netCDF dimension but not a netCDF variable."
_NO_COORDINATE: Final = "_nc4_non_coord_"
# What h5py calls filters that it does not know, if it does.
_UNKNOWN: Final = h5py.Dataset.compression.fget(SimpleNamespace(_filters={"32015": ()}))


class LeftToH5netcdfError(Exception):
    """What only h5netcdf has an answer for."""


class NativeFile:
    """The groups of a file."""

    def __init__(self, file: _native.Metadata) -> None:
        self.file = file
        self._groups: dict[int, _Group] = {}

    def group(self, path: str) -> GroupFacts:
        """Facts of a group; raises `LeftToH5netcdfError`, also where there is none."""
        try:
            above = [self._group(self.file.root)]
            for name in filter(None, path.split("/")):
                if name not in above[-1].groups:
                    raise LeftToH5netcdfError(f"there is no group {name}")
                above.append(self._group(above[-1].groups[name]))
            return _facts(self.file, above, path)
        except ChunkwiseError as error:
            # Damaged: libhdf5 and h5netcdf say what they have always said.
            raise LeftToH5netcdfError(str(error)) from None

    def address(self, path: str) -> int | None:
        """Where the header of a dataset is whose group was read; None where it was not."""
        group, _, name = path.rpartition("/")
        at = self.file.root
        for each in filter(None, group.split("/")):
            found = self._groups.get(at)
            if found is None or each not in found.groups:
                return None
            at = found.groups[each]
        return self._groups[at].datasets[name][0] if at in self._groups else None

    def _group(self, address: int) -> _Group:
        found = self._groups.get(address)
        if found is None:
            found = self._groups[address] = _Group(self.file, address)
        return found


class _Group:
    """What a group holds, each with its record."""

    def __init__(self, file: _native.Metadata, address: int) -> None:
        self.groups: dict[str, int] = {}
        self.datasets: dict[str, tuple[int, _native.ObjectRecord]] = {}
        self.scales: dict[str, tuple[int, _native.ObjectRecord]] = {}
        links = file.links(address)
        if links is None:
            raise LeftToH5netcdfError("it has links that are not hard")
        self.record, *records = file.objects([address, *(to for _, to in links)])
        for (name, to), record in zip(links, records, strict=True):
            kind = record["kind"]
            if kind == "group":
                self.groups[name] = to
                continue
            if kind != "dataset" or record["links"] != 1 or name.startswith(_NO_COORDINATE):
                raise LeftToH5netcdfError(f"{name} is not what netCDF-C usually writes")
            if _fixed(record, "CLASS") == b"DIMENSION_SCALE":
                self.scales[name] = to, record
            self.datasets[name] = to, record


def _facts(file: _native.Metadata, above: Sequence[_Group], path: str) -> GroupFacts:
    group = above[-1]
    dimensions: dict[str, Dimension] = {}
    sizes: dict[str, int] = {}
    for each in above:
        dimensions = {name: _dimension(file, record) for name, (_, record) in each.scales.items()}
        sizes |= {name: one.size for name, one in dimensions.items()}
    by_address = {to: name for each in above for name, (to, _) in each.scales.items()}
    variables = {}
    for name, (address, record) in group.datasets.items():
        if name in group.scales and _NOT_A_VARIABLE in _scale_name(record):
            continue
        found = _dimensions_of(name, record, above, by_address)
        where = posixpath.join(path, name)
        variables[name] = _variable(where, address, record, found)
    attributes = _attributes(group.record, path)
    return GroupFacts(dimensions, sizes, variables, attributes, tuple(group.groups))


def _dimension(file: _native.Metadata, record: _native.ObjectRecord) -> Dimension:
    shape = record["shape"]
    if not shape:
        raise LeftToH5netcdfError("a dimension has no length")
    size, is_unlimited = shape[0], record["max_shape"] == (None,)
    if is_unlimited and "REFERENCE_LIST" in _all_attributes(record):
        kind, _, places = _attribute(record, "REFERENCE_LIST")
        if kind != "places":
            raise LeftToH5netcdfError("a REFERENCE_LIST is of another type")
        for address, axis in places:
            other = file.shape(address)
            if other is None or axis >= len(other):
                raise LeftToH5netcdfError("a REFERENCE_LIST leads nowhere")
            size = max(size, other[axis])
    return Dimension(size, is_unlimited)


def _dimensions_of(
    name: str,
    record: _native.ObjectRecord,
    above: Sequence[_Group],
    by_address: Mapping[int, str],
) -> tuple[str, ...]:
    """Which dimensions does a variable have?  In the order in which h5netcdf looks for them."""
    attributes, shape = _all_attributes(record), record["shape"]
    if shape is None:
        raise LeftToH5netcdfError(f"{name} has a null dataspace")
    is_scale = name in above[-1].scales
    found: tuple[str, ...]
    if "_Netcdf4Coordinates" in attributes and is_scale:
        found = _by_number(_numbers(record, "_Netcdf4Coordinates"), above)
    elif "DIMENSION_LIST" in attributes:
        kind, listed, axes = _attribute(record, "DIMENSION_LIST")
        if kind != "references" or listed != (len(shape),) or not all(axes):
            raise LeftToH5netcdfError(f"not each dimension of {name} has a scale")
        try:
            found = tuple(by_address[to[-1]] for to in axes)
        except KeyError:
            raise LeftToH5netcdfError(f"a scale of {name} is elsewhere") from None
    elif any(name in each.scales for each in above):
        found = (name,)
    elif shape:
        raise LeftToH5netcdfError(f"the dimensions of {name} have no names")
    else:
        found = ()
    if len(found) != len(shape):
        raise LeftToH5netcdfError(f"{name} has another number of dimensions")
    return found


def _by_number(numbers: Sequence[int], above: Sequence[_Group]) -> tuple[str, ...]:
    names: dict[int, str] = {}
    for name, record in _scales(above):
        (number,) = _numbers(record, "_Netcdf4Dimid")
        if number in names:
            raise LeftToH5netcdfError("two dimensions have one number")
        names[number] = name
    try:
        return tuple(names[number] for number in numbers)
    except KeyError:
        raise LeftToH5netcdfError("no dimension has such a number") from None


def _scales(above: Sequence[_Group]) -> Iterator[tuple[str, _native.ObjectRecord]]:
    for each in above:
        for name, (_, record) in each.scales.items():
            yield name, record


def _variable(
    path: str, address: int, record: _native.ObjectRecord, dimensions: tuple[str, ...]
) -> VariableFacts:
    name = posixpath.basename(path)
    kind, shape = record["type"], record["shape"]
    if kind is None or shape is None:
        raise LeftToH5netcdfError(f"{name} has a type that only h5py knows")
    dtype = _dtype(kind)
    filters = dict(record["filters"])
    if filters.get(h5z.FILTER_DEFLATE) == []:
        raise LeftToH5netcdfError(f"{name} has a deflate filter without a level")
    if not filters.keys().isdisjoint((h5z.FILTER_SZIP, h5z.FILTER_NBIT, h5z.FILTER_SCALEOFFSET)):
        raise LeftToH5netcdfError(f"{name} has a filter whose options h5py changes")
    compression: str | None = None
    options: Any = None
    if h5z.FILTER_DEFLATE in filters:
        compression, options = "gzip", filters[h5z.FILTER_DEFLATE][0]
    elif h5z.FILTER_LZF in filters:
        compression = "lzf"
    elif filters.keys() - {h5z.FILTER_SHUFFLE, h5z.FILTER_FLETCHER32}:
        compression = _UNKNOWN
    return VariableFacts(
        dataset=name,
        dimensions=dimensions,
        stored_shape=shape,
        dtype=dtype,
        # xarray leaves ASCII text of variable length, whose values are bytes, an object.
        encoded_dtype={str: str, None: dtype}.get(h5py.check_vlen_dtype(dtype)),
        chunks=record["chunk"] if shape else None,
        fletcher32=h5z.FILTER_FLETCHER32 in filters,
        shuffle=h5z.FILTER_SHUFFLE in filters,
        compression=compression,
        compression_opts=options,
        filters=netcdf_filters({str(number): tuple(given) for number, given in filters.items()}),
        attributes=_attributes(record, path),
        address=address,
    )


def _dtype(kind: str) -> np.dtype[Any]:
    """The dtype as h5py has it."""
    if kind.startswith("O:"):
        found = h5py.string_dtype(kind[2:])
    elif kind[0] in "SU":
        found = h5py.string_dtype("ascii" if kind[0] == "S" else "utf-8", int(kind[1:]))
    else:
        found = np.dtype(kind)
        # h5py's dtypes name their order of bytes, also if it is this machine's.
        found = found.newbyteorder("<") if kind.startswith("<") else found
    return found  # type: ignore[no-any-return]


def _all_attributes(
    record: _native.ObjectRecord,
) -> dict[str, tuple[str, tuple[int, ...] | None, Any] | None]:
    found = record["attributes"]
    if found is None:
        raise LeftToH5netcdfError("an attribute's name is not UTF-8")
    return found


def _attribute(record: _native.ObjectRecord, name: str) -> tuple[str, tuple[int, ...] | None, Any]:
    found = _all_attributes(record).get(name)
    if found is None:
        raise LeftToH5netcdfError(f"attribute {name} is missing, or of a type that h5py knows")
    return found


def _fixed(record: _native.ObjectRecord, name: str) -> bytes | None:
    """Text of a fixed length; None where there is none."""
    found = _all_attributes(record).get(name)
    if found is None or found[0][0] not in "SU" or found[1] not in ((), (1,)):
        return None
    return bytes(found[2][0])


def _scale_name(record: _native.ObjectRecord) -> bytes:
    """What a dimension scale is called; nothing if it has no name."""
    if "NAME" not in _all_attributes(record):
        return b""
    found = _fixed(record, "NAME")
    if found is None or _attribute(record, "NAME")[1] != ():
        raise LeftToH5netcdfError("the name of a scale is not text of a fixed length")
    return found


def _numbers(record: _native.ObjectRecord, name: str) -> list[int]:
    kind, shape, values = _attribute(record, name)
    if kind[0] not in "<>|" or kind[1] not in "iu" or shape is None:
        raise LeftToH5netcdfError(f"attribute {name} is no number")
    return [int(each) for each in np.frombuffer(values, kind)]


def _attributes(record: _native.ObjectRecord, where: str) -> dict[str, Any]:
    """Attributes as h5netcdf has them, text decoded."""
    found = {}
    for name, stored in _all_attributes(record).items():
        if name in HIDDEN:
            continue
        if stored is None:
            raise LeftToH5netcdfError(f"attribute {name} has a type that only h5py knows")
        kind, shape, values = stored
        if kind == "reference" and shape == ():
            continue  # netCDF-C leaves it out, too.
        found[name] = decoded(_value(kind, shape, values), name, where)
    return found


def _value(kind: str, shape: tuple[int, ...] | None, values: Any) -> Any:
    """A value as `h5netcdf.attrs` makes it of what h5py reads."""
    if kind in ("reference", "references", "places"):
        raise LeftToH5netcdfError("an attribute holds references")
    if shape is None:
        return b"" if kind in ("S1", "U1") else np.array([], _dtype(kind))
    if kind[0] not in "OSU":
        numbers = np.frombuffer(values, kind).reshape(shape).copy()
        return numbers[()] if not shape else _alone(numbers)
    if kind[0] == "O":
        return values[0] if not shape else _alone(np.array(values, object).reshape(shape).tolist())
    if kind[1:] == "1":
        texts = np.array(values, kind.replace("U", "S")).reshape(shape)
        return texts[()] if not shape else _alone(texts.tolist())
    encoding = "ascii" if kind[0] == "S" else "utf-8"
    some = [text.decode(encoding, "surrogateescape") for text in values]
    return some[0] if not shape else _alone(some)


def _alone(values: Any) -> Any:
    return values[0] if len(values) == 1 else values
