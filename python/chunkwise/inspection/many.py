"""What do many files hold: names, kinds, shapes and types?"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from h5py import h5d

from chunkwise import _native
from chunkwise.errors import ChunkwiseError, UsageError
from chunkwise.files.objects import Entry, Kind, attribute_names, walk
from chunkwise.files.unclosed import open_readable
from chunkwise.handles.pending import flush_beside
from chunkwise.inspection.collect import extent_of
from chunkwise.inspection.native import dtype_of, type_of
from chunkwise.names import HDF5_ERRORS, decode_name, hdf5_reason, printable


class ListedObject(NamedTuple):
    """A name in a file, and what has it.

    Attributes
    ----------
    path : str
        Its path from the root group, which is ``"/"``.
    kind : str
        ``group``, ``dataset`` or ``named_type``; ``hard_link`` for another name of an object met
        before; ``soft_link``, ``external_link``, ``user_link``; ``unreadable``.
    attributes : tuple of str
        The names of an object's attributes, sorted; empty of a link.
    shape : tuple of int or None
        Of a dataset; None of others, and of a null dataspace.
    dtype : numpy.dtype or None
        Of a dataset; None of others, and of a type that h5py does not know.
    chunks : tuple of int or None
        The shape of its chunks; None without chunks.
    target : str or None
        Where a link leads; why an ``unreadable`` object cannot be read.
    """

    path: str
    kind: Kind
    attributes: tuple[str, ...] = ()
    shape: tuple[int, ...] | None = None
    dtype: np.dtype[Any] | None = None
    chunks: tuple[int, ...] | None = None
    target: str | None = None


class FileListing(NamedTuple):
    """What a file holds.

    Attributes
    ----------
    path : str
        The file, as it was given.
    objects : tuple of ListedObject
        All names, groups before their members; empty with an `error`.
    error : Exception or None
        Why it cannot be opened; None if it can.
    """

    path: str
    objects: tuple[ListedObject, ...]
    error: Exception | None = None


def list_many(paths: Iterable[str | os.PathLike[str]]) -> Iterator[FileListing]:
    """List names, kinds, shapes and types of many files, on all threads.

    Only metadata is read, a few files at a time: they come one by one, in their
    order.  One that cannot be opened comes with its error, and the others after it.  libhdf5 lists
    what is unusual, and crashes on some damaged files; ``chunkwise inspect FOLDER`` works in other
    processes.

    Parameters
    ----------
    paths : iterable of path-like
        Local HDF5 or netCDF-4 files.

    Returns
    -------
    iterator of FileListing
        One for each path.

    Raises
    ------
    UsageError
        For a single path.

    Examples
    --------
    >>> from pathlib import Path
    >>> paths = Path("runs").rglob("*.h5")
    >>> for path, objects, error in chunkwise.list_many(paths):         # doctest: +SKIP
    ...     print(path, error or [(one.path, one.shape, one.dtype) for one in objects])
    """
    if isinstance(paths, str | os.PathLike):
        raise UsageError(f"{printable(os.fspath(paths))}: list_many takes a list of files")
    return _each([os.fspath(path) for path in paths])


def _each(paths: list[str]) -> Iterator[FileListing]:
    listed = _native.Listings(paths, _native.thread_count(), _natively)
    for path, found in zip(paths, listed, strict=True):
        # An error, too, is in libhdf5's words.
        yield FileListing(path, found) if isinstance(found, tuple) else _by_libhdf5(path)


def _natively(found: list[_native.NameInShort]) -> tuple[ListedObject, ...] | None:
    """What a file's own bytes say; None where libhdf5 has to say it."""
    objects: list[ListedObject] = []
    for path, kind, attributes, shape, datatype, chunks, target in found:
        dtype = None
        if datatype is not None:
            known = type_of(datatype)
            if known is None:
                return None
            dtype = known.dtype
        objects.append(ListedObject(path, kind, attributes, shape, dtype, chunks, target))
    return tuple(objects)


def _by_libhdf5(path: str) -> FileListing:
    """What libhdf5 says, also of a file that its writer did not close."""
    try:
        flush_beside(path)
        with open_readable(path) as file:
            return FileListing(path, tuple(map(_listed, walk(file))))
    except (ChunkwiseError, *HDF5_ERRORS) as error:
        return FileListing(path, (), error)


def _listed(entry: Entry) -> ListedObject:
    path, kind, identifier = entry.path, entry.kind, entry.identifier
    if identifier is None:
        return ListedObject(path, kind, target=entry.target or entry.reason)
    try:
        attributes = tuple(map(decode_name, attribute_names(identifier)))
        if not isinstance(identifier, h5d.DatasetID):
            return ListedObject(path, kind, attributes)
        shape, _ = extent_of(identifier.get_space())
        dcpl = identifier.get_create_plist()
        chunks = dcpl.get_chunk() if dcpl.get_layout() == h5d.CHUNKED else None
        dtype = dtype_of(identifier.get_type())
        return ListedObject(path, kind, attributes, shape, dtype, chunks)
    except HDF5_ERRORS as error:
        return ListedObject(path, "unreadable", target=hdf5_reason(error))
