"""Which layout should a dataset have, by the rules, and can it?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import h5py

from chunkwise.errors import SelectionError, UsageError
from chunkwise.files.answers import kept_chunks
from chunkwise.files.around import Surroundings
from chunkwise.grammar import Pipeline, Shape, ShapeWord, format_shape, format_size
from chunkwise.grammar.parameters import carried, loss_of
from chunkwise.model.chunk_shape import (
    SMALL_CHUNK_NBYTES,
    Present,
    reason,
    suited_chunk,
    usual,
)
from chunkwise.model.traffic import Pattern
from chunkwise.names import printable
from chunkwise.patterns import StatedPattern, of_stored, question
from chunkwise.patterns.around import chunk_by_names
from chunkwise.repacking.facts import SourceDataset, stored_behind
from chunkwise.repacking.rules import ChunkSetting, FilterSetting, Named, Rule, Rules, holding
from chunkwise.words import counted

_OF_SOURCES: Final = "its sources have such chunks"
_AND_FILTERS: Final = f"{_OF_SOURCES} and filters"
Setting = TypeVar("Setting")


@dataclass(frozen=True)
class NewLayout:
    """The new layout of a dataset."""

    chunk: Shape | None  # Chunk shape; None for data that are not chunked
    pipeline: Pipeline  # Its filters
    merged: bool = False  # Whether virtual or external data become the file's own
    ruled: bool = False  # Whether a rule gave it a chunk shape or filters
    named: bool = False  # Whether a rule that applies names it
    filtered: bool = False  # Whether a rule names the very filters that it has
    left: tuple[str, ...] = ()  # Why rules that mean it by a pattern do not apply to it
    # Of chosen chunks, what reads come to; of merged data, how the sources are stored.
    why: str = ""
    # What each pattern was taken for that its chunks were chosen for.
    taken_for: tuple[str, ...] = ()

    def changes(self, source: SourceDataset) -> bool:
        """Return whether it differs from what is stored."""
        stored = (source.chunk, source.pipeline)
        return self.merged or (self.chunk, self.pipeline) != stored

    def refused(self, source: SourceDataset, reason: str) -> NewLayout:
        """Return the dataset as stored, if HDF5 refuses the change."""
        if self.named or self.merged:
            raise UsageError(f"'{printable(source.path)}': {reason}")
        return NewLayout(source.chunk, source.pipeline, left=(*self.left, reason))


def decide(
    source: SourceDataset, rules: Rules, *, merge: bool, access: Sequence[StatedPattern] = ()
) -> NewLayout:
    """Decide the new layout of one dataset."""
    merged = merge and source.layout in ("virtual", "external")
    taken = _of_sources(source) if merged else None
    stored = source.pipeline if taken is None else taken.pipeline
    wanted = NewLayout(source.chunk, source.pipeline, merged) if taken is None else taken
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
    wanted: NewLayout,
    source: SourceDataset,
    filter_rule: Rule[FilterSetting],
    stored: Pipeline,
    chunk_stated: bool,
    access: Sequence[StatedPattern],
) -> NewLayout:
    """Give a dataset the filters that a rule names, or those that it has without a rule."""
    pipeline = stored if filter_rule.setting == "stored" else filter_rule.setting
    chunk_stated = chunk_stated and wanted.ruled
    reason = _no_filters(
        source, wanted, pipeline, filter_rule.names_any(source.names), chunk_stated
    )
    if reason is not None:
        return _left(wanted, source, filter_rule, reason)
    chunk = wanted.chunk
    if pipeline.filters and chunk is None:
        chunk = _auto(source, access)
    filtered = filter_rule.setting != "stored" and pipeline == source.pipeline
    others = wanted.why == _AND_FILTERS and pipeline != stored
    why = _OF_SOURCES if others else wanted.why
    wanted = replace(wanted, chunk=chunk, pipeline=pipeline, filtered=filtered, why=why)
    return _ruled(wanted, source, filter_rule)


def _with_parameters(
    wanted: NewLayout, source: SourceDataset, rule: Rule[ChunkSetting]
) -> NewLayout:
    """Give a dataset's own filters parameters for the new chunks, or leave the dataset."""
    changed = wanted.chunk is not None and wanted.chunk != source.chunk
    if not changed or not source.pipeline.filters or wanted.pipeline != source.pipeline:
        return wanted
    pipeline = carried(source.pipeline, math.prod(wanted.chunk or ()))
    if isinstance(pipeline, str):
        reason = f"{pipeline}; with other chunks, a rule must name its filters, none for example"
        before = NewLayout(source.chunk, source.pipeline, left=wanted.left)
        return _left(before, source, rule, reason)
    return replace(wanted, pipeline=pipeline)


def _of_sources(source: SourceDataset) -> NewLayout | None:
    """Give merged data the chunks and filters of the datasets that they come from, or None."""
    found = stored_behind(source.identifier) if source.layout == "virtual" else None
    if found is None or not source.plain:
        return None
    # A chunk is no longer than a dimension that cannot grow.
    pairs = zip(found[0], source.maxshape, strict=True)
    chunk = tuple(min(length, limit) if limit else length for length, limit in pairs)
    pipeline = carried(found[1], math.prod(chunk))
    if isinstance(pipeline, str):
        return NewLayout(chunk, Pipeline(), True, why=_OF_SOURCES)
    return NewLayout(chunk, pipeline, True, why=_AND_FILTERS)


def _applying(
    rules: Sequence[Rule[Setting]], source: SourceDataset, min_nbytes: int
) -> Rule[Setting] | None:
    rule = holding(rules, source.names)
    if rule is None or (source.nbytes < min_nbytes and not rule.names_any(source.names)):
        return None
    return rule


def _ruled(wanted: NewLayout, source: SourceDataset, rule: Rule[Setting]) -> NewLayout:
    named = wanted.named or rule.names_any(source.names)
    return replace(wanted, ruled=True, named=named)


def _left(wanted: NewLayout, source: SourceDataset, rule: Rule[Setting], reason: str) -> NewLayout:
    if rule.names_any(source.names):
        name = next(name for name in source.names if rule.names_any([name]))
        raise UsageError(f"rule {rule.text!r}: '{printable(name)}' {reason}")
    return replace(wanted, left=(*wanted.left, reason))


def _with_chunk(
    wanted: NewLayout,
    source: SourceDataset,
    rule: Rule[ChunkSetting],
    access: Sequence[StatedPattern],
) -> NewLayout:
    setting = rule.setting
    if setting == "stored":
        return _ruled(wanted, source, rule)
    if isinstance(setting, Named):
        try:
            setting = _by_names(setting, source)
        except (SelectionError, UsageError) as wrong:
            return _left(wanted, source, rule, f"cannot have such chunks: {wrong}")
    reason = _no_chunk(source, wanted, setting, rule.names_any(source.names))
    if reason is not None:
        return _left(wanted, source, rule, reason)
    if setting == "auto":
        reason = _auto_in_vain(source, wanted, access, rule.names_any(source.names))
        if reason is not None:
            return _left(wanted, source, rule, reason)
    if setting == "contiguous":
        # Filters work on chunks, and go with them; the plan shows it.
        pipeline = Pipeline()
        chunk = None
    else:
        pipeline = wanted.pipeline
        chunk = _auto(source, access) if isinstance(setting, str) else setting
    wanted = replace(wanted, chunk=chunk, pipeline=pipeline, why="")
    if setting == "auto" and chunk is not None:
        patterns = _stated(source, access)
        taken_for = tuple(one.words for one in patterns)
        wanted = replace(wanted, why=_why(source, chunk, patterns), taken_for=taken_for)
    return _ruled(wanted, source, rule)


def _by_names(setting: Named, source: SourceDataset) -> Shape:
    """Give the lengths of a chunk whose dimensions are named."""
    shape = tuple(max(1, n) for n in source.shape or ())
    where = f"'{printable(source.path)}'"
    around = Surroundings(h5py.Dataset(source.identifier).file, source.path)
    found = chunk_by_names(setting.text, shape, around, where)
    if found is None or min(found) < 1:
        raise UsageError(
            f"chunk '{printable(setting.text)}': write NAME=LENGTH or NAME=all, with commas "
            "between, as in time=365,lat=20"
        )
    return found


def _auto(source: SourceDataset, access: Sequence[StatedPattern]) -> Shape:
    patterns = _stated(source, access)
    if access:
        file = h5py.Dataset(source.identifier).file.filename
        known = kept_chunks(file, source.path, question(patterns))
        if known is not None:
            return known
    now = Present.of(source.chunk, str(source.pipeline), source.stored_nbytes)
    return suited_chunk(source.shape or (), source.itemsize, source.maxshape, patterns, now)


def _stated(source: SourceDataset, access: Sequence[StatedPattern]) -> list[Pattern]:
    where = f"'{printable(source.path)}'"
    around = Surroundings(h5py.Dataset(source.identifier).file, source.path)
    return of_stored(access, source.shape or (), source.itemsize, source.maxshape, where, around)


def _why(source: SourceDataset, chunk: Shape, patterns: Sequence[Pattern]) -> str:
    """Say what reads cost in the chosen chunks."""
    shape = tuple(max(1, n) for n in source.shape or ())
    return reason(shape, source.itemsize, chunk, patterns or usual(shape, source.itemsize))


def _auto_in_vain(
    source: SourceDataset, wanted: NewLayout, access: Sequence[StatedPattern], named: bool
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


def _no_data(source: SourceDataset, wanted: NewLayout) -> str | None:
    """Say why a dataset cannot have chunks or filters at all."""
    if source.shape is None:
        return "has no data (a null dataspace)"
    if not source.shape:
        return "is a scalar, which has no chunks and no filters"
    if source.layout in ("virtual", "external") and not wanted.merged:
        return f"keeps its data elsewhere ({source.layout}); --merge makes them this file's own"
    return None


def _no_chunk(
    source: SourceDataset, wanted: NewLayout, setting: Shape | ShapeWord, named: bool
) -> str | None:
    """Say why a dataset cannot be chunked so, or None."""
    if setting == "contiguous" and source.shape == ():
        return None
    reason = _no_data(source, wanted)
    if reason is not None:
        return reason
    if source.layout == "compact" and not named:
        return "is compact: a few bytes, in its object header"
    if setting == "contiguous":
        if source.shape != source.maxshape:
            return "can grow, and contiguous data cannot"
        return None
    if isinstance(setting, str):
        return None
    if len(setting) != source.rank:
        shape, chunk = format_shape(source.shape or ()), format_shape(setting)
        said = f"has {counted(source.rank, 'dimension')} ({shape})"
        return f"{said}, the chunk {chunk} has {len(setting)}"
    for axis, (length, limit) in enumerate(zip(setting, source.maxshape, strict=True)):
        if limit and length > limit:
            return (
                f"has a fixed length of {limit:,} in dimension {axis}, and a chunk of "
                f"{length:,} cannot be larger"
            )
    return None


def _no_filters(
    source: SourceDataset, wanted: NewLayout, pipeline: Pipeline, named: bool, chunk_stated: bool
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
    if wanted.chunk is None and chunk_stated:
        return "becomes contiguous, and only chunks can have filters"
    if not source.plain and not named:
        return "holds references to data elsewhere in the file, which filters do not reach"
    return None
