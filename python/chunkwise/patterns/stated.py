"""Which patterns will read and write a dataset, in the model's terms?

A block without an order means single reads at places in no order; ``@walk`` all of the dataset.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from chunkwise.errors import SelectionError, UsageError
from chunkwise.grammar import format_shape
from chunkwise.model.chunk_shape import (
    PAGE_NBYTES,
    USUAL_READS,
    expected_shape,
    single_reads,
)
from chunkwise.model.traffic import Pattern
from chunkwise.names import printable
from chunkwise.patterns.around import Around
from chunkwise.patterns.grammar import count
from chunkwise.patterns.grammar import read as read_pattern
from chunkwise.patterns.pattern import Access, Hyperslab
from chunkwise.patterns.unbound import Dataset, Does, StatedPattern

_DONE: Final = re.compile(r"\s+(read|write|append)(?=\s+weight\b|\s*$)")
# This many selections of a list are followed chunk by chunk.
_FOLLOWED: Final = 400
_UNLIMITED: Final = 2**63 - 1


def read(patterns: Iterable[str | StatedPattern]) -> tuple[StatedPattern, ...]:
    """Read patterns as users state them; those that were read stay as they are."""
    found = []
    for one in patterns:
        if isinstance(one, str):
            does, rest = _done(one)
            one = replace(read_pattern(rest), does=does)
        found.append(one)
    return tuple(found)


def stated(
    patterns: Iterable[str | StatedPattern],
    shape: tuple[int, ...],  # Of the dataset; `maxshape` None if it cannot grow
    itemsize: int,
    maxshape: Sequence[int | None] | None,
    where: str,
    around: Around | None = None,
    *,
    grown_nbytes: int | None = None,  # As `expected_shape` takes it
) -> list[Pattern]:
    """Give the patterns for which a dataset is made, as `chunk_shape.default_chunk` takes them."""
    now = expected_shape(shape, itemsize, maxshape, grown_nbytes=grown_nbytes)
    most = shape if maxshape is None else maxshape
    largest = tuple(_UNLIMITED if n is None else max(1, n) for n in most)
    found = []
    for one in read(patterns):
        try:
            meant = one.on(Dataset(now, itemsize, where, around))
        except SelectionError:
            try:
                meant = one.on(Dataset(largest, itemsize, where, around))
            except SelectionError:
                # If it does not fit at all, the refusal names the shape that the user knows.
                meant = one.on(Dataset(shape, itemsize, where, around))
            # Nobody knows where its selections lie before the dataset has grown.
            meant = Access(meant.name, meant.block, meant.order, meant.seed, meant.limit)
        access, pattern = as_stated(meant, now, one)
        said = taken_for(access, pattern, now if 0 in shape else shape, itemsize)
        found.append(replace(pattern, words=said))
    return found


def of_stored(
    patterns: Iterable[str | StatedPattern],
    shape: tuple[int, ...],
    itemsize: int,
    maxshape: Sequence[int | None] | None,
    where: str,
    around: Around | None = None,
) -> list[Pattern]:
    """Give the patterns by which stored data is read, as `chunk_shape.suited_chunk` does."""
    return stated(patterns, shape, itemsize, maxshape, where, around, grown_nbytes=PAGE_NBYTES)


def taken_for(access: Access, pattern: Pattern, shape: tuple[int, ...], itemsize: int) -> str:
    """Say in words what a pattern was taken for, and how to write what may have been meant."""
    inside = access
    if access.slabs is None and access.cells is None:
        inside = replace(access, block=tuple(map(min, access.block, shape)))
    said = inside.in_words(shape, itemsize)
    hint = ""
    # As many as a block is read that says no number.
    number = single_reads(inside.block, shape).reads
    if pattern.of_one_read and access.limit == number > 1:
        hint = "; one read counts. For all of it, block by block, add @walk"
    if access.elements == 1 and access.limit is not None and len(shape) > 1:
        hint = f"; for samples along the first dimension write samples:{access.limit}"
    return f"'{printable(pattern.name)}' was taken for {said}{hint}."


def interpretations(found: Iterable[tuple[str, int, Sequence[str]]]) -> tuple[str, ...]:
    """Say once what patterns were taken for; where datasets differ, the largest is the example."""
    known = [(path, nbytes, tuple(said)) for path, nbytes, said in found if said]
    if not known:
        return ()
    path, _, said = max(known, key=lambda one: one[1])
    alike = all(other == said for *_, other in known)
    return said if alike else tuple(f"In {printable(path)}, {one}" for one in said)


def as_stated(
    meant: Access, shape: tuple[int, ...], said: StatedPattern | None = None
) -> tuple[Access, Pattern]:
    """Give a stated pattern to those that measure, and to the model: of reads, one counts."""
    writes = said is not None and said.does != "read"
    if meant.order is None and meant.seed is None and meant.slabs is None and not writes:
        number = min(count(shape, meant.block), USUAL_READS)
        meant = replace(meant, seed=0, limit=number)
    found = as_pattern(meant, shape, said)
    if found.operations is not None:
        found = replace(found, weight=found.weight / found.operations, of_one_read=True)
    return meant, found


def question(patterns: Sequence[Pattern]) -> str:
    """Spell what is read, and how often, without names: equal reads ask the same."""
    said = []
    for one in patterns:
        listed = 0 if one.selections is None else zlib.crc32(repr(one.selections).encode())
        weight = f"{one.weight * one.reads:.6g}"
        kind = (one.order, one.scattered, one.operations, one.writes, listed, weight)
        said.append(f"{format_shape(one.block)}{kind}")
    return " ".join(sorted(said))


def _done(text: str) -> tuple[Does, str]:
    """Split off whether a pattern is for ``read`` (the default), ``write`` or ``append``."""
    found = _DONE.search(text)
    if found is None:
        return "read", text
    return cast("Does", found[1]), text.replace(found[0], "", 1)


def as_pattern(
    meant: Access, shape: tuple[int, ...], said: StatedPattern | None = None
) -> Pattern:
    """Give a pattern to the model."""
    found = _modelled(meant, shape)
    if said is not None:
        found = replace(found, weight=said.weight, writes=said.does != "read")
    if found.writes and (found.scattered or found.selections is not None):
        what = "appended" if said and said.does == "append" else "written"
        raise UsageError(
            f"access pattern '{printable(str(said))}': only blocks that cover the array can be "
            f"{what}; write a block such as {format_shape((1, *shape[1:]))}"
        )
    return found


def _modelled(meant: Access, shape: tuple[int, ...]) -> Pattern:
    if meant.slabs is None and meant.cells is None:
        scattered = meant.seed is not None
        order = None if meant.in_c_order else meant.order
        return Pattern(meant.name, meant.block, order, scattered, meant.limit)
    walk = meant.walk(shape)
    number = walk.operations
    step = max(1, number // _FOLLOWED)
    # Neighbours stay neighbours: what one read leaves in a cache, the next one finds.
    first = range(min(number, _FOLLOWED)) if step < 4 else range(_FOLLOWED)
    found = [walk[i] for i in first]
    selections = tuple(map(hyperslabs, found))
    # A union's result is one row.
    flat = any(map(_is_union, found))
    return Pattern(meant.name, meant.block, operations=number, selections=selections, flat=flat)


def hyperslabs(selection: Any) -> tuple[Hyperslab, ...]:
    """Return the hyperslabs of a selection of a walk, which is a list of numbers or of such."""
    several = selection if _is_union(selection) else (selection,)
    found = tuple(tuple(map(tuple, one)) for one in several)
    return cast("tuple[Hyperslab, ...]", found)


def _is_union(selection: Any) -> bool:
    return not isinstance(selection[0][0], int)
