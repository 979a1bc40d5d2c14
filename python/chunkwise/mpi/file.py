"""How do ranks open a file that they write together, and complete it?"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from chunkwise.errors import UsageError
from chunkwise.grammar import Pipeline
from chunkwise.mpi import target as targets
from chunkwise.mpi.dataset import ParallelDataset
from chunkwise.mpi.home import Home, ParallelAttributes
from chunkwise.mpi.machine import cores, neighbours
from chunkwise.mpi.ranks import of_many_ranks, require_supported
from chunkwise.mpi.session import Session, described, own_communicator
from chunkwise.mpi.target import Mode
from chunkwise.names import printable, shown
from chunkwise.settings import settings
from chunkwise.writing.creating import Chunks, MaxShape, Request

if TYPE_CHECKING:
    from mpi4py import MPI


class ParallelGroup:
    """A group of a file that ranks write together.

    All methods are collective: all ranks call them, in the same order, with the same arguments.

    Attributes
    ----------
    name : str
        Its path in the file.
    attrs : ParallelAttributes
        Its attributes, which rank 0 writes.
    """

    def __init__(self, home: Home, path: str) -> None:
        self._home = home
        self.name = path
        self.attrs = ParallelAttributes(home, path)

    def create_group(self, name: str, track_order: bool | None = None) -> ParallelGroup:
        """Create a group, and its missing parents (collective).

        Parameters
        ----------
        name : str
            Its name, or a path.
        track_order : bool, optional
            Whether it keeps the order in which its members are created; None: h5py's setting.

        Raises
        ------
        chunkwise.errors.UsageError
            When the name is taken, or ranks give different arguments (a ValueError).
        """
        path = self._path(name, "group")
        home = self._home

        def work() -> None:
            home.h5.create_group(path, track_order=track_order)

        home.changed(f"create_group {path}", described({"track_order": track_order}), work)
        return ParallelGroup(home, path)

    def create_dataset(
        self,
        name: str,
        shape: int | Sequence[int] | None = None,
        dtype: Any = None,
        data: Any = None,
        *,
        chunks: Chunks = None,
        maxshape: MaxShape = None,
        filters: Pipeline | str | None = None,
        access: str | Sequence[str] = (),
        fillvalue: Any = None,
        **options: Any,
    ) -> ParallelDataset:
        """Create a dataset, and its missing parent groups (collective).

        Parameters
        ----------
        name : str
            Its name, or a path.
        shape, dtype, chunks, maxshape, filters, access, fillvalue, **options
            As for ``chunkwise.File.create_dataset``.
        data : array-like, optional
            Its values, all of them on each rank, such as coordinates; None leaves them to the
            ranks' parts.

        Returns
        -------
        ParallelDataset

        Raises
        ------
        chunkwise.errors.UsageError
            When that is impossible, with the reason; when the name is taken; when ranks give
            different arguments, with their names (a ValueError).
        chunkwise.errors.SelectionError
            When `access` does not fit `shape`.
        """
        path = self._path(name, "dataset")
        request = Request(
            shape, dtype, data, chunks, maxshape, filters, access, fillvalue, options
        )
        same = described({**vars(request), "options": None, **options})
        home = self._home
        made = home.first(f"create_dataset {path}", same, lambda: home.make(path, request))
        dataset = ParallelDataset(home, made)
        if made.rest and 0 not in made.shape:
            dataset._write_shared(data)
        return dataset

    def _path(self, name: str, kind: str) -> str:
        if not isinstance(name, str) or not name:
            raise UsageError(f"{self._home.session.label}: a {kind} needs a name, a str")
        return posixpath.join(self.name, name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


T = TypeVar("T")
_MODES = ("w", "w-", "x")


class ParallelFile(ParallelGroup):
    """An HDF5 file that ranks write together; made by `chunkwise.parallel.open`.

    Use it in a ``with`` statement, or close it.  Until `close` it is a partial file beside its
    final name.  If a rank fails, no file is left, and the
    others raise OtherRankFailedError at their next call.

    Attributes
    ----------
    filename : str
        The path it was opened with.
    """

    def __init__(self, home: Home, filename: str) -> None:
        super().__init__(home, "/")
        self.filename = filename

    def on_first(self, work: Callable[[Any], T]) -> T:
        """Do something with h5py on rank 0 (collective).

        For everything except the data of ranks: links, named types, strings of variable length,
        lookups.

        Parameters
        ----------
        work : callable
            Called on rank 0 with the `h5py.File`; must not touch data that ranks write.

        Returns
        -------
        object
            What `work` returned, on all ranks; pickle must take it.

        Raises
        ------
        Exception
            What `work` raised, on rank 0; the file is given up.
        chunkwise.mpi.ranks.OtherRankFailedError
            On the others, then.
        """
        return self._home.first("on_first", "", lambda: work(self._home.h5))

    def flush(self) -> None:
        """Write everything to the partial file, and that to storage (collective).

        Incomplete chunks are completed from the file, or with the fill value, and written;
        they are encoded again when the rest comes.

        Raises
        ------
        chunkwise.errors.CannotWriteError
            When the data does not reach storage: a full disk, a quota; the file is given up.
        """
        self._home.session.meet("flush", None)
        self._settle()
        self._home.flushed()
        self._home.session.on_first(self._home.h5_flush)

    def close(self) -> None:
        """Complete the file, and put it into place (collective); a second call does nothing.

        Raises
        ------
        chunkwise.errors.CannotWriteError
            When it cannot be completed: a full disk, a quota; there is no file then.
        chunkwise.mpi.ranks.OtherRankFailedError
            When another rank failed; there is no file then.
        """
        session = self._home.session
        if session.is_over:
            return
        session.meet("close", None)
        self._settle()
        try:
            session.complete()
            self._home.close()
            session.on_first(self._home.target.publish)
        except BaseException as wrong:
            session.fail(wrong)
            raise
        session.end()

    def _settle(self) -> None:
        """Let all ranks write their pending data; raise on all if one cannot."""
        try:
            self._home.flush()
            self._home.target.sync(self.filename)
        except BaseException as wrong:
            self._home.session.lose(wrong)
        self._home.session.meet("writing what is left", None)

    def __enter__(self) -> ParallelFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self._home.session.fail(error)


def open(
    path: str | os.PathLike[str],
    mode: Mode = "w",
    comm: MPI.Comm | None = None,
    *,
    libver: str | tuple[str, str] | None = None,
    track_order: bool | None = None,
) -> ParallelFile:
    """Create an HDF5 file that the ranks of an MPI program write together (collective).

    It needs mpi4py, but no parallel HDF5 and no h5py that was built for MPI.  Without MPI it
    works with this process alone.

    Parameters
    ----------
    path : path-like
        The file, in a folder that all ranks see.
    mode : {"w", "w-", "x"}
        ``w`` creates the file, and replaces an existing one once the new one is
        complete; ``x`` (or ``w-``) creates it only if none exists.
    comm : mpi4py.MPI.Comm, optional
        Of the ranks; by default all ranks (``COMM_WORLD``).
    libver : str or tuple of str, optional
        Bounds of the format, as in h5py, such as ``"latest"``.
    track_order : bool, optional
        Whether the file keeps the order in which groups and datasets of its root are made.

    Returns
    -------
    ParallelFile

    Raises
    ------
    chunkwise.errors.CannotWriteError
        When it cannot be made: no permission, another run is writing it, or a rank does not see
        the folder (an OSError).
    chunkwise.errors.AlreadyExistsError
        When it exists and mode is ``x`` (a FileExistsError).
    chunkwise.errors.UsageError
        For an unknown mode, a missing folder, arguments that differ between ranks, or MPI without
        mpi4py (a ValueError).
    chunkwise.mpi.ranks.OtherRankFailedError
        When another rank failed.

    Examples
    --------
    >>> import numpy as np
    >>> from chunkwise import parallel
    >>> with parallel.open("field.h5", "w") as f:            # doctest: +SKIP
    ...     d = f.create_dataset("t", (100, 360), "f4", chunks=(10, 360), filters="deflate:1")
    ...     d[25 * rank : 25 * (rank + 1)] = np.ones((25, 360))
    """
    require_supported()
    if mode not in _MODES:
        raise UsageError(f"{printable(os.fsdecode(path))}: mode {shown(mode)} is none of {_MODES}")
    said = os.fsdecode(path)
    session = Session(own_communicator(of_many_ranks() if comm is None else comm), printable(said))
    try:
        same = described(
            {"path": said, "mode": mode, "libver": libver, "track_order": track_order}
        )
        session.meet("open", None, same)
        how = {"libver": libver, "track_order": track_order}
        target = targets.make(session.comm, said, mode, session.held, **how)
        # Ranks that share cores share the threads, and the memory.
        mine = min(settings().threads, cores(session.comm))
        session.held.enter_context(settings(threads=mine))
        home = Home(session, target, settings().write_buffer_nbytes // neighbours(session.comm))
        session.held.callback(home.close)
        session.serve(home.answer if session.comm.rank == 0 else None)
    except BaseException as wrong:
        session.fail(wrong)
        raise
    return ParallelFile(home, said)
