"""What is written: pieces of datasets, each of which one task makes."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from chunkwise.dask.blocks import boxes
from chunkwise.dask.tasks import Form, encode
from chunkwise.parallel.index import Places


@dataclass(frozen=True)
class Target:
    """A dataset of the open file.

    Attributes
    ----------
    name
        In the file.
    places
        Where its chunks lie.
    form
        What workers need of it.
    nbytes
        Of its elements.
    """

    name: str
    places: Places
    form: Form
    nbytes: int


@dataclass(frozen=True)
class Piece:
    """A box of whole chunks.

    Attributes
    ----------
    target
        Of which dataset.
    start
        The element where it begins.
    nbytes
        Of its elements.
    graph
        Gives what a task needs before it encodes.
    task
        What encodes; Dask's form of a task, in `graph` or by itself.
    """

    target: Target
    start: tuple[int, ...]
    nbytes: int
    graph: Callable[[], Mapping[Hashable, Any]]
    task: tuple[Any, ...]


@dataclass
class ArrayPieces:
    """The blocks of an array as pieces, in row-major order.

    Attributes
    ----------
    array
        A `dask.array.Array` whose blocks are of whole chunks.
    target
        Where it goes.
    """

    array: Any
    target: Target
    _graph: dict[Hashable, Any] = field(default_factory=dict)
    _name: str = ""

    def __post_init__(self) -> None:
        import dask

        (array,) = dask.optimize(self.array)
        self._graph, self._name = dict(array.__dask_graph__()), array.name

    def __iter__(self) -> Iterator[Piece]:
        itemsize = self.array.dtype.itemsize
        for number, start, shape in boxes(self.array.chunks):
            key = (self._name, *number)
            nbytes = itemsize
            for extent in shape:
                nbytes *= extent
            work = partial(encode, form=self.target.form, start=start)
            yield Piece(self.target, start, nbytes, partial(self._needed, key), (work, key))

    def _needed(self, key: Hashable) -> Mapping[Hashable, Any]:
        """The part of the graph that makes one block."""
        from dask.optimization import cull

        needed: Mapping[Hashable, Any] = cull(self._graph, [key])[0]
        return needed


def token() -> str:
    """What keys of one run have in common."""
    return secrets.token_hex(8)
