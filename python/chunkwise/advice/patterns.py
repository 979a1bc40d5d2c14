"""Which reads and writes does a user state, and how often?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from chunkwise import patterns
from chunkwise.errors import UsageError
from chunkwise.grammar import format_shape
from chunkwise.model.chunk_shape import usual as meant_where_none_is_stated
from chunkwise.model.traffic import Pattern
from chunkwise.names import printable
from chunkwise.patterns import Access, as_pattern

__all__ = ["Requested", "as_pattern", "read"]


@dataclass(frozen=True)
class Requested:
    """One pattern as it was asked for."""

    text: str  # As `bench` takes it
    access: Access  # What it means for this dataset
    pattern: Pattern  # The same, as the model takes it

    @property
    def weight(self) -> float:
        """How often it is read, beside the others."""
        return self.pattern.weight * self.pattern.reads


def read(
    access: Sequence[str | patterns.StatedPattern],
    shape: tuple[int, ...],  # Of the dataset, in elements, and bytes of one
    itemsize: int,
    where: str,
    around: patterns.Around | None = None,
) -> tuple[Requested, ...]:
    """Read the patterns of a dataset; without any, the canonical ones."""
    dataset = patterns.Dataset(shape, itemsize, where, around)
    stated = [_as_requested(one, dataset) for one in patterns.read(access)]
    found = stated or list(_usual(shape, itemsize))
    names = [one.pattern.name for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(
            f"two access patterns are called '{printable(twice)}': give them names, as in "
            "first=1x8x: and second=8x1x:"
        )
    return tuple(found)


def _usual(shape: tuple[int, ...], itemsize: int) -> Iterator[Requested]:
    """Give the patterns that are meant if none is stated, those that `inspect` judges by."""
    # See `chunkwise.model.chunk_shape.usual`.
    for one in meant_where_none_is_stated(shape, itemsize):
        word, drawn = format_shape(one.block), one.operations is not None
        text = f"random:{one.operations}:{word}" if drawn else word
        access = Access(one.name, one.block, seed=0 if drawn else None, limit=one.operations)
        yield Requested(f"{one.name}={text}", access, as_pattern(access, shape))


def _as_requested(one: patterns.StatedPattern, dataset: patterns.Dataset) -> Requested:
    found = patterns.as_stated(one.on(dataset), dataset.shape, one)
    return Requested(str(replace(one, does="read")), *found)
