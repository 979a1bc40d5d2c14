"""Which words need more of a file than the dataset's shape, and what do they mean?

``time=all,y=1,x=1``, of a pattern or a chunk, needs the names of dimensions; ``csr:INDPTR`` and
``events:DATASET`` need values of another dataset.  The caller, who has the file, gives them
(`Around`); nothing is opened here.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Protocol

from chunkwise.errors import SelectionError, UsageError
from chunkwise.grammar import parse_count, parse_shape
from chunkwise.names import printable
from chunkwise.patterns.pattern import Access, Hyperslab
from chunkwise.words import counted, joined

# A worker gets at most this many selections; if there are more, they are drawn at random.
MOST_DRAWN: Final = 10_000
# Rows and regions that are read where nobody says how many.
_DRAWN: Final = 1_000
_PART: Final = re.compile(r"\s*([^=,\s\[\]|:@][^=,\[\]|]*?)\s*=\s*(all|:|[0-9]+)\s*")
_DRAWING: Final = re.compile(r"(csr|events|roi):(.+?)(?::([0-9][0-9.,]*\s*[a-z]*))?(?::([0-9]+))?")

_HELD: Final = {"csr": "row pointers", "events": "indices"}


class Around(Protocol):
    """What lies around a dataset in its file."""

    @property
    def dimensions(self) -> Sequence[str | None]:
        """The names of its dimensions, None for one without; empty if none has one."""

    def numbers(self, name: str) -> Sequence[int]:
        """Read another dataset of whole numbers, of one dimension."""


def by_names(
    text: str, spec: str, shape: tuple[int, ...], around: Around | None, where: str
) -> str | None:
    """Turn ``time=all,y=1,x=1`` into a block such as ``365x1x1``.

    Dimensions that are not named are read whole.
    """
    found = _named_lengths(spec)
    if not found:
        return None
    names = _names(around)
    if len(found) == 1 and found[0][0] not in names:
        return None  # NAME=PATTERN
    lengths = _in_order(found, names, f"access pattern '{printable(text)}'", shape, where)
    return "x".join(":" if length is None else str(length) for length in lengths)


def chunk_by_names(
    text: str, shape: tuple[int, ...], around: Around | None, where: str
) -> tuple[int, ...] | None:
    """Turn ``time=365,y=20,x=20`` into a chunk shape; None if it names no dimension.

    A chunk holds all of a dimension that is not named.
    """
    found = _named_lengths(text)
    if not found:
        return None
    lengths = _in_order(found, _names(around), f"chunk '{printable(text)}'", shape, where)
    return tuple(whole if n is None else n for n, whole in zip(lengths, shape, strict=True))


def _named_lengths(spec: str) -> list[tuple[str, int | None]]:
    """Read names with lengths, None for all; nothing if the text is none of that kind."""
    parts = [_PART.fullmatch(part) for part in spec.split(",")]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        return []
    return [(part[1], int(part[2]) if part[2].isdecimal() else None) for part in found]


def _names(around: Around | None) -> list[str]:
    return [] if around is None else [_last(name) for name in around.dimensions]


def _in_order(
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


def _last(name: str | None) -> str:
    return "" if name is None else name.rpartition("/")[2]


def drawn(
    name: str, spec: str, text: str, shape: tuple[int, ...], around: Around | None, where: str
) -> Access | None:
    """Read ``csr:INDPTR``, ``events:DATASET`` or ``roi:200x200``, with a count and a seed."""
    found = _DRAWING.fullmatch(spec)
    if found is None:
        return None
    kind, what, count, seed = found[1], found[2], found[3], int(found[4] or 0)
    number = _DRAWN if count is None else parse_count(count)
    said = f"access pattern '{printable(text)}'"
    if not 0 < number <= MOST_DRAWN:
        raise UsageError(f"{said} reads {number:,}: give 1 to {MOST_DRAWN:,}")
    if not shape:
        raise SelectionError(f"{said}: {where} is a scalar")
    if kind == "roi":
        slabs = _regions(what, number, seed, said, shape, where)
    elif what.isdecimal():
        word = "csr:indptr" if kind == "csr" else "events:DATASET"
        raise UsageError(
            f"{said}: name the dataset that holds the {_HELD[kind]} first, and then how many: "
            f"{word}:{what}"
        )
    elif around is None:
        raise UsageError(f"{said} needs a file with the dataset '{printable(what)}'")
    elif kind == "csr":
        slabs = _rows(around.numbers(what), what, number, seed, said, shape, where)
    else:
        all_of_them = count is None
        slabs = _events(around.numbers(what), what, number, all_of_them, said, shape, where)
    return Access(name, slabs[0][3], slabs=tuple(slabs))


def _slab(start: Sequence[int], block: Sequence[int]) -> Hyperslab:
    one = (1,) * len(start)
    return tuple(start), one, one, tuple(block)


def _regions(
    what: str, number: int, seed: int, said: str, shape: tuple[int, ...], where: str
) -> list[Hyperslab]:
    """Draw regions anywhere: of the fastest dimensions, at one index of the others."""
    sides = parse_shape(what)
    if not isinstance(sides, tuple) or not sides or min(sides) < 1:
        raise UsageError(f"{said}: write a region such as roi:200x200 or roi:200x200:1000")
    if len(sides) > len(shape):
        raise SelectionError(
            f"{said} has {counted(len(sides), 'dimension')}, but {where} has {len(shape)}"
        )
    block = (1,) * (len(shape) - len(sides)) + sides
    if any(side > length for side, length in zip(block, shape, strict=True)):
        raise SelectionError(
            f"{said} leaves the array: {where} has shape {'x'.join(map(str, shape))}"
        )
    draw = random.Random(seed)
    pairs = tuple(zip(shape, block, strict=True))
    return [
        _slab([draw.randint(0, length - side) for length, side in pairs], block)
        for _ in range(number)
    ]


def _rows(
    indptr: Sequence[int],
    what: str,
    number: int,
    seed: int,
    said: str,
    shape: tuple[int, ...],
    where: str,
) -> list[Hyperslab]:
    """Draw rows of a sparse matrix: runs of the dataset, from one pointer to the next."""
    steps = pairwise(indptr)
    if len(indptr) < 2 or indptr[0] < 0 or any(b < a for a, b in steps):
        raise SelectionError(
            f"{said}: '{printable(what)}' holds no row pointers, which begin at 0 and never fall"
        )
    if indptr[-1] > shape[0]:
        raise SelectionError(
            f"{said}: '{printable(what)}' points to {indptr[-1]:,} elements, and {where} has "
            f"{shape[0]:,}"
        )
    rows = [row for row in range(len(indptr) - 1) if indptr[row + 1] > indptr[row]]
    if not rows:
        raise SelectionError(f"{said}: all rows of '{printable(what)}' are empty")
    chosen = random.Random(seed).sample(rows, min(number, len(rows)))
    rest = shape[1:]
    return [
        _slab((indptr[row], *(0 for _ in rest)), (indptr[row + 1] - indptr[row], *rest))
        for row in chosen
    ]


def _events(
    indices: Sequence[int],
    what: str,
    number: int,
    all_of_them: bool,
    said: str,
    shape: tuple[int, ...],
    where: str,
) -> list[Hyperslab]:
    """Walk along a list of indices of the slowest dimension, in its order."""
    wrong = next((index for index in indices if not 0 <= index < shape[0]), None)
    if wrong is not None or not indices:
        holds = "nothing" if wrong is None else f"{wrong:,}"
        raise SelectionError(
            f"{said}: '{printable(what)}' holds {holds}; {where} has the indices 0 to "
            f"{shape[0] - 1:,} of its slowest dimension"
        )
    walked = indices[: MOST_DRAWN if all_of_them else number]
    rest = shape[1:]
    return [_slab((index, *(0 for _ in rest)), (1, *rest)) for index in walked]
