"""What does a trial read or write, in which order?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from chunkwise import _native
from chunkwise.grammar.sizes import format_size
from chunkwise.words import counted

Hyperslab = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]
# A union is read at once: each of its elements one time, in C order.
Union = tuple[Hyperslab, ...]


@dataclass(frozen=True)
class Access:
    """A named access pattern."""

    name: str  # What it is called in tables, such as ``row`` or ``all``
    # Block shape; of a list, of its first selection or the box around it; of cells, the array's.
    block: tuple[int, ...]
    # The dimensions from the slowest to the fastest; None is C order, if nobody stated one.
    order: tuple[int, ...] | None = None
    seed: int | None = None  # Which random order the blocks are read in; None for none
    limit: int | None = None  # How many blocks are read; None for all
    # Start, stride, count and block of each selection of a list, or of each hyperslab of a union.
    slabs: tuple[Hyperslab | Union, ...] | None = None
    # Random planes that cut each dimension: `limit` unions of cells are read, by `seed`.
    cells: int | None = None

    @property
    def in_c_order(self) -> bool:
        """Whether it is a walk over the whole array in C order."""
        return self.is_ordered and self.order in (None, tuple(range(len(self.block))))

    @property
    def is_ordered(self) -> bool:
        """Whether it is a walk over the whole array, dimension by dimension."""
        return (self.seed, self.limit, self.slabs) == (None,) * 3

    @property
    def elements(self) -> int:
        """How many elements the first read asks for."""
        if self.cells is not None:
            # They do not overlap.
            return sum(math.prod(block) for _, _, _, block in self.walk(self.block)[0])
        first = self.slabs[0] if self.slabs else None
        if first is not None and is_union(first):
            return _native.union_len(len(self.block), first)
        return math.prod(self.block)

    def in_words(self, shape: Sequence[int], itemsize: int) -> str:
        """Say what it was taken for: ``64 single elements (1 byte each) at random places``."""
        walk = math.prod(-(-n // b) for n, b in zip(shape, self.block, strict=True))
        number = walk if self.limit is None else self.limit
        number = number if self.slabs is None else len(self.slabs)
        if self.has_unions:
            return counted(number, "union")
        nbytes = self.elements * itemsize
        what = counted(number, "block") + f" of {'x'.join(map(str, self.block))}"
        if self.elements == 1:
            what = counted(number, "single element")
        how = ", one after the other"
        if self.slabs is not None:
            how, what = "", counted(number, "selection")
            nbytes = 0
        elif self.seed is not None:
            how = " at random places"
        each = f" ({format_size(nbytes)}{' each' if number > 1 else ''})" if nbytes else ""
        return f"{what}{each}{how if number > 1 else ''}"

    @property
    def has_unions(self) -> bool:
        """Whether any of its selections is a union, of whose chunks the block says little."""
        return self.cells is not None or any(is_union(one) for one in self.slabs or ())

    def walk(self, shape: Sequence[int]) -> _native.Walk:
        """Return what is read of an array of this shape, one after another."""
        if self.slabs is not None:
            return _native.Walk.listed(shape, self.slabs)
        if self.cells is not None:
            return _native.Walk.cells(shape, self.cells, self.limit or 1, self.seed or 0)
        return _native.Walk(shape, self.block, self.order, self.seed, self.limit)


def is_union(selection: Hyperslab | Union) -> TypeGuard[Union]:
    """Whether it is hyperslabs rather than one; array dimensions are at least one."""
    return isinstance(selection[0][0], tuple)
