"""Does the result equal the source?  libhdf5 reads both, and they are compared bit for bit.

This is ``--verify full``: slow, and independent of the engine that wrote the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator
from functools import partial
from operator import getitem
from typing import Any

import h5py
import numpy as np
from h5py import h5a, h5d, h5s, h5t

from chunkwise.errors import CorruptDataError
from chunkwise.files.boxes import Box, Bytes, boxes, read_box
from chunkwise.files.objects import Entry, walk
from chunkwise.files.opening import is_plain
from chunkwise.files.references import Paths
from chunkwise.names import HDF5_ERRORS, decode_name, hdf5_reason, printable
from chunkwise.repacking.progress import Teller
from chunkwise.repacking.values import equal_values

_BOX_NBYTES = 32 << 20


def compare_files(
    source: h5py.File,
    target: h5py.File,
    teller: Teller,
    *,
    said: str,
    rounded: Container[str] = (),
    salvaged: bool = False,
) -> list[str]:
    """Compare names, links, attributes and all data of two open files.

    Parameters
    ----------
    source, target
        Open files.
    teller
        Told about progress.
    said
        The target's name, for messages.
    rounded
        Datasets whose values need not be equal.
    salvaged
        Whether parts of the source that cannot be read are passed over.

    Returns
    -------
    list of str
        What could not be compared, with the reason: h5py cannot read its type, or libhdf5
        the source.

    Raises
    ------
    CorruptDataError
        The first difference, by name; or, unless salvaged, what of the source cannot be read.
    """
    comparison = _Comparison(source, target, said, salvaged)
    for entry in comparison.mine.values():
        other = comparison.partner(entry)
        comparison.attributes(entry, other)
        if entry.kind != "dataset" or entry.path in rounded:
            continue
        nbytes = _nbytes(entry.identifier)
        tell = teller.of(entry.path, nbytes)
        done = 0
        for box in comparison.data(entry, other):
            done += box
            tell(done, done, done)
        teller.ended(nbytes)
    extra = comparison.theirs.keys() - comparison.mine.keys()
    if extra:
        raise comparison.differs(min(extra), "is not in the source")
    return comparison.unread


class _Comparison:
    """Two files side by side."""

    def __init__(
        self, source: h5py.File, target: h5py.File, said: str, salvaged: bool = False
    ) -> None:
        self.source = printable(str(source.filename))
        self.where = printable(said)
        self.salvaged = salvaged
        self.mine = {entry.path: entry for entry in walk(source)}
        self.theirs = {entry.path: entry for entry in walk(target)}
        self.paths = (Paths.of(self.mine.values()), Paths.of(self.theirs.values()))
        self.unread: list[str] = []

    def differs(self, path: str, how: str) -> CorruptDataError:
        return CorruptDataError(
            f"{self.where}: '{printable(path)}' {how}; the result was dropped, the source is "
            "untouched: please report this"
        )

    def partner(self, entry: Entry) -> Entry:
        """Give the same name's entry in the target."""
        other = self.theirs.get(entry.path)
        if other is None:
            raise self.differs(entry.path, "is missing")
        if (entry.kind, entry.target) != (other.kind, other.target):
            raise self.differs(entry.path, "is another kind of object than in the source")
        return other

    def attributes(self, entry: Entry, other: Entry) -> None:
        """Compare all attributes of an object."""
        if entry.identifier is None:
            return
        mine, theirs = entry.identifier, other.identifier
        names = set(_attribute_names(mine))
        if names != set(_attribute_names(theirs)):
            raise self.differs(entry.path, "has other attributes than in the source")
        for name in sorted(names):
            label = f"{entry.path}@{decode_name(name)}"
            pair = h5a.open(mine, name), h5a.open(theirs, name)
            self._same_kind(label, *pair)
            if is_plain(pair[0].get_type()):
                same = np.array_equal(_attribute_bytes(pair[0]), _attribute_bytes(pair[1]))
            else:
                managers = (h5py.AttributeManager(_Owner(one)) for one in (mine, theirs))
                same = self._equal(label, [partial(getitem, one, name) for one in managers])
            if not same:
                raise self.differs(label, "differs from the source")

    def data(self, entry: Entry, other: Entry) -> Iterator[int]:
        """Compare a dataset's elements; give the bytes of each part that was equal."""
        mine, theirs = entry.identifier, other.identifier
        self._same_kind(entry.path, mine, theirs)
        datatype = h5t.TypeID.copy(mine.get_type())
        plain = is_plain(datatype)
        for box in _boxes(mine, datatype.get_size()):
            if plain:
                yield from self._bytes(entry.path, mine, theirs, datatype, box)
                continue
            start, count = box
            part = tuple(slice(s, s + n) for s, n in zip(start, count, strict=True))
            pair = (h5py.Dataset(mine), h5py.Dataset(theirs))
            if not self._equal(entry.path, [partial(getitem, one, part) for one in pair]):
                raise self._differs_from(entry.path, start)
            yield _box_nbytes(count, datatype)

    def _bytes(self, path: str, mine: Any, theirs: Any, datatype: Any, box: Box) -> Iterator[int]:
        """Compare a box of plain bytes, or chunk after chunk if the source is damaged."""
        start, count = box
        try:
            expected = read_box(mine, datatype, start, count)
        except HDF5_ERRORS as error:
            chunk = _chunk(mine)
            chunks = [] if chunk is None else list(boxes(count, chunk, 1))
            if len(chunks) < 2:
                self._unreadable(path, start, hdf5_reason(error))
                yield _box_nbytes(count, datatype)
            else:
                for offset, part in chunks:
                    at = tuple(s + o for s, o in zip(start, offset, strict=True))
                    yield from self._bytes(path, mine, theirs, datatype, (at, part))
            return
        if not np.array_equal(expected, self._written(path, theirs, datatype, box)):
            raise self._differs_from(path, start)
        yield _box_nbytes(count, datatype)

    def _differs_from(self, path: str, start: tuple[int, ...]) -> CorruptDataError:
        at = ", ".join(map(str, start))
        return self.differs(path, f"differs from the source from ({at}) on")

    def _unreadable(self, path: str, start: tuple[int, ...], reason: str) -> None:
        """Pass over what cannot be read in the source, or raise."""
        at = ", ".join(map(str, start))
        said = f"'{printable(path)}' from ({at}) on: cannot be read in the source ({reason})"
        if not self.salvaged:
            raise CorruptDataError(
                f"{self.source}: {said}; the file is damaged: fetch it again or restore it; "
                "--salvage, or salvage=True, goes on without what cannot be read"
            )
        self.unread.append(said)

    def _written(self, path: str, dataset: Any, datatype: Any, box: Box) -> Bytes:
        """Read a box of the target."""
        try:
            return read_box(dataset, datatype, *box)
        except HDF5_ERRORS as error:
            raise self.differs(path, f"cannot be read ({hdf5_reason(error)})") from None

    def _same_kind(self, label: str, mine: Any, theirs: Any) -> None:
        if not mine.get_type().equal(theirs.get_type()):
            raise self.differs(label, "has another type than in the source")
        if _extent(mine.get_space()) != _extent(theirs.get_space()):
            raise self.differs(label, "has another shape than in the source")

    def _equal(self, label: str, readers: list[Callable[[], Any]]) -> bool:
        """Compare what h5py makes of values that are not plain bytes."""
        try:
            first, second = (read() for read in readers)
        except HDF5_ERRORS as error:
            said = f"'{printable(label)}': {hdf5_reason(error)}"
            if said not in self.unread:
                self.unread.append(said)
            return True
        return equal_values(first, second, *self.paths)


class _Owner:
    """What h5py's AttributeManager wants: something with an identifier."""

    def __init__(self, identifier: Any) -> None:
        self.id = identifier


def _extent(space: Any) -> tuple[object, ...]:
    kind = space.get_simple_extent_type()
    if kind != h5s.SIMPLE:
        return (kind,)
    return kind, space.get_simple_extent_dims(), space.get_simple_extent_dims(1)


def _attribute_names(identifier: Any) -> Iterator[bytes]:
    for number in range(h5a.get_num_attrs(identifier)):
        yield h5a.open(identifier, index=number).get_name()


def _attribute_bytes(attribute: Any) -> Bytes:
    datatype = h5t.TypeID.copy(attribute.get_type())
    elements = attribute.get_space().get_simple_extent_npoints()
    values = np.zeros(elements * datatype.get_size(), np.uint8)
    if values.size:
        attribute.read(values, datatype)
    return values


def _nbytes(identifier: Any) -> int:
    elements = identifier.get_space().get_simple_extent_npoints()
    return int(elements * identifier.get_type().get_size())


def _box_nbytes(count: tuple[int, ...], datatype: Any) -> int:
    return math.prod(count) * int(datatype.get_size())


def _chunk(dataset: Any) -> tuple[int, ...] | None:
    dcpl = dataset.get_create_plist()
    return tuple(dcpl.get_chunk()) if dcpl.get_layout() == h5d.CHUNKED else None


def _boxes(dataset: Any, itemsize: int) -> Iterator[Box]:
    if dataset.shape is not None:
        shape = tuple(dataset.shape)
        most = max(1, _BOX_NBYTES // itemsize)
        yield from boxes(shape, _chunk(dataset) or (1,) * len(shape), most)
