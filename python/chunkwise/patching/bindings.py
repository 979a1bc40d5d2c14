"""Which of the engine's datasets belongs to an open `h5py.Dataset`?

h5py makes a new object each time that ``f["x"]`` is asked for, so that what the engine
knows is kept by file and address, and with each object for the next read.  It is let go of
when the file is closed.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5f, h5i, h5t
from h5py._objects import phil

from chunkwise import _native
from chunkwise.dataset import bind
from chunkwise.errors import ChunkwiseError
from chunkwise.names import HDF5_ERRORS
from chunkwise.objects import Address, address_of

# Binding costs as much as h5py needs to read this much.
SMALLEST_NBYTES = 64 << 10
# Chunk indexes of so many datasets are kept while nobody holds the h5py objects.
MOST_KEPT = 1024
# So many closed files may be overlooked before they are looked for.
_OVERLOOKED_FILES = 16
# Under this name a dataset remembers its binding.
_ATTRIBUTE = "_chunkwise_binding"

FileNumber = tuple[int, ...]


@dataclass(frozen=True)
class Bound:
    """What the engine reads, and what h5py says of it.

    Without `fills`, reading leaves alone what was never written.  With `gives_views`, h5py's
    arrays do not own their memory.
    """

    native: _native.Dataset
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    chunks: tuple[int, ...] | None
    fills: bool
    gives_views: bool


@dataclass(eq=False)
class Binding:
    """A dataset that the engine reads (`bound`), or why h5py does (`why`).

    With neither, its file was closed, and may be open again.
    """

    bound: Bound | None = None
    why: str = ""


CLOSED = Binding(why="its file is closed")
SMALL = Binding(why=f"it is smaller than {SMALLEST_NBYTES >> 10} KiB")
WRITABLE = Binding(why="the file is open for writing")
# Its conversions sort them, in the type that all who have the dataset open share.
REORDERED = Binding(why="libhdf5 may change the order of its members")
UNPATCHED = Binding(why="h5py is not patched any more")


class _Bindings:
    """What is bound, by libhdf5's number of the open file; all under h5py's lock.

    libhdf5 gives every opening of a file another number, so that a file that was closed,
    rewritten and opened again is never taken for what it was.
    """

    def __init__(self) -> None:
        self.active = False
        self.files: dict[FileNumber, weakref.WeakValueDictionary[Address, Binding]] = {}
        self._recent: OrderedDict[Address, Binding] = OrderedDict()
        self._looked_at = 0

    def find(self, dataset: h5py.Dataset) -> Binding:
        address = address_of(dataset.id)
        file = self.files.get(address[:2])
        found = None if file is None else file.get(address)
        if found is None or not (found.bound or found.why):
            self._let_go_of_closed_files()
            found = _describe(dataset)
            self.files.setdefault(address[:2], weakref.WeakValueDictionary())[address] = found
        self._recent[address] = found
        self._recent.move_to_end(address)
        if len(self._recent) > MOST_KEPT:
            self._recent.popitem(last=False)
        return found

    def release(self, number: FileNumber) -> None:
        """Let go of a file; datasets that are open still are bound anew."""
        for address, binding in list(self.files.pop(number, {}).items()):
            self._recent.pop(address, None)
            binding.bound = None

    def clear(self) -> None:
        for number in list(self.files):
            self.release(number)

    def _let_go_of_closed_files(self) -> None:
        """Find those that were closed past `h5py.File.close`, by the garbage collector say.

        Looking at every open file each time would cost a program that opens thousands of
        them the square of that; so twice as many may be kept as were open the last time.
        """
        if len(self.files) < 2 * self._looked_at + _OVERLOOKED_FILES:
            return
        # A file may be held open by one of its datasets alone.
        identifiers = h5f.get_obj_ids(h5f.OBJ_ALL, h5f.OBJ_FILE | h5f.OBJ_DATASET)
        numbers = {_number_of(identifier) for identifier in identifiers}
        for number in [number for number in self.files if number not in numbers]:
            self.release(number)
        self._looked_at = len(self.files)


_bindings = _Bindings()


def active() -> bool:
    """Whether datasets are bound now."""
    return _bindings.active


def activate() -> None:
    """Bind datasets from now on."""
    _bindings.active = True


def deactivate() -> None:
    """Bind no more, and let go of all that is bound; under h5py's lock."""
    _bindings.active = False
    _bindings.clear()


def binding_of(dataset: h5py.Dataset) -> Binding:
    """What reads this dataset; found out at its first read."""
    binding: Binding | None = dataset.__dict__.get(_ATTRIBUTE)
    # h5py sets the identifier to 0 when it closes a file.
    if binding is not None and (binding.why or (binding.bound and dataset._id.id)):
        return binding
    with phil:
        if not _bindings.active:
            return UNPATCHED
        if not dataset._id.valid:
            return CLOSED
        binding = _unbindable(dataset) or _bindings.find(dataset)
        dataset.__dict__[_ATTRIBUTE] = binding
        return binding


def file_number(file: h5py.File) -> FileNumber | None:
    """libhdf5's number of an open file; None where nothing is bound, or it is closed."""
    if not _bindings.files:
        return None
    with phil:
        return _number_of(file.id) if file.id.valid else None


def _number_of(identifier: Any) -> FileNumber | None:
    """Return the number of an object's file; None of a damaged one, of which nothing is bound."""
    try:
        return address_of(identifier)[:2]
    except HDF5_ERRORS:
        return None


def release(number: FileNumber) -> None:
    """Let go of a file's datasets, which is about to be closed."""
    with phil:
        _bindings.release(number)


def _unbindable(dataset: h5py.Dataset) -> Binding | None:
    """Tell cheaply that a dataset is not worth binding, or cannot be."""
    if not dataset._readonly and h5i.get_file_id(dataset._id).get_intent() & h5f.ACC_RDWR:
        return WRITABLE
    size = dataset.size
    if size is None or size * dataset._id.get_type().get_size() < SMALLEST_NBYTES:
        return SMALL
    return None


def _describe(dataset: h5py.Dataset) -> Binding:
    dtype = dataset.dtype
    if _is_reordered(dtype):
        return REORDERED
    file_type = dataset.id.get_type()
    gives_views = False
    if isinstance(file_type, h5t.TypeIntegerID | h5t.TypeFloatID):
        # These h5py reads into arrays of NumPy's own types, and looks at their bytes in the
        # other order where it must.
        dtype = np.dtype(dtype.str)
        gives_views = not dtype.isnative
    try:
        native = bind(dataset, dtype)
    except ChunkwiseError as error:
        # A damaged dataset, or an old libhdf5: h5py says what it has always said.
        return Binding(why=str(error))
    if native.reason is not None:
        return Binding(why=native.reason)
    dcpl = dataset.id.get_create_plist()
    time = dcpl.get_fill_time()
    undefined = dcpl.fill_value_defined() == h5d.FILL_VALUE_UNDEFINED
    fills = time != h5d.FILL_TIME_NEVER and not (time == h5d.FILL_TIME_IFSET and undefined)
    return Binding(Bound(native, dtype, dataset.shape, dataset.chunks, fills, gives_views))


def _is_reordered(dtype: np.dtype[Any]) -> bool:
    """Whether a compound type, or one in it, names its members in another order than they lie."""
    members = list((dtype.base.fields or {}).values())
    offsets = [member[1] for member in members]
    return offsets != sorted(offsets) or any(_is_reordered(member[0]) for member in members)
