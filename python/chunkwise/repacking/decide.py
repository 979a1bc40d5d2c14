"""Which layout should a dataset have, by the rules, and can it?

Arithmetic on facts and rules; `trial` finds out whether HDF5 agrees.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import h5py

from chunkwise.errors import SelectionError, UsageError
from chunkwise.files.around import Surroundings
from chunkwise.grammar import Pipeline, Shape, ShapeWord, format_shape, format_size
from chunkwise.grammar.parameters import carried, loss_of
from chunkwise.model.chunk_shape import (
    PAGE_NBYTES,
    SMALL_CHUNK_NBYTES,
    default_chunk,
    reason,
    usual,
)
from chunkwise.model.traffic import Pattern
from chunkwise.names import printable
from chunkwise.patterns import stated
from chunkwise.patterns.around import chunk_by_names
from chunkwise.repacking.behind import stored_behind
from chunkwise.repacking.facts import Source
from chunkwise.repacking.rules import ChunkWish, FilterWish, Named, Rule, Rules, holding
from chunkwise.words import counted

_OF_SOURCES: Final = "its sources have such chunks"
_AND_FILTERS: Final = f"{_OF_SOURCES} and filters"
Wish = TypeVar("Wish")


@dataclass(frozen=True)
class Wanted:
    """The new layout of a dataset."""

    chunk: Shape | None  # Chunk shape; None for data that are not chunked
    pipeline: Pipeline  # Its filters
    merged: bool = False  # Whether virtual or external data become the file's own
    ruled: bool = False  # Whether a rule asked for a chunk shape or filters that it can have
    named: bool = False  # Whether a rule that applies names it
    filtered: bool = False  # Whether a rule asked for the very filters that it has
    left: tuple[str, ...] = ()  # Why rules that mean it by a pattern do not apply to it
    # Of chunks that were chosen, what reads come to in them; of merged data, that they are stored
    # as the sources are.
    why: str = ""

    def changes(self, source: Source) -> bool:
        """Tell whether it differs from what is stored."""
        stored = (source.chunk, source.pipeline)
        return self.merged or (self.chunk, self.pipeline) != stored

    def refused(self, source: Source, reason: str) -> Wanted:
        """Return the dataset as stored, if HDF5 refuses the change."""
        if self.named or self.merged:
            raise UsageError(f"'{printable(source.path)}': {reason}")
        return Wanted(source.chunk, source.pipeline, left=(*self.left, reason))


def decide(source: Source, rules: Rules, *, merge: bool, access: Sequence[str] = ()) -> Wanted:
    """Decide the new layout of one dataset."""
    merged = merge and source.layout in ("virtual", "external")
    taken = _of_sources(source) if merged else None
    stored = source.pipeline if taken is None else taken.pipeline
    wanted = Wanted(source.chunk, source.pipeline, merged) if taken is None else taken
    if merged and wanted.chunk is None and None in source.maxshape:
        # Only chunked data can grow.
        wanted = replace(wanted, chunk=_auto(source, ()))
    rule = _applying(rules.chunks, source, rules.min_nbytes)
    if rule is not None:
        wanted = _with_chunk(wanted, source, rule, access)
    filter_rule = _applying(rules.filters, source, rules.min_nbytes)
    if filter_rule is not None:
        wanted = _with_filters(wanted, source, filter_rule, stored, rule is not None, access)
        if wanted.filtered:
            return wanted  # They are named, for whichever chunks.
    return wanted if rule is None else _with_parameters(wanted, source, rule)


def _with_filters(
    wanted: Wanted,
    source: Source,
    filter_rule: Rule[FilterWish],
    stored: Pipeline,
    chunk_asked: bool,
    access: Sequence[str],
) -> Wanted:
    """Give a dataset the filters that a rule names, or those that it has without a rule."""
    pipeline = stored if filter_rule.wish == "stored" else filter_rule.wish
    chunk_asked = chunk_asked and wanted.ruled
    reason = _no_filters(source, wanted, pipeline, filter_rule.asks(source.names), chunk_asked)
    if reason is not None:
        return _left(wanted, source, filter_rule, reason)
    chunk = wanted.chunk
    if pipeline.filters and chunk is None:
        chunk = _auto(source, access)
    filtered = filter_rule.wish != "stored" and pipeline == source.pipeline
    others = wanted.why == _AND_FILTERS and pipeline != stored
    why = _OF_SOURCES if others else wanted.why
    wanted = replace(wanted, chunk=chunk, pipeline=pipeline, filtered=filtered, why=why)
    return _ruled(wanted, source, filter_rule)


def _with_parameters(wanted: Wanted, source: Source, rule: Rule[ChunkWish]) -> Wanted:
    """Give a dataset's own filters parameters for the new chunks, or leave the dataset."""
    changed = wanted.chunk is not None and wanted.chunk != source.chunk
    if not changed or not source.pipeline.filters or wanted.pipeline != source.pipeline:
        return wanted
    pipeline = carried(source.pipeline, math.prod(wanted.chunk or ()))
    if isinstance(pipeline, str):
        reason = f"{pipeline}; with other chunks, a rule must name its filters, none for example"
        before = Wanted(source.chunk, source.pipeline, left=wanted.left)
        return _left(before, source, rule, reason)
    return replace(wanted, pipeline=pipeline)


def _of_sources(source: Source) -> Wanted | None:
    """Give merged data the chunks and filters of the datasets that they come from, or None."""
    found = stored_behind(source.identifier) if source.layout == "virtual" else None
    if found is None or not source.plain:
        return None
    # A chunk is no longer than a dimension that cannot grow.
    pairs = zip(found[0], source.maxshape, strict=True)
    chunk = tuple(min(length, limit) if limit else length for length, limit in pairs)
    pipeline = carried(found[1], math.prod(chunk))
    if isinstance(pipeline, str):
        return Wanted(chunk, Pipeline(), True, why=_OF_SOURCES)
    return Wanted(chunk, pipeline, True, why=_AND_FILTERS)


def _applying(rules: Sequence[Rule[Wish]], source: Source, min_nbytes: int) -> Rule[Wish] | None:
    rule = holding(rules, source.names)
    if rule is None or (source.nbytes < min_nbytes and not rule.asks(source.names)):
        return None
    return rule


def _ruled(wanted: Wanted, source: Source, rule: Rule[Wish]) -> Wanted:
    named = wanted.named or rule.asks(source.names)
    return replace(wanted, ruled=True, named=named)


def _left(wanted: Wanted, source: Source, rule: Rule[Wish], reason: str) -> Wanted:
    if rule.asks(source.names):
        name = next(name for name in source.names if rule.asks([name]))
        raise UsageError(f"rule {rule.text!r}: '{printable(name)}' {reason}")
    return replace(wanted, left=(*wanted.left, reason))


def _with_chunk(
    wanted: Wanted, source: Source, rule: Rule[ChunkWish], access: Sequence[str]
) -> Wanted:
    wish = rule.wish
    if wish == "stored":
        return _ruled(wanted, source, rule)
    if isinstance(wish, Named):
        try:
            wish = _by_names(wish, source)
        except (SelectionError, UsageError) as wrong:
            return _left(wanted, source, rule, f"cannot have such chunks: {wrong}")
    reason = _no_chunk(source, wanted, wish, rule.asks(source.names))
    if reason is not None:
        return _left(wanted, source, rule, reason)
    if wish == "auto":
        reason = _auto_in_vain(source, wanted, access, rule.asks(source.names))
        if reason is not None:
            return _left(wanted, source, rule, reason)
    if wish == "contiguous":
        # Filters work on chunks, and go with them; the plan shows it.
        pipeline = Pipeline()
        chunk = None
    else:
        pipeline = wanted.pipeline
        chunk = _auto(source, access) if isinstance(wish, str) else wish
    why = _why(source, chunk, access) if wish == "auto" and chunk is not None else ""
    return _ruled(replace(wanted, chunk=chunk, pipeline=pipeline, why=why), source, rule)


def _by_names(wish: Named, source: Source) -> Shape:
    """Give the lengths of a chunk whose dimensions are named."""
    shape = tuple(max(1, n) for n in source.shape or ())
    where = f"'{printable(source.path)}'"
    around = Surroundings(h5py.Dataset(source.identifier).file, source.path)
    found = chunk_by_names(wish.text, shape, around, where)
    if found is None or min(found) < 1:
        raise UsageError(
            f"chunk '{printable(wish.text)}': write NAME=LENGTH or NAME=all, with commas between, "
            "as in time=365,lat=20"
        )
    return found


def _auto(source: Source, access: Sequence[str]) -> Shape:
    patterns = _stated(source, access)
    return default_chunk(
        source.shape or (), source.itemsize, source.maxshape, patterns, grown_nbytes=PAGE_NBYTES
    )


def _stated(source: Source, access: Sequence[str]) -> list[Pattern]:
    where = f"'{printable(source.path)}'"
    around = Surroundings(h5py.Dataset(source.identifier).file, source.path)
    return stated(access, source.shape or (), source.itemsize, source.maxshape, where, around)


def _why(source: Source, chunk: Shape, access: Sequence[str]) -> str:
    """Say what reads cost in the chosen chunks."""
    shape = tuple(max(1, n) for n in source.shape or ())
    patterns = _stated(source, access) or usual(shape, source.itemsize)
    return reason(shape, source.itemsize, chunk, patterns)


def _auto_in_vain(
    source: Source, wanted: Wanted, access: Sequence[str], named: bool
) -> str | None:
    """Say why a rule that does not name a dataset passes over it, or None."""
    if named:
        return None
    if source.coordinates is not None:
        return f"{source.coordinates}, which auto leaves alone; a rule that names it does not"
    pieces = 1
    if source.chunk is not None:
        pairs = zip(source.shape or (), source.chunk, strict=True)
        pieces = math.prod(-(-length // side) for length, side in pairs)
    if source.nbytes <= SMALL_CHUNK_NBYTES and pieces <= 1 and not wanted.merged:
        return f"is {format_size(source.nbytes)} in one piece, which no other chunks serve better"
    try:
        _auto(source, access)
    except SelectionError as wrong:
        return f"is not what the access patterns are for ({wrong})"
    return None


def _no_data(source: Source, wanted: Wanted) -> str | None:
    """Say why a dataset cannot have chunks or filters at all."""
    if source.shape is None:
        return "has no data (a null dataspace)"
    if not source.shape:
        return "is a scalar, which has no chunks and no filters"
    if source.layout in ("virtual", "external") and not wanted.merged:
        return f"keeps its data elsewhere ({source.layout}); --merge makes them this file's own"
    return None


def _no_chunk(source: Source, wanted: Wanted, wish: Shape | ShapeWord, named: bool) -> str | None:
    """Say why a dataset cannot be chunked so, or None."""
    if wish == "contiguous" and source.shape == ():
        return None
    reason = _no_data(source, wanted)
    if reason is not None:
        return reason
    if source.layout == "compact" and not named:
        return "is compact: a few bytes, in its object header"
    if wish == "contiguous":
        if source.shape != source.maxshape:
            return "can grow, and contiguous data cannot"
        return None
    if isinstance(wish, str):
        return None
    if len(wish) != source.rank:
        return (
            f"has {counted(source.rank, 'dimension')} "
            f"({format_shape(source.shape or ())}), the chunk {format_shape(wish)} has {len(wish)}"
        )
    for axis, (length, limit) in enumerate(zip(wish, source.maxshape, strict=True)):
        if limit and length > limit:
            return (
                f"has a fixed length of {limit:,} in dimension {axis}, and a chunk of "
                f"{length:,} cannot be larger"
            )
    return None


def _no_filters(
    source: Source, wanted: Wanted, pipeline: Pipeline, named: bool, chunk_asked: bool
) -> str | None:
    """Say why a dataset cannot have these filters, or None."""
    if not pipeline.filters and source.chunk is None and wanted.chunk is None:
        return None
    reason = _no_data(source, wanted)
    if reason is not None:
        return reason
    if not pipeline.filters or pipeline == source.pipeline:
        return None
    if source.layout == "compact" and not named:
        return "is compact: a few bytes, in its object header"
    rounding = [place for place, one in enumerate(pipeline.filters) if loss_of(one) is not None]
    if rounding and h5py.Dataset(source.identifier).dtype.kind not in "iuf":
        return f"does not hold plain numbers, which {pipeline.filters[rounding[0]]} rounds"
    if rounding and rounding[0] > 0:
        return f"would not have numbers for {pipeline.filters[rounding[0]]} to round: put it first"
    if wanted.chunk is None and chunk_asked:
        return "becomes contiguous, and only chunks can have filters"
    if not source.plain and not named:
        return "holds references to data elsewhere in the file, which filters do not reach"
    return None
