"""How is a dataset copied that the engine does not read or write?  libhdf5 does it.

In boxes of whole chunks of the target, each read and written once, without conversion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from h5py import h5d, h5t

from chunkwise.errors import CorruptDataError
from chunkwise.names import HDF5_ERRORS, hdf5_reason
from chunkwise.repacking.boxes import boxes, read_box, write_box

# Large enough that a call costs little; libhdf5 is the slow part anyway.
_BOX_NBYTES = 64 << 20


def copy_by_library(
    source: Any,
    target: Any,
    label: str,
    memory_nbytes: int,
    progress: Callable[[int, int, int], None],
) -> None:
    """Copy all elements of a dataset whose bytes mean the same in every file.

    Parameters
    ----------
    source, target
        h5py's low-level handles; equal types and shapes.
    label
        File and dataset, to begin messages with.
    memory_nbytes
        Most bytes of a box, unless a single chunk has more.
    progress
        Told bytes done; may raise to end the copy.

    Raises
    ------
    CorruptDataError
        The source cannot be read.
    """
    datatype = h5t.TypeID.copy(source.get_type())
    itemsize = datatype.get_size()
    dcpl = target.get_create_plist()
    shape = tuple(target.shape)
    chunk = tuple(dcpl.get_chunk()) if dcpl.get_layout() == h5d.CHUNKED else (1,) * len(shape)
    most = max(1, min(memory_nbytes, _BOX_NBYTES) // itemsize)
    done = 0
    for start, count in boxes(shape, chunk, most):
        try:
            values = read_box(source, datatype, start, count)
        except HDF5_ERRORS as error:
            at = ", ".join(map(str, start))
            raise CorruptDataError(
                f"{label}: elements from ({at}) on cannot be read: {hdf5_reason(error)}; "
                "restore the file"
            ) from None
        write_box(target, datatype, start, count, values)
        done += len(values)
        progress(done, done, done)
