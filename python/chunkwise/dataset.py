"""How does a program read data?  An h5py dataset that the engine reads, or otherwise h5py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

import h5py
import numpy as np

from chunkwise import _native
from chunkwise.errors import (
    SelectionError,
    UndecodedChunkError,
    UnsoundIndexError,
    UsageError,
    like,
)
from chunkwise.files.leading import Bounds
from chunkwise.files.stored import can_be_had
from chunkwise.handles.handle import Kept
from chunkwise.routing import bindings, elsewhere, reading, through_h5py, transfers
from chunkwise.routing.eligibility import Left
from chunkwise.routing.reading import counts
from chunkwise.selecting import lowlevel
from chunkwise.selecting.indexers import ExplainedIndex
from chunkwise.selecting.indexing import resolve
from chunkwise.selection import Selection
from chunkwise.writing.writable import Writable

if TYPE_CHECKING:
    import numpy.typing as npt

    from chunkwise.handles.attributes import Dimensions
    from chunkwise.selecting.explained import Explained

Array: TypeAlias = "npt.NDArray[Any]"

phil = h5py._objects.phil

# As h5py makes them with the object, in one of its versions or another.
_OF_OPEN = frozenset({"_dcpl", "_dxpl", "_filters", "_local"})


class Dataset(Kept, Writable, h5py.Dataset):  # type: ignore[misc]
    """An h5py dataset that is read and written in parallel; found in a `File`, or made by `wrap`.

    All members of `h5py.Dataset` work as h5py documents them.  ``d[index]`` gives what h5py gives,
    bit for bit, and takes more indices (see `__getitem__`).  Any number of threads may read at the
    same time.
    """

    _binding: bindings.Binding | None = None
    # How far its file may lead, if that is another answer than its file's.
    _bounds: Bounds | None = None

    def __init__(self, bind: Any, *, readonly: bool = False) -> None:
        super().__init__(bind, readonly=readonly)
        # By this h5netcdf knows that a dataset is h5py's, not h5pyd's.
        self.__module__ = h5py.Dataset.__module__

    @classmethod
    def _of(cls, dataset: h5py.Dataset) -> Dataset:
        """A second object for one of h5py's."""
        bindings.watch_closing()
        return cls(dataset.id, readonly=dataset._readonly)

    @classmethod
    def _unopened(cls, readonly: bool) -> Dataset:
        """One that is opened in libhdf5 when something asks for it, by its path."""
        made = cls.__new__(cls)
        made._readonly, made._cache_props = readonly, {}
        made.__module__ = h5py.Dataset.__module__
        return made

    def __getattr__(self, name: str) -> Any:
        """What h5py keeps of an open dataset, which was not opened so far."""
        if name in _OF_OPEN and self._home is not None and "_dxpl" not in self.__dict__:
            with phil:
                h5py.Dataset.__init__(self, self._id, readonly=self._readonly)
            if name in self.__dict__:
                return self.__dict__[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _repr_html_(self) -> str | None:
        """What a notebook shows; None if its file is closed."""
        from chunkwise.card import view

        return view(self)._repr_html_() if self else None

    # What the file says -------------------------------------------------------------

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype, with the byte order of the file."""
        # As h5py keeps the shape.
        found = self._cache_props.get("dtype")
        if found is None:
            found = super().dtype
            if self._readonly:
                self._cache_props["dtype"] = found
        return cast("np.dtype[Any]", found)

    @property
    def fillvalue(self) -> Any:
        """Fill value, as `h5py.Dataset.fillvalue`.

        Raises
        ------
        chunkwise.errors.UsageError
            When it holds what is of variable length, of which h5py frees memory twice.
        """
        if not can_be_had(self.id.get_create_plist(), self.id.get_type()):
            raise UsageError(
                f"{self._label()}: its fill value holds what is of variable length, and cannot "
                "be had without harm to this process"
            )
        return super().fillvalue

    @property
    def filters(self) -> str:
        """Filters in the order of the pipeline, as ``shuffle+deflate:4``; ``none`` without."""
        from chunkwise.grammar import Pipeline

        return str(Pipeline.from_dcpl(self.id.get_create_plist()))

    @property
    def dims(self) -> Dimensions:
        """Dimension scales, as `h5py.Dataset.dims`; the scales are datasets of chunkwise."""
        # Here, as h5py does, since few ask.
        from chunkwise.handles.attributes import Dimensions

        return Dimensions(self, self._of)

    # Reading ------------------------------------------------------------------------

    def __getitem__(self, args: Any, new_dtype: Any = None) -> Any:
        """Read as h5py does; also take some indices that h5py refuses.

        Slices may go backwards.  Lists of integers may be in any order and repeat; a mask may
        cover any neighbouring dimensions.  A selection, such as `chunkwise.hyperslab` makes, reads
        as in `read`.  With several lists and masks, every choice in one goes with every choice in
        the others, and the result has a dimension for each; `vindex` pairs them up.

        Raises
        ------
        chunkwise.errors.SelectionError
            For an index that does not fit the dataset (an IndexError, ValueError and TypeError).
        chunkwise.errors.CorruptDataError
            When stored bytes are missing or do not decode; names the chunk (an OSError).
        chunkwise.errors.CannotJudgeError
            When libhdf5 has to read this dataset and cannot, which proves no damage: a filter
            is missing, or another version of it is needed (an OSError).
        chunkwise.errors.OutOfMemoryError
            When there is too little memory for the selection (a MemoryError).
        """
        binding, identifier = self._binding, self._oid
        if identifier is None and self._home is not None:
            # libhdf5 may have the file open, and not the dataset.
            identifier = self._home._id
        # As `_bound`, for most reads: h5py sets an identifier to 0 when it closes a file.
        if binding is None or identifier is None or not identifier.id:
            binding = self._bound()
        bound = binding.bound
        if bound is not None and bound.is_quick and new_dtype is None:
            # What `reading.read` does for most reads, which are short.
            try:
                found = bound.getitem(args)
            except UndecodedChunkError:
                found = None
            if found is not None:
                counts.engine += 1
                return found
        elif bound is not None and bound.sources is not None:
            binding = self._reads()
        found = reading.read(self, binding, args, new_dtype)
        if isinstance(found, Left):
            # The engine reads what nobody writes.
            self._settle()
            found = through_h5py.read(self, args, new_dtype)
        return found

    @property
    def oindex(self) -> ExplainedIndex:
        """``d.oindex[...]``: orthogonal, as ``d[...]`` is here."""
        return ExplainedIndex(self.__getitem__, self.explain)

    @property
    def vindex(self) -> ExplainedIndex:
        """``d.vindex[...]``: arrays that pair up element by element, as in NumPy.

        The arrays index neighbouring dimensions and are broadcast together; other dimensions
        may have slices and integers, and are whole by default.
        """
        return ExplainedIndex(self._read_paired, lambda index: self._explain(self._paired(index)))

    def __array__(self, dtype: npt.DTypeLike = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError(
                "a dataset cannot become an array without copying: memory allocation cannot be "
                "avoided on read"
            )
        binding, wanted = self._reads(), self.dtype if dtype is None else np.dtype(dtype)
        if self.dtype.subdtype is not None:
            # h5py refuses these.
            return np.asarray(self[()], dtype)
        found = reading.read(self, binding, ..., wanted)
        if isinstance(found, Left):
            found = through_h5py.read_all(self, wanted)
        return cast("Array", found)

    def read_direct(self, dest: Array, source_sel: Any = None, dest_sel: Any = None) -> None:
        """Read into an array, as `h5py.Dataset.read_direct` does.

        Parameters
        ----------
        dest : ndarray
            C-contiguous and writeable; if its dtype differs, elements are converted.
        source_sel, dest_sel : optional
            Indices such as ``numpy.s_[2:5]``, of the dataset and of `dest`; None is everything.

        Raises
        ------
        chunkwise.errors.SelectionError
            When these do not fit.
        """
        found = reading.read_into(self, self._reads(), dest, source_sel, dest_sel)
        if isinstance(found, Left):
            through_h5py.read_into(self, dest, source_sel, dest_sel)

    def read(self, selection: Selection | None = None, out: Array | None = None) -> Array:
        """Read a hyperslab, a union of several, or points.

        Parameters
        ----------
        selection : Selection, optional
            See `chunkwise.hyperslab`, `chunkwise.union` and `chunkwise.points`; None selects
            everything.
        out : ndarray, optional
            Where to put the elements: C-contiguous, writeable, of the selection's shape
            and the dataset's dtype.  If an element was never written and the
            dataset has no fill value, ``out`` keeps its old value.  None allocates.

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
        binding = self._reads()
        if selection is not None and not isinstance(selection, Selection):
            raise SelectionError(
                f"{self._label()}: read() takes chunkwise.points, chunkwise.union or "
                f"chunkwise.hyperslab, not {type(selection).__name__}; d[...] takes an index"
            )
        resolved = self._resolve(... if selection is None else selection)
        assert resolved is not None, "all selections have a meaning"
        if out is not None:
            self._check_out(resolved, out)
        found = reading.read_selection(self, binding, resolved, out)
        if isinstance(found, Left):
            found = through_h5py.read_selection(self, resolved, out)
        return cast("Array", found)

    def explain(self, selection: Any = None, dtype: npt.DTypeLike = None) -> Explained:
        """Say what reading a selection does, as data, without reading it.

        Parameters
        ----------
        selection : Selection or index, optional
            A `chunkwise.hyperslab`, `chunkwise.union` or `chunkwise.points`, or an index as
            for ``d[...]``; None is everything.  ``d.vindex.explain`` takes an index as for
            ``d.vindex[...]``.
        dtype : dtype, optional
            The type to which elements are converted, as by ``d.astype(dtype)``; None: their own.

        Returns
        -------
        Explained
            A dict (see `chunkwise.selecting.explained`): ``path`` ("chunked", "contiguous",
            "virtual" or "libhdf5") and ``reason``, why libhdf5 reads it, or None; how many
            ``chunks`` and bytes that takes; ``amplification``, bytes decoded divided by bytes
            selected; and more.
        """
        bound = self._reads().bound
        index = ... if selection is None else selection
        has_dimensions = self.shape if bound is None else bound.shape
        plan = self._explain(self._resolve(index) if has_dimensions else None)
        why = None if bound is None or dtype is None else transfers.why_not_as(bound, dtype)
        if why is not None:
            plan.update({"path": "libhdf5", "reason": why, "threads": 1})
        return plan

    def _explain(self, selection: _native.Selection | None) -> Explained:
        """Explain what is known to fit; None is an index that only h5py understands."""
        binding = self._reads()
        bound, home = binding.bound, self._home
        plan: Explained = {
            "path": "libhdf5",
            "reason": binding.why or None,
            "chunks": None,
            "missing_chunks": None,
            "stored_nbytes": None,
            "decoded_nbytes": None,
            "selected_nbytes": None,
            "decoded_blocks": None,
            "blocks": None,
            "amplification": None,
            "threads": 1,
            "sidecar": None,
            "refused": None if home is None else home.refused,
            "storage": None if home is None or home.storage is None else home.filename,
        }
        if selection is None:
            plan["reason"] = binding.why or "this kind of index is left to h5py"
            return plan
        itemsize = self.dtype.itemsize
        if bound is not None:
            try:
                plan = {**plan, **bound.native.explain(selection)}
            except UnsoundIndexError:
                binding.look_again(self)
                return self._explain(selection)
            plan["path"] = "contiguous" if bound.native.chunks is None else "chunked"
            if bound.native.is_virtual:
                plan["path"] = "virtual"
            plan["threads"] = _native.thread_count()
            plan["sidecar"] = bound.sidecar
        else:
            # A dataset without chunks counts as one chunk, whose sizes are at least 1.
            chunk = self.chunks or tuple(max(size, 1) for size in self.shape)
            chunks, decoded, elements = _native.count_chunks(
                self.shape, chunk, selection, self._label()
            )
            plan["selected_nbytes"] = elements * itemsize
            if self.chunks is not None:
                plan["chunks"] = chunks
                plan["decoded_nbytes"] = decoded * itemsize
        if plan["selected_nbytes"] and plan["decoded_nbytes"] is not None:
            plan["amplification"] = plan["decoded_nbytes"] / plan["selected_nbytes"]
        return plan

    def prepare(self) -> None:
        """Load the chunk index now, instead of when reads need it.

        Raises
        ------
        chunkwise.errors.UsageError
            When the file is closed.
        chunkwise.errors.CorruptDataError
            When libhdf5 cannot describe the dataset.
        """
        binding = self._reads()
        if binding.bound is not None:
            try:
                binding.bound.native.list_chunks()
            except UnsoundIndexError:
                binding.look_again(self)

    def refresh(self) -> None:
        """As `h5py.Dataset.refresh`: see what another process has written meanwhile (SWMR).

        Reads until the next `refresh` give the data of this `refresh`, or later data.
        """
        super().refresh()
        bindings.refreshed(self)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        # `dask.array.from_array` names it by this: the same as long as the file is.
        return (*self.file._home.token(), self.name)

    # Underneath ---------------------------------------------------------------------

    def _reads(self) -> bindings.Binding:
        """The binding that reads it, once all pending writes are where it reads."""
        binding = self._bound()
        if binding.bound is not None and binding.bound.sources is None:
            return binding
        binding = binding.now(self)
        # The engine reads what nobody writes.
        if binding.bound is None:
            self._settle()
        return binding

    def _bound(self) -> bindings.Binding:
        """The binding that reads it; found at the first read."""
        # Asks for no lock, so that reads do not wait for another thread's call of libhdf5.
        if self._binding is not None and self._is_there():
            return self._binding
        # Under h5py's lock no other thread can close the file, and the first one describes it.
        with phil:
            if not self:
                self._release()
                raise like(UsageError, RuntimeError())("the dataset's file is closed")
            if self._binding is None:
                binding = bindings.own_binding(self)
                bindings.check_bounds(self, binding, self._bounds or bindings.bounds_of(self))
                self._binding = binding
                bound = self._binding.bound
                if bound is not None and self._readonly:
                    # As h5py keeps it; also known while the file is parked.
                    self._cache_props["shape"] = bound.shape
            return self._binding

    def _check_bounds(self) -> None:
        """Check that it leads no farther than its file may, before libhdf5 reads it."""
        with phil:
            elsewhere.check_bounds(self, self._bounds or bindings.bounds_of(self))

    def _release(self) -> list[bindings.Bound]:
        """Drop the file's descriptor and the cached chunks; return what was bound."""
        binding, self._binding = self._binding, None
        return [] if binding is None or binding.bound is None else [binding.bound]

    def _let_go(self) -> None:
        super()._let_go()
        # These read by the identifier.
        for reader in ("_selector", "_fast_reader"):
            self._cache_props.pop(reader, None)

    def _label(self) -> str:
        bound = None if self._binding is None else self._binding.bound
        return super()._label() if bound is None else bound.label

    def _resolve(self, wanted: Any) -> _native.Selection | None:
        """What is selected; None if only h5py may know."""
        bound = None if self._binding is None else self._binding.bound
        if bound is None:
            return resolve(self.shape, wanted, self._label())
        # Without h5py's lock.
        return resolve(bound.shape, wanted, bound.label)

    def _paired(self, index: Any) -> _native.Selection:
        """What an index of `vindex` selects."""
        self._reads()
        label = self._label()
        if not self.shape:
            raise SelectionError(f"{label}: vindex takes datasets with dimensions only")
        resolved = resolve(self.shape, index, label, paired=True)
        if resolved is None:
            raise SelectionError(
                f"{label}: vindex takes arrays of integers, masks, integers, slices and one "
                "Ellipsis"
            )
        return resolved

    def _read_paired(self, index: Any) -> Any:
        """Read ``d.vindex[index]``."""
        binding, selection = self._reads(), self._paired(index)
        found = reading.read_selection(self, binding, selection)
        if isinstance(found, Left):
            found = through_h5py.read_selection(self, selection)
        return transfers.scalar_or_array(found)

    def _check_out(self, selection: _native.Selection, out: Array) -> None:
        if not isinstance(out, np.ndarray):
            raise SelectionError(
                f"{self._label()}: out must be a NumPy array, not {type(out).__name__}"
            )
        base, inner = lowlevel.element_of(self.dtype)
        want = tuple(selection.shape) + inner
        if out.dtype != base or out.shape != want:
            raise SelectionError(
                f"{self._label()}: out has dtype {out.dtype} and shape {out.shape}, "
                f"the selection {base} and {want}"
            )
        if not (out.flags.c_contiguous and out.flags.writeable):
            raise SelectionError(f"{self._label()}: out must be C-contiguous and writeable")
