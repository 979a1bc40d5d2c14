"""What can go wrong?  Exceptions that say what to do about it.

Each derives from `ChunkwiseError`, and also from the exception that h5py or NumPy would raise.
Messages are one line of at most 500 characters: what is wrong, where, and the remedy.
"""

from __future__ import annotations

import errno
from functools import cache
from typing import Any, ClassVar, TypeVar, cast

from chunkwise.names import hdf5_reason, printable, without_secrets
from chunkwise.verdicts import Exit


class ChunkwiseError(Exception):
    """Base of all errors that chunkwise raises on purpose."""

    # What a command ends with that meets this error.
    exit_code: ClassVar[Exit] = Exit.FAILED
    # The `errno` of what is an OSError; None if the system has said nothing.
    _errno: ClassVar[int | None] = None
    # This much of a longer message is kept, at its begin and at its end with the remedy.
    _begin, _end = 300, 180

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        itself: Any = self
        if self._errno is not None and isinstance(itself, OSError) and itself.errno is None:
            itself.errno = self._errno

    def __str__(self) -> str:
        # KeyError shows repr(message); a sentence should be shown as written.
        text = str(self.args[0]) if self.args else self.__class__.__name__
        # First, as a cut would part a signature from its URL.
        text = without_secrets(text)
        if len(text) > self._begin + self._end:
            text = f"{text[: self._begin]} ... {text[-self._end :]}"
        return printable(text)


class FileFormatError(ChunkwiseError, OSError):
    """A file that cannot be opened as HDF5: not there, another format, no permission, damaged."""

    _errno = errno.EINVAL


class FileChangedError(ChunkwiseError, OSError):
    """A file that has changed since it was opened."""

    exit_code = Exit.BUSY
    _errno = errno.ESTALE


class BusyError(ChunkwiseError, BlockingIOError):
    """A file that another program writes, or has locked: try later."""

    exit_code = Exit.BUSY
    _errno = errno.EAGAIN


class CannotJudgeError(ChunkwiseError, OSError):
    """Data that this machine cannot read, such as for want of a filter: no proof of damage."""

    exit_code = Exit.UNJUDGED
    _errno = errno.ENOTSUP


class LeadsOutsideError(CannotJudgeError):
    """Data in another file, to which the opened file may not lead (see ``external=``)."""

    _errno = errno.EACCES


class CrashedError(CannotJudgeError):
    """A library that crashed on a file, or came to no end: no proof of damage either."""


class RemoteError(ChunkwiseError, OSError):
    """An object that cannot be read: not there, no right to read it, or no answer in time."""

    _errno = errno.EIO


class DatasetNotFoundError(ChunkwiseError, KeyError):
    """No object of that name in the file."""


class NotADatasetError(ChunkwiseError, TypeError):
    """The name leads to a group or a named type where a dataset is needed."""


class MismatchError(ChunkwiseError, TypeError):
    """An object that exists, but is not the required one."""


class SelectionError(ChunkwiseError, IndexError, ValueError, TypeError):
    """A selection of the wrong rank, or beyond the dataset's shape.

    h5py raises an IndexError, a ValueError or a TypeError, depending on what is wrong.
    """


class UsageError(ChunkwiseError, ValueError, TypeError):
    """An argument that cannot be understood or makes no sense here.

    h5py raises a ValueError or a TypeError, depending on what is wrong.
    """


class ReadOnlyError(UsageError, OSError, KeyError, RuntimeError):
    """A change to a file that is open only for reading.

    h5py raises an OSError where something is written, a KeyError where it is removed, a
    RuntimeError where it is resized and a ValueError where it is made.
    """

    _errno = errno.EBADF


class OtherFlagsError(UsageError, OSError):
    """A file that this process has open in another way, such as without SWMR."""

    _errno = errno.EINVAL


class NameTakenError(UsageError, OSError):
    """A name that an object of the file already has."""

    _errno = errno.EEXIST


class CorruptDataError(ChunkwiseError, OSError):
    """Stored bytes that do not decode to what the file says they hold."""

    exit_code = Exit.WRONG
    _errno = errno.EIO


class DamagedFileError(FileFormatError, CorruptDataError):
    """A file of which bytes are gone or wrong, such as a truncated one."""

    _errno = errno.EIO


class UnclosedFileError(FileFormatError, CannotJudgeError):
    """A file that HDF5 refuses since its writer was killed before it closed it."""


class WrongValueError(CorruptDataError):
    """An element whose value differs from the known one."""


class UndecodedChunkError(CorruptDataError):
    """A chunk that is left to libhdf5: it holds far more than it should, or an unusual codec."""


class UnsoundIndexError(UndecodedChunkError):
    """A chunk index that is not as libhdf5 writes it: the dataset is left to libhdf5."""


class ChangedSourceError(UndecodedChunkError):
    """A changed file to which a dataset leads: libhdf5 reads its present data."""


class CannotWriteError(ChunkwiseError, OSError):
    """A file that cannot be written: read-only folder, full disk, quota."""

    _errno = errno.EIO


class AlreadyExistsError(CannotWriteError, FileExistsError):
    """A file that already exists where a new one should be made."""

    _errno = errno.EEXIST


class OutOfMemoryError(ChunkwiseError, MemoryError):
    """A selection or chunk larger than the free memory."""


class LibraryError(ChunkwiseError, OSError):
    """A libhdf5 that cannot be found, is too old, or whose call failed."""

    # Room for the paths of all that was tried.
    _begin = 4000


_Kind = TypeVar("_Kind", bound=ChunkwiseError)


def like(kind: type[_Kind], error: BaseException) -> type[_Kind]:
    """An error of ours that is of the builtin class of another, too, and has its `errno`.

    Parameters
    ----------
    kind : type
        One of the classes above.
    error : BaseException
        What h5py or the system raised.

    Returns
    -------
    type
        `kind`, where it derives from that class; otherwise a class that derives from both.
    """
    builtin = next(one for one in type(error).__mro__ if one.__module__ == "builtins")
    number = getattr(error, "errno", None) if issubclass(builtin, OSError) else None
    if number is None and issubclass(kind, builtin):
        return kind
    made: type[_Kind] = _both(cast("Any", kind), builtin, number)
    return made


@cache
def _both(kind: Any, builtin: Any, number: int | None) -> Any:
    def reduce(self: ChunkwiseError) -> Any:
        # No module has this class: other processes make it again.
        return _remade, (kind, builtin, number, self.args)

    members = {"__doc__": kind.__doc__, "__module__": kind.__module__, "__reduce__": reduce}
    if number is not None:
        members["_errno"] = number
    bases = (kind,) if issubclass(kind, builtin) else (kind, builtin)
    try:
        return type(kind.__name__, bases, members)
    except TypeError:  # Two builtin classes that cannot be one, such as a UnicodeError.
        return kind


def _remade(kind: Any, builtin: Any, number: int | None, args: tuple[Any, ...]) -> Any:
    return _both(kind, builtin, number)(*args)


def reason_of(error: BaseException, where: str = "") -> str:
    """Return what an error says, ours or h5py's, without `where` with which messages begin."""
    if not isinstance(error, ChunkwiseError):
        return hdf5_reason(error)
    return str(error).removeprefix(f"{printable(where)}: ")


def note(error: BaseException, text: str) -> None:
    """Add a line to what is said of an error, as `add_note` does since Python 3.11."""
    notes: list[str] = vars(error).setdefault("__notes__", [])
    if text not in notes:
        notes.append(text)


def notes_of(error: BaseException | None) -> list[str]:
    """Return the lines that `note` added to an error, or to the one that caused it."""
    if error is None:
        return []
    return [*vars(error).get("__notes__", ()), *notes_of(error.__cause__)]
