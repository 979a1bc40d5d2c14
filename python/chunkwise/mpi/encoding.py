"""How does a process encode chunks of a dataset that it has not opened?  With a twin in memory."""

from __future__ import annotations

import secrets
from typing import Any, Final

import h5py
from h5py import h5d, h5f, h5o, h5p, h5s, h5t

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import UsageError
from chunkwise.grammar import Effort
from chunkwise.names import HDF5_ERRORS, hdf5_reason

_NAME: Final = b"d"


class Likeness:
    """A dataset like another one, in a file in memory."""

    def __init__(self, image: bytes, label: str) -> None:
        self._label = label
        self._file = h5f.open(_any_name(), h5f.ACC_RDWR, fapl=_in_memory(image))
        self.dataset = h5py.Dataset(h5d.open(self._file, _NAME))  # Which has no data

    @classmethod
    def made(
        cls,
        datatype: h5t.TypeID,
        shape: tuple[int, ...],
        maxshape: tuple[int, ...],
        dcpl: Any,
        label: str,
    ) -> Likeness:
        """Make one without a dataset so far."""
        file = h5f.create(_any_name(), h5f.ACC_TRUNC, fapl=_in_memory())
        try:
            space = h5s.create_simple(shape, maxshape)
            made = h5d.create(file, _NAME, datatype, space, dcpl)
            return cls(image_of(made), label)
        except HDF5_ERRORS as error:
            raise UsageError(f"{label}: cannot be made: {hdf5_reason(error)}") from error
        finally:
            file.close()

    def writer(
        self,
        elsewhere: tuple[Any, int] | _native.KeptChunks,
        *,
        effort: Effort = "as-stated",
        budget_nbytes: int | None = None,
    ) -> _native.Writer:
        """Return the encoder of the dataset's chunks; see `chunkwise._native.Writer`."""
        made = self._writer(elsewhere, effort, budget_nbytes)
        if made.reason is not None:
            raise UsageError(
                f"{self._label}: cannot be written by several processes: {made.reason}; write it "
                "with one"
            )
        return made

    def refusal(self, effort: Effort = "as-stated") -> str | None:
        """Say why its chunks cannot be encoded here; None if they can."""
        return self._writer(_native.KeptChunks(), effort).reason

    def _writer(
        self, elsewhere: Any, effort: Effort, budget_nbytes: int | None = None
    ) -> _native.Writer:
        dtype = self.dataset.dtype
        enum = h5py.check_enum_dtype(dtype) is not None
        memory_type = h5t.py_create(dtype, logical=enum)
        return _native.Writer(
            library(),
            self.dataset.id.id,
            memory_type.id,
            dtype,
            self._label,
            effort=effort,
            budget_nbytes=budget_nbytes,
            elsewhere=elsewhere,
        )

    def close(self) -> None:
        """Let it go; writers of it must not be used any more."""
        self._file.close()


def image_of(dataset: h5d.DatasetID) -> bytes:
    """Make a small file with a dataset like this one, without attributes."""
    # Copied from the header: made anew, filters of plugins would change their values.
    file = h5f.create(_any_name(), h5f.ACC_TRUNC, fapl=_in_memory())
    try:
        copying = h5p.create(h5p.OBJECT_COPY)
        copying.set_copy_object(h5o.COPY_WITHOUT_ATTR_FLAG)
        h5o.copy(dataset, b".", file, _NAME, copying)
        h5f.flush(file)
        return bytes(file.get_file_image())
    finally:
        file.close()


def _in_memory(image: bytes | None = None) -> Any:
    fapl = h5p.create(h5p.FILE_ACCESS)
    fapl.set_fapl_core(backing_store=False)
    fapl.set_fclose_degree(h5f.CLOSE_STRONG)
    if image is not None:
        fapl.set_file_image(image)
    return fapl


def _any_name() -> bytes:
    """A name that no other file of the process has: libhdf5 distinguishes them by it."""
    return f"likeness-{secrets.token_hex(8)}".encode()
