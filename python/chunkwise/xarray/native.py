"""What is a group of a netCDF-4 file, as the file's own bytes say?

What netCDF-C and h5netcdf do not usually write raises `LeftToH5netcdfError`: h5netcdf reads it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Hashable, Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Final

import h5py
import numpy as np
from h5py import h5z

from chunkwise import _native
from chunkwise.errors import ChunkwiseError
from chunkwise.files.dimensions import (
    HIDDEN,
    NO_VARIABLE,
    NOT_ITS_COORDINATE,
    DimensionFacts,
    Members,
    Visible,
    scales_of,
)
from chunkwise.xarray.facts import Dimension, GroupFacts, VariableFacts, decoded, netcdf_filters

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
        links = file.links(address)
        if links is None:
            raise LeftToH5netcdfError("it has links that are not hard")
        self.record, *records = file.objects([address, *(to for _, to in links)])
        for (name, to), record in zip(links, records, strict=True):
            kind = record["kind"]
            if kind == "group":
                self.groups[name] = to
                continue
            if kind != "dataset" or record["links"] != 1 or name.startswith(NOT_ITS_COORDINATE):
                raise LeftToH5netcdfError(f"{name} is not what netCDF-C usually writes")
            self.datasets[name] = to, record
        self.members = Members(_stored(name, *one) for name, one in self.datasets.items())


def _stored(name: str, address: int, record: _native.ObjectRecord) -> DimensionFacts:
    """What bears on dimensions."""
    attributes, shape = _all_attributes(record), record["shape"]
    is_scale = _fixed(record, "CLASS") == b"DIMENSION_SCALE"
    if shape is None or (is_scale and not shape):
        raise LeftToH5netcdfError(f"{name} has no lengths")
    attached: tuple[int | None, ...] = ()
    if "DIMENSION_LIST" in attributes:
        kind, listed, axes = _attribute(record, "DIMENSION_LIST")
        if kind != "references" or listed != (len(shape),):
            raise LeftToH5netcdfError(f"the scales of {name} are listed in another way")
        attached = tuple(to[-1] if to else None for to in axes)
    return DimensionFacts(
        name,
        address,
        shape,
        tuple([most is None for most in record["max_shape"]]),
        is_scale,
        not (is_scale and _scale_name(record).startswith(NO_VARIABLE)),
        next(iter(_numbers(record, "_Netcdf4Dimid")), None) if is_scale else None,
        _numbers(record, "_Netcdf4Coordinates"),
        attached,
    )


def _facts(file: _native.Metadata, above: Sequence[_Group], path: str) -> GroupFacts:
    group, visible = above[-1], Visible(each.members for each in above)
    variables: dict[str, VariableFacts] = {}
    longest: dict[Hashable, int] = {}
    for one in group.members.datasets:
        if not one.is_variable:
            continue
        names = []
        for scale, length in zip(scales_of(one, visible), one.shape, strict=True):
            if scale is None:
                raise LeftToH5netcdfError(f"a dimension of {one.name} has no scale near it")
            names.append(scale.name)
            if length > longest.get(scale.address, 0):
                longest[scale.address] = length
        where = posixpath.join(path, one.name)
        variables[one.name] = _variable(where, *group.datasets[one.name], tuple(names))
    dimensions: dict[str, Dimension] = {}
    sizes: dict[str, int] = {}
    for each in above:
        dimensions = {
            one.name: _dimension(file, one, each.datasets[one.name][1], longest.get(address, 0))
            for address, one in each.members.scales.items()
        }
        sizes |= {name: one.size for name, one in dimensions.items()}
    attributes = _attributes(group.record, path)
    return GroupFacts(dimensions, sizes, variables, attributes, tuple(group.groups))


def _dimension(
    file: _native.Metadata, one: DimensionFacts, record: _native.ObjectRecord, longest: int
) -> Dimension:
    """A dimension; `longest` is its length in the variables of the group that is read."""
    size, is_unlimited = one.shape[0], one.grows[0]
    if is_unlimited:
        size = max(size, longest)
    # Variables elsewhere.
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


def _numbers(record: _native.ObjectRecord, name: str) -> tuple[int, ...]:
    """The numbers in an attribute; none without it."""
    if name not in (record["attributes"] or ()):
        return ()
    kind, shape, values = _attribute(record, name)
    if kind[0] not in "<>|" or kind[1] not in "iu" or shape is None:
        raise LeftToH5netcdfError(f"attribute {name} is no number")
    return _integers(kind, values)


@lru_cache
def _integers(kind: str, values: bytes) -> tuple[int, ...]:
    """Numbers of dimensions, which many variables have in common."""
    return tuple(np.frombuffer(values, kind).tolist())


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
