"""What does a user say is read and written, and how often?

As for bench, with words behind it: ``map=1x721x1440 weight 3``, ``step=1x721x1440 append``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from chunkwise import access
from chunkwise.access.pattern import Access, is_union
from chunkwise.advise.geometry import canonical
from chunkwise.advise.traffic import Pattern
from chunkwise.errors import UsageError
from chunkwise.grammar import format_shape
from chunkwise.names import printable

_DONE: Final = re.compile(r"\s+(read|write|append)(?=\s+weight\b|\s*$)")
# Of a list, so many selections are followed chunk by chunk.
_FOLLOWED: Final = 400
# Of a canonical pattern, so many reads: a program reads some lines, not all there are.
_CANONICAL_READS: Final = 1_000


@dataclass(frozen=True)
class Asked:
    """One pattern as it was asked for.

    Attributes
    ----------
    text
        As `bench` takes it.
    access
        What it means for this dataset.
    pattern
        The same, as the model takes it.
    """

    text: str
    access: Access
    pattern: Pattern


def read(
    texts: Sequence[str],
    shape: tuple[int, ...],
    itemsize: int,
    where: str,
    around: access.Around | None = None,
) -> tuple[Asked, ...]:
    """Read the patterns of a dataset; without any, the canonical ones.

    Parameters
    ----------
    texts
        As `chunkwise.access.parse` takes them, each with ``weight W``, ``read``, ``write`` or
        ``append`` behind it, in any order.
    shape, itemsize
        Of the dataset, in elements, and bytes of one.
    where
        File and dataset, for messages.
    around
        Tells names of dimensions and what other datasets hold; None where there is no file.

    Raises
    ------
    UsageError, SelectionError
        A pattern cannot be understood, or does not fit.
    """
    if not texts:
        texts = usual(shape, itemsize)
    found = [_asked(text, shape, itemsize, where, around) for text in texts]
    names = [one.pattern.name for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(
            f"two access patterns are called '{printable(twice)}': give them names, as in "
            "first=1x8x: and second=8x1x:"
        )
    return tuple(found)


def usual(shape: tuple[int, ...], itemsize: int) -> list[str]:
    """Write the patterns that are meant where none is stated, those that `inspect` judges by.

    A line along each dimension, and a step: as many of each as cover the array, or some at random
    places where there are many.
    """
    texts = []
    for block in canonical(shape, itemsize):
        word = format_shape(block)
        name = _canonical_name(shape, block)
        number = access.count(shape, block)
        spec = f"random:{_CANONICAL_READS}:{word}" if number > _CANONICAL_READS else word
        texts.append(f"{name}={spec}")
    return texts


def _canonical_name(shape: tuple[int, ...], block: tuple[int, ...]) -> str:
    long = [axis for axis, (n, b) in enumerate(zip(shape, block, strict=True)) if n > 1 and b > 1]
    if len(shape) == 1:
        return "piece"
    if len(long) == 1:
        return f"line-along-{long[0]}"
    return "step"


def _asked(
    text: str,
    shape: tuple[int, ...],
    itemsize: int,
    where: str,
    around: access.Around | None,
) -> Asked:
    found = _DONE.search(text)
    done, rest = ("read", text) if found is None else (found[1], text.replace(found[0], "", 1))
    meant = access.parse(rest, shape, itemsize, where, around)
    weight = access.weight(rest)
    pattern = replace(as_pattern(meant, shape), weight=weight, writes=done != "read")
    if pattern.writes and (pattern.scattered or pattern.selections is not None):
        raise UsageError(
            f"access pattern '{printable(text)}': only blocks that cover the array can be "
            f"{'appended' if done == 'append' else 'written'}; write a block such as "
            f"{format_shape((1, *shape[1:]))}"
        )
    return Asked(rest, meant, pattern)


def as_pattern(meant: Access, shape: tuple[int, ...]) -> Pattern:
    """Give a pattern to the model."""
    if meant.slabs is None and meant.cells is None:
        scattered = meant.seed is not None
        return Pattern(meant.name, meant.block, meant.order, scattered, meant.limit)
    walk = meant.walk(shape)
    number = walk.operations
    step = max(1, number // _FOLLOWED)
    # Neighbours stay neighbours: what one read leaves in a cache, the next one finds.
    first = range(min(number, _FOLLOWED)) if step < 4 else range(_FOLLOWED)
    found = [_frozen(walk[i]) for i in first]
    selections = tuple(one if is_union(one) else (one,) for one in found)
    flat = any(is_union(one) for one in found)
    return Pattern(meant.name, meant.block, operations=number, selections=selections, flat=flat)


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value
