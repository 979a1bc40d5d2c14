"""What can go wrong, as exceptions that say what to do about it.

Every error that chunkwise raises on purpose derives from `ChunkwiseError`, and
also from the builtin exception that h5py or NumPy would raise in its place, so
that ``except KeyError`` written for h5py keeps working.  The message of each is
one line: what is wrong, where (file, dataset, chunk), and the remedy.
"""

from __future__ import annotations


class ChunkwiseError(Exception):
    """Base of all errors raised on purpose by chunkwise."""

    def __str__(self) -> str:
        # KeyError shows repr(message); a sentence should be shown as written.
        return str(self.args[0]) if self.args else self.__class__.__name__


class FileFormatError(ChunkwiseError, OSError):
    """A file that cannot be opened as HDF5: another format, truncated, unreadable."""


class FileChangedError(ChunkwiseError, OSError):
    """A file that is not any more what it was when it was opened."""


class DatasetNotFoundError(ChunkwiseError, KeyError):
    """No object of that name in the file."""


class NotADatasetError(ChunkwiseError, TypeError):
    """The name leads to a group or a named type where a dataset is needed."""


class MismatchError(ChunkwiseError, TypeError):
    """An object that is there, and is not what was required."""


class SelectionError(ChunkwiseError, IndexError, ValueError, TypeError):
    """A selection of the wrong rank, or beyond the dataset's shape.

    h5py raises an IndexError, a ValueError or a TypeError, depending on what is wrong.
    """


class UsageError(ChunkwiseError, ValueError):
    """An argument that cannot be understood or makes no sense here."""


class CorruptDataError(ChunkwiseError, OSError):
    """Stored bytes that do not decode to what the file says they hold."""


class WrongValueError(CorruptDataError):
    """An element that was read as another value than it is known to have."""


class UndecodedChunkError(CorruptDataError):
    """A chunk that is left to libhdf5: it holds far more than it should, or an unusual codec."""


class CannotWriteError(ChunkwiseError, OSError):
    """A file that cannot be written: read-only folder, full disk, quota."""


class AlreadyExistsError(CannotWriteError, FileExistsError):
    """A file that exists where a new one was asked for."""


class OutOfMemoryError(ChunkwiseError, MemoryError):
    """A selection or chunk larger than the memory there is."""


class LibraryError(ChunkwiseError, OSError):
    """A libhdf5 that cannot be found, is too old, or whose call failed."""
