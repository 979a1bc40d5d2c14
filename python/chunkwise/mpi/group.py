"""How do ranks make groups and datasets in a file that they write together?"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Any

from chunkwise.errors import UsageError
from chunkwise.grammar import Pipeline
from chunkwise.mpi.dataset import ParallelDataset
from chunkwise.mpi.home import Home, ParallelAttributes
from chunkwise.mpi.session import described
from chunkwise.writing.creating import Chunks, MaxShape, Request


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
