"""How are objects found and created in a file?  As in h5py."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import h5py
import numpy as np
from h5py import h5f, h5g, h5i, h5o, h5r, h5t
from h5py._hl.base import ItemsViewHDF5, ValuesViewHDF5

from chunkwise.dataset import Dataset
from chunkwise.errors import (
    DatasetNotFoundError,
    MismatchError,
    NameTakenError,
    NotADatasetError,
    UsageError,
    like,
)
from chunkwise.files.leading import Bounds
from chunkwise.files.objects import header_address, names_of
from chunkwise.files.opening import find_dataset
from chunkwise.files.opening_writable import is_read_only, read_only
from chunkwise.handles import pending
from chunkwise.handles.handle import FileHandle, Kept, OpenDatasets, address_in
from chunkwise.names import HDF5_ERRORS, decode_name, encode_name, hdf5_reason, printable

if TYPE_CHECKING:
    from chunkwise import _native
    from chunkwise.grammar import Pipeline
    from chunkwise.writing.creating import Chunks, MaxShape

phil = h5py._objects.phil

# A name, whether it is a group or a dataset, and where its header is.
_Below: TypeAlias = tuple[Any, "bool | None", "int | None"]
_END: _Below = None, None, None

# This many names are read ahead at first, and at last: a visit may end early.
_FEW, _MANY = 16, 4096


class Group(Kept, h5py.Group):  # type: ignore[misc]
    """An h5py group that holds groups and datasets of chunkwise.

    Creating objects needs a file that is open for writing.
    """

    _home: FileHandle
    _open_datasets: OpenDatasets

    def __init__(self, bind: Any) -> None:
        super().__init__(bind)
        with phil:
            home = FileHandle(h5py.File(bind))
        self._belong(home, super().name, None)

    def _belong(self, home: FileHandle, path: str | None, number: tuple[int, ...] | None) -> None:
        super()._belong(home, path, number)
        self._open_datasets = home.open_datasets

    def _repr_html_(self) -> str | None:
        """What a notebook shows; None if its file is closed."""
        from chunkwise.card import view

        return view(self)._repr_html_() if self else None

    # Finding -------------------------------------------------------------------------

    def __getitem__(self, name: str | bytes | h5py.Reference) -> Group | Dataset:
        """Return the object `name`: a name, a path, or a reference.

        In a file that nobody writes, a dataset is the same object each time.  In any file,
        ``f["x"][i]`` in a loop keeps the chunk index and the chunks that were read or written.
        For type checkers, say which it is: ``assert isinstance(found, chunkwise.Dataset)``.

        Raises
        ------
        chunkwise.errors.DatasetNotFoundError
            When there is no such object (a KeyError); offers near names.
        chunkwise.errors.NotADatasetError
            When `name` is neither a name nor a reference (a TypeError).
        """
        if isinstance(name, bytes):
            name = decode_name(name)
        if not isinstance(name, str):
            if not isinstance(name, h5py.Reference):
                raise NotADatasetError(f"a name is a str, not {type(name).__name__}")
            with phil:
                found = self._home.opened(lambda: h5r.dereference(name, self.id))
                if found is None:
                    # As h5py has it.
                    raise ValueError("Invalid HDF5 object reference")
                return cast("Group | Dataset", self._adopted(found))
        path = self._path_of(name)
        found = None if path is None else self._open_datasets.get((self._number, path))
        if found is not None and found._is_there():  # Never in a file that changes.
            return cast("Dataset", found)
        self._check_open()
        if not name:
            raise DatasetNotFoundError(f"{self._home.filename}: no object has an empty name")
        try:
            return cast("Group | Dataset", self._opened(name, path))
        except KeyError:
            if path is not None:
                # Says what is near, or where a link would lead.
                find_dataset(self.file, path)
            raise

    def get(
        self,
        name: Any,
        default: Any = None,
        getclass: bool = False,
        getlink: bool = False,
        **options: Any,
    ) -> Any:
        """Return an object, its class or its link, as `h5py.Group.get`; or `default`."""
        if getclass or getlink or options or not isinstance(name, str | bytes):
            if isinstance(name, str | bytes) and not getlink and not self._home.leads_anywhere:
                encoded = encode_name(name) if isinstance(name, str) else name
                self._check_path(encoded, self._home.bounds)
            found = super().get(name, default, getclass, getlink, **options)
            is_object = found is not default and isinstance(found, h5py.Dataset | h5py.Group)
            return self._adopted(found.id) if is_object else found
        text = decode_name(name) if isinstance(name, bytes) else name
        path = self._path_of(text)
        found = None if path is None else self._open_datasets.get((self._number, path))
        if found is not None and found._is_there():
            return found
        try:
            return self._opened(text, path)
        except KeyError:
            return default

    def _opened(self, name: str, path: str | None) -> Any:
        with phil:
            # As bytes, since names need not be UTF-8.
            encoded = encode_name(name)
            home = self._home
            metadata = self._metadata()
            known = None if metadata is None else metadata.find(self._header(metadata), encoded)
            if known is not None and path is not None:
                return self._unopened(path, *known)
            if not home.leads_anywhere:
                self._check_path(encoded, home.bounds)
            found = home.opened(lambda: h5o.open(self.id, encoded, lapl=self._lapl))
            return self._adopted(found, path)

    def _metadata(self) -> _native.Metadata | None:
        """What its file's own bytes say; None where libhdf5 has to."""
        path = self._path if self._number is None else None
        # libhdf5 takes a name for what stands before a zero.
        known = path is not None and "\0" not in path and bool(self)
        return self._home.metadata if known else None

    def _header(self, metadata: _native.Metadata) -> int:
        """Where its header is."""
        return metadata.root if self._path == "/" else header_address(self._address())

    def _unopened(self, path: str, is_group: bool, at: int) -> Any:
        """Return our object with a path, which libhdf5 opens when something asks for that."""
        home, found = self._home, None
        if not is_group:
            found = self._open_datasets.get((None, path))
            if found is not None and found._is_there():
                return found
        made: Any = Group.__new__(Group) if is_group else Dataset._unopened(home.readonly)
        made._belong(home, path, None)
        made._at = at
        return made if is_group else self._open_datasets.keep((None, path), made, found)

    def _check_path(self, encoded: bytes, bounds: Bounds) -> None:
        """Check that no external link leads farther than the file may."""
        own = None if self._number is None else decode_name(h5f.get_name(self.id))
        bounds.check_path(self.id, encoded, own)

    def _adopted(self, identifier: Any, path: str | None = None) -> Any:
        """Return our object for an identifier; `path` is where it was found, if known."""
        # An object that a reference leads to keeps no path: libhdf5 would search the file for it.
        if isinstance(identifier, h5t.TypeID):
            return h5py.Datatype(identifier)
        home = self._home
        address = address_in(home.filename, identifier)
        number = None if address[:2] == home.number else address[:2]
        if number is not None and path is not None:
            # An external link led to another file, where the same names lead elsewhere.
            name = h5i.get_name(identifier)
            path = None if name is None else decode_name(name)
        if number is not None or path is None:
            home.pin()
        at = header_address(address) if number is None and not home.changes else None
        if isinstance(identifier, h5g.GroupID):
            group = Group.__new__(Group)
            h5py.Group.__init__(group, identifier)
            group._belong(home, path, number)
            group._at = at
            return group
        # Two names of one dataset are two objects, which share what waits to be written.
        key = (address if home.changes or path is None else number, path)
        found = self._open_datasets.get(key)
        if found is not None and found._is_there():
            return found
        readonly = home.readonly
        if number is not None:
            intent = h5i.get_file_id(identifier).get_intent()
            readonly = not intent & (h5f.ACC_RDWR | h5f.ACC_SWMR_WRITE)
        dataset = Dataset(identifier, readonly=readonly)
        dataset._belong(home, path, number)
        dataset._at = at
        return self._open_datasets.keep(key, dataset, found)

    # Visiting ------------------------------------------------------------------------

    def visit(self, func: Callable[..., Any]) -> Any:
        """Call a function with the name of each object below, as `h5py.Group.visit`."""
        return self._visited(lambda name, *_: func(name))

    def visititems(self, func: Callable[..., Any]) -> Any:
        """Call a function with name and object of each below, as `h5py.Group.visititems`."""
        return self._visited(lambda name, *known: func(name, self._found(name, *known)))

    def values(self) -> Any:
        """Return a view of the members, as `h5py.Group.values`."""
        return _Values(self)

    def items(self) -> Any:
        """Return a view of names and members, as `h5py.Group.items`."""
        return _Items(self)

    def _visited(self, visit: Callable[[Any, bool | None, int | None], Any]) -> Any:
        """Call `visit` with all that is below, as far as the file's own bytes say what that is."""
        done = 0
        for name, is_group, at in self._below(deep=True):
            if name is None:
                break
            done += 1
            result = visit(name, is_group, at)
            if result is not None:
                return result
        else:
            return None
        # libhdf5 goes on.
        left = itertools.count(-done)

        def goes_on(name: bytes) -> Any:
            return visit(self._d(name), None, None) if next(left) >= 0 else None

        with phil:
            return h5o.visit(self.id, goes_on)

    def _below(self, *, deep: bool) -> Iterator[_Below]:
        """What is below, as `_native.Visit` has it; a last name of None where libhdf5 goes on."""
        with phil:
            metadata = self._metadata()
            group = None if metadata is None else metadata.visit(self._header(metadata), deep)
        count = _FEW
        while group is not None:
            found = group.next(count)
            if found is None:
                break
            yield from found
            if not found:
                return
            count = min(4 * count, _MANY)
        yield _END

    def _found(self, name: Any, is_group: bool | None, at: int | None) -> Any:
        """What has a name below."""
        path = self._path_of(name)
        if is_group is None or at is None or path is None or not self._home.is_open:
            return self[name]
        return self._unopened(path, is_group, at)

    def __iter__(self) -> Iterator[str]:
        self._check_open()
        names = None
        if self._oid is None and self._at is not None:
            # A group that libhdf5 has open, it lists as fast.
            with phil:
                metadata = self._metadata()
                names = None if metadata is None else metadata.names(self._header(metadata))
        return cast("Iterator[str]", super().__iter__() if names is None else iter(names))

    def __len__(self) -> int:
        self._check_open()
        return cast("int", super().__len__())

    # Making and removing -------------------------------------------------------------

    def create_group(
        self, name: str | bytes | None, track_order: bool | None = None, **options: Any
    ) -> Group:
        """Create a group, and its missing parents.

        Parameters
        ----------
        name : str or bytes
            Its name, or a path; None for a group without a name.
        track_order : bool, optional
            Whether it keeps the order in which its members are created; None: h5py's setting.
        **options
            Further keywords of `h5py.Group.create_group`.

        Raises
        ------
        chunkwise.errors.UsageError
            When the name is taken, or the file is open for reading only (a ValueError).
        """
        where, path = self._place(name, "group")
        with _naming(where, "made"):
            made = super().create_group(name, track_order=track_order, **options)
        return cast("Group", self._adopted(made.id, path))

    def require_group(self, name: str | bytes) -> Group:
        """Return the group `name`; create it if it does not exist.

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
                f"{printable(self._home.filename)}: {self._path_of(name)}: is there, and is no "
                "group; choose another name"
            )
        return found

    def create_dataset(
        self,
        name: str | bytes | None,
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
        """Create a dataset, and its missing parent groups.

        Parameters
        ----------
        name : str or bytes
            Its name, or a path; None for one without.
        shape : int or sequence of int, optional
            In elements, slowest dimension first; None for that of `data`.
        dtype : dtype-like, h5py.Datatype, optional
            As in h5py; None for that of `data`, or single precision.
        data : array-like, optional
            Its values; None leaves them to later writes.
        chunks : int, sequence of int, str or bool, optional
            Shape of a chunk in elements, also as text (``"365x20x20"``); True or ``"auto"``
            chooses one (`chunkwise.model.chunk_shape`), False or ``"contiguous"`` forbids
            chunks.  None chooses one if filters, `maxshape` or `access` need it.
        maxshape : sequence of int or None, int or True, optional
            The most that each dimension may grow to, None for no limit, True for
            all of them; None for a dataset that keeps its shape.
        filters : str or Pipeline, optional
            The filters in the order of the pipeline, such as ``"shuffle+deflate:4"``;
            with ``deflate:fast`` level 1, as fast as possible.
        access : str or sequence of str, optional
            How it will be read and written, for the choice of chunks: shapes of blocks such
            as ``"1x600x600"``, and the words of ``chunkwise bench --access`` such as ``"row"``.
        fillvalue : optional
            The value of elements that were never written; None for zero.
        **options
            Further keywords of `h5py.Group.create_dataset`, such as `track_order`,
            `fill_time` and, instead of `filters`, `compression`.

        Returns
        -------
        Dataset

        Raises
        ------
        chunkwise.errors.UsageError
            When that is impossible, with the reason; when the name is taken, or the file is open
            for reading only (a ValueError).
        chunkwise.errors.SelectionError
            When `access` does not fit `shape`.
        """
        # Programs that only read do without it.
        from chunkwise.writing import alike
        from chunkwise.writing.creating import Request, create

        request = Request(
            shape, dtype, data, chunks, maxshape, filters, access, fillvalue, options
        )
        key = alike.key_of(request) if self._home.writable else None
        at_once = None if key is None else alike.make(self.id, name, key, data)
        if at_once is not None:
            return self._new(at_once, self._path_of(name))
        where, path = self._place(name, "dataset")
        made = create(h5py.Group(self.id), name, where, request)
        try:
            dataset = cast("Dataset", self._adopted(made.dataset.id, path))
            if made.effort != "as-stated":
                dataset._set_effort(made.effort)
            if made.data is not None:
                dataset[...] = made.data
        except BaseException:
            # As in h5py, there is no dataset without its data.
            if name is not None:
                del self[name]
            raise
        if key is not None and made.effort == "as-stated":
            alike.remember(key, data, dataset.id.get_create_plist())
        return dataset

    def _new(self, identifier: Any, path: str | None) -> Dataset:
        """A dataset that was created here, without pending data."""
        if self._number is not None:
            return cast("Dataset", self._adopted(identifier, path))
        dataset = Dataset(identifier)
        dataset._belong(self._home, path or "/", None)
        return dataset

    def require_dataset(
        self, name: str | bytes, shape: Any, dtype: Any, exact: bool = False, **options: Any
    ) -> Dataset:
        """Return the dataset `name`; create it if it does not exist.

        Parameters
        ----------
        name, shape, dtype, **options
            As for `create_dataset`, which makes it.
        exact : bool
            Whether an existing one must have exactly that dtype, or may have one to which it can
            be converted safely.

        Raises
        ------
        chunkwise.errors.MismatchError
            When the object is no dataset, or has another shape or dtype (a TypeError).
        """
        if isinstance(shape, Iterable):
            shape = tuple(shape)
        if name not in self:
            return self.create_dataset(name, shape, dtype, **options)
        try:
            found = super().require_dataset(name, shape, dtype, exact, **options)
        except TypeError as error:
            raise MismatchError(
                f"{printable(self._home.filename)}: dataset {self._path_of(name)}: "
                f"{hdf5_reason(error)}; choose another name"
            ) from error
        return cast("Dataset", self._adopted(found.id, self._path_of(name)))

    def create_virtual_dataset(self, name: Any, layout: Any, fillvalue: Any = None) -> Dataset:
        """Create a virtual dataset, as `h5py.Group.create_virtual_dataset` does."""
        made = super().create_virtual_dataset(name, layout, fillvalue)
        return cast("Dataset", self._adopted(made.id, self._path_of(name)))

    def copy(self, source: Any, dest: Any, *args: Any, **options: Any) -> None:
        """Copy an object, as `h5py.Group.copy` does, with its pending writes."""
        pending.settle_all(blocking=not phil._is_owned())
        super().copy(source, dest, *args, **options)

    def __setitem__(self, name: str | bytes, value: Any) -> None:
        """Make a link, another name, a named type, or a dataset from any other value.

        `h5py.SoftLink` and `h5py.ExternalLink` make such links; a group or dataset, of
        chunkwise or h5py, gets another name; a `numpy.dtype` becomes a named type.

        Raises
        ------
        chunkwise.errors.UsageError
            As `create_dataset`.
        """
        where = self._writable(name, "link")
        links = (h5py.SoftLink, h5py.ExternalLink, h5py.HLObject, h5py.Datatype, np.dtype)
        if not isinstance(value, links):
            self.create_dataset(name, data=value)
            return
        self._place(name, "link")
        with _naming(where, "made"):
            super().__setitem__(name, value)

    def __delitem__(self, name: str | bytes) -> None:
        """Remove a link; an object without another name goes with it."""
        where = self._writable(name, "link")
        if not self._has_link(name):
            raise DatasetNotFoundError(f"{where}: it does not exist")
        with _naming(where, "removed"):
            super().__delitem__(name)
        for key, dataset in list(self._open_datasets.items()):
            if not dataset or names_of(dataset.id) == 0:
                self._open_datasets.pop(key, None)

    def _place(self, name: str | bytes | None, kind: str) -> tuple[str, str | None]:
        """Return a new object's name for messages, and its path; its name must be free."""
        where = self._writable(name, kind)
        if name is not None and self._has_link(name):
            raise NameTakenError(
                f"{where}: exists already; remove it with del, or choose another name"
            )
        return where, self._path_of(name)

    def _writable(self, name: str | bytes | None, kind: str) -> str:
        anonymous = name is None and kind != "link"
        if not anonymous and (not isinstance(name, str | bytes) or not name):
            raise UsageError(f"{self._home.filename}: a {kind} needs a name, a str")
        path = "without a name" if anonymous else printable(str(self._path_of(name)))
        where = f"{printable(self._home.filename)}: {kind} {path}"
        self._check_open()
        if not self._home.writable:
            raise read_only(where)
        return where

    def _has_link(self, name: str | bytes) -> bool:
        """Whether there is a link of that name, even if it leads nowhere."""
        from chunkwise.writing.creating import plain_name

        try:
            if plain_name(name):
                return bool(self.id.links.exists(encode_name(cast("str", name))))
            return super().get(name, getlink=True) is not None
        except HDF5_ERRORS:
            return False

    def _path_of(self, name: str | bytes | None) -> str | None:
        if name is None or self._path is None:
            return None
        text = decode_name(name) if isinstance(name, bytes) else name
        if text.startswith("/"):
            return text
        return f"{self._path}{text}" if self._path.endswith("/") else f"{self._path}/{text}"

    def _check_open(self) -> None:
        if not self:
            raise like(UsageError, KeyError())("the file is closed")


class _Values(ValuesViewHDF5):  # type: ignore[misc]
    """Members of a group."""

    def __iter__(self) -> Iterator[Any]:
        return (found for _, found in _members(self._mapping))


class _Items(ItemsViewHDF5):  # type: ignore[misc]
    """Names and members of a group."""

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return _members(self._mapping)


def _members(group: Group) -> Iterator[tuple[Any, Any]]:
    done = 0
    for name, is_group, at in group._below(deep=False):
        if name is None:
            break
        done += 1
        yield name, group.get(name) if is_group is None else group._found(name, is_group, at)
    else:
        return
    for name in itertools.islice(group, done, None):
        yield name, group.get(name)


@contextlib.contextmanager
def _naming(where: str, doing: str) -> Iterator[None]:
    """Name the object in the error of a failed operation."""
    try:
        yield
    except HDF5_ERRORS as error:
        if is_read_only(error):
            raise read_only(where) from error
        raise like(UsageError, error)(
            f"{where}: cannot be {doing}: {hdf5_reason(error)}"
        ) from error
