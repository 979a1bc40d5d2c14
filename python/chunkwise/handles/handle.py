"""Which of many open files does libhdf5 keep open?

An open file takes libhdf5 half a megabyte and a descriptor.  So it keeps at most `most_open` of
ours; beyond that the longest unused are *parked*: closed in libhdf5, and opened again, with new
identifiers, when libhdf5 is called for them.  A file is in use if libhdf5 counts identifiers of
it besides those of our objects.  All of this happens under h5py's lock.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import warnings
import weakref
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import h5py
from h5py import h5d, h5f, h5fd, h5g, h5i, h5o, h5p

from chunkwise import _native, system
from chunkwise.errors import ChunkwiseError, FileChangedError, FileFormatError, UsageError
from chunkwise.files import closing
from chunkwise.files.identity import Identity, sample, sample_of
from chunkwise.files.leading import Bounds, External
from chunkwise.files.objects import Address, address_at, address_of, header_address
from chunkwise.files.opening import as_file, find_dataset, open_h5
from chunkwise.files.opening_writable import Mode, open_file, synced, write_errors
from chunkwise.handles import pending
from chunkwise.handles.attributes import Attributes
from chunkwise.names import (
    HDF5_ERRORS,
    WIDE_LENGTHS,
    decode_name,
    encode_name,
    printable,
    said_wide,
)

if TYPE_CHECKING:
    from chunkwise.handles.sidecar import Content, Sidecar
    from chunkwise.remote.opening import Opened

# How `chunkwise.open` gets a sidecar.
Index: TypeAlias = "str | os.PathLike[str] | bool | None"
# The name of a sidecar that is found without being named.
SUFFIX = ".cwi"

# The most files kept open where the system's limit allows.
MOST = 256
# No more than this fraction of the descriptors that the process may have.
FRACTION = 4

phil = h5py._objects.phil

_clock = itertools.count()


def most_open() -> int:
    """Files that libhdf5 keeps open for this module, those in use not counted."""
    limit = system.most_open_files()
    return MOST if limit is None else max(1, min(MOST, limit // FRACTION))


def address_in(filename: str, identifier: Any) -> Address:
    """Return what identifies an object among all, libhdf5's number of its file first."""
    try:
        # Not by H5Oget_info, which reads indexes and crashes on damaged ones.
        return address_of(identifier)
    except HDF5_ERRORS as error:
        from chunkwise.files.causes import cause_of

        group = printable(decode_name(h5i.get_name(identifier) or b"/"))
        where = f"{filename}: group {group}: its header cannot be read"
        cause = cause_of(error, checked=False, verb="read", path=filename)
        raise cause.raised(where, error) from error


class OpenDatasets(dict[Any, Any]):
    """The datasets of a file that were opened so far; its groups share it."""

    # In a file that nobody writes, by the requested path and the number of the file that it is in,
    # which is None for the file that was opened.  In one that is written here, by address and
    # path: names may later mean other datasets.

    # This many are kept while nobody else refers to them.
    MOST = 1024

    def keep(self, key: Any, dataset: Any, former: Any) -> Any:
        """Remember a dataset in place of a former one; that of another thread that was first."""
        if len(self) >= self.MOST:
            with contextlib.suppress(KeyError, StopIteration, RuntimeError):
                self.pop(next(iter(self)))
        if former is not None and self.get(key) is former:
            self[key] = dataset
        return self.setdefault(key, dataset)


class FileHandle:
    """An open file, whether libhdf5 has it open or not."""

    # Where the chunks of its datasets lie, where that is written down beside it.
    sidecar: Sidecar | None = None
    # How far it may lead.
    external: External = "anywhere"
    # As the caller wrote it.
    _index: Index = None
    # As libhdf5 has opened it first, if it is now shown other bytes; and why.
    _refusing: h5f.FileID | None = None
    refused: str | None = None
    # As long as libhdf5 has it open; False where only libhdf5 reads it.
    _metadata: _native.Metadata | Literal[False] | None = None

    def __init__(
        self,
        opened: h5py.File,
        path: str | os.PathLike[str] | None = None,
        options: dict[str, Any] | None = None,
        writable: bool | None = None,
        sync: bool = True,
        remote: Opened | None = None,
    ) -> None:
        self._options = options or {}
        self._sync = sync
        # The working directory may change.
        self._path = None if path is None else absolute(os.fspath(path))
        # By identity, since h5py's own equality asks libhdf5.
        self._objects: weakref.WeakValueDictionary[int, Kept] = weakref.WeakValueDictionary()
        self._open_datasets: weakref.ref[OpenDatasets] | None = None
        # Of objects that references led to, by address: libhdf5 searches the whole file for each.
        self.names: dict[Address, str | None] = {}
        self._id: h5f.FileID | None = None
        self._identity: Identity | None = None
        # Of its bytes, since it was parked.
        self._sample: str | None = None
        self.used = next(_clock)
        self._closed = False
        self._pinned = path is None
        self._remote = remote
        self.storage = None if remote is None else remote.storage
        # A file that was opened by path has that name in h5py, too.
        named = opened.filename if path is None else os.fspath(path)
        self.filename: str = named if remote is None else remote.name
        with phil:
            if writable is None:
                writable = bool(opened.id.get_intent() & h5f.ACC_RDWR)
            self.writable = writable
            self._opened(opened)

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], mode: Mode, options: dict[str, Any], sync: bool
    ) -> FileHandle:
        """Open a file by path; see `open_file`, which says what it raises."""
        with phil:
            _make_room()
        return cls(open_file(path, mode, options), path, options, mode != "r", sync)

    def use_sidecar(self, index: Index) -> None:
        """Know where chunks lie from a sidecar: see `chunkwise.open`, also for what it raises."""
        required = index is not None and index is not False
        named = not isinstance(index, bool | None)
        far = self._remote is not None and self._remote.source is not None
        plain = self.is_plain and not self.changes and self._path is not None
        if index is False or not (plain or (far and named)):
            if required:
                self.close()
                raise UsageError(
                    f"{printable(self.filename)}: index=... is for files opened for reading, by "
                    "path or URL"
                )
            return
        path = os.fspath(index) if named else self.filename + SUFFIX  # type: ignore[arg-type]
        if not required and not os.path.exists(path):  # noqa: PTH110 (each time a file is opened)
            return
        # Here, as few files have one.
        from chunkwise.handles.sidecar import Sidecar

        with phil:
            content = self.content()
            user_block = self.id.get_create_plist().get_userblock()
        try:
            self.sidecar = Sidecar(path, content, user_block, self.filename)
            self._index = absolute(path) if named else index
        except (FileChangedError, FileFormatError) as error:
            if required:
                self.close()
                raise
            warnings.warn(f"{error}; it is not used", RuntimeWarning, stacklevel=4)

    @property
    def bounds(self) -> Bounds:
        """How far it may lead: one that is not local, to no other file."""
        own = None if self._is_far else self._path or self.filename
        return Bounds(self.filename, own, self.external)

    @property
    def leads_anywhere(self) -> bool:
        """Whether it may lead as far as libhdf5 follows it; for each object that is found."""
        return self.external == "anywhere" and not self._is_far

    @property
    def metadata(self) -> _native.Metadata | None:
        """What its own bytes say; None where libhdf5 has to. Under h5py's lock."""
        if self._metadata is None:
            usable = self.is_plain and not self.changes
            found = _native.Metadata.of_descriptor(self.id.get_vfd_handle()) if usable else None
            self._metadata = found or False
        return self._metadata or None

    def content(self) -> Content:
        """Its bytes, for a sidecar; under h5py's lock."""
        from chunkwise.handles.sidecar import LocalContent, RemoteContent

        if self._remote is not None and self._remote.source is not None:
            return RemoteContent(self._remote.source)
        return LocalContent(self.id.get_vfd_handle())

    def look_around(self) -> None:
        """Fetch more than is wanted of a file that is far away, as all of its objects will be."""
        if self._remote is not None and self._remote.source is not None:
            self._remote.source.look_around()

    def check_requests(self, label: str) -> None:
        """Raise what a request has just failed with; to the engine it looks like damage."""
        source = None if self._remote is None else self._remote.source
        failure = None if source is None else source.failed_lately()
        if failure is not None:
            raise type(failure)(f"{label}: {failure}") from failure

    @property
    def is_open(self) -> bool:
        """Whether it was not closed, by `close` or behind our back."""
        return not self._closed and (self._id is None or bool(self._id.id))

    @property
    def id(self) -> h5f.FileID:
        """Its identifier, for which it is opened again if it is parked."""
        found = self._id
        if found is None:
            with phil:
                if self._id is None:
                    self._reopen()
                found = self._id
        self.used = next(_clock)
        return found

    @property
    def open_datasets(self) -> OpenDatasets:
        """Its datasets that were opened, as long as one of its groups is there."""
        with phil:
            opened = None if self._open_datasets is None else self._open_datasets()
            if opened is None:
                opened = OpenDatasets()
                self._open_datasets = weakref.ref(opened)
            return opened

    def recipe(self) -> tuple[str, dict[str, Any], bool]:
        """Path and settings by which another process opens it."""
        where = printable(self.filename)
        if self.writable:
            raise UsageError(
                f"{where}: is open for writing, and so can neither be copied nor sent to another "
                "process: close it, and open it for reading"
            )
        if not self.is_open:
            raise UsageError(f"{where}: the file is closed, and cannot be copied or sent")
        path, remote = self._path, self._remote
        if remote is not None and remote.url is not None:
            more: dict[str, Any] = {}
            if remote.storage_options is not None:
                more["storage_options"] = remote.storage_options
            if self._index is not None:
                more["index"] = self._index
            return remote.url, {**self._options, **more}, self._sync
        if path is None:
            if self.id.get_access_plist().get_driver() != h5fd.SEC2:
                raise UsageError(f"{where}: is no file on disk, and cannot be copied or sent")
            path = str(Path(self.filename).absolute())
        options = dict(self._options)
        if self._index is not None:
            options["index"] = self._index
        if self.external != "anywhere":
            options["external"] = self.external
        return path, options, self._sync

    def token(self) -> tuple[Any, ...]:
        """What identifies the file in its present state."""
        # Another one each time, where it may change unnoticed or is no file on disk.
        with phil:
            identifier = self.id
            plain = identifier.get_access_plist().get_driver() == h5fd.SEC2
            if not plain or self.changes:
                import uuid

                return (uuid.uuid4().hex,)
            now = Identity.of(os.fstat(identifier.get_vfd_handle()))
        return (str(Path(self.filename).absolute()), *now.file, *now.content)

    def is_parked(self) -> bool:
        """Whether libhdf5 has closed it, while it is open for its user."""
        if self._closed or self._id is not None:
            return False
        # Somebody may have opened it for writing; pending data is a change, too.
        if self._identity is not None:
            pending.settle_inode(self._identity.file)
        self._check()
        return True

    def pin(self) -> None:
        """Never park it: something of it could not be found again."""
        with phil:
            if self._id is None and not self._closed:
                self._reopen()
            self._pinned = True
            _open.discard(self)

    def close(self) -> None:
        """Close it for good."""
        if not self.writable:
            self._close()
            return
        with pending.closing(self._h5_file()):
            try:
                self.settle()
            except pending.UnderWayError:
                raise
            except BaseException:
                self._close()
                raise
            self._close()

    def _close(self) -> None:
        with phil:
            # What is known of its bytes has the file open: Windows removes no such file.
            self._closed, self._refusing, self._metadata = True, None, False
            _open.discard(self)
            if self._id is not None and self._id.valid and not self._closed_alone():
                file = as_file(self._id)
                with pending.without_waiting(), self._written(file, "cannot be closed"):
                    file.close()
            if self._id is None:
                self._id = h5f.FileID(0)
            for one in list(self._objects.values()):
                one._end()

    def _closed_alone(self) -> bool:
        """Close a file in libhdf5 that only our own objects use, and nobody asks about."""
        # `h5py.File.close` would search all that is open in this process.
        if self.writable or closing.is_wrapped() or self._is_used():
            return False
        return self._dropped()

    def _is_used(self) -> bool:
        """Let go of our own objects: does anybody else have identifiers of the file?"""
        for one in list(self._objects.values()):
            one._let_go()
        # The file has its own.
        return int(h5f.get_obj_count(self._id, h5f.OBJ_ALL | h5f.OBJ_LOCAL)) > 1

    def _dropped(self) -> bool:
        """Give up the file's identifier; False if somebody else has this object."""
        assert self._id is not None
        held = weakref.ref(self._id)
        self._id = None
        self._id = held()
        return self._id is None

    def flush(self) -> None:
        """Hand all that was written to storage."""
        self.settle()
        with phil, pending.without_waiting():
            if self._id is None or not self._id.valid:
                raise UsageError("the file is closed")
            file = as_file(self._id)
            with self._written(file, "cannot be flushed"):
                file.flush()

    def settle(self) -> None:
        """Wait, without h5py's lock, for threads that write: they may need it."""
        file = self._h5_file()
        if file is not None:
            with write_errors(printable(self.filename), "cannot be written"):
                pending.settle_file(file)

    def _h5_file(self) -> h5py.File | None:
        """The file as h5py has it, where it is open and may be written."""
        with phil:
            is_open = self.writable and self._id is not None and self._id.valid
            return as_file(self._id) if is_open else None

    @contextlib.contextmanager
    def _written(self, file: h5py.File, doing: str) -> Iterator[None]:
        if not self.writable:
            yield
            return
        where = printable(self.filename)
        with synced(file, where, self._sync), write_errors(where, doing):
            yield

    def find(self, wanted: Kept) -> Any:
        """Give an object its identifier again, opening what has to be opened."""
        with phil:
            if not self.is_open:
                wanted._end()
                return wanted._oid
            # As bytes, since names need not be UTF-8.
            path = wanted._path
            assert path is not None, "it was not let go"
            encoded = encode_name(path)
            try:
                found = self.opened(lambda: h5o.open(self.id, encoded))
            except KeyError:
                # Says what is wrong with it.
                find_dataset(as_file(self.id), path)
                raise
            if wanted._at is not None and header_address(address_of(found)) != wanted._at:
                raise self._changed()
            wanted._id = found
            return found

    def opened(self, find: Callable[[], Any]) -> Any:
        """Find an object; where libhdf5 refuses what the format allows, in bytes that it takes."""
        try:
            return find()
        except HDF5_ERRORS as error:
            if WIDE_LENGTHS not in str(error):
                raise
            if not self._show_otherwise():
                raise said_wide(error) from error
            return find()

    def _show_otherwise(self) -> bool:
        """Have libhdf5 read the file through a file object; False if that does not help."""
        from chunkwise.files.mended import open_mended, wide_lengths

        if self.changes or self.refused is not None:
            return False
        refusing = self.id
        if self._remote is not None:
            made = self._remote.narrowed(self._options)
            if made is None:
                return False
            shown, self.refused = made
        elif self._path is not None and self.is_plain:
            self._check()
            found = wide_lengths(self._path)
            if found is None:
                return False
            shown, self.refused = open_mended(self._path, found), found.said
            self.storage = _native.Storage.of_descriptor(refusing.get_vfd_handle())
        else:
            return False
        for one in list(self._objects.values()):
            one._let_go()
        # As it was opened, it stays open: nobody may write to it.
        self._refusing, self.sidecar = refusing, None
        _open.discard(self)
        self._opened(shown, is_shown=True)
        return True

    def add(self, one: Kept) -> None:
        """Note an object whose identifier is dropped when the file is parked."""
        with phil:
            self._objects[id(one)] = one

    def park(self) -> None:
        """Close it in libhdf5, unless somebody uses it."""
        if self._id is None:
            return
        if not self._id.valid:
            # Somebody else has closed it.
            _open.discard(self)
        elif self._is_used():
            return
        elif not self._remember():
            _open.discard(self)
            self._pinned = True
        elif self._dropped():
            _open.discard(self)
            self._metadata = None

    def _remember(self) -> bool:
        """Keep what identifies the file while it is parked; False if that is not known."""
        if self._id is None:
            return True
        descriptor, known = self._id.get_vfd_handle(), self._identity
        now = Identity.of(os.fstat(descriptor))
        if known is None or (now != known and known.may_be(now) and now.manner == known.manner):
            # Something changed while it was open, and nothing says what.
            return False
        if known.may_be(now):
            self._identity = now
        try:
            self._sample = sample(descriptor)
        except OSError:
            return False
        return True

    def _opened(self, file: h5py.File, *, is_shown: bool = False) -> None:
        """Libhdf5 has the file open: for how long, and what to know it by?"""
        identifier = file.id
        # Opened by path, it has the driver that files have here, unless it is shown otherwise.
        usual = self._path is not None and not is_shown
        driver = _default_driver() if usual else identifier.get_access_plist().get_driver()
        sec2 = driver == h5fd.SEC2
        self.is_plain = sec2
        self._is_far = is_far(driver) and not (is_shown and self._remote is None)
        if sec2:
            descriptor = identifier.get_vfd_handle()
            now = Identity.of(os.fstat(descriptor))
            # The bytes as well: not every system keeps its own time of change.
            same = self._identity in (None, now)
            # This takes longer than everything else, and is for files that were parked.
            if same and self._sample is not None:
                same = self._sample == sample(descriptor)
            if not same:
                file.close()
                raise self._changed()
            self._identity, self._sample = now, None
        try:
            self.number = address_in(self.filename, identifier)[:2]
        except ChunkwiseError:
            if self._path is not None:
                file.close()
            raise
        self._id, self._metadata = identifier, None
        # libhdf5 reports the mode in which the file was opened first.
        intent = identifier.get_intent()
        self.changes = intent != h5f.ACC_RDONLY
        self.readonly = not intent & (h5f.ACC_RDWR | h5f.ACC_SWMR_WRITE)
        if sec2 and not self.changes and not self._pinned:
            _open.add(self)
        else:
            self._pinned = True

    def _reopen(self) -> None:
        self._check()
        _make_room()
        self._opened(open_h5(str(self._path), **self._options))

    def _check(self) -> None:
        """See that the path still leads to the file that was opened."""
        try:
            status = os.stat(str(self._path))  # noqa: PTH116 (before each read of a parked file)
        except OSError as error:
            raise FileChangedError(
                f"{printable(self.filename)}: the file cannot be found again: {error.strerror}; "
                "leave files in their place while they are open"
            ) from None
        now = Identity.of(status)
        if now != self._identity:
            self._check_bytes(now)

    def _check_bytes(self, now: Identity) -> None:
        """Check whether a file whose system times changed still has the same content."""
        known = self._identity
        if known is None or not known.may_be(now) or not known.explains(now):
            raise self._changed()
        try:
            same = sample_of(str(self._path)) == self._sample
        except OSError:
            same = False
        if not same:
            raise self._changed()
        self._identity = now

    def _changed(self) -> FileChangedError:
        return FileChangedError(
            f"{printable(self.filename)}: the file was changed or replaced after it was opened; "
            "open it again"
        )


class Kept:
    """What ours have in common with each other, and not with h5py's groups and datasets."""

    # If its file was parked, the identifier is found again by its path.

    # Its file, if that is ours to open again.
    _home: FileHandle | None = None
    # libhdf5's number of the file that it is in, if an external link led to another than `_home`.
    _number: tuple[int, ...] | None = None
    # Under which `_home` has it; None for what was found by a reference, or has no name.
    _path: str | None = "/"
    # Where its header is in `_home`, which nobody writes; None where that is not known.
    _at: int | None = None
    _oid: Any = None
    # File and name, for messages.
    _where: str | None = None
    # Makes the `File` of an identifier, or of an object of ours; set by `chunkwise.file`.
    _file_of: ClassVar[Any]

    def _belong(self, home: FileHandle, path: str | None, number: tuple[int, ...] | None) -> None:
        """Say to which file it belongs."""
        self._home, self._path, self._number = home, path, number
        home.add(self)

    @property
    def _id(self) -> Any:
        # h5py's methods ask for it, and keep no other reference to it for long.
        found, home = self._oid, self._home
        if home is None:
            return found
        home.used = next(_clock)
        return home.find(self) if found is None else found

    @_id.setter
    def _id(self, identifier: Any) -> None:
        self._oid = identifier

    def _address(self) -> Address:
        """What identifies it among all objects that are open in libhdf5, or could be."""
        home = self._home
        if home is None or self._at is None:
            return address_of(self._id)
        if home._id is None:
            # A parked file is opened, which gives it another number.
            return address_of(self._id)
        return address_at(home.number, self._at)

    @property
    def name(self) -> Any:
        """The path, as h5py gives it: a str, or None for an object that no link leads to."""
        home = home_of(self)
        if self._path is not None or home is None or home.changes:
            return super().name  # type: ignore[misc]
        with phil:
            address = address_of(self._id)
            if address not in home.names:
                home.names[address] = super().name  # type: ignore[misc]
            return home.names[address]

    @property
    def attrs(self) -> Attributes:
        """Attributes, as h5py has them."""
        home = self._home
        with phil:
            file = printable(str(self.file.filename if home is None else home.filename))
            return Attributes(self, f"{file}: {named(self)}")

    def _label(self) -> str:
        """What messages about it begin with."""
        if self._where is None:
            self._where = label_of(self)
        return self._where

    def _let_go(self) -> None:
        """Drop the identifier, if `_id` finds it again."""
        if self._path is not None:
            self._oid = None

    def _end(self) -> None:
        """Its file is closed for good."""
        if self._oid is None:
            self._oid = h5d.DatasetID(0) if isinstance(self, h5py.Dataset) else h5g.GroupID(0)

    def _is_there(self) -> bool:
        """Whether its file is open; asks for no lock, and does not open a parked one."""
        # FileChangedError says that a parked file has changed.
        # h5py sets the identifier to 0 when it closes a file.
        found = self._oid
        return (
            bool(found.id)
            if found is not None
            else self._home is not None and (self._home.is_parked() or self._home.is_open)
        )

    def __bool__(self) -> bool:
        found = self._oid
        return bool(found.id) if found is not None else bool(self._home and self._home.is_open)

    def __hash__(self) -> int:
        # By libhdf5's number of the open file, which is another one after parking.
        if self._home is not None:
            self._home.pin()
        return super().__hash__()

    def __eq__(self, other: object) -> Any:
        return self is other or super().__eq__(other)

    def __repr__(self) -> str:
        return super().__repr__().replace("HDF5", "chunkwise", 1)

    @property
    def file(self) -> h5py.File:
        """The file that holds it."""
        return self._file_of(self._id if home_of(self) is None else self)

    @property
    def h5py(self) -> Any:
        """The same object in h5py, with everything that this process has written."""
        pending.settle_all(blocking=not phil._is_owned())
        kinds = (h5py.File, h5py.Group, h5py.Dataset)
        return next(kind for kind in kinds if isinstance(self, kind))(self._id)

    def __reduce__(self) -> Any:
        if not self:
            raise UsageError("the file is closed")
        known = None if home_of(self) is None else self._path
        name = super().name if known is None else known  # type: ignore[misc]
        return _found_again, (self.file.__reduce__(), name)


def home_of(one: Any) -> FileHandle | None:
    """The file of one of ours; of one that an external link led to, nothing is known."""
    return one._home if isinstance(one, Kept) and one._number is None else None


def label_of(dataset: h5py.Dataset) -> str:
    """What messages about a dataset begin with; what is no UTF-8 in it is escaped."""
    home = home_of(dataset)
    # As `dataset.file.filename`, without making a file object.
    filename = os.fsdecode(h5f.get_name(dataset.id)) if home is None else home.filename
    return f"{printable(filename)}: dataset {named(dataset)}"


def named(one: Any) -> str:
    """What an object is called in messages."""
    # For one that a reference led to libhdf5 would search the file: it is called by its address.
    if not isinstance(one, Kept) or home_of(one) is None:
        return printable(str(one.name))
    if one._path is None:
        return f"at address {header_address(one._address()):,}"
    return printable(one._path)


def _found_again(file: Any, path: str | None) -> Any:
    """A copied or unpickled object: the one of that name, in the file opened again."""
    reopen, recipe = file
    if path is None:
        raise UsageError(f"{recipe[0]}: an object without a name cannot be found again")
    return reopen(*recipe)[path]


def absolute(path: str) -> str:
    """A path that leads to the same file from anywhere, links and ``..`` as they are."""
    return path if path.startswith("/") else str(Path(path).absolute())


def is_far(driver: int) -> bool:
    """Whether a driver of libhdf5 brings bytes of a file that may not be local."""
    return driver in _far_drivers()


@cache
def _far_drivers() -> frozenset[int]:
    names = "fileobj_driver", "ROS3D"
    return frozenset(int(getattr(h5fd, name)) for name in names if hasattr(h5fd, name))


@cache
def _default_driver() -> int:
    """The driver of files for which none is given, which an environment variable may set."""
    return int(h5p.create(h5p.FILE_ACCESS).get_driver())


# Files that may be parked, and are not.
_open: weakref.WeakSet[FileHandle] = weakref.WeakSet()


def _make_room() -> None:
    """Park the files that were unused the longest, until a quarter of the room is free."""
    # Asking for the limit takes longer than seeing that none is open.
    most = most_open() if _open else 1
    if len(_open) < most:
        return
    excess = len(_open) - (most - 1 - most // 4)
    for handle in sorted(_open, key=lambda handle: handle.used)[:excess]:
        handle.park()
