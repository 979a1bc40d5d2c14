"""How does libhdf5 read what the engine does not, and what is said if it cannot?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py._objects import phil

from chunkwise.errors import ChunkwiseError, OutOfMemoryError, SelectionError
from chunkwise.names import hdf5_reason
from chunkwise.routing.transfers import scalar_or_array
from chunkwise.selecting import lowlevel
from chunkwise.selecting.indexing import resolve
from chunkwise.selection import Selection

if TYPE_CHECKING:
    from chunkwise import _native


def read(dataset: h5py.Dataset, index: Any, dtype: Any) -> Any:
    """Read ``dataset[index]``, also an index that h5py refuses."""
    is_selection = isinstance(index, Selection)
    if is_selection and dtype is not None:
        raise SelectionError(
            f"{dataset._label()}: astype and fields take an index, not a selection; call "
            "read(), and convert what it gives"
        )
    resolved = None
    if is_selection or (dataset.shape and dtype is None):
        # First, as h5py leaves it to libhdf5 to find some indices out of range.
        resolved = resolve(dataset.shape, index, dataset._label())
    if not is_selection:
        try:
            return _named(dataset, lambda: h5py.Dataset.__getitem__(dataset, index, dtype))
        except SelectionError:
            if resolved is None:
                raise
    assert resolved is not None, "all selections have a meaning"
    found = read_selection(dataset, resolved)
    return found if is_selection else scalar_or_array(found)


def read_all(dataset: h5py.Dataset, dtype: Any) -> Any:
    """Read all elements, as `h5py.Dataset.__array__` does, which reads by `read_direct`."""
    # Our `read_direct` would wait for writes that need the lock; the caller has waited.

    def read() -> Any:
        with phil:
            result = np.zeros(dataset.shape, dtype)
            if result.size:
                h5py.Dataset.read_direct(dataset, result)
            return result

    return _named(dataset, read)


def read_into(dataset: h5py.Dataset, dest: Any, source_sel: Any, dest_sel: Any) -> None:
    """Read ``dataset[source_sel]`` into ``dest[dest_sel]``."""
    _named(dataset, lambda: h5py.Dataset.read_direct(dataset, dest, source_sel, dest_sel))


def read_selection(dataset: h5py.Dataset, selection: _native.Selection, out: Any = None) -> Any:
    """Read a selection for which h5py may have no index, into `out` or a new array."""
    return _named(dataset, lambda: lowlevel.read(h5py.Dataset(dataset.id), selection, out))


def _named(dataset: h5py.Dataset, read: Callable[[], Any]) -> Any:
    """Read; an error for what does not fit, or what libhdf5 cannot read, names the dataset."""
    try:
        return read()
    except (ChunkwiseError, UnicodeError):
        raise
    except (IndexError, TypeError, ValueError) as error:
        raise SelectionError(f"{dataset._label()}: {hdf5_reason(error)}") from error
    except OSError as error:
        from chunkwise.files.causes import cause_of_values, file_of
        from chunkwise.files.filters import bring_filters

        properties = dataset.id.get_create_plist()
        if bring_filters(properties):
            return _named(dataset, read)
        cause = cause_of_values(error, properties, file_of(dataset.id))
        raise cause.raised(dataset._label(), error) from error
    except MemoryError as error:
        raise OutOfMemoryError(f"{dataset._label()}: {error}; select less") from error
