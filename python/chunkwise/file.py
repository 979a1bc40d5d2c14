"""How is a file opened, or made?  h5py's way."""

from __future__ import annotations

import os
import warnings
from types import TracebackType
from typing import Any

from chunkwise.errors import ChunkwiseError
from chunkwise.group import Group
from chunkwise.handles import FileHandle
from chunkwise.opening_writable import Mode

__all__ = ["File", "open"]


class File(Group):
    """An open file; close it, or use it in a ``with`` statement."""

    def __init__(
        self, path: str | os.PathLike[str], mode: Mode = "r", *, sync: bool = True, **options: Any
    ) -> None:
        file = FileHandle(path, mode, options, sync)
        super().__init__(file.root(), file, {}, None)

    @property
    def filename(self) -> str:
        """The path it was opened with."""
        return self._file.filename

    @property
    def mode(self) -> str:
        """``r``, or ``r+`` where it may be written, as h5py has it."""
        return "r+" if self._file.writable else "r"

    def flush(self) -> None:
        """Encode what waits, and hand all to storage; returns when it is there.

        Raises
        ------
        chunkwise.errors.CannotWriteError
            When it does not get there: a full disk, a quota.
        """
        self._check_open()
        self._flush_linked()
        self._file.flush()

    def close(self) -> None:
        """Close the file, after what `flush` does; its datasets cannot be used afterwards.

        Raises
        ------
        chunkwise.errors.CannotWriteError
            As `flush`; it is closed nevertheless.
        """
        try:
            try:
                self._flush_linked()
            finally:
                # What waits to be written is, while the datasets are still there.
                self._file.close()
        finally:
            for dataset in list(self._known.values()):
                dataset._release()
            self._known.clear()

    def _flush_linked(self) -> None:
        """Flush datasets that external links led to, in other files."""
        if self._file.changes and self._file.is_open:
            for dataset in list(self._known.values()):
                dataset._flush_outside(self._file.number)

    def __enter__(self) -> File:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except ChunkwiseError as second:
            if error is None:
                raise
            # What went wrong first is what the caller should hear.
            warnings.warn(str(second), RuntimeWarning, stacklevel=2)


def open(
    path: str | os.PathLike[str], mode: Mode = "r", *, sync: bool = True, **options: Any
) -> File:
    """Open an HDF5 or netCDF-4 file, or make one.

    Parameters
    ----------
    path : path-like
        A local file.
    mode : str
        As in h5py: ``r`` reads; ``r+`` reads and writes a file that exists; ``w`` makes one, in
        place of one that exists; ``x`` (or ``w-``) only where none exists; ``a`` makes one
        or writes the one that exists.
    sync : bool
        Whether `File.flush` and `File.close` return when storage has what was written, so
        that it survives a crash of the machine; otherwise when the system has it.
    **options
        Further keywords of `h5py.File`, such as `libver`, `userblock_size`, `fs_strategy`
        and `track_order`.

    Returns
    -------
    File
        ``f["group/dataset"]`` gives a `Dataset`.

    Raises
    ------
    chunkwise.errors.FileFormatError
        When it cannot be opened; says what it is instead, and what to do (an OSError).
    chunkwise.errors.CorruptDataError
        When it can, but is damaged where its objects begin (an OSError).
    chunkwise.errors.CannotWriteError
        When it cannot be made or written: no such folder, no permission, open elsewhere (an
        OSError).
    chunkwise.errors.AlreadyExistsError
        When it exists and mode is ``x`` (a FileExistsError).
    chunkwise.errors.UsageError
        For an unknown mode or option (a ValueError).
    """
    return File(path, mode, sync=sync, **options)
