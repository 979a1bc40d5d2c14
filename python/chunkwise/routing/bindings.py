"""Which of the engine's datasets, if any, belongs to an open dataset?

h5py makes a new object for each ``f["x"]``, so this is kept by file and address.
"""

from __future__ import annotations

import os
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import h5py
import numpy as np
from h5py import h5f, h5fd, h5i, h5t
from h5py._objects import phil

from chunkwise import _native, workers
from chunkwise._lib import library
from chunkwise.errors import ChunkwiseError, CorruptDataError
from chunkwise.files import closing
from chunkwise.files.leading import Bounds
from chunkwise.files.objects import Address, address_of, header_address
from chunkwise.handles.handle import Kept, home_of, is_far, label_of
from chunkwise.names import HDF5_ERRORS
from chunkwise.routing import eligibility, elsewhere
from chunkwise.routing.conversions import Part, identical, memory_type, parts_between, text_of
from chunkwise.routing.elsewhere import (
    LeadsToItselfError,
    LeftToLibhdf5Error,
    Sources,
    Trail,
)

# The chunk indexes of this many datasets are kept while nobody holds the h5py objects.
MOST_KEPT = 1024
# Of more chunks, those that are read are looked up.
_MOST_LISTED = 1024
# This many closed files may be missed before the next search for them.
_OVERLOOKED_FILES = 16
# Under this name a dataset remembers its binding.
_ATTRIBUTE = "_chunkwise_binding"

FileNumber = tuple[int, ...]


@dataclass(frozen=True)
class Bound:
    """What the engine reads, and what h5py says about it."""

    # With `has_arrays`, an element is an array, and what `getitem` gives is not yet what h5py
    # gives. Elements that are `converted` as they are read cannot be converted once more.
    # Messages begin with `label`.  Of what lies in files other than the dataset's own, these are
    # its `sources`.

    native: _native.Dataset
    label: str
    dtype: np.dtype[Any]
    getitem: Callable[[Any], Any]
    converted: bool
    sources: Sources | None = None
    # The file beside it that says where its chunks lie; None if it says so itself.
    sidecar: str | None = None
    shape: tuple[int, ...] = field(init=False)
    has_arrays: bool = field(init=False)
    # Whether nothing has to be looked at before `getitem` reads what h5py reads.
    is_quick: bool = field(init=False)

    def __post_init__(self) -> None:
        # Looked up once, as small reads are short.
        object.__setattr__(self, "shape", self.native.shape)
        object.__setattr__(self, "has_arrays", self.dtype.subdtype is not None)
        object.__setattr__(self, "is_quick", not (self.has_arrays or self.sources))


@dataclass(eq=False)
class Binding:
    """A dataset that the engine reads (`bound`), or why h5py does (`why`)."""

    # With neither, its file was closed.  Damage is reported only of our `own` objects.

    bound: Bound | None = None
    why: str = ""
    own: bool = False

    def now(self, dataset: h5py.Dataset) -> Binding:
        """The same, or what reads the dataset now that something has happened to its sources."""
        sources = None if self.bound is None else self.bound.sources
        if sources is None:
            return self
        with phil:
            why = sources.why_not_now()
            if why is None and sources.is_outdated():
                self.look_again(dataset, listed=False)
            why = why or self._why_not_its_shape(dataset)
            return self if why is None else Binding(why=why)

    def _why_not_its_shape(self, dataset: h5py.Dataset) -> str | None:
        """Have a dataset read in the shape that its sources give it now; or why libhdf5 has to."""
        bound = self.bound
        if bound is None or dataset.shape == bound.shape:
            return None
        if self.own:
            # What is known of it is older than what is bound.
            dataset._cache_props.clear()
        if dataset.id.shape != bound.shape:
            self.look_again(dataset, listed=False)
            bound = self.bound
        # An h5py object keeps the shape that it has seen.
        return None if bound is None or dataset.shape == bound.shape else elsewhere.CHANGED

    def look_again(self, dataset: h5py.Dataset, *, listed: bool = True) -> None:
        """Check what has changed, or the whole chunk index if a read has found it unsound."""
        with phil:
            if self.bound is not None and dataset:
                home = home_of(dataset)
                if home is not None:
                    home.check_requests(self.bound.label)
                self._renew(dataset, listed=listed)

    def leave(self, why: str) -> None:
        """Have libhdf5 read the dataset from now on."""
        self.bound, self.why = None, why

    def _renew(self, dataset: h5py.Dataset, *, listed: bool = False) -> None:
        found = (_describe if self.own else _described)(dataset, listed=listed)
        self.bound, self.why = found.bound, found.why


_CLOSED = Binding(why=eligibility.CLOSED)
_UNPATCHED = Binding(why=eligibility.UNPATCHED)


class _Bindings:
    """What is bound, by libhdf5's number of the open file; all under h5py's lock."""

    # libhdf5 numbers each opening anew: a rewritten file is never taken for the old one.

    def __init__(self) -> None:
        self.active = False
        self.far = False  # Whether files that are not local are also read
        self.files: dict[FileNumber, weakref.WeakValueDictionary[Address, Binding]] = {}
        self._recent: OrderedDict[Address, Binding] = OrderedDict()
        self._looked_at = 0

    def find(self, dataset: h5py.Dataset) -> Binding:
        address = address_of(dataset.id)
        file = self.files.get(address[:2])
        found = None if file is None else file.get(address)
        if found is None or not (found.bound or found.why):
            self._let_go_of_closed_files()
            workers.look()
            found = _described(dataset)
            self.files.setdefault(address[:2], weakref.WeakValueDictionary())[address] = found
        self._recent[address] = found
        self._recent.move_to_end(address)
        if len(self._recent) > MOST_KEPT:
            self._recent.popitem(last=False)
        return found

    def release(self, number: FileNumber) -> list[Bound]:
        """Drop a file, and return what was bound; datasets that are still open are bound again."""
        dropped = []
        for address, binding in list(self.files.pop(number, {}).items()):
            self._recent.pop(address, None)
            if binding.bound is not None:
                dropped.append(binding.bound)
            binding.bound = None
        if self.far:
            from chunkwise.remote import ros3

            ros3.forget(number)
        return dropped

    def clear(self) -> None:
        for number in list(self.files):
            self.release(number)

    def _let_go_of_closed_files(self) -> None:
        """Find those that were closed past `h5py.File.close`, by the garbage collector say."""
        # Twice as many may be kept as were open the last time: looking each time is quadratic.
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
    watch_closing()


def watch_closing() -> None:
    """Have h5py's files wait for the engine's reads when they are closed."""
    closing.ask(_while_closing)


def deactivate() -> None:
    """Bind nothing more, and drop all bindings; under h5py's lock."""
    _bindings.active = False
    _bindings.clear()
    closing.ask_no_more(_while_closing)


def binding_of(dataset: h5py.Dataset) -> Binding:
    """What reads this dataset; found out at its first read."""
    binding: Binding | None = dataset.__dict__.get(_ATTRIBUTE)
    # h5py sets the identifier to 0 when it closes a file.
    if binding is not None and (binding.why or (binding.bound and dataset._id.id)):
        return binding.now(dataset)
    with phil:
        if not _bindings.active:
            return _UNPATCHED
        if not dataset._id.valid:
            return _CLOSED
        why = eligibility.why_not_bound(dataset)
        binding = Binding(why=why) if why else _bindings.find(dataset)
        dataset.__dict__[_ATTRIBUTE] = binding
        return binding.now(dataset)


def _while_closing(file: h5py.File, closes: bool, method: Callable[[], Any]) -> Any:
    """Let go of a file's datasets when it is closed, once nobody reads them any more."""
    number = _open_number(file) if closes else None
    done = method()
    if number is not None:
        with phil:
            dropped = _bindings.release(number)
            ours = [one.bound for key, one in _ours.items() if key[:2] == number and one.bound]
        end_reads([*dropped, *ours])
    return done


def end_reads(several: Sequence[Bound]) -> None:
    """Let no other read of these begin, and wait for those that other threads have begun."""
    # As closing a file waits for libhdf5's.  A thread that holds h5py's lock does not wait: those
    # reads may need it.
    # All of them first, in case a signal ends the waiting.
    for wait in (False, True)[: 1 if phil._is_owned() else 2]:
        for one in several:
            one.native.end_reads(wait)


def _open_number(file: h5py.File) -> FileNumber | None:
    """libhdf5's number of an open file; None if nothing is bound, or it is closed."""
    if not _bindings.files and not _ours:
        return None
    with phil:
        return _number_of(file.id) if file.id.valid else None


def _number_of(identifier: Any) -> FileNumber | None:
    """Return the number of an object's file; None for a damaged one, which is not bound."""
    try:
        return address_of(identifier)[:2]
    except HDF5_ERRORS:
        return None


# Of chunkwise's own objects.
_ours: weakref.WeakValueDictionary[Address, Binding] = weakref.WeakValueDictionary()


def own_binding(dataset: h5py.Dataset) -> Binding:
    """What reads a dataset of chunkwise's own, the same for all of its objects."""
    address: Address = dataset._address()
    found = _ours.get(address)
    if found is None:
        workers.look()
        found = _ours[address] = _by_bytes(dataset, address) or _describe(dataset)
        found.own = True
    return found


def _by_bytes(dataset: h5py.Dataset, address: Address) -> Binding | None:
    """Read what the engine needs from the file's own bytes; None where libhdf5 has to say it."""
    home = home_of(dataset)
    metadata = None if home is None or home.sidecar is not None else home.metadata
    if metadata is None:
        return None
    label = label_of(dataset)
    found = metadata.dataset(header_address(address), label, _MOST_LISTED)
    if found is None:
        return None
    native, dtype = found
    getitem = native.getitem if dtype.isnative else _as_views(native.getitem)
    return Binding(Bound(native, label, dtype, getitem, native.converts))


def bounds_of(dataset: h5py.Dataset) -> Bounds:
    """How far the file that was opened may lead for the data of a dataset."""
    home = dataset._home if isinstance(dataset, Kept) else None
    if home is not None:
        return home.bounds
    name = os.fsdecode(h5f.get_name(dataset.id))
    driver = h5i.get_file_id(dataset.id).get_access_plist().get_driver()
    return Bounds(name, None if is_far(driver) else name)


def check_bounds(dataset: h5py.Dataset, binding: Binding, bounds: Bounds) -> None:
    """Check that one of ours leads no farther than its file may; under h5py's lock."""
    bound = binding.bound
    if bound is None or (bound.sources is not None and not bounds.is_open):
        elsewhere.check_bounds(dataset, bounds)


def refreshed(dataset: h5py.Dataset) -> None:
    """Make all chunkwise objects of a dataset read it as it is in the file now."""
    with phil:
        found = _ours.get(address_of(dataset.id))
        if found is not None:
            found._renew(dataset)


def _is_plain(dataset: h5py.Dataset) -> bool:
    """Whether the file that a dataset is in is a local one to libhdf5 (the sec2 driver)."""
    return bool(h5i.get_file_id(dataset.id).get_access_plist().get_driver() == h5fd.SEC2)


def _described(dataset: h5py.Dataset, **options: Any) -> Binding:
    """As `_describe`, with what is wrong as the reason why libhdf5 reads it."""
    try:
        return _describe(dataset, **options)
    except ChunkwiseError as error:
        # A damaged dataset, or an old libhdf5: h5py says what it has always said.
        return Binding(why=str(error))


def _describe(
    dataset: h5py.Dataset,
    *,
    listed: bool = False,
    label: str | None = None,
    plain: bool = False,
    trail: Trail | None = None,
) -> Binding:
    """Ask libhdf5 for all that the engine needs, under h5py's lock; `listed`, for all chunks."""
    # Messages begin with `label`; a file that is said to be `plain` is a local one.  The `trail`
    # is that of the virtual datasets that led here.
    dtype = dataset.dtype
    why = eligibility.why_not_of_type(dtype)
    if why:
        return Binding(why=why)
    file_type = dataset.id.get_type()
    as_views = False
    if isinstance(file_type, h5t.TypeIntegerID | h5t.TypeFloatID):
        # h5py reads these into NumPy's types, and swaps bytes where it must.
        dtype = np.dtype(dtype.str)
        as_views = not dtype.isnative
    label = label_of(dataset) if label is None else label
    text = text_of(file_type, dtype)
    in_memory = memory_type(dtype) if text is None else file_type
    home = home_of(dataset)
    storage = None if home is None else home.storage
    # By the driver itself, unless somebody knows: looking at each driver takes as long as a read.
    plain = storage is None and (plain or (_is_plain(dataset) if home is None else home.is_plain))
    if storage is None and not plain:
        from chunkwise.remote import ros3
        from chunkwise.remote.opening import storage_of

        _bindings.far = True
        found = storage_of(dataset) or ros3.storage_of(dataset)
        if isinstance(found, str):
            return Binding(why=found)
        storage = found
    sidecar = None if home is None or listed else home.sidecar
    saved = None
    if sidecar is not None:
        assert home is not None
        address = header_address(address_of(dataset.id))
        saved = sidecar.find(address, home.content())
    record: _native.DatasetRecord = {
        "library": library(),
        "dataset_id": dataset.id.id,
        "memory_type_id": in_memory.id,
        "dtype": dtype,
        "label": label,
        "listed": listed,
        "text": text,
        "plain": plain,
        "storage": storage,
        # Of a file that another process writes, `refresh` says what is to be seen, to ours alone.
        "follows": home is not None and home.changes,
        "saved": saved,
        "external": (),
    }
    native = _native.Dataset(record)
    sources = None
    try:
        # Files to which one leads that is no local file are for libhdf5 to find.
        layout = native.reason if storage is None else None
        if layout == _native.EXTERNAL_LAYOUT:
            record["external"], sources = elsewhere.external_files(dataset, bounds_of(dataset))
            native = _native.Dataset(record)
        elif layout == _native.VIRTUAL_LAYOUT:
            native, sources = _mapped(dataset, dtype, label, listed, trail or Trail())
    except LeftToLibhdf5Error as left:
        return Binding(why=str(left))
    except LeadsToItselfError:
        if trail is not None:
            raise
        # libhdf5 ends the process, or gives other values than there are.
        raise CorruptDataError(
            f"{label}: the dataset is virtual, and leads to itself; make it anew, of datasets "
            "that have elements of their own"
        ) from None
    if native.reason is not None:
        return Binding(why=native.reason)
    sidecar_path = None if saved is None or sidecar is None else sidecar.path
    getitem = _as_views(native.getitem) if as_views else native.getitem
    return Binding(Bound(native, label, dtype, getitem, native.converts, sources, sidecar_path))


def _as_views(getitem: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """As `getitem`, of arrays that do not own their memory, as h5py's do not."""

    def viewed(index: Any) -> Any:
        found = getitem(index)
        return found.view() if type(found) is np.ndarray else found

    return viewed


def _mapped(
    dataset: h5py.Dataset, dtype: np.dtype[Any], label: str, listed: bool, trail: Trail
) -> tuple[_native.Dataset, Sources]:
    """Describe a virtual dataset, and all that it leads to."""
    if dtype.subdtype is not None:
        raise LeftToLibhdf5Error("it is virtual, and its elements are arrays")
    trail = trail.to(dataset)

    def described(source: h5py.Dataset, label: str, plain: bool) -> Bound:
        options = {"listed": listed, "label": label, "plain": plain, "trail": trail}
        found = _described(source, **options)
        if found.bound is None:
            raise LeftToLibhdf5Error(f"its source {label}: {found.why}")
        return found.bound

    def converted(source: Bound) -> list[Part]:
        if identical(source.dtype, dtype):
            return []
        parts = None if source.native.converts else parts_between(source.dtype, dtype)
        if parts is None:
            raise LeftToLibhdf5Error(
                f"its source {source.label}: the conversion from {source.dtype} to {dtype} is "
                "left to libhdf5"
            )
        return parts

    found, sources = elsewhere.mapped(dataset, described, trail, bounds_of(dataset))
    mapped = [
        (one.here, one.source.native, one.there, converted(one.source), one.source.label)
        for one in found
    ]
    fill = elsewhere.fill_of(dataset, dtype)
    return _native.Dataset.mapped(dataset.id.shape, dtype, fill, mapped, label), sources
