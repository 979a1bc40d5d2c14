"""How is a file opened or created?  As in h5py."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import h5py
from h5py._objects import ObjectID

from chunkwise.dataset import Dataset
from chunkwise.errors import ChunkwiseError, UsageError
from chunkwise.files.leading import External as External
from chunkwise.files.leading import checked
from chunkwise.files.opening_writable import Mode
from chunkwise.group import Group
from chunkwise.handles.handle import FileHandle, Index, Kept
from chunkwise.names import is_url
from chunkwise.routing import bindings
from chunkwise.settings import check_environment

__all__ = ["Dataset", "File", "Group", "open", "wrap"]


class File(Group, h5py.File):  # type: ignore[misc]
    """An h5py file that is read and written in parallel.

    Close it, or use it in a ``with`` statement.

    Parameters
    ----------
    name : path-like
        As for `open`; or anything else that `h5py.File` takes, such as a file-like object.
    mode, sync, index, external, storage_options, **options
        See `open`.
    driver : str, optional
        As in h5py.  If it is not one of libhdf5's own drivers, h5py reads and writes the file.
    """

    def __init__(
        self,
        name: Any,
        mode: Mode = "r",
        driver: str | None = None,
        *args: Any,
        sync: bool = True,
        index: Index = None,
        external: External = "anywhere",
        storage_options: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        check_environment()
        checked(external, "open()")
        if isinstance(name, Kept):
            assert name._home is not None
            home = name._home
        elif isinstance(name, ObjectID):
            home = FileHandle(h5py.File(name), sync=sync)
        elif driver is None and not args and is_url(name):
            home = _opened_url(name, mode, storage_options, options, sync, index)
        elif storage_options is not None:
            raise UsageError("storage_options: are for URLs only; leave them out for other files")
        elif index not in (None, False) and not isinstance(name, str | bytes | os.PathLike):
            raise UsageError("index=... is for files opened by path or URL; leave it out")
        elif driver is None and not args and mode == "r" and hasattr(name, "read"):
            from chunkwise.remote.opening import open_object

            opened = open_object(name, **options)
            home = FileHandle(opened.file, options=options, sync=sync, remote=opened)
        elif driver is not None or args or not isinstance(name, str | bytes | os.PathLike):
            home = FileHandle(h5py.File(name, mode, driver, *args, **options), sync=sync)
        else:
            home = FileHandle.open(os.fsdecode(name), mode, options, sync)
            home.use_sidecar(index)
        if not isinstance(name, Kept):
            home.external = external
        # It has no identifier of its own to drop.
        self._home, self._open_datasets = home, home.open_datasets

    @property  # type: ignore[misc]
    def _id(self) -> Any:
        return self._home.id

    def _is_there(self) -> bool:
        return self._home.is_open

    __bool__ = _is_there

    @property
    def filename(self) -> str:
        """The path it was opened with."""
        return self._home.filename

    @property
    def swmr_mode(self) -> bool:
        """Whether others may read while it is written (SWMR); set it to begin."""
        return bool(super().swmr_mode)

    @swmr_mode.setter
    def swmr_mode(self, value: bool) -> None:
        # Pending data is written as before.
        self._home.settle()
        h5py.File.swmr_mode.fset(self, value)

    def flush(self) -> None:
        """Encode pending chunks, and write everything to storage; return when it is there.

        Raises
        ------
        chunkwise.errors.CannotWriteError
            When the data does not reach storage: a full disk, a quota.
        """
        self._check_open()
        self._flush_linked()
        self._home.flush()

    def close(self) -> None:
        """Close the file, after what `flush` does; its datasets cannot be used afterwards.

        Raises
        ------
        chunkwise.errors.CannotWriteError
            As for `flush`; the file is closed nevertheless.
        """
        try:
            try:
                self._flush_linked()
            finally:
                # Pending data is written while the datasets still exist.
                self._home.close()
        finally:
            opened = list(self._open_datasets.values())
            self._open_datasets.clear()
            bindings.end_reads([bound for dataset in opened for bound in dataset._release()])

    def _flush_linked(self) -> None:
        """Flush datasets that external links led to, in other files."""
        if self._home.changes and self._home.is_open:
            for dataset in list(self._open_datasets.values()):
                dataset._flush_outside(self._home.number)

    def __enter__(self) -> File:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.close()
        except ChunkwiseError as second:
            if error is None:
                raise
            # The caller should hear what went wrong first.
            warnings.warn(str(second), RuntimeWarning, stacklevel=2)

    def __reduce__(self) -> Any:
        return _reopened, self._home.recipe()


# Groups and datasets have a file, too.
Kept._file_of = File


def _opened_url(
    url: str,
    mode: Mode,
    storage_options: Mapping[str, Any] | None,
    options: dict[str, Any],
    sync: bool,
    index: Index,
) -> FileHandle:
    from chunkwise.remote.urls import local_path

    path = local_path(url)
    if path is not None:
        home = FileHandle.open(path, mode, options, sync)
        home.use_sidecar(index)
        return home
    if mode != "r":
        raise UsageError(
            f"mode={mode!r}: a URL can only be read; write a local file, and upload it"
        )
    if index is True:
        raise UsageError("index=True: of a URL, say which sidecar is meant: index=PATH")
    from chunkwise.remote.opening import open_url

    opened = open_url(url, storage_options, **options)
    home = FileHandle(opened.file, options=options, sync=sync, remote=opened)
    home.use_sidecar(index)
    return home


def _reopened(path: str, options: dict[str, Any], sync: bool) -> File:
    return File(path, "r", sync=sync, **options)


def open(
    path: Any,
    mode: Mode = "r",
    *,
    sync: bool = True,
    index: Index = None,
    external: External = "anywhere",
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> File:
    """Open an HDF5 or netCDF-4 file, or create one.

    Parameters
    ----------
    path : path-like, URL or file object
        A local file; a URL that fsspec knows, such as ``https://...`` or ``s3://...``; or an
        object with ``read``, ``seek`` and ``tell``, which stays open (see `docs/remote.md`).
    mode : str
        As in h5py: ``r`` reads; ``r+`` reads and writes an existing file; ``w`` creates one, and
        replaces an existing one; ``x`` (or ``w-``) creates one only if none exists; ``a`` creates
        one or writes the existing one.
    sync : bool
        Whether `File.flush` and `File.close` return only when storage has the data, so
        that it survives a crash of the machine; otherwise when the system has it.
    index : path-like or bool, optional
        A sidecar that says where the chunks lie, as ``chunkwise index`` makes it.  None takes
        ``PATH.cwi`` if it is there, with a warning if it does not hold any more; False takes none;
        True and a path are an error where there is none that holds.  Of a URL, a path has to be
        given.
    external : {"anywhere", "folder", "none"}, default "anywhere"
        How far the file may lead, by external data, virtual datasets and external links: as far as
        libhdf5 follows it, to files in its folder and below (symbolic links resolved), or to no
        other file.  What leads farther is an error when it is read.  Files that are not local lead
        to no other file, whatever is given.
    storage_options : mapping, optional
        For fsspec, if `path` is a URL.
    **options
        Further keywords of `h5py.File`, such as `libver`, `userblock_size`, `fs_strategy`,
        `track_order`, and `swmr` to follow a file's writer.

    Returns
    -------
    File
        ``f["group/dataset"]`` gives a `Dataset`.

    Raises
    ------
    chunkwise.errors.FileFormatError
        When it cannot be opened; says what it is instead, and what to do (an OSError).
    chunkwise.errors.CorruptDataError
        When its objects are damaged at their beginning (an OSError).
    chunkwise.errors.CannotWriteError
        When it cannot be created or written: no such folder, no permission, open elsewhere (an
        OSError).
    chunkwise.errors.AlreadyExistsError
        When it exists and mode is ``x`` (a FileExistsError).
    chunkwise.errors.FileChangedError
        When the file has changed since the sidecar was made that `index` names (an OSError).
    chunkwise.errors.RemoteError
        When a URL cannot be read: not found, no permission, no answer (an OSError).
    chunkwise.errors.UsageError
        For an unknown mode, option or kind of URL (a ValueError).
    """
    return File(
        path,
        mode,
        sync=sync,
        index=index,
        external=external,
        storage_options=storage_options,
        **options,
    )


def wrap(dataset: h5py.Dataset, *, external: External = "anywhere") -> Dataset:
    """Return a second object for the same dataset, which the engine reads and writes.

    h5py's own object stays as it is.  What is written by the second one may wait in memory: h5py's
    object sees it after ``flush()`` or ``close()``.

    Parameters
    ----------
    dataset : h5py.Dataset
        A dataset of a file in any mode.  If the file is open for writing, libhdf5 reads it, and
        chunkwise writes it in parallel.
    external : {"anywhere", "folder", "none"}, default "anywhere"
        How far its file may lead for its data; see `open`.

    Returns
    -------
    Dataset
        Valid as long as its file is open; `dataset` itself if it is chunkwise's.

    Raises
    ------
    chunkwise.errors.UsageError
        When `dataset` is something else (a ValueError).
    """
    if isinstance(dataset, Dataset):
        return dataset
    if not isinstance(dataset, h5py.Dataset):
        raise UsageError(f"wrap() takes an h5py.Dataset, not {type(dataset).__name__}")
    made = Dataset._of(dataset)
    if external != "anywhere":
        known = bindings.bounds_of(dataset)
        made._bounds = replace(known, external=checked(external, "wrap()"))
    return made
