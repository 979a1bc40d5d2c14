"""Which open files can be read by their own bytes, without libhdf5?"""

from __future__ import annotations

import os
from io import RawIOBase
from pathlib import Path

import h5py
from h5py import h5f, h5fd
from h5py._objects import phil

from chunkwise import _native
from chunkwise._lib import library


def open_metadata(file: h5py.File) -> _native.Metadata | None:
    """Read the bytes of an open file; None where libhdf5 has to, such as one written to."""
    # It stays open in libhdf5, which keeps others, and this process, from writing to it.
    with phil:
        identifier = file.id
        driver = identifier.get_access_plist().get_driver()
        if driver == getattr(h5fd, "fileobj_driver", None):
            given = _native.file_object(library(), identifier.id, driver)
            storage = getattr(given, "storage", None) if isinstance(given, RawIOBase) else None
            return None if storage is None else _native.Metadata.of_storage(storage)
        if driver != h5fd.SEC2:
            return None
        # Also of a file that was opened for writing elsewhere in this process.
        if identifier.get_intent() != h5f.ACC_RDONLY:
            return None
        return _native.Metadata.of_descriptor(identifier.get_vfd_handle())


def damaged_metadata(path: str | os.PathLike[str]) -> _native.Metadata | None:
    """Read the bytes of a file, of which any may be wrong; None without a sound superblock."""
    try:
        with Path(path).open("rb") as stream:
            return _native.Metadata.of_descriptor(stream.fileno(), damaged=True)
    except OSError:
        return None
