"""Which of many open files does libhdf5 keep open?

A file that is open in libhdf5 takes more than half a megabyte and a descriptor, and a
program may have thousands.  So at most `most_open` of ours are: beyond that, those that
nobody uses are *parked*, the longest unused first.  A parked file is closed in libhdf5 and
opened again when libhdf5 is asked about it; the engine reads its data without.

Nobody uses a file while nobody else refers to the h5py objects that are handed out here,
which a weak reference tells.  All of this happens under h5py's lock.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import resource
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import h5py
from h5py import h5f, h5fd

from chunkwise import pending
from chunkwise.errors import CorruptDataError, FileChangedError, UsageError
from chunkwise.identity import Identity, sample, sample_of
from chunkwise.names import HDF5_ERRORS, encode_name, printable
from chunkwise.objects import address_of
from chunkwise.opening import open_h5
from chunkwise.opening_writable import Mode, open_file, synced, told

# The most files kept open where the system's limit allows.
MOST = 256
# No more than this fraction of the descriptors that the process may have.
FRACTION = 4

phil = h5py._objects.phil

_clock = itertools.count()


def most_open() -> int:
    """Files that libhdf5 keeps open for this module, those in use not counted."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST if limit == resource.RLIM_INFINITY else max(1, min(MOST, limit // FRACTION))


def number_of(group: h5py.HLObject, filename: str) -> tuple[int, ...]:
    """Return libhdf5's number of the file that holds an object.

    Parameters
    ----------
    group : h5py.HLObject
        A group or a dataset.
    filename : str
        For messages.

    Raises
    ------
    chunkwise.errors.CorruptDataError
        When the object's header cannot be read.
    """
    try:
        # Not by H5Oget_info, which reads indexes and crashes on damaged ones.
        return address_of(group.id)[:2]
    except HDF5_ERRORS as error:
        raise CorruptDataError(
            f"{filename}: group {group.name}: its header cannot be read: {error}; the file is "
            "damaged, or cut off: fetch or copy it again, whole"
        ) from error


class FileHandle:
    """A file opened by path, whether libhdf5 has it open or not.

    Parameters
    ----------
    path, mode, options
        As `chunkwise.opening_writable.open_file` takes them, which says what it raises.
    sync
        Whether `flush` and `close` wait until storage has what was written.

    Attributes
    ----------
    filename : str
        The path as it was given.
    number
        By which libhdf5 tells open files apart; another each time the file is opened.
    used : int
        When it was last, as a count of all uses.
    changes : bool
        Whether it may change while it is open: this process has it open for writing, here or
        elsewhere, or another one writes it for us to follow (SWMR).
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        mode: Mode = "r",
        options: dict[str, Any] | None = None,
        sync: bool = True,
    ) -> None:
        self._options = options or {}
        self._sync = sync
        # The working directory may change.
        self._path = str(Path(path).absolute())
        self._objects: weakref.WeakSet[ObjectHandle] = weakref.WeakSet()
        self._id: h5f.FileID | None = None
        self._identity: Identity | None = None
        # Of its bytes, since it was parked.
        self._sample: str | None = None
        self.used = next(_clock)
        self._pinned = self._closed = False
        with phil:
            _make_room()
        opened = open_file(path, mode, self._options)
        self.filename: str = opened.filename
        self.writable = mode != "r"
        with phil:
            self._opened(opened)

    @property
    def is_open(self) -> bool:
        """Whether it was not closed, by `close` or behind our back."""
        return not self._closed and (self._id is None or bool(self._id.valid))

    def is_parked(self) -> bool:
        """Whether libhdf5 has closed it, while it is open for its user.

        Raises
        ------
        FileChangedError
            It is parked, and is not the file any more that it was.
        """
        if self._closed or self._id is not None:
            return False
        # Somebody may have opened it for writing meanwhile; what waits is a change, too.
        if self._identity is not None:
            pending.settle_inode(self._identity.file)
        self._check()
        return True

    def root(self) -> ObjectHandle:
        """The file as a group."""
        return ObjectHandle(None, self, "/")

    def pin(self) -> None:
        """Never park it: somebody has objects of it that are not known here."""
        with phil:
            self._pinned = True
            _open.discard(self)

    def close(self) -> None:
        """Close it for good."""
        with pending.closing(self._h5_file()):
            try:
                self._settle()
            except pending.BusyError:
                raise
            except BaseException:
                self._close()
                raise
            self._close()

    def _close(self) -> None:
        with phil, pending.without_waiting():
            self._closed = True
            _open.discard(self)
            identifier, self._id = self._id, None
            if identifier is not None and identifier.valid:
                file = h5py.File(identifier)
                with self._written(file, "cannot be closed"):
                    file.close()

    def flush(self) -> None:
        """Hand all that was written to storage.

        Raises
        ------
        CannotWriteError
            It does not take it.
        """
        self._settle()
        with phil, pending.without_waiting():
            if self._id is None or not self._id.valid:
                raise UsageError("the file is closed")
            file = h5py.File(self._id)
            with self._written(file, "cannot be flushed"):
                file.flush()

    def _settle(self) -> None:
        """Wait for those who are writing, who may wait for h5py's lock, without it."""
        file = self._h5_file()
        if file is not None:
            with told(printable(self.filename), "cannot be written"):
                pending.settle_file(file)

    def _h5_file(self) -> h5py.File | None:
        """The file as h5py has it, where it is open and may be written."""
        with phil:
            is_open = self.writable and self._id is not None and self._id.valid
            return h5py.File(self._id) if is_open else None

    @contextlib.contextmanager
    def _written(self, file: h5py.File, doing: str) -> Iterator[None]:
        if not self.writable:
            yield
            return
        where = printable(self.filename)
        with synced(file, where, self._sync), told(where, doing):
            yield

    def find(self, wanted: ObjectHandle) -> h5py.Group | h5py.Dataset:
        """Give the h5py object, opening what has to be opened; see `ObjectHandle.get`."""
        with phil:
            self.used = next(_clock)
            if wanted.h5 is not None and wanted.id.id:
                return wanted.h5
            # An object that is there and not valid was closed with its file.
            if wanted.h5 is not None or not self.is_open:
                raise UsageError("the file is closed")
            if self._id is None:
                self._reopen()
            file = h5py.File(self._id)
            # As bytes, since names need not be UTF-8.
            wanted.set(file if wanted.path == "/" else file[encode_name(wanted.path)])
            return wanted.h5

    def add(self, handed_out: ObjectHandle) -> None:
        """Take note of an object on which this file's parking depends."""
        with phil:
            self._objects.add(handed_out)

    def park(self) -> None:
        """Close it in libhdf5, unless somebody uses it."""
        left = [(one, weakref.ref(one.h5)) for one in self._objects if one.h5 is not None]
        for one, _ in left:
            one.set(None)
        used = [(one, h5) for one, reference in left if (h5 := reference()) is not None]
        for one, h5 in used:
            one.set(h5)
        if not used:
            _open.discard(self)
            if not self._remember():
                self._pinned = True
                return
            # The last reference to it.  `h5py.File.close` would go through all that is open
            # in this process, in search of objects to mark as closed.
            self._id = None

    def _remember(self) -> bool:
        """Keep what the file is known by while it is parked; False where that cannot be told."""
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

    def _opened(self, file: h5py.File) -> None:
        """Libhdf5 has the file open: for how long, and what to know it by?"""
        identifier = file.id
        sec2 = identifier.get_access_plist().get_driver() == h5fd.SEC2
        if sec2:
            descriptor = identifier.get_vfd_handle()
            now = Identity.of(os.fstat(descriptor))
            # The bytes as well: not every system keeps its own time of change.
            if self._identity not in (None, now) or self._sample not in (None, sample(descriptor)):
                file.close()
                raise self._changed()
            self._identity, self._sample = now, None
        try:
            self.number = number_of(file, file.filename)
        except CorruptDataError:
            file.close()
            raise
        self._id = identifier
        # libhdf5 tells the intent of whoever opened the file first.
        self.changes = identifier.get_intent() != h5f.ACC_RDONLY
        if sec2 and not self.changes and not self._pinned:
            _open.add(self)
        else:
            self._pinned = True

    def _reopen(self) -> None:
        self._check()
        _make_room()
        self._opened(open_h5(self._path, **self._options))

    def _check(self) -> None:
        """See that the path still leads to the file that was opened."""
        try:
            status = os.stat(self._path)  # noqa: PTH116 (before each read of a parked file)
        except OSError as error:
            raise FileChangedError(
                f"{printable(self.filename)}: the file cannot be found again: {error.strerror}; "
                "leave files in their place while they are open"
            ) from None
        now = Identity.of(status)
        if now != self._identity:
            self._check_bytes(now)

    def _check_bytes(self, now: Identity) -> None:
        """See whether a file of which the system says something else holds what it held."""
        known = self._identity
        if known is None or not known.may_be(now) or not known.explains(now):
            raise self._changed()
        try:
            same = sample_of(self._path) == self._sample
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


class _Identifier(Protocol):
    """What is looked at of `h5py.h5d.DatasetID` and others."""

    id: int


class _Nothing:
    id = 0


_NOTHING = _Nothing()


class ObjectHandle:
    """A group or dataset, found again where its file was parked meanwhile.

    Parameters
    ----------
    h5
        The object, as h5py has it; None is looked up when it is asked for.
    file
        Its file; None for an object whose file is not ours to close.
    path
        Under which the file has it.
    """

    __slots__ = ("__weakref__", "file", "h5", "id", "path")

    def __init__(
        self,
        h5: h5py.Group | h5py.Dataset | None,
        file: FileHandle | None = None,
        path: str = "/",
    ) -> None:
        self.file, self.path = file, path
        self.set(h5)
        if file is not None:
            file.add(self)

    def set(self, h5: h5py.Group | h5py.Dataset | None) -> None:
        """Remember the object while it is open in libhdf5."""
        self.h5 = h5
        # Its own `id` is 0 when it is closed; looking at it takes no lock.
        self.id: _Identifier = _NOTHING if h5 is None else h5.id

    def get(self) -> Any:
        """The `h5py.Group` or `h5py.Dataset`; refer to it as long as it is needed.

        An object that is got from it (an identifier, another group) does not keep the
        file from being parked.

        Raises
        ------
        chunkwise.errors.UsageError
            When the file is closed.
        chunkwise.errors.FileChangedError
            When it was parked, and is not the file any more that it was.
        """
        return self.h5 if self.file is None else self.file.find(self)

    def pin(self) -> Any:
        """As `get`, for somebody of whom no more is known."""
        with phil:
            found = self.get()
            if self.file is not None:
                self.file.pin()
            return found

    @property
    def is_open(self) -> bool:
        """Whether its file is."""
        return bool(self.h5) if self.file is None else self.file.is_open

    def is_parked(self) -> bool:
        """See `FileHandle.is_parked`."""
        return self.file is not None and self.file.is_parked()


# Files that may be parked, and are not.
_open: weakref.WeakSet[FileHandle] = weakref.WeakSet()


def _make_room() -> None:
    """Park what was not used for the longest time, until a quarter of the room is free."""
    most = most_open()
    if len(_open) < most:
        return
    excess = len(_open) - (most - 1 - most // 4)
    for handle in sorted(_open, key=lambda handle: handle.used)[:excess]:
        handle.park()
