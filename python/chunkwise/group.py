"""How are objects found in a file, and made in it?  h5py's way."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import h5py
import numpy as np

from chunkwise import pending
from chunkwise.attributes import Attributes
from chunkwise.creating import Chunks, MaxShape, Request, create
from chunkwise.dataset import Dataset
from chunkwise.errors import (
    DatasetNotFoundError,
    MismatchError,
    NameTakenError,
    NotADatasetError,
    ReadOnlyError,
    UsageError,
    like,
)
from chunkwise.grammar import Pipeline
from chunkwise.handles import FileHandle, ObjectHandle, number_of
from chunkwise.names import HDF5_ERRORS, decode_name, encode_name, hdf5_reason, printable, shown
from chunkwise.objects import Address, address_of, names_of
from chunkwise.opening import find_dataset

# Datasets met so far.  In a file that nobody writes, by the path asked for and the number of the
# file that it is in, which is None for the file that was opened.  In one that is written here, by
# address, because names change, and two names of a dataset must not have two caches.
Known = dict[tuple[tuple[int, ...] | None, str] | Address, Dataset]


class Group(Mapping[str, "Group | Dataset"]):
    """A group of an open file; what it makes needs one that is open for writing."""

    def __init__(
        self, handle: ObjectHandle, file: FileHandle, known: Known, number: tuple[int, ...] | None
    ) -> None:
        self._handle = handle
        self._file = file
        self._known = known
        self._number = number

    @property
    def _h5(self) -> h5py.Group:
        """As `h5py`, for as long as something refers to it."""
        return self._handle.get()

    @property
    def h5py(self) -> h5py.Group:
        """The h5py group underneath, after all that was written; libhdf5 keeps its file open."""
        # Links and virtual datasets lead to other files.
        pending.settle_all()
        return cast("h5py.Group", self._handle.pin())

    @property
    def name(self) -> str:
        """Full name in its file."""
        return cast("str", self._h5.name)

    @property
    def attrs(self) -> Any:
        """Attributes: h5py's `AttributeManager`, or a mapping that reads like it (read-only)."""
        return Attributes.of(self._handle)

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
        if not name:
            raise DatasetNotFoundError(f"{self._file.filename}: no object has an empty name")
        path = posixpath.join(self._handle.path, name)
        found = self._known.get((self._number, path))
        if found is not None:  # Never in a file that changes.
            return found
        # Its file stays open as long as this refers to it.
        h5 = self._h5
        try:
            # As bytes, since names need not be UTF-8.
            item = h5[encode_name(name)]
        except KeyError:
            # Says what is near, or where a link would lead.
            find_dataset(h5.file, path)
            raise
        if not isinstance(item, h5py.Dataset | h5py.Group):
            raise NotADatasetError(f"{path} in {h5.file.filename} is a named type, not data")
        number = number_of(item, h5.file.filename)
        own = number == self._file.number
        if not own:
            # An external link led to another file, where the same names lead elsewhere.
            self._file.pin()
        if isinstance(item, h5py.Group):
            handle = ObjectHandle(item, self._file, path if own else item.name)
            return Group(handle, self._file, self._known, None if own else number)
        return self._met(item, path)

    def _met(self, item: Any, path: str) -> Dataset:
        """The dataset, the same object each time."""
        key = address_of(item.id) if self._file.changes else (self._number, path)
        if key not in self._known:
            dataset = Dataset(item, ObjectHandle(item, self._file, path))
            return self._known.setdefault(key, dataset)
        return self._known[key]

    def __iter__(self) -> Iterator[str]:
        self._check_open()
        return iter(self._h5)

    def __len__(self) -> int:
        self._check_open()
        return len(self._h5)

    def __contains__(self, name: object) -> bool:
        return name in self._h5

    # Making and removing -------------------------------------------------------------

    def create_group(self, name: str | bytes, track_order: bool | None = None) -> Group:
        """Make a group, and those that lead to it.

        Parameters
        ----------
        name : str or bytes
            Its name, or a path.
        track_order : bool, optional
            Whether it keeps the order in which its members are made; None as h5py is set.

        Raises
        ------
        chunkwise.errors.UsageError
            When the name is taken, or the file is open for reading only (a ValueError).
        """
        where, path = self._place(name, "group")
        try:
            item = self._h5.create_group(name, track_order=track_order)
        except HDF5_ERRORS as error:
            raise like(UsageError, error)(
                f"{where}: cannot be made: {hdf5_reason(error)}"
            ) from error
        return Group(ObjectHandle(item, self._file, path), self._file, self._known, self._number)

    def require_group(self, name: str | bytes) -> Group:
        """The group `name`, which is made if it is not there.

        Raises
        ------
        chunkwise.errors.MismatchError
            When something else has the name (a TypeError).
        """
        if name not in self:
            return self.create_group(name)
        found = self[name]
        if not isinstance(found, Group):
            raise MismatchError(
                f"{found._label()}: is there, and is no group; choose another name"
            )
        return found

    def create_dataset(
        self,
        name: str | bytes,
        shape: int | Sequence[int] | None = None,
        dtype: Any = None,
        data: Any = None,
        *,
        chunks: Chunks = None,
        maxshape: MaxShape = None,
        filters: Pipeline | str | None = None,
        access: str | Sequence[str] = (),
        fillvalue: Any = None,
        **options: Any,
    ) -> Dataset:
        """Make a dataset, and the groups that lead to it.

        Parameters
        ----------
        name : str or bytes
            Its name, or a path.
        shape : int or sequence of int, optional
            In elements, slowest dimension first; None for that of `data`.
        dtype : dtype-like, h5py.Datatype, optional
            As in h5py; None for that of `data`, or single precision.
        data : array-like, optional
            What it holds; None leaves it to be written.
        chunks : int, sequence of int, str or bool, optional
            Shape of a chunk in elements, also as text (``"365x20x20"``); True or ``"auto"``
            chooses one (`chunkwise.advise.chunk_shape`), False or ``"contiguous"`` forbids
            chunks.  None chooses one where filters, `maxshape` or `access` need it.
        maxshape : sequence of int or None, int or True, optional
            The most that each dimension may grow to, None where without limit, True for
            all of them; None for a dataset that keeps its shape.
        filters : str or Pipeline, optional
            The filters in the order of the pipeline, such as ``"shuffle+deflate:4"``;
            with ``deflate:fast`` level 1, as fast as possible.
        access : str or sequence of str, optional
            How it will be read and written, for the choice of chunks: shapes of blocks such
            as ``"1x600x600"``, and the words of ``chunkwise bench --access`` such as ``"row"``.
        fillvalue : optional
            What elements read as that were never written; None for zero.
        **options
            Further keywords of `h5py.Group.create_dataset`, such as `track_order`,
            `fill_time` and, instead of `filters`, `compression`.

        Returns
        -------
        Dataset

        Raises
        ------
        chunkwise.errors.UsageError
            When that cannot be, says why; or the name is taken, or the file is open for
            reading only (a ValueError).
        chunkwise.errors.SelectionError
            When `access` does not fit `shape`.
        """
        where, path = self._place(name, "dataset")
        asked = Request(shape, dtype, data, chunks, maxshape, filters, access, fillvalue, options)
        h5 = self._h5
        made = create(h5, name, where, asked)
        try:
            dataset = self._met(made.dataset, path)
            if made.effort != "as-stated":
                dataset._set_effort(made.effort)
            if made.data is not None:
                dataset[...] = made.data
        except BaseException:
            # As in h5py, there is no dataset without its data.
            del self[name]
            raise
        return dataset

    def require_dataset(
        self,
        name: str | bytes,
        shape: int | Sequence[int],
        dtype: Any,
        exact: bool = False,
        **options: Any,
    ) -> Dataset:
        """The dataset `name`, which is made if it is not there.

        Parameters
        ----------
        name, shape, dtype, **options
            As for `create_dataset`, which makes it.
        exact : bool
            Whether one that is there must have that very dtype, not one to which it can
            be converted safely.

        Raises
        ------
        chunkwise.errors.MismatchError
            When what has the name is no dataset, or of another shape or dtype (a TypeError).
        """
        if name not in self:
            return self.create_dataset(name, shape, dtype, **options)
        found = self[name]
        if not isinstance(found, Dataset):
            raise MismatchError(f"{found!r}: is there, and is no dataset; choose another name")
        wanted = tuple(shape) if isinstance(shape, Iterable) else (shape,)
        if found.shape != wanted:
            raise MismatchError(
                f"{found._label()}: has shape {found.shape}, not {shown(wanted)}; choose another "
                "name"
            )
        kind = np.dtype(dtype)
        if found.dtype != kind and (exact or not np.can_cast(kind, found.dtype)):
            raise MismatchError(
                f"{found._label()}: has dtype {found.dtype}, not {kind}; choose another name"
            )
        return found

    def __setitem__(self, name: str | bytes, value: Any) -> None:
        """Make a link, another name, a named type, or a dataset of what else it is.

        `h5py.SoftLink` and `h5py.ExternalLink` make such links; a group or dataset, of
        chunkwise or h5py, gets another name; a `numpy.dtype` becomes a named type.

        Raises
        ------
        chunkwise.errors.UsageError
            As `create_dataset`.
        """
        if isinstance(value, Group | Dataset):
            value = value._h5
        links = (h5py.SoftLink, h5py.ExternalLink, h5py.HLObject, h5py.Datatype, np.dtype)
        if not isinstance(value, links):
            self.create_dataset(name, data=value)
            return
        where, _ = self._place(name, "link")
        try:
            self._h5[name] = value
        except HDF5_ERRORS as error:
            raise like(UsageError, error)(
                f"{where}: cannot be made: {hdf5_reason(error)}"
            ) from error

    def __delitem__(self, name: str | bytes) -> None:
        """Remove a link; what has no other name goes with it.

        Raises
        ------
        chunkwise.errors.DatasetNotFoundError
            When there is none of that name (a KeyError).
        """
        where = self._writable(name, "link")
        h5 = self._h5
        if not self._has_link(name):
            raise DatasetNotFoundError(f"{where}: there is none of that name")
        try:
            del h5[name]
        except HDF5_ERRORS as error:
            raise like(UsageError, error)(
                f"{where}: cannot be removed: {hdf5_reason(error)}"
            ) from error
        for key, dataset in list(self._known.items()):
            if names_of(dataset._h5.id) == 0:
                del self._known[key]

    def _place(self, name: str | bytes, kind: str) -> tuple[str, str]:
        """How to call a new object in messages, and its path; its name must be free."""
        where = self._writable(name, kind)
        if self._has_link(name):
            raise NameTakenError(
                f"{where}: exists already; remove it with del, or choose another name"
            )
        text = decode_name(name) if isinstance(name, bytes) else name
        return where, posixpath.join(self._handle.path, text)

    def _writable(self, name: str | bytes, kind: str) -> str:
        if not isinstance(name, str | bytes) or not name:
            raise UsageError(f"{self._file.filename}: a {kind} needs a name, a str")
        text = decode_name(name) if isinstance(name, bytes) else name
        path = printable(posixpath.join(self._handle.path, text))
        where = f"{printable(self._file.filename)}: {kind} {path}"
        self._check_open()
        if not self._file.writable:
            raise ReadOnlyError(
                f"{where}: the file is open for reading only; open it with "
                "chunkwise.open(path, 'r+')"
            )
        return where

    def _has_link(self, name: str | bytes) -> bool:
        """Whether there is a link of that name, wherever it leads."""
        try:
            return self._h5.get(name, getlink=True) is not None
        except HDF5_ERRORS:
            return False

    def _check_open(self) -> None:
        if not self._file.is_open:
            raise UsageError("the file is closed")

    def __repr__(self) -> str:
        if not self._file.is_open:
            return "<closed chunkwise group>"
        return f"<chunkwise {self._h5!r}>"
