"""What do the samples of a comparison come to?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from chunkwise._native import thread_count
from chunkwise.measure.verdict import Spread, spread, verdict
from chunkwise.trials import environment
from chunkwise_lab.peers import peers
from chunkwise_lab.peers.schedule import Samples
from chunkwise_lab.peers.spec import SUBJECT, Comparison, Goal

FORMAT: Final = "chunkwise-benchmarks"
VERSION: Final = 1
# So near to what the machine allows counts as reaching it.
AT_LIMIT: Final = 1 / 1.15

Word = Literal["reached", "cannot tell", "not reached", "at the limit", "no figure"]


@dataclass(frozen=True)
class Judged:
    """A target, and what was measured."""

    target: Goal
    # ``reached``; ``cannot tell``: the median is short of it, and the spread allows that it is
    # reached; ``not reached``; ``at the limit``: the target is beyond what the machine allows, by
    # the limit measured in the same run, and chunkwise is within 15% of that; ``no figure``: one
    # of both has none.
    word: Word
    # How many times as fast; or the figure itself, where the target is one.
    measured: float | None = None
    # Where the true ratio lies, 90% sure; None of fewer than 3 samples, or of a figure.
    low: float | None = None
    high: float | None = None
    limit: float | None = None  # What `measured` would be at the limit; None without one


@dataclass(frozen=True)
class Result:
    """A comparison that was run."""

    comparison: Comparison
    samples: tuple[Samples, ...]  # One for each reader
    judged: tuple[Judged, ...] = field(init=False)

    def __post_init__(self) -> None:
        judged = tuple(_judge(self, target) for target in self.comparison.targets)
        object.__setattr__(self, "judged", judged)

    def of(self, name: str) -> Samples:
        """Return the samples of the reader of that name."""
        return next(one for one in self.samples if one.reader.name == name)

    @property
    def limit(self) -> Samples | None:
        """Return what the machine allows, where it was measured."""
        found = (one for one in self.samples if one.reader.limit and one.values)
        return next(found, None)

    @property
    def differing(self) -> list[str]:
        """Name the readers whose bytes are not those of chunkwise."""
        ours = self._ours
        return [
            one.reader.name
            for one, shared in self._shared()
            if any(len(one.checksums[what] | ours[what]) > 1 for what in shared)
        ]

    @property
    def compared(self) -> int:
        """Count the readers whose bytes were compared with each other."""
        return sum(bool(shared) for _, shared in self._shared())

    @property
    def _ours(self) -> Mapping[str, set[int]]:
        return next((s.checksums for s in self.samples if s.reader.name == SUBJECT), {})

    def _shared(self) -> Iterator[tuple[Samples, Set[str]]]:
        """Give each reader with what both its and chunkwise's checksums are of."""
        for one in self.samples:
            yield one, one.checksums.keys() & self._ours.keys() if one.reader.compared else set()

    @property
    def failed(self) -> bool:
        """Whether chunkwise has no figures, or gave other bytes than those it is held against."""
        ours = {SUBJECT, *(target.by for target in self.comparison.targets)}
        named = ours | {target.against for target in self.comparison.targets}
        return any(self.of(name).failed for name in ours) or bool(named & set(self.differing))


def middle(samples: Samples) -> Spread:
    """Sum up a reader's values."""
    return spread(samples.values)


def _judge(result: Result, target: Goal) -> Judged:
    ours = result.of(target.by)
    limit = result.limit
    if not ours.values:
        return Judged(target, "no figure")
    best = middle(limit).median if limit else None
    if target.against is None:
        measured = middle(ours).median
        word = _word(measured <= target.value, middle(ours).lowest <= target.value)
        if best is not None and best > target.value and measured * AT_LIMIT <= best:
            word = "at the limit"
        return Judged(target, word, measured, limit=best)
    theirs = result.of(target.against)
    if not theirs.values:
        return Judged(target, "no figure")
    told = verdict(ours.values, theirs.values)
    allowed = None
    if best is not None and not theirs.reader.limit:
        allowed = middle(theirs).median / best
    word = _word(told.ratio >= target.value, told.high is not None and told.high >= target.value)
    beyond = allowed is not None and allowed < target.value
    if word != "reached" and beyond and allowed is not None and told.ratio >= allowed * AT_LIMIT:
        word = "at the limit"
    return Judged(target, word, told.ratio, told.low, told.high, allowed)


def _word(reached: bool, possible: bool) -> Word:
    if reached:
        return "reached"
    return "cannot tell" if possible else "not reached"


def to_json(results: Sequence[Result]) -> dict[str, Any]:
    """Return everything that was measured, with machine and versions, as plain JSON values."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "environment": environment.describe(),
        "peers": peers.versions(),
        "threads": thread_count(),
        "comparisons": [_as_json(result) for result in results],
    }


def _as_json(result: Result) -> dict[str, Any]:
    names = ("name", "group", "title", "unit", "note")
    return {
        **{name: getattr(result.comparison, name) for name in names},
        "compared": result.compared,
        "differing": result.differing,
        "readers": [_reader(samples) for samples in result.samples],
        "targets": [_target(judged) for judged in result.judged],
    }


def _reader(samples: Samples) -> dict[str, Any]:
    total = middle(samples) if samples.values else None
    return {
        "name": samples.reader.name,
        "limit": samples.reader.limit,
        "values": samples.values,
        **{name: total and getattr(total, name) for name in ("median", "lowest", "highest")},
        "told": samples.told,
        "others_share": samples.busy.of_others,
        "skipped": samples.skipped,
        "failed": samples.failed,
    }


def _target(judged: Judged) -> dict[str, Any]:
    target = judged.target
    return {
        "by": target.by,
        "against": target.against,
        "at_least": target.value if target.against else None,
        "at_most": None if target.against else target.value,
        **{name: getattr(judged, name) for name in ("measured", "low", "high", "limit", "word")},
    }
