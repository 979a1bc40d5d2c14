"""How does a program read data?  The h5py-like face of the engine.

Metadata (names, links, attributes, types) stays with h5py.  Data is read by the engine
where it can, and by h5py where it cannot; `Dataset.explain` says which, and why.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5t

from chunkwise import _native, indexing, lowlevel
from chunkwise._lib import library
from chunkwise.attributes import Attributes
from chunkwise.conversions import convert, exact, identical
from chunkwise.errors import (
    LibraryError,
    OutOfMemoryError,
    SelectionError,
    UndecodedChunkError,
    UsageError,
)
from chunkwise.grammar import Pipeline
from chunkwise.handles import ObjectHandle
from chunkwise.indexers import (
    OuterIndex,
    PairedIndex,
    read_index,
    read_index_through_h5py,
    read_points,
)
from chunkwise.names import printable
from chunkwise.selection import Points, Selection, Union
from chunkwise.writable import Writable

if TYPE_CHECKING:
    from chunkwise._native import WalkResult

Array = npt.NDArray[Any]


class Dataset(Writable):
    """A dataset of an open file, read and written in parallel; made by `open` or `wrap`.

    ``d[index]`` takes what h5py takes and gives what h5py gives, bit for bit; it also
    takes what h5py refuses (see `__getitem__`).  Any number of threads may read at the same
    time.
    """

    def __init__(self, dataset: h5py.Dataset, handle: ObjectHandle | None = None) -> None:
        self._handle = handle or ObjectHandle(dataset)
        # File and name, for messages.
        self._where: str | None = None
        self._native: _native.Dataset | None = None
        # Shape and dtype, where the engine reads, and so the file is read-only: h5py takes
        # its lock to tell them.
        self._fixed: tuple[tuple[int, ...] | None, np.dtype[Any]] | None = None

    @property
    def _h5(self) -> h5py.Dataset:
        """As `h5py`, for as long as something refers to it."""
        return cast("h5py.Dataset", self._handle.get())

    # What the file says -------------------------------------------------------------

    @property
    def h5py(self) -> h5py.Dataset:
        """The h5py dataset underneath; libhdf5 keeps its file open from then on."""
        self._settle()
        return cast("h5py.Dataset", self._handle.pin())

    @property
    def name(self) -> str:
        """Full name in its file."""
        return cast("str", self._h5.name)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Elements in each dimension, slowest first; None for a null dataspace."""
        if self._fixed is not None:
            return self._fixed[0]
        return cast("tuple[int, ...] | None", self._h5.shape)

    @property
    def maxshape(self) -> tuple[int | None, ...] | None:
        """As `shape`, the most that each dimension may grow to; None where unlimited."""
        return cast("tuple[int | None, ...] | None", self._h5.maxshape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype, with the byte order of the file."""
        if self._fixed is not None:
            return self._fixed[1]
        return cast("np.dtype[Any]", self._h5.dtype)

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """Shape of a chunk in elements; None when the dataset is not chunked."""
        return cast("tuple[int, ...] | None", self._h5.chunks)

    @property
    def filters(self) -> str:
        """Filters in the order of the pipeline, as ``shuffle+deflate:4``; ``none`` without."""
        h5 = self._h5
        return str(Pipeline.from_dcpl(h5.id.get_create_plist()))

    @property
    def fillvalue(self) -> Any:
        """What elements that were never written read as."""
        return self._h5.fillvalue

    @property
    def attrs(self) -> Any:
        """Attributes: h5py's `AttributeManager`, or a mapping that reads like it (read-only)."""
        return Attributes.of(self._handle)

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
        if not self._handle.is_open:
            return "<closed chunkwise dataset>"
        return f'<chunkwise dataset "{self.name}": shape {self.shape}, type "{self.dtype.str}">'

    # Reading ------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        """Read as h5py does; what h5py refuses, as follows.

        Slices may go backwards.  Lists of integers may be in any order and repeat; a mask
        may stand for any neighbouring dimensions, as many as it has.  A selection, such as
        `chunkwise.hyperslab` makes, is what `read` makes of it.  Of several lists and
        masks every choice in one goes with every choice in the others, and the result has a
        dimension for each; `vindex` pairs them up.

        Raises
        ------
        chunkwise.errors.SelectionError
            For an index that does not fit the dataset (an IndexError, ValueError and
            TypeError).
        chunkwise.errors.CorruptDataError
            When stored bytes are missing or do not decode; names the chunk (an OSError).
        chunkwise.errors.LibraryError
            When libhdf5, which has to read this dataset, cannot (an OSError).
        chunkwise.errors.OutOfMemoryError
            When there is no memory for what is selected (a MemoryError).
        """
        try:
            result = self._bound().getitem(index)
        except UndecodedChunkError as error:
            self._warn(error)
            return read_index_through_h5py(self, index)
        return read_index(self, index) if result is NotImplemented else result

    @property
    def oindex(self) -> OuterIndex:
        """``d.oindex[...]``: orthogonal, as ``d[...]`` is here."""
        return OuterIndex(self)

    @property
    def vindex(self) -> PairedIndex:
        """``d.vindex[...]``: arrays that pair up element by element, as NumPy's do.

        They stand for neighbouring dimensions and are broadcast together; the others may
        have slices and integers, and are taken whole where nothing is said.
        """
        return PairedIndex(self)

    def __array__(self, dtype: npt.DTypeLike = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("a dataset cannot become an array without copying")
        native = self._bound()
        if self.shape and dtype is None:
            return cast("Array", self[()])
        if native.reason is None:
            if identical(self.dtype, np.dtype(dtype)):
                return cast("Array", self[()])
            if exact(self.dtype, np.dtype(dtype)):
                elements = cast("Array", self[()])
                into = np.empty(elements.shape, dtype)
                if convert(elements, into):
                    return into
        # libhdf5's other conversions are not NumPy's: it clips what does not fit.
        return cast("Array", self._through_h5py(lambda: self._h5.__array__(dtype)))

    def __iter__(self) -> Iterator[Any]:
        self._bound()
        if not self.shape:
            raise TypeError("a scalar dataset cannot be iterated over")
        for position in range(self.shape[0]):
            yield self[position]

    def read(
        self, selection: Selection | Union | Points | None = None, out: Array | None = None
    ) -> Array:
        """Read a hyperslab, a union of several, or points.

        Parameters
        ----------
        selection : Selection, Union or Points, optional
            See `chunkwise.hyperslab`, `chunkwise.union` and `chunkwise.points`; None selects
            everything.
        out : ndarray, optional
            Where to put the elements: C-contiguous, writeable, of the selection's shape
            and the dataset's dtype.  Where an element was never written and the
            dataset has no fill value, ``out`` keeps what it held.  None allocates.

        Returns
        -------
        ndarray
            ``out``, or a new array of the selection's shape: of a union, one row of its
            elements in row-major order of the dataset; of points, one row in their order.

        Raises
        ------
        chunkwise.errors.SelectionError
            When the selection does not fit the dataset, or ``out`` the selection.
        chunkwise.errors.CorruptDataError
            When stored bytes are missing or do not decode.
        """
        native = self._bound()
        if self.shape is None:
            raise SelectionError(f"{self._label()}: a null dataspace holds nothing to read")
        if selection is None:
            selection = self._everything()
        elif not isinstance(selection, Selection | Union | Points):
            raise SelectionError(
                f"{self._label()}: read() takes chunkwise.points, chunkwise.union or "
                f"chunkwise.hyperslab, not {type(selection).__name__}; d[...] takes an index"
            )
        if out is not None:
            self._check_out(selection, out)
        if isinstance(selection, Points):
            return cast("Array", read_points(self, selection, out))
        if native.reason is None:
            try:
                return native.read(selection.parts, out)
            except UndecodedChunkError as error:
                self._warn(error)
        return self._read_through_libhdf5(selection, out)

    def explain(self, selection: Any = None) -> dict[str, Any]:
        """What reading a selection does, as data, without reading it.

        Parameters
        ----------
        selection : Selection, Union, Points or index, optional
            A `chunkwise.hyperslab`, `chunkwise.union` or `chunkwise.points`, or an index as
            for ``d[...]``; None is everything.  ``d.vindex.explain`` takes an index as for
            ``d.vindex[...]``.

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
        self._bound()
        parts: Any = None
        if isinstance(selection, Selection | Union):
            parts = selection.parts if self.shape else None
        elif self.shape and isinstance(selection, Points):
            parts = indexing.points(self.shape, selection.coordinates, self._label()).product
        elif self.shape:
            index = ... if selection is None else selection
            request = indexing.orthogonal(self.shape, index, self._label())
            parts = None if request is None else request.product
        return self._explain(parts)

    def _explain(self, parts: Any) -> dict[str, Any]:
        """Explain what is known to fit; None is an index that only h5py understands."""
        native = self._bound()
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
            plan.update(native.explain(parts))
            plan["path"] = "contiguous" if self.chunks is None else "chunked"
            plan["threads"] = _native.thread_count()
        else:
            chunks, decoded, elements = self._count_chunks(parts)
            plan["selected_nbytes"] = elements * itemsize
            if self.chunks is not None:
                plan["chunks"] = chunks
                plan["decoded_nbytes"] = decoded * itemsize
        if plan["selected_nbytes"] and plan["decoded_nbytes"] is not None:
            plan["amplification"] = plan["decoded_nbytes"] / plan["selected_nbytes"]
        return plan

    def prepare(self) -> None:
        """Load the chunk index now, rather than within the first read.

        Raises
        ------
        chunkwise.errors.UsageError
            When the file is closed.
        chunkwise.errors.CorruptDataError
            When libhdf5 cannot describe the dataset.
        """
        self._bound()

    def walk(self, walk: _native.Walk, max_operations: int, max_seconds: float) -> WalkResult:
        """Read selection by selection through the engine, timed, with no Python in the loop.

        Parameters
        ----------
        walk : chunkwise._native.Walk
            What is read, in which order.
        max_operations : int
            Most selections to read; at least one is.
        max_seconds : float
            None is begun after the reads have taken this long.

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
        return native.walk(walk, max_operations, max_seconds)

    # Underneath ---------------------------------------------------------------------

    def _bound(self) -> _native.Dataset:
        """What the engine knows, once everything that was written is where it is read."""
        native = self._described()
        # The engine reads what nobody writes.
        if self._fixed is None:
            self._settle()
        return native

    def _described(self) -> _native.Dataset:
        """What the engine knows; found out at the first read."""
        native = self._native
        # h5py sets the identifier to 0 when it closes a file.  Looking at it takes no lock,
        # so that reads do not wait for another thread's call of libhdf5.
        if native is not None and (self._handle.id.id or self._handle.is_parked()):
            return native
        # Under h5py's lock no other thread can close the file meanwhile, and the first of
        # several threads lists the chunks for all.
        with h5py._objects.phil:
            if not self._handle.is_open:
                self._release()
                raise UsageError("the dataset's file is closed")
            h5 = self._h5
            if self._native is not None:
                return self._native
            dtype = self.dtype
            native = bind(h5, dtype)
            if native.reason is None:
                self._fixed = (self.shape, dtype)
            self._native = native
            return native

    def _release(self) -> None:
        """Let go of the file's descriptor and of the chunks in the cache."""
        self._native = None

    def _label(self) -> str:
        if self._where is None:
            h5 = self._h5
            self._where = printable(f"{h5.file.filename}: dataset {h5.name}")
        return self._where

    def _warn(self, error: UndecodedChunkError, stacklevel: int = 3) -> None:
        warnings.warn(f"{error}: reading through libhdf5", RuntimeWarning, stacklevel=stacklevel)

    def _everything(self) -> Selection:
        shape = self.shape or ()
        ones = (1,) * len(shape)
        return Selection((0,) * len(shape), ones, tuple(shape), ones)

    def _check_out(self, selection: Selection | Union | Points, out: Array) -> None:
        if not isinstance(out, np.ndarray):
            raise SelectionError(
                f"{self._label()}: out must be a NumPy array, not {type(out).__name__}"
            )
        base, inner = lowlevel.element_of(self.dtype)
        want = selection.shape + inner
        if out.dtype != base or out.shape != want:
            raise SelectionError(
                f"{self._label()}: out has dtype {out.dtype} and shape {out.shape}, "
                f"the selection {base} and {want}"
            )
        if not (out.flags.c_contiguous and out.flags.writeable):
            raise SelectionError(f"{self._label()}: out must be C-contiguous and writeable")

    def _count_chunks(self, parts: Any) -> tuple[int, int, int]:
        """Chunks that a selection touches, and the elements of them and of it; it must fit."""
        shape = cast("tuple[int, ...]", self.shape)
        # What is not chunked counts as one chunk, whose sizes are at least 1.
        chunk = self.chunks or tuple(max(size, 1) for size in shape)
        return _native.count_chunks(shape, chunk, parts, self._label())

    def _read_through_libhdf5(self, selection: Selection | Union, out: Array | None) -> Array:
        # For its checks: both paths refuse the same selections.
        self._count_chunks(selection.parts)
        read = self._through_h5py(lambda: lowlevel.read(self._h5, selection, out))
        return cast("Array", read)

    def _through_h5py(self, read: Callable[[], Any]) -> Any:
        """Read; what libhdf5 cannot is said by name."""
        try:
            return read()
        except OSError as error:
            raise LibraryError(
                f"{self._label()}: libhdf5 cannot read it: {error}; the file is damaged, or a "
                "filter's plugin is missing"
            ) from error
        except MemoryError as error:
            raise OutOfMemoryError(f"{self._label()}: {error}; select less") from error


def bind(dataset: h5py.Dataset, dtype: np.dtype[Any]) -> _native.Dataset:
    """Ask libhdf5 for all that the engine needs, under h5py's lock.

    Parameters
    ----------
    dataset : h5py.Dataset
        Of a file that is open.
    dtype : numpy.dtype
        Its dtype, which the arrays get that are read.

    Returns
    -------
    _native.Dataset
        Its `reason` says whether the engine can read it.

    Raises
    ------
    chunkwise.errors.CorruptDataError
        When libhdf5 cannot describe the dataset.
    chunkwise.errors.LibraryError
        When libhdf5 is too old.
    """
    enum = h5py.check_enum_dtype(dtype) is not None
    memory_type = h5t.py_create(dtype, logical=enum)
    # Text for Rust: what is no UTF-8 in it is escaped.
    label = printable(f"{dataset.file.filename}: dataset {dataset.name}")
    return _native.Dataset(library(), dataset.id.id, memory_type.id, dtype, label)


def wrap(dataset: h5py.Dataset) -> Dataset:
    """The same dataset, read and written by the engine.

    Parameters
    ----------
    dataset : h5py.Dataset
        Of a file opened in any mode; one open for writing is read through libhdf5, and written
        in parallel.

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
