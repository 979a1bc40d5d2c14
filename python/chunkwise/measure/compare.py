"""What changed between two runs of `chunkwise bench`, and what is only noise?

A run beside other programs takes longer as a whole, and no spread shows it.  A process that had to
wait used less processor time, so verdicts leave this waiting out; if the difference remains, as
with several threads, the verdict is 'cannot tell'.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal

from chunkwise.errors import UsageError
from chunkwise.grammar import format_shape
from chunkwise.measure.saved import Sample, Saved
from chunkwise.measure.verdict import THRESHOLD, Verdict, Word, check_threshold, verdict
from chunkwise.names import printable

FailOn = Literal["slower", "different", "none"]

# Whose processor time is less than this share of the time it took has waited.
BUSY: Final = 0.9
# If this much of a difference is processor time, the waiting does not matter.
EXPLAINED: Final = 0.5
# What distinguishes machines and versions, in this order, before whatever else a file names.
_FIRST: Final = ("cpu", "cpu_count", "machine", "system", "hdf5", "h5py", "netcdf", "zlib")


@dataclass(frozen=True)
class Match:
    """One trial of the baseline in another file."""

    base: Sample  # The repeats of each
    other: Sample
    verdict: Verdict | None  # None if one side has no figures
    base_waited: bool = False  # Whether that side was without a processor for a tenth of its time
    other_waited: bool = False

    @property
    def word(self) -> Word | Literal["failed"]:
        """The verdict, or ``failed`` for what the baseline could read and this could not."""
        if self.verdict is not None:
            return self.verdict.word
        return "failed" if self.base.total_s and self.other.status == "failed" else "cannot tell"

    @property
    def extrapolated(self) -> bool:
        """Whether one of the two totals is an estimate."""
        return self.base.extrapolated or self.other.extrapolated


# The worst first: in this order verdicts are shown and summed up.
ORDER: Final = ("failed", "slower", "cannot tell", "faster", "same")


@dataclass(frozen=True)
class Comparison:
    """A baseline, and another file against it."""

    base: Saved  # The files
    other: Saved
    matches: dict[str, Match]  # The trials that both have, by what was measured
    threshold: float  # The ratio up to which times are called the same

    @cached_property
    def ratios(self) -> list[float]:
        """The ratios of all trials that have one, the largest first."""
        found = (m.verdict.ratio for m in self.matches.values() if m.verdict is not None)
        return sorted(found, reverse=True)

    @property
    def mean_ratio(self) -> float | None:
        """The geometric mean of the ratios."""
        return statistics.geometric_mean(self.ratios) if self.ratios else None

    @property
    def word(self) -> Word | Literal["failed"]:
        """The verdict on the whole: the worst that was found."""
        return min((m.word for m in self.matches.values()), key=ORDER.index)

    @property
    def only_base(self) -> list[Sample]:
        """Trials that only the baseline has."""
        return [s for key, s in self.base.samples.items() if key not in self.other.samples]

    @property
    def only_other(self) -> list[Sample]:
        """Trials that only the other file has."""
        return [s for key, s in self.other.samples.items() if key not in self.base.samples]

    @property
    def data_differs(self) -> dict[str, tuple[Any, Any]]:
        """What differs of the data; what one file does not say is no difference."""
        pairs = {name: (self.base.data[name], self.other.data[name]) for name in self.base.data}
        return {k: p for k, p in pairs.items() if None not in p and p[0] != p[1]}

    @property
    def environment_differs(self) -> dict[str, tuple[str | None, str | None]]:
        """What differs of machine and versions."""
        first, second = self.base.environment, self.other.environment
        names = dict.fromkeys((*_FIRST, *first, *second))
        pairs = {name: (first.get(name), second.get(name)) for name in names}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    @property
    def worst_first(self) -> list[Match]:
        """The trials in the order in which they are shown."""
        return sorted(self.matches.values(), key=_badness)

    def count(self, word: str) -> int:
        """How many trials have this verdict."""
        return sum(match.word == word for match in self.matches.values())

    def fails(self, on: FailOn) -> bool:
        """Whether the caller wants an exit code for a trial."""
        bad = {"slower": ("failed", "slower"), "different": ("failed", "slower", "faster")}
        return any(match.word in bad.get(on, ()) for match in self.matches.values())


def judge(base: Saved, other: Saved, threshold: float = THRESHOLD) -> Comparison:
    """Compare a run with a baseline; raise UsageError for what does not compare."""
    check_threshold(threshold)
    first, second = printable(base.path), printable(other.path)
    shapes = base.data["shape"], other.data["shape"]
    if None not in shapes and shapes[0] != shapes[1]:
        raise UsageError(
            f"{first} and {second} read arrays of different shapes "
            f"({format_shape(shapes[0])} and {format_shape(shapes[1])}): their times do not "
            "compare; measure the same dataset"
        )
    matches = {
        key: match(sample, other.samples[key], threshold)
        for key, sample in base.samples.items()
        if key in other.samples
    }
    if not any(match.verdict for match in matches.values()):
        names = base.data["dataset"], other.data["dataset"]
        why = f" ('{names[0]}' and '{names[1]}')" if names[0] != names[1] else ""
        raise UsageError(
            f"{first} and {second} have no trial in common{printable(why)}: run chunkwise bench "
            "with the same dataset, --access, --reader and --cache"
        )
    return Comparison(base, other, matches, threshold)


def _badness(match: Match) -> tuple[int, float]:
    ratio = math.inf if match.verdict is None else match.verdict.ratio
    return ORDER.index(match.word), -ratio


def match(base: Sample, other: Sample, threshold: float = THRESHOLD) -> Match:
    """Give the verdict on one trial, from its repeats in two files."""
    if not base.total_s or not other.total_s:
        return Match(base, other, None)
    found = verdict(base.worked_s, other.worked_s, threshold)
    waited = _waited(base), _waited(other)
    if found.word in ("slower", "faster"):
        slow, fast = (other, base) if found.word == "slower" else (base, other)
        if _waited(slow) and not _explained(slow, fast):
            found = replace(found, word="cannot tell")
    return Match(base, other, found, *waited)


def _waited(sample: Sample) -> bool:
    """Whether a process that had nothing to wait for waited, in half of its repeats."""
    shares = [w / t for w, t in zip(sample.worked_s, sample.total_s, strict=True)]
    return statistics.median(shares) < BUSY


def _explained(slow: Sample, fast: Sample) -> bool:
    """Whether most of the slower one's extra time is processor time."""
    busy = [[c for c in sample.cpu_s if c is not None] for sample in (slow, fast)]
    if not all(busy):
        return False
    longer = statistics.median(slow.worked_s) - statistics.median(fast.worked_s)
    worked = statistics.median(busy[0]) - statistics.median(busy[1])
    return worked >= EXPLAINED * longer
