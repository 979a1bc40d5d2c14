"""How are files opened and objects found in them?  h5py's way, read-only."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import cast

import h5py
from h5py import AttributeManager

from chunkwise.dataset import Dataset
from chunkwise.errors import CorruptDataError, NotADatasetError, UsageError
from chunkwise.names import HDF5_ERRORS
from chunkwise.objects import address_of, decode_name
from chunkwise.opening import find_dataset, open_h5

# Datasets met so far, by libhdf5's number of the file and the path asked for.
Known = dict[tuple[tuple[int, ...], str], Dataset]


class Group(Mapping[str, "Group | Dataset"]):
    """A group of an open file."""

    def __init__(self, group: h5py.Group, known: Known) -> None:
        self._h5 = group
        self._known = known
        # An external link leads to a group of another file, where the same names lead
        # elsewhere.
        # Not by H5Oget_info, which reads indexes and crashes on damaged ones.
        try:
            self._file_number: tuple[int, ...] = address_of(group.id)[:2]
        except HDF5_ERRORS as error:
            raise CorruptDataError(
                f"{group.file.filename}: group {group.name}: its header cannot be read: {error}; "
                "the file is damaged, or cut off: fetch or copy it again, whole"
            ) from error

    @property
    def h5py(self) -> h5py.Group:
        """The h5py group underneath."""
        return self._h5

    @property
    def name(self) -> str:
        """Full name in its file."""
        return cast("str", self._h5.name)

    @property
    def attrs(self) -> AttributeManager:
        """Attributes, as h5py gives them."""
        return self._h5.attrs

    def __getitem__(self, name: str | bytes) -> Group | Dataset:
        """The object `name`, which may be a path.

        A dataset is the same object each time it is asked for, so that ``f["x"][i]`` in
        a loop keeps its chunk index and its cached chunks.

        Raises
        ------
        chunkwise.errors.DatasetNotFoundError
            When there is no such object (a KeyError); offers near names.
        chunkwise.errors.NotADatasetError
            When it is neither a group nor a dataset (a TypeError).
        """
        self._check_open()
        if isinstance(name, bytes):
            name = decode_name(name)
        if not isinstance(name, str):
            raise NotADatasetError(f"a name is a str, not {type(name).__name__}")
        path = posixpath.join(self.name, name)
        found = self._known.get((self._file_number, path))
        if found is not None:
            return found
        try:
            item = self._h5[name]
        except KeyError:
            # Says what is near, or where a link would lead.
            find_dataset(self._h5.file, path)
            raise
        if isinstance(item, h5py.Dataset):
            return self._known.setdefault((self._file_number, path), Dataset(item))
        if isinstance(item, h5py.Group):
            return Group(item, self._known)
        raise NotADatasetError(f"{path} in {self._h5.file.filename} is a named type, not data")

    def __iter__(self) -> Iterator[str]:
        self._check_open()
        return iter(self._h5)

    def __len__(self) -> int:
        self._check_open()
        return len(self._h5)

    def __contains__(self, name: object) -> bool:
        return name in self._h5

    def _check_open(self) -> None:
        if not self._h5:
            raise UsageError("the file is closed")

    def __repr__(self) -> str:
        return f"<chunkwise {self._h5!r}>"


class File(Group):
    """A file opened read-only; close it, or use it in a ``with`` statement."""

    def __init__(self, file: h5py.File) -> None:
        super().__init__(file, {})

    @property
    def filename(self) -> str:
        """The path it was opened with."""
        return cast("str", self._h5.file.filename)

    def close(self) -> None:
        """Close the file; its datasets cannot be read afterwards."""
        for dataset in list(self._known.values()):
            dataset._release()
        self._known.clear()
        cast("h5py.File", self._h5).close()

    def __enter__(self) -> File:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open(path: str | os.PathLike[str]) -> File:
    """Open an HDF5 or netCDF-4 file for reading.

    Parameters
    ----------
    path : path-like
        A local file.

    Returns
    -------
    File
        ``f["group/dataset"]`` gives a `Dataset`.

    Raises
    ------
    chunkwise.errors.FileFormatError
        When it cannot be opened; says what it is instead, and what to do (an OSError).
    chunkwise.errors.CorruptDataError
        When it can, but is damaged where its objects begin (an OSError).
    """
    file = open_h5(path)
    try:
        return File(file)
    except CorruptDataError:
        file.close()
        raise
