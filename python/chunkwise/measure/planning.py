"""Which trials does a space of parameters give for one dataset?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, cast

from chunkwise import patterns
from chunkwise.errors import UsageError
from chunkwise.files.around import Surroundings
from chunkwise.grammar import Pipeline, format_size
from chunkwise.measure.axes import AXES
from chunkwise.measure.space import Point, Space
from chunkwise.measure.target import Target
from chunkwise.measure.variants import Prepared, Variant, variant_of
from chunkwise.memory import free_nbytes
from chunkwise.patterns.pattern import Access
from chunkwise.trials.trial import FACTS, Operation, Trial

# Seconds of a worker besides its timed reads: the interpreter, imports, the file.
OVERHEAD_S: Final = 0.6
# The budget's share for timed reads; the rest is for the unforeseen.
_SHARE: Final = 0.7
_LEAST_S: Final = 0.2
# A trial that checks every element may take this many times as long as its reads.
_WHOLE_LOOP: Final = 3
# Bytes a slot of the chunk cache's hash table: a pointer each.
SLOT_NBYTES: Final = 8
# By default, no read is larger than this and what its stored bytes can be (deflate: 1,032).
_SMALL_NBYTES: Final = 64 << 20
_VALUES_OF_A_BYTE: Final = 2_000
_MOST_CHUNKS: Final = 1 << 15
# In other files, whose bytes nobody has counted.
_ELSEWHERE_NBYTES: Final = 256 << 10


@dataclass(frozen=True)
class Planned:
    """One combination, before its files have places."""

    point: Point  # Its value on each axis, as text
    access: Access  # Its pattern
    variant: Variant  # How the data is stored
    parameters: dict[str, Any]  # The fields of `Trial` that are not as by default

    @property
    def operation(self) -> Operation:
        """What is done, as in `chunkwise.trials.trial.Trial`."""
        return cast("Operation", self.point["operation"])


@dataclass(frozen=True)
class Plan:
    """All combinations of a run, in order."""

    planned: tuple[Planned, ...]  # Each once

    def variants(self, *operations: Operation) -> list[Variant]:
        """Return the ways of storing the data that operations need, each once."""
        return list(dict.fromkeys(p.variant for p in self.planned if p.operation in operations))

    @property
    def libraries(self) -> list[str | None]:
        """Every requested libhdf5, each once."""
        return list(dict.fromkeys(p.parameters.get("libhdf5") for p in self.planned))

    @property
    def zlibs(self) -> list[tuple[str, str, str | None]]:
        """Every requested zlib, with the reader and the libhdf5, each once."""
        named = [p.parameters for p in self.planned if "zlib_path" in p.parameters]
        return list(dict.fromkeys((p["zlib_path"], p["reader"], p.get("libhdf5")) for p in named))

    @property
    def least_s(self) -> float:
        """Seconds that measuring each combination once takes, about, at the least."""
        return len(self.planned) * (OVERHEAD_S + _LEAST_S)

    def cells(
        self,
        made: Prepared,
        repeat: int,
        seconds: float,
        known: str | None = None,
        trial_seconds: float | None = None,
    ) -> list[tuple[Planned, Trial]]:
        """Make the trials."""
        share = share_s(seconds, len(self.planned) * repeat, known is not None)
        bounds = {"max_seconds": trial_seconds or share}
        # A cold trial before it has dropped what was warmed for all.
        drops = any(p.parameters.get("page_cache") == "cold" for p in self.planned)
        found = []
        parameters: dict[str, Any]
        for one in self.planned:
            if one.operation != "read":
                target = made.writing[one.variant]
                parameters = {"data": made.data, "scratch": made.folder}
            else:
                target = made.reading[one.variant]
                parameters = {"warm_first": drops and "page_cache" not in one.parameters}
                if known is not None:
                    parameters |= {"check": True, "data": known}
            parameters = {**one.parameters, **bounds, **parameters}
            # Chunks are cut to a sample's shape; the requested ones are compared.
            target = replace(target, chunks=target.chunks and one.variant.chunks)
            if Pipeline.parse(one.variant.filters).effort != "as-stated":
                # The writer has to know what the file does not say.
                target = replace(target, filters=one.variant.filters)
            found.append((one, trial_of(target, one.access, **parameters)))
        return found


def share_s(seconds: float, trials: int, checked: bool = False) -> float:
    """Return the seconds of reads or writes that each of this many trials may take."""
    share = _SHARE * seconds / max(1, trials) - OVERHEAD_S
    return max(_LEAST_S, share / _WHOLE_LOOP if checked else share)


def trial_of(target: Target, pattern: Access, reader: str, **parameters: Any) -> Trial:
    """Make a trial of a pattern on a target; `parameters` are further fields of it."""
    wanted = {"file", "dataset", "storage", "chunks", "filters", *FACTS}
    known = {field.name for field in fields(target)}
    facts = {name: getattr(target, name) for name in wanted & known}
    facts["filter_ids"] = tuple(f.filter_id for f in Pipeline.parse(target.filters).filters)
    blocks = {field.name: getattr(pattern, field.name) for field in fields(pattern)}
    blocks["access"] = blocks.pop("name")
    return Trial(**{**facts, **blocks, "reader": reader, **parameters})


def spell_out(target: Target, space: Space) -> Plan:
    """Read the values of a space for a dataset."""
    defaults = {a.name: a for a in _defaults(target)}
    points = space.points(tuple(defaults))
    known = {**({} if "access" in space.axes else defaults), **space.accesses}
    around = Surroundings(target.file, target.dataset)
    accesses = {
        text: known.get(text)
        or patterns.parse(text, target.shape, target.itemsize, target.where, around)
        for text in dict.fromkeys(point["access"] for point in points)
    }
    stated = tuple(accesses.values()) if "access" in space.axes else ()
    planned: dict[Any, Planned] = {}
    for point in points:
        words = point["chunk"], point["filter"], point["format"]
        variant = variant_of(target, *words, stated)
        parameters = {
            axis.field: axis.value(point[name])
            for name, axis in AXES.items()
            if axis.field is not None
        }
        # What is as by default is left out; a size or a w0 of 0 is not.
        usual = (None, "warm")
        parameters = {k: v for k, v in parameters.items() if v not in usual and v is not False}
        one = Planned(point, accesses[point["access"]], variant, parameters)
        # Two texts may mean one thing: 'stored' and the shape that it stands for.
        key = (one.access, variant, tuple(parameters.items()))
        planned.setdefault(key, one)
    return Plan(tuple(planned.values()))


def _defaults(target: Target) -> list[Access]:
    """Return the patterns of a plain bench whose reads are no larger than the data can be."""
    usual = patterns.defaults(target.shape, target.itemsize)
    elsewhere = target.layout in ("virtual", "external")
    stored_nbytes = _ELSEWHERE_NBYTES if elsewhere else target.stored_nbytes
    small_nbytes = _SMALL_NBYTES
    if target.chunks is not None:
        # libhdf5 keeps up to 7 KB for each chunk that a read touches (2.0).
        small_nbytes = min(small_nbytes, target.chunk_nbytes * _MOST_CHUNKS)
    most = max(small_nbytes, _VALUES_OF_A_BYTE * stored_nbytes)
    kept = [one for one in usual if math.prod(one.block) * target.itemsize <= most]
    if len(kept) < len(usual) and all(one.name != "all" for one in kept):
        block = patterns.whole(target.shape, target.itemsize, small_nbytes)
        kept.append(Access("all", block))
    return kept


def check(target: Target, plan: Plan) -> None:
    """Raise UsageError for what cannot be measured on this dataset."""
    cold = any(p.parameters.get("page_cache") == "cold" for p in plan.planned)
    if cold and target.layout in ("external", "virtual"):
        raise UsageError(
            f"{target.where} is {target.layout}: its data lies in other files, which are not "
            "dropped from memory with this one; leave --page-cache cold out"
        )
    available = free_nbytes()
    for one in plan.planned:
        needed = _memory_nbytes(target, one)
        if needed > available:
            raise UsageError(
                f"'{one.access.name}' of {target.where} needs about {format_size(needed)} of "
                f"memory for one {one.operation} and its chunk cache, and "
                f"{format_size(available)} are free: give a smaller block or cache, or fewer slots"
            )


def _memory_nbytes(target: Target, one: Planned) -> int:
    """Return what a trial holds at the least: one selection, its cache, and a chunk."""
    chunk = math.prod(one.variant.chunks or (0,)) * target.itemsize
    cache = min(one.parameters.get("cache_nbytes", 0), target.nbytes + chunk)
    slots = SLOT_NBYTES * one.parameters.get("cache_nslots", 0)
    return math.prod(one.access.block) * target.itemsize + int(cache) + int(slots) + chunk


def patterns_of(plan: Sequence[Planned]) -> dict[tuple[Operation, Access], list[int]]:
    """Group the places in a plan by their operation: those are compared with each other."""
    groups: dict[tuple[Operation, Access], list[int]] = {}
    for place, one in enumerate(plan):
        groups.setdefault((one.operation, one.access), []).append(place)
    return groups
