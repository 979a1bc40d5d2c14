"""How does a process encode chunks of a dataset that it has not open?

By one of the same type, shape, chunks and filters, in a file in memory: all that encoding
depends on is there.
"""

from __future__ import annotations

import secrets
from typing import Any

import h5py
from h5py import h5d, h5f, h5p, h5s, h5t

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import UsageError
from chunkwise.grammar import Effort
from chunkwise.names import HDF5_ERRORS, hdf5_reason


class Likeness:
    """A dataset like another one, in memory, without data.

    Parameters
    ----------
    datatype : h5py.h5t.TypeID
        As it is stored.
    shape, maxshape : tuple of int
        `h5py.h5s.UNLIMITED` stands for no limit.
    dcpl : h5py.h5p.PropDCID
        Chunks, filters and fill value.
    label : str
        What messages begin with: the file's and the dataset's name.

    Raises
    ------
    UsageError
        libhdf5 refuses such a dataset.
    """

    def __init__(
        self,
        datatype: h5t.TypeID,
        shape: tuple[int, ...],
        maxshape: tuple[int, ...],
        dcpl: Any,
        label: str,
    ) -> None:
        self._label = label
        self._file = h5f.create(_any_name(), h5f.ACC_TRUNC, fapl=_in_memory())
        try:
            space = h5s.create_simple(shape, maxshape)
            self.id = h5d.create(self._file, b"d", datatype, space, dcpl)
        except HDF5_ERRORS as error:
            self._file.close()
            raise UsageError(f"{label}: cannot be made: {hdf5_reason(error)}") from error
        self.dataset = h5py.Dataset(self.id)

    @classmethod
    def of(cls, dataset: h5d.DatasetID, label: str) -> Likeness:
        """Make one like a dataset of any open file."""
        space, dcpl = dataset.get_space(), dataset.get_create_plist()
        shape, most = space.get_simple_extent_dims(), space.get_simple_extent_dims(True)
        return cls(dataset.get_type(), shape, most, dcpl, label)

    @classmethod
    def of_image(cls, image: bytes, label: str) -> Likeness:
        """Make the one of which `image` was taken, in another process perhaps."""
        made = cls.__new__(cls)
        fapl = _in_memory()
        fapl.set_file_image(image)
        made._label = label
        made._file = h5f.open(_any_name(), h5f.ACC_RDWR, fapl=fapl)
        made.id = h5d.open(made._file, b"d")
        made.dataset = h5py.Dataset(made.id)
        return made

    def image(self) -> bytes:
        """Give all that makes it, some kilobytes, to send to another process."""
        h5f.flush(self._file)
        image: bytes = self._file.get_file_image()
        return image

    def writer(
        self,
        elsewhere: tuple[Any, int] | _native.KeptChunks,
        *,
        effort: Effort = "as-stated",
        budget_nbytes: int | None = None,
    ) -> _native.Writer:
        """Give what encodes chunks of the dataset; see `chunkwise._native.Writer`.

        Parameters
        ----------
        elsewhere : tuple of (object, int), or KeptChunks
            An object that gives chunks their places, with the descriptor of the file to which
            their bytes are written; or what keeps them.
        effort : {"as-stated", "fast"}
            How deflate's encoder is chosen.
        budget_nbytes : int, optional
            What chunks may take that wait for what they lack.

        Raises
        ------
        UsageError
            Chunks of such a dataset are not encoded here; the message says why.
        """
        dtype = self.dataset.dtype
        enum = h5py.check_enum_dtype(dtype) is not None
        memory_type = h5t.py_create(dtype, logical=enum)
        made = _native.Writer(
            library(),
            self.id.id,
            memory_type.id,
            dtype,
            self._label,
            effort=effort,
            budget_nbytes=budget_nbytes,
            elsewhere=elsewhere,
        )
        if made.reason is not None:
            raise UsageError(
                f"{self._label}: cannot be written by several processes: {made.reason}; write it "
                "with one"
            )
        return made

    def close(self) -> None:
        """Let it go; writers of it must not be used any more."""
        self._file.close()


def _in_memory() -> Any:
    fapl = h5p.create(h5p.FILE_ACCESS)
    fapl.set_fapl_core(backing_store=False)
    fapl.set_fclose_degree(h5f.CLOSE_STRONG)
    return fapl


def _any_name() -> bytes:
    """A name that no other file of the process has: libhdf5 tells them apart by it."""
    return f"likeness-{secrets.token_hex(8)}".encode()
