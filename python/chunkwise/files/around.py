"""What do access patterns need from a dataset's file?  The names of dimensions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property

import h5py

from chunkwise.errors import ChunkwiseError
from chunkwise.files.opening import find_dataset, full_name
from chunkwise.files.unclosed import open_readable
from chunkwise.names import HDF5_ERRORS


@dataclass(frozen=True)
class Surroundings:
    """What lies around a dataset; the file is opened when it is needed."""

    file: str | os.PathLike[str] | h5py.File  # The file, or one that is open
    dataset: str  # The dataset's path

    @cached_property
    def dimensions(self) -> Sequence[str | None]:
        """The names of its dimensions, by their first scales or labels; empty if none has one."""
        is_open = isinstance(self.file, h5py.File)
        try:
            with nullcontext(self.file) if is_open else open_readable(self.file) as file:
                found = find_dataset(file, full_name(file, self.dataset))
                names = [str(one[0].name) if len(one) else one.label or None for one in found.dims]
        except (ChunkwiseError, *HDF5_ERRORS):
            return ()
        return names if any(names) else ()
