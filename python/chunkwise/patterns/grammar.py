"""How does a user write an access pattern: a block that walks over the array, or selections?"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

from chunkwise import grammar
from chunkwise.errors import UsageError
from chunkwise.model.geometry import line
from chunkwise.names import printable
from chunkwise.patterns.around import Around, named_lengths
from chunkwise.patterns.pattern import Access, Hyperslab, Union
from chunkwise.patterns.unbound import (
    HOW_TO_WRITE,
    WORDS,
    Along,
    Block,
    Cells,
    Dataset,
    Drawn,
    Elements,
    Index,
    Listed,
    Named,
    Order,
    Selection,
    StatedPattern,
    Word,
    unknown,
    whole,
)
from chunkwise.words import counted

# A list of more selections is not what a person wrote down.
MOST_LISTED: Final = 1_000_000

# Lengths of a block are joined by an x.
_WORD: Final = re.compile(r"\s*(?!x(?:\d|$))[^\W\d]")
_NUMBERED: Final = re.compile(r"(line|plane):([0-9]+)(?::(.+))?")
# How many, as `grammar.parse_count` reads it, and blocks of which shape.
_SAMPLES: Final = re.compile(r"samples:([^:]+)")
_AT_RANDOM: Final = re.compile(r"random:([^:]+)(?::(.+))?")
# How often a pattern counts beside others.
_WEIGHT: Final = re.compile(r"\s+weight[\s=]+(\S+)\s*$")
# K planes, how many unions, and which of the random ones.
_CELLS: Final = re.compile(r"cells:([0-9]+)(?::([0-9][^:]*))?(?::([0-9]+))?")
# As many as paper 003 reads.
UNIONS_OF_CELLS: Final = 100
_RANDOM: Final = re.compile(r"random(?::([0-9]+))?")

__all__ = [
    "HOW_TO_WRITE", "WORDS", "Access", "Hyperslab", "Union", "count", "defaults", "parse", "read",
    "weight", "whole",
]  # fmt: skip


def count(shape: Sequence[int], block: Sequence[int]) -> int:
    """Return the number of blocks in a walk over all of an array."""
    return math.prod(-(-n // b) for n, b in zip(shape, block, strict=True))


def parse(
    text: str, shape: tuple[int, ...], itemsize: int, where: str, around: Around | None = None
) -> Access:
    """Read a pattern as a user writes it: ``row=1x1x1x717``, ``line:0@random`` or ``all``."""
    return read(text).on(Dataset(shape, itemsize, where, around))


def read(text: str) -> StatedPattern:
    """Read a pattern that may be for any dataset, and how often it counts."""
    times, text = weight(text), _WEIGHT.sub("", text)
    what, at, order = text.partition("@")
    lengths = named_lengths(what)
    if not lengths:
        return replace(_read(text), weight=times)
    # It has no name of its own, and is called what it says.  One length may be NAME=PATTERN too.
    otherwise = _read(text) if len(lengths) == 1 else None
    found = StatedPattern(text, what, Named(tuple(lengths), otherwise), weight=times)
    return _ordered(found, order) if at else found


def _read(text: str) -> StatedPattern:
    name, spec = _named(text)
    if text.startswith("="):
        raise UsageError(f"access pattern '{text}' has no name: write NAME=SHAPE, or SHAPE alone")
    if spec.startswith(("[", "list:")):
        return StatedPattern(text, name or spec, _listed(spec, text))
    if spec.startswith("cells:"):
        return StatedPattern(text, name or spec, _cells(spec))
    what, at, order = spec.partition("@")
    found = StatedPattern(text, name or spec, _selection(what, text))
    return _ordered(found, order) if at else found


def weight(text: str) -> float:
    """Say how often a pattern is read: 1, or what ``weight W`` behind it says."""
    found = _WEIGHT.search(text)
    if found is None:
        return 1.0
    try:
        value = float(found[1])
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise UsageError(
            f"access pattern '{printable(text)}': a weight is a number more than 0, how often the "
            "pattern is read beside the others, such as 'weight 3'"
        )
    return value


def _named(text: str) -> tuple[str, str]:
    """Split off the name; an index may hold no equals sign, a file's name may."""
    name, equals, spec = text.partition("=")
    if not equals or name.startswith(("[", "list:")):
        return "", text
    if ":" in name:
        raise UsageError(f"access pattern '{text}': a name has no colon. {HOW_TO_WRITE}")
    return name, spec


def _selection(what: str, text: str) -> Selection:
    lengths = named_lengths(what)
    if lengths:
        return Named(tuple(lengths))
    if what in ("all", "row", "frames"):
        return Word(what)
    samples = _SAMPLES.fullmatch(what)
    if samples is not None:
        return Drawn(_number(samples[1], text), None)
    at_random = _AT_RANDOM.fullmatch(what)
    if at_random is not None:
        number = _number(at_random[1], text)
        return Elements(number) if at_random[2] is None else Drawn(number, _block(at_random[2]))
    numbered = _NUMBERED.fullmatch(what)
    if numbered is None:
        if _WORD.match(what):
            raise UsageError(unknown(what))
        return _block(what)
    if numbered[3] is not None:
        raise UsageError(f"access pattern '{text}' cannot be understood: {HOW_TO_WRITE}")
    return Along("line" if numbered[1] == "line" else "plane", int(numbered[2]))


def _number(said: str, text: str) -> int:
    count = grammar.parse_count(said)
    if count < 1:
        raise UsageError(f"access pattern '{text}' reads nothing: give a number from 1 on")
    return count


def _cells(spec: str) -> Cells:
    found = _CELLS.fullmatch(spec)
    if found is None:
        raise UsageError(
            f"access pattern '{printable(spec)}': write cells:K, cells:K:COUNT or "
            "cells:K:COUNT:SEED, COUNT unions of cells between K planes a dimension"
        )
    planes, seed = int(found[1]), int(found[3] or 0)
    count = UNIONS_OF_CELLS if found[2] is None else grammar.parse_count(found[2])
    if not 0 < count <= MOST_LISTED:
        raise UsageError(
            f"'{found[0]}' reads {counted(count, 'union')}: give 1 to {MOST_LISTED:,}"
        )
    if seed >= 2**64:
        raise UsageError(f"'{found[0]}': a seed is a number from 0 to 2**64 - 1")
    return Cells(planes, count, seed)


def _block(what: str) -> Block:
    """Read lengths; as NumPy has it, a colon is all of a dimension."""
    parts = what.split("x")
    block = grammar.parse_shape("x".join("1" if part == ":" else part for part in parts))
    if not isinstance(block, tuple):
        raise UsageError(f"access pattern '{what}' is no block shape: {HOW_TO_WRITE}")
    whole = (part == ":" for part in parts)
    return Block(tuple(None if all_of else n for n, all_of in zip(block, whole, strict=False)))


def _ordered(found: StatedPattern, order: str) -> StatedPattern:
    """Give a walk another order."""
    random = _RANDOM.fullmatch(order)
    if random is not None:
        return replace(found, seed=int(random[1] or 0))
    if order in ("walk", "f"):
        return replace(found, order=cast("Order", order))
    parts = order.split(",")
    # What is no number is no dimension of any dataset.
    return replace(found, order=tuple(int(one) if one.strip().isdigit() else -1 for one in parts))


def _listed(spec: str, text: str) -> Listed:
    """Read a list of selections from one index or union, or from a file with one a line."""
    if spec.startswith("["):
        lines = [spec]
    else:
        path = Path(spec.removeprefix("list:"))
        try:
            content = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"access pattern '{printable(text)}': {path}: {error}") from None
        lines = [line for line in content.splitlines() if line.strip()]
        if not 0 < len(lines) <= MOST_LISTED:
            raise UsageError(
                f"access pattern '{printable(text)}': {path} has "
                f"{counted(len(lines), 'selection')}; write "
                f"1 to {MOST_LISTED:,}, an index such as [0:5, ::2] a line"
            )
    return Listed(
        tuple(tuple((part.strip(), _index(part)) for part in line.split("|")) for line in lines)
    )


def _index(line: str) -> Index:
    """Read an index as NumPy has it: integers and slices, in brackets or without."""
    inside = line.strip()
    if inside.startswith("[") and inside.endswith("]"):
        inside = inside[1:-1]
    items: list[int | slice] = []
    for part in inside.split(","):
        bounds = [bound.strip() for bound in part.split(":")]
        try:
            numbers = [int(bound) if bound else None for bound in bounds]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= 3 or numbers == [None]:
            raise UsageError(
                f"'{printable(line.strip())}' is no index: write integers and slices, such as "
                "[0:5, ::2, 7]"
            )
        items.append(slice(*numbers) if len(numbers) > 1 else int(bounds[0]))
    return tuple(items)


def defaults(shape: tuple[int, ...], itemsize: int) -> list[Access]:
    """Return the patterns of a plain `chunkwise bench`: one step, one line, everything."""
    # A *step* is one index of the slowest dimension that has more than one, and all of the others;
    # a *line* is all of that dimension at one index of the others. With one dimension there are no
    # lines: a step is one element, and a *part* is a hundredth of the array, as a window read
    # would be.  Patterns that would repeat an earlier one are left out.
    axis = next((i for i, n in enumerate(shape) if n > 1), len(shape) - 1)
    step = (*shape[:axis], 1, *shape[axis + 1 :])
    column = line(shape, axis)
    everything = Access("all", whole(shape, itemsize))
    if math.prod(shape[axis + 1 :]) == 1:
        part = tuple(max(1, n // 100) if i == axis else 1 for i, n in enumerate(shape))
        middle = Access("part", part)
    else:
        middle = Access("line", column)
    kept: list[Access] = []
    for access in (Access("step", step), middle, everything):
        if access.block not in [earlier.block for earlier in kept]:
            kept.append(access)
    return kept
