"""How does a program read data?  The h5py-like face of the engine.

Metadata (names, links, attributes, types) stays with h5py.  Data is read by the engine
where it can, and by h5py where it cannot; `Dataset.explain` says which, and why.
"""

from __future__ import annotations

import os
import posixpath
import warnings
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5s, h5t

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import NotADatasetError, OversizedChunkError, SelectionError, UsageError
from chunkwise.files import find_dataset, open_h5
from chunkwise.selection import Selection

if TYPE_CHECKING:
    from chunkwise._native import WalkResult

Array = npt.NDArray[Any]


class Dataset:
    """A dataset of an open file, read in parallel; made by `open` or `wrap`.

    ``d[index]`` takes what h5py takes and gives what h5py gives, bit for bit.  Any
    number of threads may read at the same time.
    """

    def __init__(self, dataset: h5py.Dataset) -> None:
        self._h5 = dataset
        self._id = dataset.id
        self._native: _native.Dataset | None = None

    # What the file says -------------------------------------------------------------

    @property
    def h5py(self) -> h5py.Dataset:
        """The h5py dataset underneath."""
        return self._h5

    @property
    def name(self) -> str:
        """Full name in its file."""
        return cast("str", self._h5.name)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Elements in each dimension, slowest first; ``()`` for a scalar, None for a null dataspace."""
        return cast("tuple[int, ...] | None", self._h5.shape)

    @property
    def maxshape(self) -> tuple[int | None, ...] | None:
        """As `shape`, the most that each dimension may grow to; None where unlimited."""
        return cast("tuple[int | None, ...] | None", self._h5.maxshape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype, with the byte order of the file."""
        return cast("np.dtype[Any]", self._h5.dtype)

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """Shape of a chunk in elements; None when the dataset is not chunked."""
        return cast("tuple[int, ...] | None", self._h5.chunks)

    @property
    def fillvalue(self) -> Any:
        """What elements that were never written read as."""
        return self._h5.fillvalue

    @property
    def attrs(self) -> h5py.AttributeManager:
        """Attributes, as h5py gives them."""
        return self._h5.attrs

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return cast("int", self._h5.ndim)

    @property
    def size(self) -> int | None:
        """Number of elements; None for a null dataspace."""
        return cast("int | None", self._h5.size)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements in memory."""
        return cast("int", self._h5.nbytes)

    def __len__(self) -> int:
        return len(self._h5)

    def __repr__(self) -> str:
        if not self._id.valid:
            return "<closed chunkwise dataset>"
        return f'<chunkwise dataset "{self.name}": shape {self.shape}, type "{self.dtype.str}">'

    # Reading ------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        """Read as h5py does: integers, slices with steps, Ellipsis; the rest through h5py.

        Raises
        ------
        chunkwise.errors.SelectionError
            For an index that does not fit the dataset (an IndexError, ValueError and
            TypeError).
        chunkwise.errors.CorruptDataError
            When stored bytes are missing or do not decode; names the chunk (an OSError).
        """
        try:
            result = self._bound().getitem(index)
        except OversizedChunkError as error:
            self._warn(error)
            result = NotImplemented
        return self._h5[index] if result is NotImplemented else result

    def __array__(self, dtype: npt.DTypeLike = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("a dataset cannot become an array without copying")
        array = np.asarray(self[()] if self.shape == () else self[...])
        return array if dtype is None else array.astype(dtype, copy=False)

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("a scalar dataset cannot be iterated over")
        for position in range(self.shape[0]):
            yield self[position]

    def read(self, selection: Selection | None = None, out: Array | None = None) -> Array:
        """Read a hyperslab.

        Parameters
        ----------
        selection : Selection, optional
            See `chunkwise.hyperslab`; None selects everything.
        out : ndarray, optional
            Where to put the elements: C-contiguous, writeable, of the selection's shape
            and the dataset's dtype.  Where an element was never written and the
            dataset has no fill value, ``out`` keeps what it held.  None allocates.

        Returns
        -------
        ndarray
            ``out``, or a new array of the selection's shape.

        Raises
        ------
        chunkwise.errors.SelectionError
            When the selection does not fit the dataset, or ``out`` the selection.
        chunkwise.errors.CorruptDataError
            When stored bytes are missing or do not decode.
        """
        if self.shape is None:
            raise SelectionError(f"{self._label()}: a null dataspace holds nothing to read")
        selection = self._everything() if selection is None else selection
        if out is not None:
            self._check_out(selection, out)
        native = self._bound()
        if native.reason is None:
            try:
                return native.read(*selection.parts, out)
            except OversizedChunkError as error:
                self._warn(error)
        return self._read_through_libhdf5(selection, out)

    def explain(self, selection: Any = None) -> dict[str, Any]:
        """What reading a selection does, as data, without reading it.

        Parameters
        ----------
        selection : Selection or index, optional
            A `chunkwise.hyperslab`, or an index as for ``d[...]``; None is everything.

        Returns
        -------
        dict
            ``path`` ("chunked", "contiguous" or "libhdf5") and ``reason`` (why libhdf5, or
            None); ``chunks`` touched and ``missing_chunks`` among them (never written);
            ``stored_nbytes`` read from the file, ``decoded_nbytes`` out of the filters if
            nothing is cached, ``selected_nbytes`` asked for; ``amplification``, decoded
            divided by selected (None when nothing is selected); ``threads``.  Figures
            that only libhdf5 knows are None.
        """
        native = self._bound()
        label = self._label()
        parts: Any
        if self.shape is None or self.shape == ():
            parts = None
        elif isinstance(selection, Selection):
            parts = selection.parts
        else:
            index = ... if selection is None else selection
            parts = _native.hyperslab_of(self.shape, index, label)
        plan: dict[str, Any] = {
            "path": "libhdf5",
            "reason": native.reason,
            "chunks": None,
            "missing_chunks": None,
            "stored_nbytes": None,
            "decoded_nbytes": None,
            "selected_nbytes": None,
            "amplification": None,
            "threads": 1,
        }
        if parts is None:
            plan["reason"] = native.reason or "this kind of index is left to h5py"
            return plan
        itemsize = self.dtype.itemsize
        if native.reason is None:
            plan.update(native.explain(*parts))
            plan["path"] = "contiguous" if self.chunks is None else "chunked"
            plan["threads"] = _native.thread_count()
        else:
            elements = int(np.prod([c * b for c, b in zip(parts[2], parts[3], strict=True)]))
            plan["selected_nbytes"] = elements * itemsize
            if self.chunks is not None:
                assert self.shape is not None
                chunks, decoded = _native.count_chunks(self.shape, self.chunks, parts, label)
                plan["chunks"] = chunks
                plan["decoded_nbytes"] = decoded * itemsize
        if plan["selected_nbytes"] and plan["decoded_nbytes"] is not None:
            plan["amplification"] = plan["decoded_nbytes"] / plan["selected_nbytes"]
        return plan

    def walk(
        self, block: tuple[int, ...], max_operations: int, max_seconds: float
    ) -> WalkResult:
        """Read block by block through the engine, timed, with no Python in the loop.

        Parameters
        ----------
        block : tuple of int
            Shape of a block in elements; blocks are walked in C order and clipped at the
            array's edges.
        max_operations : int
            Most blocks to read; at least one is.
        max_seconds : float
            No block is begun after the reads have taken this long.

        Returns
        -------
        WalkResult

        Raises
        ------
        chunkwise.errors.UsageError
            When libhdf5 has to read this dataset.
        """
        native = self._bound()
        if native.reason is not None:
            raise UsageError(f"{self._label()} is read through libhdf5: {native.reason}")
        return native.walk(block, max_operations, max_seconds)

    # Underneath ---------------------------------------------------------------------

    def _bound(self) -> _native.Dataset:
        """What the engine knows; found out at the first read."""
        if not self._id.valid:
            raise UsageError("the dataset's file is closed")
        native = self._native
        if native is None:
            dtype = self.dtype
            enum = h5py.check_enum_dtype(dtype) is not None
            memory_type = h5t.py_create(dtype, logical=enum)
            native = _native.Dataset(
                library(), self._id.id, memory_type.id, dtype, self._label()
            )
            self._native = native
        return native

    def _label(self) -> str:
        return f"{self._h5.file.filename}: dataset {self.name}"

    def _warn(self, error: OversizedChunkError) -> None:
        warnings.warn(f"{error}: reading through libhdf5", RuntimeWarning, stacklevel=3)

    def _everything(self) -> Selection:
        shape = self.shape or ()
        ones = (1,) * len(shape)
        return Selection((0,) * len(shape), ones, tuple(shape), ones)

    def _check_out(self, selection: Selection, out: Array) -> None:
        base = self.dtype.base
        want = selection.shape + self.dtype.shape
        if out.dtype != base or out.shape != want:
            raise SelectionError(
                f"{self._label()}: out has dtype {out.dtype} and shape {out.shape}, "
                f"the selection {base} and {want}"
            )
        if not (out.flags.c_contiguous and out.flags.writeable):
            raise SelectionError(f"{self._label()}: out must be C-contiguous and writeable")

    def _read_through_libhdf5(self, selection: Selection, out: Array | None) -> Array:
        shape = selection.shape
        if out is None:
            out = np.zeros(shape, self.dtype)
        if self.shape == ():
            out[()] = self._h5[()]
            return out
        if len(shape) != self.ndim:
            raise SelectionError(
                f"{self._label()}: the selection has {len(shape)} dimensions, "
                f"the dataset has {self.ndim}"
            )
        start, stride, count, block = selection.parts
        if 0 in shape:
            return out
        for d, size in enumerate(cast("tuple[int, ...]", self.shape)):
            end = start[d] + (count[d] - 1) * stride[d] + block[d]
            if end > size:
                raise SelectionError(
                    f"{self._label()}: the hyperslab ends at {end} in dimension {d}, "
                    f"which has only {size} elements"
                )
        space = self._id.get_space()
        space.select_hyperslab(start, count, stride, block)
        self._id.read(h5s.create_simple(shape), space, out, h5t.py_create(self.dtype))
        return out


class Group(Mapping[str, "Group | Dataset"]):
    """A group of an open file."""

    def __init__(self, group: h5py.Group, known: dict[str, Dataset]) -> None:
        self._h5 = group
        self._known = known

    @property
    def h5py(self) -> h5py.Group:
        """The h5py group underneath."""
        return self._h5

    @property
    def name(self) -> str:
        """Full name in its file."""
        return cast("str", self._h5.name)

    @property
    def attrs(self) -> h5py.AttributeManager:
        """Attributes, as h5py gives them."""
        return self._h5.attrs

    def __getitem__(self, name: str) -> Group | Dataset:
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
        if not self._h5:
            raise UsageError("the file is closed")
        path = posixpath.join(self.name, name)
        found = self._known.get(path)
        if found is not None:
            return found
        try:
            item = self._h5[name]
        except KeyError:
            # Says what is near, or where a link would lead.
            find_dataset(self._h5.file, path)
            raise
        if isinstance(item, h5py.Dataset):
            return self._known.setdefault(path, Dataset(item))
        if isinstance(item, h5py.Group):
            return Group(item, self._known)
        raise NotADatasetError(f"{path} in {self._h5.file.filename} is a named type, not data")

    def __iter__(self) -> Iterator[str]:
        return iter(self._h5)

    def __len__(self) -> int:
        return len(self._h5)

    def __contains__(self, name: object) -> bool:
        return name in self._h5

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
    """
    return File(open_h5(path))


def wrap(dataset: h5py.Dataset) -> Dataset:
    """The same dataset, read by the engine.

    Parameters
    ----------
    dataset : h5py.Dataset
        Of a file opened in any mode; one open for writing is read through libhdf5.

    Returns
    -------
    Dataset
        Valid as long as `dataset` is.

    Raises
    ------
    chunkwise.errors.UsageError
        When `dataset` is something else (a ValueError).
    """
    if not isinstance(dataset, h5py.Dataset):
        raise UsageError(f"wrap() takes an h5py.Dataset, not {type(dataset).__name__}")
    return Dataset(dataset)


__all__ = ["Dataset", "File", "Group", "open", "wrap"]
