"""What is written: pieces of datasets, each of which one task makes."""

from __future__ import annotations

import heapq
import math
import secrets
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

from chunkwise.dask.blocks import boxes
from chunkwise.dask.flat import Flat, FlatPlaces
from chunkwise.dask.tasks import Form, encode
from chunkwise.newfile.index import Places


@dataclass(frozen=True)
class WrittenDataset:
    """A dataset of the open file."""

    name: str  # In the file
    places: Places | FlatPlaces  # Where its chunks lie, or its parts
    form: Form | Flat  # What workers need of it
    nbytes: int  # Of its elements


@dataclass(frozen=True)
class Piece:
    """A box of whole chunks."""

    target: WrittenDataset  # Of which dataset
    start: tuple[int, ...]  # The element where it begins
    nbytes: int  # Of its elements
    graph: Callable[[], Mapping[Hashable, Any]]  # Gives what a task needs before it encodes
    task: tuple[Any, ...]  # What encodes; Dask's form of a task, in `graph` or by itself


def array_pieces(arrays: Sequence[tuple[Any, WrittenDataset]]) -> Iterator[Piece]:
    """List the blocks of arrays as pieces."""
    from dask.base import optimize

    optimized = optimize(*(array for array, _ in arrays))
    graph: dict[Hashable, Any] = {}
    for array in optimized:
        graph.update(array.__dask_graph__())
    # Of each array the same part is done at any time.
    rows = [
        _pieces(array, target, graph) for array, (_, target) in zip(optimized, arrays, strict=True)
    ]
    for _, piece in heapq.merge(*rows, key=itemgetter(0)):
        yield piece


def _pieces(
    array: Any, target: WrittenDataset, graph: Mapping[Hashable, Any]
) -> Iterator[tuple[float, Piece]]:
    """List the blocks of an array, each with the part of the array that lies before it."""
    count = math.prod(array.numblocks)
    for place, (number, box) in enumerate(boxes(array.chunks)):
        key = (array.name, *number)
        nbytes = box.size * array.dtype.itemsize
        work = partial(encode, form=target.form, start=box.start)
        piece = Piece(target, box.start, nbytes, partial(_needed, graph, key), (work, key))
        yield place / count, piece


def _needed(graph: Mapping[Hashable, Any], key: Hashable) -> Mapping[Hashable, Any]:
    """The part of a graph that makes one block."""
    from dask.optimization import cull

    needed: Mapping[Hashable, Any] = cull(graph, [key])[0]
    return needed


def token() -> str:
    """What keys of one run have in common."""
    return secrets.token_hex(8)
