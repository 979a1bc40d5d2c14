"""How does a user write an access pattern?

An access pattern is a block shape that walks over the array; blocks end where the array ends.
Programs that loop over rows, steps or lines read like this.  The walk is in C order (the
last dimension fastest) unless another order is given.  Or a pattern is a list of selections:
of hyperslabs, or of unions of several that one read takes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import zip_longest
from pathlib import Path
from typing import Final, cast

from chunkwise import _native, grammar
from chunkwise.errors import SelectionError, UsageError
from chunkwise.model.geometry import line, plane
from chunkwise.names import printable
from chunkwise.patterns.around import Around, by_names
from chunkwise.patterns.pattern import Access, Hyperslab, Union, is_union
from chunkwise.words import counted

# What `all` asks for in one read.  More is read in slabs, so that neither the
# memory nor the time of one single operation is out of all bounds.
WHOLE_NBYTES = 512 << 20
# A list of more selections is not what a person wrote down.
MOST_LISTED: Final = 1_000_000

HOW_TO_WRITE: Final = (
    "write a block such as 1x1x717 or 1x1x:, all, row, line:0, plane:1, frames, samples:64, "
    "random:1000, an index "
    "such as [::2, 5], a union of several such as [0:5, ::2] | [10:20], or list:FILE with one of "
    "these a line; names of dimensions such as time=all,y=1,x=1; cells:20 for unions of random "
    "cells; and behind a block its order: @walk, @f, @1,0,2, @random"
)
# What follows each word, and an example of it.
WORDS: Final = {
    "all": ("", ""),
    "row": ("", ""),
    "line": (":D", ":0"),
    "plane": (":D", ":0"),
    "frames": ("", ""),
    "samples": (":N", ":64"),
    "random": (":N", ":1000"),
    "cells": (":K", ":20"),
    "list": (":FILE", ":FILE"),
}
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

__all__ = ["Access", "Hyperslab", "Union", "count", "defaults", "parse", "weight", "whole"]


def count(shape: Sequence[int], block: Sequence[int]) -> int:
    """Return the number of blocks in a walk over all of an array."""
    return math.prod(-(-n // b) for n, b in zip(shape, block, strict=True))


def parse(
    text: str, shape: tuple[int, ...], itemsize: int, where: str, around: Around | None = None
) -> Access:
    """Read a pattern as a user writes it: ``row=1x1x1x717``, ``line:0@random`` or ``all``."""
    text = _WEIGHT.sub("", text)
    named = by_names(text, text.partition("@")[0], shape, around, where)
    if named is not None:
        # It has no name of its own, and is called what it says.
        what, at, order = text.partition("@")
        access = replace(_blocks("", named, text, shape, itemsize, where), name=what)
        return _ordered(access, order, text, len(shape)) if at else access
    name, spec = _named(text)
    if text.startswith("="):
        raise UsageError(f"access pattern '{text}' has no name: write NAME=SHAPE, or SHAPE alone")
    if spec.startswith(("[", "list:")):
        return _listed(name or spec, spec, text, shape, where)
    if spec.startswith("cells:"):
        return _cells(name or spec, spec, shape)
    what, at, order = spec.partition("@")
    what = by_names(text, what, shape, around, where) or what
    access = _blocks(name, what, text, shape, itemsize, where)
    return _ordered(access, order, text, len(shape)) if at else access


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
    return name, spec


def _blocks(
    name: str, what: str, text: str, shape: tuple[int, ...], itemsize: int, where: str
) -> Access:
    if what == "all":
        return Access(name or "all", whole(shape, itemsize))
    if what == "row" and shape:
        return Access(name or "row", line(shape, len(shape) - 1))
    if what == "frames" and len(shape) > 1:
        return Access(name or "frames", (1,) * (len(shape) - 2) + shape[-2:])
    samples = _SAMPLES.fullmatch(what)
    if samples is not None and shape:
        return _random(
            name or what, samples[1], grammar.format_shape((1, *shape[1:])), text, shape, where
        )
    at_random = _AT_RANDOM.fullmatch(what)
    if at_random is not None:
        return _random(name or what, at_random[1], at_random[2], text, shape, where)
    numbered = _NUMBERED.fullmatch(what)
    if numbered is None:
        if _WORD.match(what):
            raise UsageError(_unknown(what))
        return Access(name or what, _block(what, text, shape, where))
    kind, number, rest = numbered[1], int(numbered[2]), numbered[3]
    if rest is not None:
        raise UsageError(f"access pattern '{text}' cannot be understood: {HOW_TO_WRITE}")
    if number >= len(shape):
        raise SelectionError(
            f"access pattern '{text}' names dimension {number}, but {where} has the dimensions "
            f"0 to {len(shape) - 1}"
        )
    along = kind == "line"
    block = line(shape, number) if along else plane(shape, number)
    return Access(name or what, block)


def _random(
    name: str, number: str, rest: str | None, text: str, shape: tuple[int, ...], where: str
) -> Access:
    """Read so many elements, or blocks, at random."""
    block = (1,) * len(shape) if rest is None else _block(rest, text, shape, where)
    count = grammar.parse_count(number)
    if count < 1:
        raise UsageError(f"access pattern '{text}' reads nothing: give a number from 1 on")
    return Access(name, block, seed=0, limit=count)


def _unknown(what: str) -> str:
    """Say that a word is no pattern; the known words come first."""
    near = get_close_matches(what.partition(":")[0].casefold(), WORDS, 1)
    like = f" (did you mean '{near[0]}{WORDS[near[0]][1]}'?)" if near else ""
    if "," in what:
        like = " (of several patterns, give --access for each)"
    words = ", ".join(word + after for word, (after, _) in WORDS.items())
    return (
        f"no access pattern is called '{printable(what)}'{like}: the words are {words}; or write "
        "a block such as 1x1x717 or 1x1x:, or an index such as [::2, 5]"
    )


def _cells(name: str, spec: str, shape: tuple[int, ...]) -> Access:
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
    access = Access(name, shape, seed=seed, limit=count, cells=planes)
    access.walk(shape)  # says what is wrong with them
    return access


def _block(what: str, text: str, shape: tuple[int, ...], where: str) -> tuple[int, ...]:
    # As NumPy has it, a colon is all of a dimension.
    lengths = zip_longest(what.split("x"), shape[: what.count("x") + 1])
    what = "x".join(str(whole) if text == ":" else text for text, whole in lengths)
    block = grammar.parse_shape(what)
    if not isinstance(block, tuple):
        raise UsageError(f"access pattern '{text}' is no block shape: {HOW_TO_WRITE}")
    if len(block) != len(shape):
        raise SelectionError(
            f"access pattern '{text}' has {counted(len(block), 'dimension')}, but {where} has "
            f"{len(shape)} (shape {grammar.format_shape(shape)}): give one number for each"
        )
    if any(b < 1 for b in block):
        raise UsageError(f"access pattern '{text}' reads nothing: each number must be at least 1")
    if any(b > n for b, n in zip(block, shape, strict=True)):
        raise SelectionError(
            f"access pattern '{text}' leaves the array: {where} has shape "
            f"{grammar.format_shape(shape)}"
        )
    return block


def _ordered(access: Access, order: str, text: str, rank: int) -> Access:
    """Give a walk another order."""
    name = access.name if "@" in access.name or "=" in text else f"{access.name}@{order}"
    random = _RANDOM.fullmatch(order)
    if random is not None:
        return replace(access, name=name, seed=int(random[1] or 0))
    named = {"walk": tuple(range(rank)), "f": tuple(reversed(range(rank)))}
    if order in named:
        return replace(access, name=name, order=named[order])
    axes = tuple(int(part) for part in order.split(",") if part.strip().isdigit())
    if sorted(axes) != list(range(rank)) or len(order.split(",")) != rank:
        raise UsageError(
            f"access pattern '{text}': an order is walk, f, random, random:SEED, or every "
            "dimension once, from the slowest to the fastest, such as "
            f"{','.join(map(str, range(rank)))}"
        )
    return replace(access, name=name, order=axes)


def _listed(name: str, spec: str, text: str, shape: tuple[int, ...], where: str) -> Access:
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
    slabs = tuple(_selection(line, shape, where) for line in lines)
    first = slabs[0]
    if is_union(first):
        block = _box_around(first)
    else:
        _, _, counts, blocks = cast("Hyperslab", first)
        block = tuple(c * b for c, b in zip(counts, blocks, strict=True))
    return Access(name, block, slabs=slabs)


def _selection(line: str, shape: tuple[int, ...], where: str) -> Hyperslab | Union:
    parts = tuple(_hyperslab(part, shape, where) for part in line.split("|"))
    return parts if len(parts) > 1 else parts[0]


def _box_around(union: Union) -> tuple[int, ...]:
    """Return the shape of the smallest box that holds all of a union."""
    box = []
    for along in range(len(union[0][0])):
        starts = [start[along] for start, _, _, _ in union]
        ends = [s[along] + (n[along] - 1) * step[along] + b[along] for s, step, n, b in union]
        box.append(max(ends) - min(starts))
    return tuple(box)


def _hyperslab(line: str, shape: tuple[int, ...], where: str) -> Hyperslab:
    label = f"'{printable(line.strip())}' of {where}"
    index = _index(line)
    if any(isinstance(item, slice) and item.step is not None and item.step < 1 for item in index):
        raise SelectionError(f"{label}: a slice's step must be at least 1")
    selected = _native.select_index(shape, index, label)
    parts = None if selected is None else selected.hyperslab
    if parts is None or 0 in parts[2]:
        raise UsageError(f"{label} selects nothing that can be read; write an index as [0:5, ::2]")
    start, stride, counts, block = (tuple(part) for part in parts)
    return start, stride, counts, block


def _index(line: str) -> tuple[int | slice, ...]:
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


def whole(
    shape: tuple[int, ...], itemsize: int, limit_nbytes: int = WHOLE_NBYTES
) -> tuple[int, ...]:
    """Return the largest block of whole leading indexes within `limit_nbytes`."""
    # That is the array itself wherever it fits; otherwise slabs of it, so that reading everything
    # stays a few bounded operations.
    block = list(shape)
    for axis in range(len(block)):
        row_nbytes = math.prod(block[axis + 1 :]) * itemsize
        block[axis] = max(1, min(shape[axis], limit_nbytes // row_nbytes))
        if block[axis] > 1 or row_nbytes <= limit_nbytes:
            break
    return tuple(block)
