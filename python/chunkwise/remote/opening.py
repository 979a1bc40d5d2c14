"""What is a URL or a file object, and how is the file behind it opened?"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import h5py
from h5py import h5f, h5fd

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import FileFormatError, RemoteError, UsageError, like
from chunkwise.files.mended import narrowing
from chunkwise.files.objects import Address, address_of
from chunkwise.files.unclosed import ReadOnlyFile, close_at_exit
from chunkwise.names import HDF5_ERRORS, parts_of_url, printable, shown_url, without_secrets
from chunkwise.remote.faults import Patience, final, judged, with_time_outs
from chunkwise.remote.source import RemoteBytes, Stream
from chunkwise.remote.stores import AnyStore, BytesStore, FileStore, S3Store, Store, WebStore
from chunkwise.remote.urls import CACHES, protocol
from chunkwise.words import installing

_SIGNATURE: Final = b"\x89HDF\r\n\x1a\n"

# How long requests are waited for.
PATIENCE = Patience()


@dataclass(frozen=True)
class Opened:
    """A file that no path leads to, open for reading."""

    file: h5py.File
    storage: _native.Storage | None  # Its bytes for the engine; None if h5py alone can read it
    name: str  # What it is called
    url: str | None = None  # By which another process opens it
    storage_options: Mapping[str, Any] | None = None  # With which it does
    # Where its bytes come from, if they are read part by part.
    source: RemoteBytes | None = None
    descriptor: int | None = None  # Of a local file that Python has open

    def narrowed(self, options: Mapping[str, Any]) -> tuple[h5py.File, str] | None:
        """Open it with narrow lengths of chunks, and say why; None if it has none too wide."""
        metadata = None if self.storage is None else _native.Metadata.of_storage(self.storage)
        found = None if metadata is None else narrowing(metadata.narrowed())
        if found is None:
            return None
        if self.source is not None:
            shown: Any = Stream(self.source, *found.patches)
        elif self.descriptor is not None:
            shown = ReadOnlyFile(self.descriptor, *found.patches)
        else:
            return None
        return _as_hdf5(shown, options, self.name), found.said


def open_url(url: str, storage_options: Mapping[str, Any] | None, **options: Any) -> Opened:
    """Open what fsspec knows by a URL."""
    name = shown_url(url)
    copy = whole_copy(url, dict(storage_options or {}), name)
    if copy is None:
        return _opened(source_of_url(url, storage_options), options, url, storage_options)
    file, storage = copy
    made = _as_hdf5(file, options, name)
    local = _descriptor_of(file)
    return Opened(made, storage, name, url, storage_options, descriptor=local)


def source_of_url(url: str, storage_options: Mapping[str, Any] | None) -> RemoteBytes:
    """The bytes of what fsspec knows by a URL, of whatever format."""
    name = shown_url(url)
    return _source(partial(_store_of_url, url, dict(storage_options or {}), name), name)


def open_object(file: Any, **options: Any) -> Opened:
    """Open a file object, which stays its owner's; parameters and errors as of `open_url`."""
    local = _descriptor_of(file)
    if local is not None:
        made = _as_hdf5(file, options, _named(file))
        storage = _native.Storage.of_descriptor(local)
        return Opened(made, storage, str(made.filename), descriptor=local)
    found = _source_of_object(file)
    if found is None:
        raise UsageError(
            f"{_named(file)}: is no file object that can be read: give a path, a URL, or "
            "what has read, seek and tell, open in binary mode"
        )
    return _opened(found, options)


def storage_of(dataset: h5py.Dataset) -> _native.Storage | None:
    """The bytes of a file that h5py itself has opened on a file object."""
    driver = getattr(h5fd, "fileobj_driver", None)
    if driver is None:
        return None
    file = _native.file_object(library(), dataset.id.id, driver)
    if file is None:
        return None
    if isinstance(file, Stream):
        return file.source.storage
    local = _storage_of_local(file)
    if local is not None:
        return local
    # Opened again, it may hold something else: libhdf5 gives each opening another number.
    number = address_of(dataset.id)[:2]
    with contextlib.suppress(TypeError):
        known, source = _of_objects.get(file, (None, None))
        if source is not None and known == number:
            return source.storage
    source = _source_of_object(file, shared=True)
    if source is None:
        return None
    with contextlib.suppress(TypeError):
        _of_objects[file] = number, source
    return source.storage


# Sources of file objects that h5py has opened, and libhdf5's number of the open file.
_of_objects: weakref.WeakKeyDictionary[Any, tuple[Address, RemoteBytes]] = (
    weakref.WeakKeyDictionary()
)


def _named(file: Any) -> str:
    """A file object in messages."""
    return printable(repr(file))


def whole_copy(url: str, options: dict[str, Any], name: str) -> tuple[Any, _native.Storage] | None:
    """The copy on this machine that ``filecache::`` and ``simplecache::`` make, and its bytes."""
    if not url.startswith(("filecache::", "simplecache::")):
        return None
    fs, path = _found(url, options, name)
    try:
        file = fs.open(path, "rb")
    except FileNotFoundError:
        # It says so, too, where nobody answers.
        raise RemoteError(
            f"{name}: fsspec finds no such object, or has no answer; check the URL and the network"
        ) from None
    except Exception as error:
        # Not as the cause: its words may have the whole URL.
        raise RemoteError(f"{name}: {final(judged(error, PATIENCE), 1)}") from None
    storage = _storage_of_local(file)
    return None if storage is None else (file, storage)


def _store_of_url(url: str, options: dict[str, Any], name: str) -> Store:
    fs, path = _found(url, options, name)
    chain = parts_of_url(url)
    if len(chain) > 1 and protocol(chain[0]) in CACHES:
        # If several read parts at a time, they would write their copies several times, too.
        try:
            return FileStore(fs.open(path, "rb"))
        except Exception as error:
            raise final(judged(error, PATIENCE), 1) from None
    return _store_in(fs, path)


def _found(url: str, options: dict[str, Any], name: str) -> tuple[Any, str]:
    """File system and path of a URL."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as wrong:
        raise UsageError(
            f"{name}: to open a URL fsspec is needed ({wrong}): {installing('remote')}"
        ) from None
    try:
        fs, path = url_to_fs(url, **with_time_outs(url, options, PATIENCE))
        return fs, str(path)
    except ImportError as wrong:
        raise UsageError(f"{name}: {wrong}; {installing('remote')}") from None
    except (ValueError, TypeError, KeyError) as wrong:
        raise UsageError(
            f"{name}: fsspec does not take it: {without_secrets(str(wrong))}; check the URL and "
            "storage_options"
        ) from None
    except OSError as wrong:
        said = without_secrets(str(wrong))
        raise like(RemoteError, wrong)(f"{name}: {said}; check the URL") from None


def _store_in(fs: Any, path: str) -> Store:
    module = type(fs).__module__
    if module == "fsspec.implementations.http":
        return WebStore(fs, path, PATIENCE)
    if module.startswith("s3fs.") and hasattr(fs, "_get_s3_method_kwargs"):
        return S3Store(fs, path)
    return AnyStore(fs, path)


def _remade(fs: Any) -> Any:
    """The file system again, in this process: of another one, its loop is not here."""
    pid = getattr(fs, "_pid", None)
    if pid in (None, os.getpid()):
        return fs
    return type(fs)(*fs.storage_args, **fs.storage_options)


def _source(make: Callable[[], Store], name: str) -> RemoteBytes:
    try:
        return RemoteBytes(make, name, PATIENCE)
    except RemoteError as error:
        raise like(RemoteError, error)(f"{name}: {error}") from error


def _source_of_object(file: Any, *, shared: bool = False) -> RemoteBytes | None:
    """A source of a file object; with `shared`, one that leaves its position alone, or None."""
    fsspec_file = _in_fsspec(file)
    if fsspec_file is not None:
        fs, path = fsspec_file
        return _source(lambda: _store_in(_remade(fs), path), shown_url(str(path)))
    name = _named(file)
    if type(file) is io.BytesIO:
        return _source(lambda: BytesStore(file), name)
    if shared or not all(hasattr(file, method) for method in ("read", "seek", "tell")):
        return None
    return _source(lambda: FileStore(file), name)


def _in_fsspec(file: Any) -> tuple[Any, str] | None:
    """File system and path of a file that fsspec has opened for reading, as it is stored."""
    try:
        from fsspec.core import OpenFile
        from fsspec.spec import AbstractBufferedFile
    except ImportError:
        return None
    if isinstance(file, OpenFile):
        return (file.fs, file.path) if file.compression is None and "r" in file.mode else None
    if not isinstance(file, AbstractBufferedFile) or file.mode != "rb":
        return None
    # Subclasses may give other bytes than are stored; those of stores do not.
    return (file.fs, str(file.path)) if getattr(file, "fs", None) is not None else None


def _storage_of_local(file: Any) -> _native.Storage | None:
    """The bytes of a local file that Python has open; reads do not use its position."""
    descriptor = _descriptor_of(file)
    return None if descriptor is None else _native.Storage.of_descriptor(descriptor)


def _descriptor_of(file: Any) -> int | None:
    """The descriptor of a local file that Python has open for reading, as it is stored."""
    compression = getattr(file, "compression", None)
    if type(file).__module__ == "fsspec.implementations.local" and compression is None:
        file = getattr(file, "f", file)
    raw = file.raw if type(file) is io.BufferedReader else file
    if type(raw) is not io.FileIO or raw.closed or not raw.readable() or raw.writable():
        return None
    descriptor = raw.fileno()
    return descriptor if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


def _opened(
    source: RemoteBytes,
    options: Mapping[str, Any],
    url: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Opened:
    stream = Stream(source)
    file = _as_hdf5(stream, options, source.shown)
    plist = file.id.get_create_plist()
    if hasattr(plist, "get_file_space_strategy"):
        strategy = plist.get_file_space_strategy()[0]
        if strategy == getattr(h5f, "FSPACE_STRATEGY_PAGE", 1):
            source.of_pages(plist.get_file_space_page_size())
    return Opened(file, source.storage, source.shown, url, storage_options, source)


def _as_hdf5(given: Any, options: Mapping[str, Any], name: str) -> h5py.File:
    """Have libhdf5 open a file object."""
    try:
        file = h5py.File(given, "r", **options)
    except HDF5_ERRORS as error:
        if getattr(given, "error", None) is not None:
            raise given.error from error
        if options and not isinstance(error, OSError):
            raise like(UsageError, error)(
                f"{name}: cannot be opened with {options}: {error}"
            ) from None
        raise like(FileFormatError, error)(f"{name}: {_refused(given, error)}") from None
    close_at_exit(file.id)
    return file


def _refused(given: Any, error: BaseException) -> str:
    """Why libhdf5 does not open it, and what to do."""
    given.seek(0)
    begin = given.read(512)
    if not begin:
        return "it is empty; nothing was written to it yet"
    if begin.startswith((b"CDF\x01", b"CDF\x02", b"CDF\x05")):
        return "a netCDF-3 file, not HDF5; download it, and convert it with: nccopy -k nc4"
    if begin.lstrip()[:1] == b"<":
        return "a page or a message (it begins with '<'), not HDF5; check the URL"
    if not begin.startswith(_SIGNATURE) and "signature" in str(error):
        return "not an HDF5 file; check the URL"
    if "truncated" in str(error):
        return f"truncated: {error}; fetch or upload it again, whole"
    return f"libhdf5 cannot open it: {error}"
