"""How is a file opened for writing, and when is the written data on storage?

libhdf5 truncates a file before it finds that another program has it open: all is checked first.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

import h5py
from h5py import h5fd

from chunkwise import system
from chunkwise.errors import (
    AlreadyExistsError,
    BusyError,
    CannotWriteError,
    ChunkwiseError,
    ReadOnlyError,
    UsageError,
    like,
)
from chunkwise.files.opening import make_h5, open_h5
from chunkwise.names import HDF5_ERRORS, hdf5_reason, printable, shown

Mode: TypeAlias = Literal["r", "r+", "a", "w", "w-", "x"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)


def open_file(path: str | os.PathLike[str], mode: Mode, options: dict[str, Any]) -> h5py.File:
    """Open a file for reading or writing, or make one, as `chunkwise.open` says."""
    where = printable(os.fspath(path))
    if mode not in MODES:
        raise UsageError(f"{where}: mode {shown(mode)} is none of {', '.join(MODES)}")
    # What is only read is not made here.
    exists = mode == "r" or "://" in os.fspath(path) or os.path.lexists(path)
    try:
        if mode in ("r", "r+") or (mode == "a" and exists):
            if mode != "r":
                _check_existing(Path(path), where)
            return open_h5(path, mode, **options)
        _check_place(Path(path), where)
        if mode == "w" and exists:
            _check_existing(Path(path), where, truncates=_locks(options))
        if not options:
            return make_h5(path, replaces=mode == "w")
        return h5py.File(path, "w" if mode == "w" else "x", **options)
    except HDF5_ERRORS as error:
        if isinstance(error, BlockingIOError) and mode != "r":
            raise _open_elsewhere(where, error) from None
        if isinstance(error, ChunkwiseError):
            raise
        is_taken = any(said in str(error) for said in ("already open", "file exists"))
        known = getattr(error, "errno", None) or is_taken
        if known or not options:
            raise _refused(where, error) from None
        if not exists:
            with contextlib.suppress(OSError):
                Path(path).unlink()
        reason = hdf5_reason(error)
        raise like(UsageError, error)(
            f"{where}: cannot be opened with {options}: {reason}"
        ) from None


def _check_place(path: Path, where: str) -> None:
    """Refuse a place where no file can be made."""
    folder = path.absolute().parent
    if not folder.exists():
        raise like(CannotWriteError, _number(errno.ENOENT))(
            f"{where}: there is no folder {printable(str(folder))}; make it first"
        )
    if not folder.is_dir():
        raise like(CannotWriteError, _number(errno.ENOTDIR))(
            f"{where}: {printable(str(folder))} is no folder; name another place"
        )


def _check_existing(path: Path, where: str, truncates: bool = False) -> None:
    """Refuse what is no file or may not be written; or truncated, if a program has it open."""
    try:
        kind = path.stat().st_mode
    except OSError:
        return  # What is not there, opening explains.
    if stat.S_ISDIR(kind):
        raise like(CannotWriteError, _number(errno.EISDIR))(
            f"{where}: is a folder; give the name of a file in it"
        )
    if not stat.S_ISREG(kind):
        raise CannotWriteError(f"{where}: is not a regular file; name one")
    try:
        descriptor = os.open(path, os.O_RDWR | system.OPENED)
    except PermissionError as error:
        raise like(CannotWriteError, error)(
            f"{where}: may not be written: permission denied; see `ls -l`, or copy it"
        ) from None
    except OSError as error:
        raise like(CannotWriteError, error)(
            f"{where}: cannot be written: {error.strerror}"
        ) from None
    try:
        if truncates:
            # As libhdf5 will do, which by then has emptied a file that it truncates.
            system.lock(descriptor)
    except BlockingIOError as error:
        raise _open_elsewhere(where, error) from None
    except OSError:
        pass  # A file system without locks; libhdf5 says whether it minds.
    finally:
        os.close(descriptor)


def _open_elsewhere(where: str, error: Exception) -> ChunkwiseError:
    return like(BusyError, error)(
        f"{where}: is open elsewhere, in this program or another: close it there, or if "
        "nobody has it open, set HDF5_USE_FILE_LOCKING=FALSE"
    )


def _number(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def _locks(options: dict[str, Any]) -> bool:
    """Whether libhdf5 will lock the file."""
    said = os.environ.get("HDF5_USE_FILE_LOCKING", "").upper()
    return options.get("locking") is not False and said not in ("FALSE", "0")


def _refused(where: str, error: Exception) -> ChunkwiseError:
    reason = hdf5_reason(error)
    if isinstance(error, FileExistsError) or reason == "file exists":
        return AlreadyExistsError(f"{where}: exists already; mode 'w' replaces it, 'a' adds to it")
    if "already open" in reason:
        return CannotWriteError(f"{where}: {reason} in this program; close it first")
    if isinstance(error, PermissionError):
        return like(CannotWriteError, error)(
            f"{where}: cannot be made: permission denied; name a folder in which you may write"
        )
    number = getattr(error, "errno", None)
    said = os.strerror(number) if number else reason
    return like(CannotWriteError, error)(f"{where}: cannot be made: {said}; name another place")


def is_read_only(error: BaseException) -> bool:
    """Return whether HDF5 refuses a change since the file is open only for reading."""
    return "no write intent" in str(error)


def read_only(where: str) -> ReadOnlyError:
    """Make the one error for a change to a file that is open only for reading."""
    return ReadOnlyError(
        f"{where}: the file is open for reading only; open it with chunkwise.open(path, 'r+')"
    )


@contextlib.contextmanager
def write_errors(where: str, doing: str) -> Iterator[None]:
    """Say what libhdf5 could not write, in one line."""
    try:
        yield
    except ChunkwiseError:
        raise
    except HDF5_ERRORS as error:
        if is_read_only(error):
            raise read_only(where) from error
        raise like(CannotWriteError, error)(
            f"{where}: {doing}: {hdf5_reason(error)}; see whether the disk is full, and write "
            "the file again"
        ) from error


@contextlib.contextmanager
def synced(file: h5py.File, where: str, wanted: bool) -> Iterator[None]:
    """Wait after the block until storage has what libhdf5 wrote in it, and the file's name."""
    # The file may be closed in the block.
    if not wanted:
        yield
        return
    own: int | None = None
    folder = Path(os.path.realpath(file.filename)).parent
    if file.id.get_access_plist().get_driver() == h5fd.SEC2:
        # A description of its own: one that is shared would share libhdf5's lock.
        own = system.reopened(file.id.get_vfd_handle(), os.path.realpath(file.filename))
    try:
        yield
        if own is not None:
            with write_errors(where, "storage does not take it"):
                os.fsync(own)
                # That a new file is found after a crash, not every system can see to.
                with contextlib.suppress(OSError):
                    system.sync(folder)
    finally:
        if own is not None:
            os.close(own)
