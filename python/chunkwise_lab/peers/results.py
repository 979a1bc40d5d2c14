"""What do the samples of a comparison come to?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final, Literal

from chunkwise._native import thread_count
from chunkwise.measure.verdict import spread, verdict, within
from chunkwise.trials import environment
from chunkwise_lab.peers import peers
from chunkwise_lab.peers.schedule import Samples
from chunkwise_lab.peers.spec import SUBJECT, Comparison, Goal

FORMAT: Final = "chunkwise-benchmarks"
VERSION: Final = 1
# So near to what the machine allows counts as reaching it.
AT_LIMIT: Final = 1 / 1.15

# Of figures that are counted, each run has the same: no repeats are needed to be sure.
COUNTED: Final = ("bytes", "rounds")

# ``cannot tell``: the spread allows that the target is reached, and that it is not;
# ``at the limit``: the target is beyond what the machine allows, by the limit measured in the same
# run, and chunkwise is within 15% of that; ``no figure``: one of both has none.
Word = Literal["reached", "cannot tell", "not reached", "at the limit", "no figure"]


@dataclass(frozen=True)
class Result:
    """A comparison that was run."""

    comparison: Comparison
    samples: tuple[Samples, ...]  # One for each reader

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


def judged(result: Result, target: Goal) -> dict[str, Any]:
    """Say what came of a target: `measured` is how many times as fast, or the figure itself."""
    ours, limit = result.of(target.by), result.limit
    best = spread(limit.values).median if limit else None
    details: dict[str, Any] = {
        "by": target.by,
        "against": target.against,
        "at_least": target.value if target.against else None,
        "at_most": None if target.against else target.value,
        "measured": None,
        # Where the true ratio lies, 90% sure; None of fewer than 3 samples, or of a figure.
        "low": None,
        "high": None,
        "limit": None,  # What `measured` would be at the limit; None without one
        "word": "no figure",
    }
    theirs = ours if target.against is None else result.of(target.against)
    if not ours.values or not theirs.values:
        return details
    counted = result.comparison.unit in COUNTED
    if target.against is None:
        median = spread(ours.values).median
        word = _word(median <= target.value if counted else within(ours.values, target.value))
        if best is not None and best > target.value and median * AT_LIMIT <= best:
            word = "at the limit"
        return details | {"measured": median, "limit": best, "word": word}
    ratio = verdict(ours.values, theirs.values)
    allowed = None
    if best is not None and not theirs.reader.limit:
        allowed = spread(theirs.values).median / best
    word = _word(ratio.ratio >= target.value if counted else ratio.reaches(target.value))
    beyond = allowed is not None and allowed < target.value
    if word != "reached" and beyond and allowed is not None and ratio.ratio >= allowed * AT_LIMIT:
        word = "at the limit"
    measured = {"measured": ratio.ratio, "low": ratio.low, "high": ratio.high}
    return details | measured | {"limit": allowed, "word": word}


def _word(reached: bool | None) -> Word:
    if reached is None:
        return "cannot tell"
    return "reached" if reached else "not reached"


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
        "targets": [judged(result, one) for one in result.comparison.targets],
    }


def _reader(samples: Samples) -> dict[str, Any]:
    total = spread(samples.values) if samples.values else None
    return {
        "name": samples.reader.name,
        "limit": samples.reader.limit,
        "values": samples.values,
        **{name: total and getattr(total, name) for name in ("median", "lowest", "highest")},
        "details": samples.details,
        "others_share": samples.busy.of_others,
        "skipped": samples.skipped,
        "failed": samples.failed,
    }
