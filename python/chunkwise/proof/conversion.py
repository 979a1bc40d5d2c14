"""Is the netCDF-4 file that netCDF-C made of a netCDF-3 file what that file is?"""

from __future__ import annotations

import mmap
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5a, h5d, h5o, h5t

from chunkwise.errors import ChunkwiseError, UsageError
from chunkwise.files.classic import Attribute, Header, UnknownHeaderError, Variable, read_header
from chunkwise.files.dimensions import (
    HIDDEN,
    NOT_ITS_COORDINATE,
    DimensionFacts,
    Members,
    Visible,
    scales_of,
    stored_of,
)
from chunkwise.files.netcdf3 import as_netcdf4
from chunkwise.files.objects import address_of, attribute_names
from chunkwise.files.opening import open_h5
from chunkwise.files.stored import read_attribute, read_box
from chunkwise.grammar.boxes import boxes
from chunkwise.names import HDF5_ERRORS, decode_name, hdf5_reason, printable
from chunkwise.proof.records import Names

# Bytes of a variable that are compared at a time.
_PART_NBYTES: Final = 32 << 20


@contextmanager
def as_proved_netcdf4(path: Path, folder: Path | None, *, proves: bool = True) -> Iterator[Path]:
    """Give a file as `as_netcdf4` does; a copy is compared with its source before."""
    with as_netcdf4(path, folder) as readable:
        if proves and readable != path:
            prove_conversion(path, readable)
        yield readable


def prove_conversion(source: Path, copy: Path) -> None:
    """Compare all that a netCDF-3 file holds with a netCDF-4 copy of it."""
    try:
        header = read_header(source)
    except UnknownHeaderError:
        raise UsageError(
            f"{printable(str(source))}: its header is not one of netCDF-3 as it is specified, so "
            "a copy cannot be compared with it; --verify none copies it without a proof"
        ) from None
    names = Names(str(source), f"{source} as netCDF-4")
    with open_h5(copy) as file:
        try:
            _Comparison(source, header, file, names).run()
        except ChunkwiseError:
            raise
        except HDF5_ERRORS as error:
            raise names.difference("/", f"cannot be read ({hdf5_reason(error)})") from error


class _Comparison:
    """Compares the header of a netCDF-3 file, and then its values, with an open copy."""

    def __init__(self, source: Path, header: Header, file: h5py.File, names: Names) -> None:
        self._source, self._header, self._names = source, header, names
        # Not the file's own identifier: libhdf5 1.10 knows no attributes of one.
        self._root = h5o.open(file.id, b"/")

    def run(self) -> None:
        self._members()
        self._stored = {name: self._looked_at(name) for name in self._root}
        self._visible = Visible([Members(self._stored.values())])
        self._attributes("/", self._root, self._header.attributes)
        for number in range(len(self._header.dimensions)):
            self._dimension(number)
        with self._source.open("rb") as stream:
            content = np.frombuffer(
                mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ), np.uint8
            )
        for one in self._header.variables:
            self._variable(one, content)

    # --- dimensions -------------------------------------------------------------------

    def _members(self) -> None:
        """Compare which names there are, and the order of the variables."""
        variables = [self._stored_name(one) for one in self._header.variables]
        dimensions = {_normal(name) for name, _ in self._header.dimensions}
        there = list(self._root)
        for name in {*variables, *dimensions} ^ {*there}:
            how = "is missing" if name not in there else "is not in the source"
            raise self._names.difference(decode_name(name), how)
        if [name for name in there if name in {*variables}] != variables:
            raise self._names.difference("/", "has its variables in another order")

    def _stored_name(self, one: Variable) -> bytes:
        """Return the name of the dataset that has a variable's values."""
        dimensions = [name for name, _ in self._header.dimensions]
        is_apart = one.name in dimensions and one.name not in [
            dimensions[number] for number in one.dimensions[:1]
        ]
        return NOT_ITS_COORDINATE.encode() * is_apart + _normal(one.name)

    def _looked_at(self, name: bytes) -> DimensionFacts:
        """Look at a dataset, which stands for a variable or a dimension."""
        found = h5o.open(self._root, name)
        if not isinstance(found, h5d.DatasetID):
            raise self._names.difference("/" + decode_name(name), "is no dataset")
        return stored_of(decode_name(name), found, address_of(found))

    def _dimension(self, number: int) -> None:
        raw, length = self._header.dimensions[number]
        path, scale = "/" + decode_name(raw), self._stored[_normal(raw)]
        if not scale.is_scale or not scale.shape:
            raise self._names.difference(path, "is no dimension")
        grows = number == self._header.unlimited
        if scale.grows[0] != grows:
            raise self._names.difference(path, "is unlimited in only one of both files")
        is_variable = any(self._stored_name(one) == _normal(raw) for one in self._header.variables)
        # How long an unlimited one is, is said by its variables.
        if scale.shape[0] != length and (is_variable or not grows):
            raise self._names.difference(path, "has another length than in the source")
        if scale.number not in (None, number):
            raise self._names.difference(path, "is in another place among the dimensions")
        if scale.is_variable != is_variable:
            raise self._names.difference(path, "is a variable in only one of both files")

    # --- attributes -------------------------------------------------------------------

    def _attributes(self, path: str, identifier: Any, wanted: tuple[Attribute, ...]) -> None:
        expected = [_normal(one.name) for one in wanted]
        hidden = {name.encode() for name in HIDDEN} - {*expected}
        there = [name for name in attribute_names(identifier, created=True) if name not in hidden]
        if there != expected:
            odd = {*there} ^ {*expected}
            which = f" ({decode_name(min(odd))})" if odd else ""
            raise self._names.difference(path, f"has other attributes{which}, or another order")
        with self._source.open("rb") as stream:
            for one, name in zip(wanted, expected, strict=True):
                stream.seek(one.address)
                content = stream.read(one.nbytes).ljust(one.nbytes, b"\0")
                if not _is_attribute(h5a.open(identifier, name), one, content):
                    where = f"{path}@{decode_name(name)}"
                    raise self._names.difference(where, "differs from the source")

    # --- variables --------------------------------------------------------------------

    def _variable(self, one: Variable, content: npt.NDArray[np.uint8]) -> None:
        path = "/" + decode_name(one.name)
        dataset = h5o.open(self._root, self._stored_name(one))
        datatype = h5t.TypeID.copy(dataset.get_type())
        if not _is_type(datatype, one.dtype):
            raise self._names.difference(path, "has another type than in the source")
        if tuple(dataset.shape) != one.shape:
            raise self._names.difference(path, "has another shape than in the source")
        if not self._has_dimensions(one):
            raise self._names.difference(path, "has other dimensions than in the source")
        self._attributes(path, dataset, one.attributes)
        values = _values(one, self._header.record_nbytes, content)
        for box in boxes(values.shape, (1,) * values.ndim, _PART_NBYTES // values.itemsize):
            expected = values[box.slices].astype(values.dtype.newbyteorder("="))
            found = read_box(dataset, datatype, box)
            if not np.array_equal(expected.reshape(-1).view(np.uint8), found):
                raise self._names.difference(f"{path} {box}", "differs from the source")

    def _has_dimensions(self, one: Variable) -> bool:
        """Whether a copy has the dimensions of a variable, in their order."""
        copied = self._stored[self._stored_name(one)]
        wanted = [self._stored[_normal(self._header.dimensions[at][0])] for at in one.dimensions]
        # Programs that know HDF5 alone look at the attached scales; a scale has none.
        attached = () if copied.is_scale else tuple(scale.address for scale in wanted)
        named = scales_of(copied, self._visible) == wanted
        return named and copied.attached == attached


def _values(
    one: Variable, record_nbytes: int, content: npt.NDArray[np.uint8]
) -> npt.NDArray[np.unsignedinteger[Any]]:
    """View the values of a variable in its file, as integers of their size."""
    # Of a file that was cut, only whole rows: netCDF-C reads zeros beyond its end.
    size = one.dtype.itemsize
    inner = one.shape[1:]
    row_nbytes = size
    for length in inner:
        row_nbytes *= length
    step = record_nbytes if one.grows else row_nbytes
    rows = one.shape[0] if one.shape else 1
    there = content.size - one.address - row_nbytes
    rows = 0 if there < 0 else min(rows, there // step + 1 if step else rows)
    strides = [size] * len(one.shape)
    for axis in range(len(one.shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * one.shape[axis + 1]
    if one.shape:
        strides[0] = step
    shape = (rows, *inner) if one.shape else ()
    dtype = np.dtype(f">u{size}")
    if not rows:
        return np.empty((0,), dtype)
    return np.ndarray(shape, dtype, content.data, one.address, strides)


def _normal(name: bytes) -> bytes:
    """Return a name as netCDF-C writes it."""
    return unicodedata.normalize("NFC", decode_name(name)).encode("utf-8", "surrogateescape")


def _is_type(datatype: Any, dtype: np.dtype[np.generic]) -> bool:
    """Whether a type of HDF5's is that of netCDF-3; characters are strings of any length."""
    if dtype.kind == "S":
        return isinstance(datatype, h5t.TypeStringID) and not datatype.is_variable_str()
    known = isinstance(datatype, h5t.TypeIntegerID | h5t.TypeFloatID)
    return known and datatype.dtype == dtype.newbyteorder("=")


def _is_attribute(found: Any, one: Attribute, content: bytes) -> bool:
    if not _is_type(found.get_type(), one.dtype):
        return False
    if one.dtype.kind == "S":
        # HDF5 has no strings of no length.
        return read_attribute(found) in (content, content or b"\0")
    if found.get_space().get_simple_extent_npoints() != one.length:
        return False
    # As integers, which are turned round without a change.
    integers = np.frombuffer(content, f">u{one.dtype.itemsize}")
    return read_attribute(found) == integers.astype(f"=u{one.dtype.itemsize}").tobytes()
