"""What do lengths of named dimensions mean, as in ``time=all,y=1,x=1`` of a pattern or a chunk?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol

from chunkwise.errors import SelectionError
from chunkwise.names import printable
from chunkwise.words import joined

_PART: Final = re.compile(r"\s*([^=,\s\[\]|:@][^=,\[\]|]*?)\s*=\s*(all|:|[0-9]+)\s*")


class Around(Protocol):
    """What lies around a dataset in its file."""

    @property
    def dimensions(self) -> Sequence[str | None]:
        """The names of its dimensions, None for one without; empty if none has one."""


# One chunk for all of a dataset.
WHOLE: Final = ("all", "whole")


def chunk_by_names(
    text: str, shape: tuple[int, ...], around: Around | None, where: str
) -> tuple[int, ...] | None:
    """Turn ``time=365,y=20,x=20`` or ``all`` into a chunk shape; None if it is neither."""
    if text in WHOLE:
        return shape
    # A chunk holds all of a dimension that is not named.
    found = named_lengths(text)
    if not found:
        return None
    lengths = in_order(found, names(around), f"chunk '{printable(text)}'", shape, where)
    return tuple(whole if n is None else n for n, whole in zip(lengths, shape, strict=True))


def named_lengths(spec: str) -> list[tuple[str, int | None]]:
    """Read names with lengths, None for all; nothing if the text is none of that kind."""
    parts = [_PART.fullmatch(part) for part in spec.split(",")]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        return []
    return [(part[1], int(part[2]) if part[2].isdecimal() else None) for part in found]


def names(around: Around | None) -> list[str]:
    """Give the names of the dimensions, without their groups; empty for one without."""
    names = () if around is None else around.dimensions
    return ["" if name is None else name.rpartition("/")[2] for name in names]


def in_order(
    found: Sequence[tuple[str, int | None]],
    names: Sequence[str],
    said: str,
    shape: tuple[int, ...],
    where: str,
) -> list[int | None]:
    """Put lengths into the order of the dimensions; None for those that are not named."""
    known = [name for name in names if name]
    if not known:
        raise SelectionError(
            f"{said} names dimensions, and {where} has no dimension scales that name them: write "
            f"lengths such as {'x'.join('1' if i else str(n) for i, n in enumerate(shape))}"
        )
    lengths: list[int | None] = [None] * len(shape)
    for name, length in found:
        if name not in known:
            raise SelectionError(
                f"{said}: {where} has no dimension '{printable(name)}': there are "
                f"{joined([printable(one) for one in known])}"
            )
        if [one for one, _ in found].count(name) > 1 or known.count(name) > 1:
            raise SelectionError(f"{said}: dimension '{printable(name)}' is named twice")
        lengths[names.index(name)] = length
    return lengths
