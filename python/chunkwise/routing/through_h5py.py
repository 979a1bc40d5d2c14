"""How does libhdf5 read what the engine does not, and what is said if it cannot?

It is asked through h5py's own methods.  If h5py refuses an index, such as several lists or
backward slices, this module asks it for indices that libhdf5 takes, and puts the result in order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from chunkwise.errors import ChunkwiseError, OutOfMemoryError, SelectionError
from chunkwise.names import hdf5_reason
from chunkwise.routing.bindings import Binding
from chunkwise.routing.reading import into, scalar_or_array
from chunkwise.selecting import lowlevel
from chunkwise.selecting.indexing import resolve
from chunkwise.selection import Selection

if TYPE_CHECKING:
    from chunkwise import _native
    from chunkwise.dataset import Dataset

phil = h5py._objects.phil


def getitem(dataset: Dataset, args: Any, new_dtype: Any) -> Any:
    """Read ``dataset[args]`` through libhdf5, also an index that h5py refuses."""
    if isinstance(args, Selection):
        if new_dtype is not None:
            raise SelectionError(
                f"{dataset._label()}: astype and fields take an index, not a selection; call "
                "read(), and convert what it gives"
            )
        return dataset.read(args)
    resolved = None
    if dataset.shape and new_dtype is None:
        # First, as h5py leaves it to libhdf5 to find some indices out of range.
        resolved = resolve(dataset.shape, args, dataset._label())
    try:
        return told(dataset, lambda: h5py.Dataset.__getitem__(dataset, args, new_dtype))
    except SelectionError:
        if resolved is None:
            raise
    return scalar_or_array(selected(dataset, resolved))


def array(dataset: Dataset, binding: Binding, dtype: Any) -> Any:
    """Read all elements, as `h5py.Dataset.__array__` does, which reads by `read_direct`.

    Ours would wait there for those who write, while h5py's method holds the lock that they need.
    Here all was waited for before.
    """

    def read() -> Any:
        with phil:
            result = np.zeros(dataset.shape, dataset.dtype if dtype is None else dtype)
            if result.size and not into(dataset, binding, result, None, None):
                h5py.Dataset.read_direct(dataset, result)
            return result

    return told(dataset, read)


def selected(dataset: Dataset, selection: _native.Selection, out: Any = None) -> Any:
    """Read a selection for which h5py may have no index, into `out` or a new array."""
    return told(dataset, lambda: lowlevel.read(h5py.Dataset(dataset.id), selection, out))


def told(dataset: Dataset, read: Callable[[], Any]) -> Any:
    """Read; what libhdf5 cannot, and what does not fit, is said by name."""
    try:
        return read()
    except (ChunkwiseError, UnicodeError):
        raise
    except (IndexError, TypeError, ValueError) as error:
        raise SelectionError(f"{dataset._label()}: {hdf5_reason(error)}") from error
    except OSError as error:
        from chunkwise.files.causes import cause_of_values
        from chunkwise.files.filters import bring_filters

        properties = dataset.id.get_create_plist()
        if bring_filters(properties):
            return told(dataset, read)
        cause = cause_of_values(error, properties)
        raise cause.raised(dataset._label(), error) from error
    except MemoryError as error:
        raise OutOfMemoryError(f"{dataset._label()}: {error}; select less") from error
