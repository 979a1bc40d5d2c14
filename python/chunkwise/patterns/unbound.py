"""What does an access pattern say before it is known of which dataset?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final, Literal, TypeAlias, cast

from chunkwise import _native, grammar
from chunkwise.errors import SelectionError, UsageError
from chunkwise.model.geometry import line, plane
from chunkwise.names import printable
from chunkwise.patterns.around import Around, in_order, names
from chunkwise.patterns.pattern import Access, Hyperslab, Union, is_union
from chunkwise.words import counted

# More is read in slabs, to bound the memory and the time of one operation.
WHOLE_NBYTES = 512 << 20
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

Does: TypeAlias = Literal["read", "write", "append"]
Order: TypeAlias = Literal["walk", "f"] | tuple[int, ...]
Index: TypeAlias = tuple[int | slice, ...]


@dataclass(frozen=True, slots=True)
class Dataset:
    """The dataset for which a pattern is taken."""

    shape: tuple[int, ...]
    itemsize: int
    where: str  # What messages call it
    around: Around | None = None


@dataclass(frozen=True, slots=True)
class Word:
    """``all``, ``row`` or ``frames``."""

    word: str

    def on(self, said: StatedPattern, of: Dataset) -> Access:
        """Take it for a dataset."""
        shape = of.shape
        if self.word == "all":
            return Access(said.name, whole(shape, of.itemsize))
        if self.word == "row" and shape:
            return Access(said.name, line(shape, len(shape) - 1))
        if self.word == "frames" and len(shape) > 1:
            return Access(said.name, (1,) * (len(shape) - 2) + shape[-2:])
        raise UsageError(unknown(self.word))


@dataclass(frozen=True, slots=True)
class Along:
    """A line along a dimension, or a plane across it."""

    kind: Literal["line", "plane"]
    axis: int

    def on(self, said: StatedPattern, of: Dataset) -> Access:
        """Take it for a dataset."""
        if self.axis >= len(of.shape):
            raise SelectionError(
                f"access pattern '{said.text}' names dimension {self.axis}, but {of.where} has "
                f"the dimensions 0 to {len(of.shape) - 1}"
            )
        block = line if self.kind == "line" else plane
        return Access(said.name, block(of.shape, self.axis))


@dataclass(frozen=True, slots=True)
class Block:
    """A block; None is all of a dimension."""

    lengths: tuple[int | None, ...]

    def on(self, said: StatedPattern, of: Dataset) -> Access:
        """Take it for a dataset."""
        lengths, shape = self.lengths, of.shape
        if len(lengths) != len(shape):
            raise SelectionError(
                f"access pattern '{said.text}' has {counted(len(lengths), 'dimension')}, but "
                f"{of.where} has {len(shape)} (shape {grammar.format_shape(shape)}): give one "
                "number for each"
            )
        block = tuple(n if b is None else b for b, n in zip(lengths, shape, strict=True))
        if any(b < 1 for b in block):
            raise UsageError(
                f"access pattern '{said.text}' reads nothing: each number must be at least 1"
            )
        if any(b > n for b, n in zip(block, shape, strict=True)):
            raise SelectionError(
                f"access pattern '{said.text}' leaves the array: {of.where} has shape "
                f"{grammar.format_shape(shape)}"
            )
        return Access(said.name, block)


@dataclass(frozen=True, slots=True)
class Named:
    """Lengths of dimensions by their names; None is all of one, as it is of all others."""

    lengths: tuple[tuple[str, int | None], ...]
    # If no dimension is called so: a name of a pattern, and the pattern.
    otherwise: StatedPattern | None = None

    def on(self, said: StatedPattern, of: Dataset) -> Access:
        """Take it for a dataset."""
        if self.otherwise is not None and self.lengths[0][0] not in names(of.around):
            return self.otherwise.on(of)
        what = f"access pattern '{printable(said.text)}'"
        lengths = in_order(self.lengths, names(of.around), what, of.shape, of.where)
        return Block(tuple(lengths)).on(said, of)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Blocks at random places; None is one index of the slowest dimension."""

    number: int
    block: Block | None

    def on(self, said: StatedPattern, of: Dataset) -> Access:
        """Take it for a dataset."""
        if self.block is None and not of.shape:
            raise UsageError(unknown(said.text))
        block = self.block or Block((1, *of.shape[1:]))
        return replace(block.on(said, of), seed=0, limit=self.number)


@dataclass(frozen=True, slots=True)
class Elements:
    """Single elements at random places."""

    number: int

    def on(self, said: StatedPattern, of: Dataset) -> Access:
        """Take it for a dataset."""
        return Drawn(self.number, Block((1,) * len(of.shape))).on(said, of)


@dataclass(frozen=True, slots=True)
class Cells:
    """Unions of cells between random planes."""

    planes: int
    number: int
    seed: int

    def on(self, said: StatedPattern, of: Dataset) -> Access:
        """Take it for a dataset."""
        access = Access(said.name, of.shape, seed=self.seed, limit=self.number, cells=self.planes)
        access.walk(of.shape)  # says what is wrong with them
        return access


@dataclass(frozen=True, slots=True)
class Listed:
    """Selections, each of one or more indices with their text."""

    selections: tuple[tuple[tuple[str, Index], ...], ...]

    def on(self, said: StatedPattern, of: Dataset) -> Access:
        """Take it for a dataset."""
        slabs = tuple(_selection(one, of) for one in self.selections)
        first = slabs[0]
        if is_union(first):
            block = _box_around(first)
        else:
            _, _, counts, blocks = cast("Hyperslab", first)
            block = tuple(c * b for c, b in zip(counts, blocks, strict=True))
        return Access(said.name, block, slabs=slabs)


Selection: TypeAlias = Word | Along | Block | Named | Drawn | Elements | Cells | Listed


@dataclass(frozen=True, slots=True)
class StatedPattern:
    """An access pattern that somebody states, for whatever dataset it fits."""

    text: str  # As it is written, without what follows
    name: str  # What it is called in tables
    selection: Selection
    order: Order | None = None  # Of blocks; None if nobody stated one
    seed: int | None = None  # Which random order; None for none
    does: Does = "read"
    weight: float = 1.0  # How often it counts beside others

    def __str__(self) -> str:
        """Write it as it is read."""
        does = "" if self.does == "read" else f" {self.does}"
        return f"{self.text}{does}" + (f" weight {self.weight:.9g}" if self.weight != 1 else "")

    def on(self, of: Dataset) -> Access:
        """Take it for a dataset."""
        access = self.selection.on(self, of)
        if self.seed is not None:
            return replace(access, seed=self.seed)
        if self.order is None:
            return access
        axes = tuple(range(len(of.shape)))
        order = axes if self.order == "walk" else axes[::-1] if self.order == "f" else self.order
        if tuple(sorted(order)) != axes:
            raise UsageError(
                f"access pattern '{self.text}': an order is walk, f, random, random:SEED, or "
                "every dimension once, from the slowest to the fastest, such as "
                f"{','.join(map(str, axes))}"
            )
        return replace(access, order=order)


def whole(
    shape: tuple[int, ...], itemsize: int, limit_nbytes: int = WHOLE_NBYTES
) -> tuple[int, ...]:
    """Return the largest block of whole leading indexes within `limit_nbytes`."""
    # The array itself, or slabs of it.
    block = list(shape)
    for axis in range(len(block)):
        row_nbytes = math.prod(block[axis + 1 :]) * itemsize
        block[axis] = max(1, min(shape[axis], limit_nbytes // row_nbytes))
        if block[axis] > 1 or row_nbytes <= limit_nbytes:
            break
    return tuple(block)


def unknown(what: str) -> str:
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


def _selection(indices: Sequence[tuple[str, Index]], of: Dataset) -> Hyperslab | Union:
    parts = tuple(_hyperslab(text, index, of) for text, index in indices)
    return parts if len(parts) > 1 else parts[0]


def _box_around(union: Union) -> tuple[int, ...]:
    """Return the shape of the smallest box that holds all of a union."""
    box = []
    for along in range(len(union[0][0])):
        starts = [start[along] for start, _, _, _ in union]
        ends = [s[along] + (n[along] - 1) * step[along] + b[along] for s, step, n, b in union]
        box.append(max(ends) - min(starts))
    return tuple(box)


def _hyperslab(text: str, index: Index, of: Dataset) -> Hyperslab:
    label = f"'{printable(text)}' of {of.where}"
    if any(isinstance(item, slice) and item.step is not None and item.step < 1 for item in index):
        raise SelectionError(f"{label}: a slice's step must be at least 1")
    selected = _native.select_index(of.shape, index, label)
    parts = None if selected is None else selected.hyperslab
    if parts is None or 0 in parts[2]:
        raise UsageError(f"{label} selects nothing that can be read; write an index as [0:5, ::2]")
    start, stride, counts, block = (tuple(part) for part in parts)
    return start, stride, counts, block
