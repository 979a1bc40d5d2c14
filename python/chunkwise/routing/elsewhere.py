"""Where do the elements of a virtual or an external dataset lie?

`mapped` finds the sources as libhdf5 does.  Where that would raise or answer in its own way,
libhdf5 reads.  libhdf5 looks for missing sources at each read; `Sources` says if one has changed.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import h5py
import numpy as np
from h5py import h5d, h5f, h5fd, h5g, h5i, h5s

from chunkwise.errors import LeadsOutsideError
from chunkwise.files.identity import Identity
from chunkwise.files.leading import Bounds, name_of_source, places
from chunkwise.files.objects import Address, address_of
from chunkwise.files.stored import read_fill
from chunkwise.handles.handle import absolute
from chunkwise.names import HDF5_ERRORS, printable

Parts = tuple[list[int], list[int], list[int], list[int]]
FileKey = tuple[int, int]
# Device and inode of a file, and an address in it.
Place = tuple[int, ...]
Describe = Callable[[h5py.Dataset, str, bool], Any]

# This many sources are looked for; if there are more, libhdf5 opens those that it needs.
MOST_SOURCES: Final = 1 << 14
# Virtual datasets whose sources are virtual, whose sources are virtual...
_DEEPEST = 32
# Files that are held open while sources are looked for.
_HELD_FILES = 1
_MOST_BLOCKS = 1 << 16
# Without an end, as HDF5 writes it.
_UNLIMITED = 2**64 - 1

WRITTEN: Final = "a file that it leads to is open for writing"
CHANGED: Final = "a file that it leads to was changed, or is there by now"


class LeftToLibhdf5Error(Exception):
    """Why libhdf5 reads a dataset."""


class LeadsToItselfError(Exception):
    """A virtual dataset is a source of itself, and so libhdf5's reads never end."""


@dataclass
class Sources:
    """The other files to which a dataset leads, and those where one was missing."""

    files: set[FileKey] = field(default_factory=set)  # Device and inode of each
    absent: list[str] = field(default_factory=list)  # Paths at which there was nothing
    # Files without the dataset that was looked for: what the system says of them.
    incomplete: dict[str, Identity | None] = field(default_factory=dict)
    nbytes: int = 0  # How long they are, all together
    folder: str | None = None  # The working directory, where it matters to what was found

    def add_file(self, path: str) -> None:
        """Add the file at a path, if there is one."""
        found = _identity(path)
        if found is not None and found.file not in self.files:
            self.files.add(found.file)
            self.nbytes += found.content[0]

    def why_not_now(self) -> str | None:
        """Return why libhdf5 has to read now; None if nothing has happened."""
        # Must be called under h5py's lock.
        if not self.files:
            return None
        for file in h5f.get_obj_ids(h5f.OBJ_ALL, h5f.OBJ_FILE):
            if file.get_intent() & h5f.ACC_RDWR and not self.files.isdisjoint(_keys_of(file)):
                return WRITTEN
        return None

    def is_outdated(self) -> bool:
        """Whether others may be found by now, such as one that was missing."""
        return (
            (self.folder is not None and self.folder != _working_directory())
            or any(map(os.path.exists, self.absent))
            or any(_identity(path) != known for path, known in self.incomplete.items())
        )

    def add(self, other: Sources) -> None:
        """Add those of a source that is virtual."""
        self.files |= other.files
        self.nbytes += other.nbytes
        self.absent += other.absent
        self.incomplete |= other.incomplete
        self.folder = self.folder or other.folder


@dataclass(frozen=True)
class Trail:
    """The virtual datasets that led to a source."""

    places: tuple[Address, ...] = ()  # Where they lie, the first one first
    # Counts the sources of all of them.
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def to(self, dataset: h5py.Dataset) -> Trail:
        """The trail that goes on to the sources of a virtual dataset."""
        place = address_of(dataset.id)
        if place in self.places:
            raise LeadsToItselfError
        if len(self.places) > _DEEPEST:
            raise LeftToLibhdf5Error(f"more than {_DEEPEST} virtual datasets lead to each other")
        return Trail((*self.places, place), self.numbers)

    def count(self) -> None:
        """Take note of one more source; LeftToLibhdf5Error where these are too many."""
        # Of all together, as each one of them may lead to as many.
        if next(self.numbers) >= MOST_SOURCES:
            raise LeftToLibhdf5Error(f"it has more than {MOST_SOURCES:,} sources")


@dataclass(frozen=True)
class MappedTo:
    """Elements of a virtual dataset that are elements of a source."""

    here: list[Parts]  # Hyperslabs of the virtual dataset and of the source
    source: Any  # What `describe` gave for it
    there: list[Parts]


def external_files(
    dataset: h5py.Dataset, bounds: Bounds
) -> tuple[list[tuple[str, int, int]], Sources]:
    """Return where the data of a dataset lies that is in external files."""
    dcpl = dataset.id.get_create_plist()
    prefix = os.fsencode(dataset.id.get_access_plist().get_efile_prefix() or b"")
    runs, sources = [], Sources()
    for number in range(dcpl.get_external_count()):
        name, offset, nbytes = dcpl.get_external(number)
        path = os.path.join(os.fsdecode(prefix), os.fsdecode(name))  # noqa: PTH118
        bounds.check(path, f"the external data of {_named_in(dataset)}", is_data=True)
        if offset < 0:
            raise LeftToLibhdf5Error(
                f"its external file {printable(path)} begins before its start"
            )
        if not os.path.isabs(path):  # noqa: PTH117
            # libhdf5 opens them at each read, from where the process is then.
            sources.folder = _working_directory()
            if not sources.folder:
                raise LeftToLibhdf5Error("the working directory was removed")
            path = os.path.join(sources.folder, path)  # noqa: PTH118
        if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113
            # A device, whose length the system does not say.
            raise LeftToLibhdf5Error(f"its external file {printable(path)} is no regular file")
        runs.append((path, offset, min(nbytes, _UNLIMITED)))
        sources.add_file(path)
    return runs, sources


def mapped(
    dataset: h5py.Dataset, describe: Describe, trail: Trail, bounds: Bounds
) -> tuple[list[MappedTo], Sources]:
    """Find the sources of a virtual dataset."""
    access = dataset.id.get_access_plist()
    if access.get_virtual_view() != h5d.VDS_LAST_AVAILABLE:
        raise LeftToLibhdf5Error("it is viewed up to the first source that is missing")
    finder = _Finder(dataset, describe, trail, bounds)
    try:
        return list(finder.all()), finder.sources
    except LeadsOutsideError:
        raise
    except HDF5_ERRORS as error:
        raise LeftToLibhdf5Error(f"its mappings cannot be read: {error}") from None


def check_bounds(dataset: h5py.Dataset, bounds: Bounds, trail: Trail | None = None) -> None:
    """Check that a dataset leads to no file to which its own may not lead."""

    def described(source: h5py.Dataset, _label: str, _plain: bool) -> SimpleNamespace:
        check_bounds(source, bounds, here)
        return SimpleNamespace(shape=source.shape, sources=None)

    try:
        if dataset.id.get_create_plist().get_external_count():
            external_files(dataset, bounds)
        elif dataset.is_virtual:
            here = (trail or Trail()).to(dataset)
            mapped(dataset, described, here, bounds)
    except LeadsToItselfError:
        return
    except LeftToLibhdf5Error as left:
        if not bounds.is_open:
            raise bounds.refuse(_named_in(dataset), str(left)) from None


def _named_in(dataset: h5py.Dataset) -> str:
    return f"dataset {printable(str(dataset.name))}"


def place_of(dataset: h5py.Dataset) -> Place:
    """Return a dataset's file and its address there: the same when it is opened again."""
    key = next(iter(_keys_of(h5i.get_file_id(dataset.id))), (0, 0))
    return (*key, *h5g.get_objinfo(dataset.id).objno)


def file_names(dataset: h5py.Dataset) -> list[str]:
    """List the names of the files to which a virtual dataset leads, as they are written in it."""
    dcpl = dataset.id.get_create_plist()
    try:
        return [dcpl.get_virtual_filename(i) for i in range(dcpl.get_virtual_count())]
    except HDF5_ERRORS:
        return []


def leads_to(dataset: h5py.Dataset, trail: Trail | None = None) -> set[Place]:
    """Find the datasets to which a virtual one leads, also through others, as far as known."""
    found: set[Place] = set()

    def described(source: h5py.Dataset, _label: str, _plain: bool) -> SimpleNamespace:
        found.add(place_of(source))
        if source.is_virtual:
            found.update(leads_to(source, here))
        return SimpleNamespace(shape=source.shape, sources=None)

    with suppress(LeftToLibhdf5Error, LeadsToItselfError):
        here = (trail or Trail()).to(dataset)
        name = os.fsdecode(h5f.get_name(dataset.id))
        mapped(dataset, described, here, Bounds(name, name))
    return found


class _Finder:
    """Finds the sources of one virtual dataset."""

    def __init__(
        self, dataset: h5py.Dataset, describe: Describe, trail: Trail, bounds: Bounds
    ) -> None:
        self._describe = describe
        self._bounds = bounds
        self._said = f"a source of {_named_in(dataset)}"
        self._trail = trail
        self._file = h5i.get_file_id(dataset.id)
        self._properties = dataset.id.get_create_plist()
        self._shape = dataset.id.shape
        access = dataset.id.get_access_plist()
        self._prefix = os.fsdecode(access.get_virtual_prefix() or b"")
        self._gap = access.get_virtual_printf_gap()
        self._access = self._file.get_access_plist()
        # As libhdf5 does, which then takes a file that is open in any way.
        self._access.set_fclose_degree(h5f.CLOSE_WEAK)
        self._open: dict[str, h5f.FileID] = {}
        self._found: dict[tuple[str, str], Any] = {}
        self._paths: dict[str, str | None] = {}
        self._is_endless = False
        self.sources = Sources()
        self.count = self._properties.get_virtual_count()
        if self.count > MOST_SOURCES:
            raise LeftToLibhdf5Error(f"it has more than {MOST_SOURCES:,} mappings")

    def all(self) -> Iterator[MappedTo]:
        """What all mappings come to now."""
        for number in range(self.count):
            yield from self.of(number)
        if self._is_endless and len(self._trail.places) > 1:
            # libhdf5 reads it in the shape that was written down, not in that of its sources.
            raise LeftToLibhdf5Error("one of its mappings has no end, and it is a source itself")

    def of(self, number: int) -> Iterator[MappedTo]:
        """What one mapping of the dataset holds now."""
        dcpl = self._properties
        file, name = dcpl.get_virtual_filename(number), dcpl.get_virtual_dsetname(number)
        here = _Space(dcpl.get_virtual_vspace(number))
        there = _Space(dcpl.get_virtual_srcspace(number))
        axis = here.unlimited
        if here.is_empty:
            return
        if axis is None:
            # libhdf5 checked these fixed values when the dataset was made.
            source = self._source(_named(file, None), _named(name, None))
            if source is not None:
                yield MappedTo(here.parts(self._shape), source, there.parts(source.shape))
            return
        self._is_endless = True
        if there.unlimited is None:
            yield from self._numbered(file, name, here, there)
            return
        source = self._source(_named(file, None), _named(name, None))
        if source is not None:
            length = there.elements_before(source.shape[there.unlimited])
            if here.extent_of(length) > self._shape[axis]:
                raise LeftToLibhdf5Error("one of its sources has grown")
            yield MappedTo(here.first(length), source, there.first(length))

    def _numbered(self, file: str, name: str, here: _Space, there: _Space) -> Iterator[MappedTo]:
        """Sources with a number in their name, up to the first gap that is too long."""
        axis = here.unlimited
        assert axis is not None, "of such mappings alone"
        start, stride, _, block = (values[axis] for values in here.regular)
        if block == _UNLIMITED:
            raise LeftToLibhdf5Error("one of its mappings has no end")
        count = max(-(-(self._shape[axis] - start) // stride), 0)
        found = 0
        for number in range(count):
            if number > found + self._gap:
                return
            source = self._source(_named(file, number), _named(name, number))
            if source is None:
                continue
            found = number + 1
            begin = start + number * stride
            if begin + block > self._shape[axis]:
                raise LeftToLibhdf5Error("one of its sources reaches beyond it")
            parts = here.at(begin, block)
            yield MappedTo([parts], source, there.parts(source.shape))

    def _source(self, file: str, name: str) -> Any:
        """What is known of a source; None if file or dataset are missing."""
        key = file, name
        if key not in self._found:
            self._trail.count()
            self._found[key] = self._described(file, name)
        return self._found[key]

    def _described(self, file: str, name: str) -> Any:
        where = printable(f"{file}: dataset {name}")
        path, opened = "", self._file
        if file != ".":
            found = self._path_of(file)
            if found is None:
                return None
            path, opened = found, self._opened(found)
            self.sources.add_file(path)
        encoded = os.fsencode(name)
        self._bounds.check_path(opened, encoded, path or self._bounds.own)
        try:
            identifier = h5d.open(opened, encoded)
        except HDF5_ERRORS as error:
            if encoded in h5g.open(opened, b"/"):
                raise LeftToLibhdf5Error(f"its source {where} cannot be opened: {error}") from None
            if path:
                self.sources.incomplete[path] = _identity(path)
            return None
        # If an external link led to the file, its driver may be another one.
        plain = h5f.get_name(identifier) == opened.name
        label = printable(f"{path or os.fsdecode(opened.name)}: dataset {name}")
        found = self._describe(h5py.Dataset(identifier, readonly=True), label, plain)
        if found.sources is not None:
            self.sources.add(found.sources)
        return found

    def _path_of(self, file: str) -> str | None:
        """Where a source's file is; None if there is none."""
        if file not in self._paths:
            tried = []
            if self._bounds.own is None:
                self._bounds.check(file, self._said)
            for path in self._candidates(file):
                if os.path.exists(path):  # noqa: PTH110
                    self._bounds.check(path, self._said)
                    self._paths[file] = path
                    break
                tried.append(path)
            else:
                self._paths[file] = None
                self.sources.absent += dict.fromkeys(tried)
                # Which is one of these places, wherever the process goes.
                self.sources.folder = _working_directory()
        return self._paths[file]

    def _candidates(self, file: str) -> Iterator[str]:
        """Where libhdf5 looks for a file, in its order."""
        if os.path.isabs(file):  # noqa: PTH117
            # Wherever the dataset's own file was opened from.
            yield file
        for place in places(file, self._own_path, "HDF5_VDS_PREFIX", self._prefix):
            yield absolute(str(place))

    @cached_property
    def _own_path(self) -> Path:
        """Where the dataset's own file is, by the name under which it was opened."""
        name = os.fsdecode(self._file.name)
        own = absolute(name)
        if own != name and _keys(own) != _keys_of(self._file):
            # libhdf5 knows where the process was then.
            raise LeftToLibhdf5Error("its file was opened from another working directory")
        return Path(own)

    def _opened(self, path: str) -> h5f.FileID:
        found = self._open.get(path)
        if found is None:
            while len(self._open) >= _HELD_FILES:
                self._open.pop(next(iter(self._open)))
            try:
                found = h5f.open(os.fsencode(path), h5f.ACC_RDONLY, self._access)
            except HDF5_ERRORS as error:
                raise LeftToLibhdf5Error(
                    f"the file {printable(path)} of one of its sources cannot be opened: {error}"
                ) from None
            self._open[path] = found
        return found


class _Space:
    """A selection of a mapping, as HDF5 keeps it."""

    def __init__(self, space: h5s.SpaceID) -> None:
        kind = space.get_select_type()
        self._all, self.is_empty = kind == h5s.SEL_ALL, kind == h5s.SEL_NONE
        self.unlimited: int | None = None
        if self._all or self.is_empty:
            return
        if kind != h5s.SEL_HYPERSLABS:
            raise LeftToLibhdf5Error("one of its mappings is of no hyperslab")
        self._irregular: list[Parts] | None = None
        if not space.is_regular_hyperslab():
            if space.get_select_hyper_nblocks() > _MOST_BLOCKS:
                raise LeftToLibhdf5Error("one of its mappings has too many blocks")
            self._irregular = [_block(*corners) for corners in space.get_select_hyper_blocklist()]
            return
        start, stride, count, block = (list(map(int, v)) for v in space.get_regular_hyperslab())
        for axis in range(len(start)):
            if block[axis] == _UNLIMITED:
                # A block without end is elements one by one without end.
                stride[axis], count[axis], block[axis] = 1, _UNLIMITED, 1
            if count[axis] == _UNLIMITED:
                self.unlimited = axis
        self.regular: Parts = (start, stride, count, block)

    def parts(self, shape: tuple[int, ...]) -> list[Parts]:
        """The hyperslabs that have an end, in an array of this shape."""
        if self._all:
            ones = [1] * len(shape)
            return [([0] * len(shape), ones, ones, list(shape))]
        return [self.regular] if self._irregular is None else self._irregular

    def elements_before(self, size: int) -> int:
        """How many elements are selected in the dimension without end, if it has this size."""
        start, stride, _, block = (values[self._axis] for values in self.regular)
        past = max(size - start, 0)
        return past // stride * block + min(past % stride, block)

    def extent_of(self, length: int) -> int:
        """Where the first `length` elements of the dimension without end stop."""
        start, stride, _, block = (values[self._axis] for values in self.regular)
        if not length:
            return 0
        full, rest = divmod(length - 1, block)
        return start + full * stride + rest + 1

    def first(self, length: int) -> list[Parts]:
        """The first `length` elements of the dimension without end, with all of the others."""
        start, stride, _, block = (values[self._axis] for values in self.regular)
        full, rest = divmod(length, block)
        parts = [self._with(start, stride, full, block)] if full or not rest else []
        return parts + ([self._with(start + full * stride, 1, 1, rest)] if rest else [])

    def at(self, begin: int, block: int) -> Parts:
        """One block of the dimension without end."""
        return self._with(begin, 1, 1, block)

    @property
    def _axis(self) -> int:
        assert self.unlimited is not None, "a dimension has no end"
        return self.unlimited

    def _with(self, *values: int) -> Parts:
        start, stride, count, block = map(list, self.regular)
        for part, value in zip((start, stride, count, block), values, strict=True):
            part[self._axis] = value
        return start, stride, count, block


def _block(first: Any, last: Any) -> Parts:
    ones = [1] * len(first)
    begin = [int(at) for at in first]
    return begin, ones, ones, [int(b) - a + 1 for a, b in zip(begin, last, strict=True)]


def _named(name: str, number: int | None) -> str:
    """Put the number of a block into the name of a source."""
    found = name_of_source(name, number)
    if found is None:
        raise LeftToLibhdf5Error(f"the name {printable(name)} of a source is none")
    return found


def _keys_of(file: h5f.FileID) -> set[FileKey]:
    """Device and inode of an open file, wherever its name leads by now."""
    if file.get_access_plist().get_driver() != h5fd.SEC2:
        return _keys(os.fsdecode(file.name))
    return {Identity.of(os.fstat(file.get_vfd_handle())).file}


def _keys(path: str) -> set[FileKey]:
    found = _identity(path)
    return set() if found is None else {found.file}


def _identity(path: str) -> Identity | None:
    """What the system says of a file; None if there is none."""
    try:
        return Identity.of(os.stat(path))  # noqa: PTH116
    except OSError:
        return None


def _working_directory() -> str:
    """Where the process is; nothing where that folder was removed."""
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:
        return ""


def fill_of(dataset: h5py.Dataset, dtype: np.dtype[Any]) -> bytes | None:
    """The fill value of a dataset, as an element of a type; None if it is undefined."""
    dcpl = dataset.id.get_create_plist()
    try:
        if dcpl.fill_value_defined() == h5d.FILL_VALUE_UNDEFINED:
            return None
        value = np.zeros((), dtype)
        read_fill(dcpl, dataset.id.get_type(), value)
    except HDF5_ERRORS as error:
        raise LeftToLibhdf5Error(f"its fill value cannot be read: {error}") from None
    return value.tobytes()
