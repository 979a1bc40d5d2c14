"""How does libhdf5 read a part of a dataset without converting a byte?

The type in memory is the file's own, so types that h5py or NumPy cannot name are read as well.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from h5py import h5s, h5t

from chunkwise.grammar.boxes import Box

Bytes: TypeAlias = npt.NDArray[np.uint8]


def read_box(dataset: Any, datatype: Any, box: Box) -> Bytes:
    """Read a box as bytes of `datatype`, the dataset's own."""
    values = np.zeros(box.size * datatype.get_size(), np.uint8)
    memory, stored = h5s.create(h5s.SCALAR), dataset.get_space()
    if box.shape:
        stored.select_hyperslab(*box)
        memory = h5s.create_simple(box.shape)
    dataset.read(memory, stored, values, datatype)
    return values


def read_attribute(attribute: Any) -> bytes:
    """Read the elements of an attribute as bytes of its own type."""
    datatype = h5t.TypeID.copy(attribute.get_type())
    elements = attribute.get_space().get_simple_extent_npoints()
    values = np.zeros(elements * datatype.get_size(), np.uint8)
    if values.size:
        attribute.read(values, datatype)
    return values.tobytes()
