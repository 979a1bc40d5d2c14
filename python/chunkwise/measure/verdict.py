"""Are these times longer than those, or is that the noise of the machine?

Timings are few (3 to 10), positive, skewed to the right, and some are several times as long.  So:
logarithms, medians, a spread in which no repeat counts for more than three times the usual
deviation, and a few added repeats of a usual spread, because three may agree by chance.  The
result is an interval for the ratio.  ``scripts/verdict_errors.py`` counts how often it is wrong.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from chunkwise.errors import UsageError
from chunkwise.model import worth

Word = Literal["slower", "faster", "same", "cannot tell"]

# Less than this is no difference.
THRESHOLD: Final = worth.DIFFERENT
# Of the interval.  Each side of it is wrong once in twenty times.
CONFIDENCE: Final = 0.90
# Fewer repeats do not show their spread, so a ratio must be beyond this.
FEWEST: Final = 3
FACTOR_OF_FEW: Final = 3.0
# The spread that timings usually have, and how much it weighs beside the measured one.
USUAL_SPREAD: Final = 0.05
USUAL_WEIGHT: Final = 4
# The most that a deviation counts for, in usual deviations.
CAP: Final = 3.0
# A median is by so much less certain than a mean.
MEDIAN_PENALTY: Final = 1.25
# The median deviation of normal noise, in standard deviations.
MEDIAN_DEVIATION: Final = 0.6745
# Who asks for more repeats than this asks in vain.
MOST_REPEATS: Final = 100
_Z: Final = statistics.NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


@dataclass(frozen=True)
class Spread:
    """The middle and the ends of the repeats of one figure."""

    median: float  # Of all repeats
    lowest: float
    highest: float
    # The mean without the best and the worst, as in paper 001; of fewer than three, of all.
    trimmed_mean: float


def spread(values: Sequence[float]) -> Spread:
    """Sum up the repeats of one figure; there must be one at least."""
    kept = sorted(values)[1:-1] or values
    return Spread(statistics.median(values), min(values), max(values), statistics.fmean(kept))


@dataclass(frozen=True)
class Verdict:
    """What two samples of times say about each other."""

    # The other is slower or faster by more than the threshold, the same, or ``cannot tell``.
    word: Word
    ratio: float  # Median of the other to median of the base; above 1 the other takes longer
    # The interval for the ratio; None if there are too few repeats for one.
    low: float | None = None
    high: float | None = None
    # Repeats a side that would likely decide; None if that is more than a hundred.
    repeats: int | None = None
    fastest: float | None = None  # The fastest repeat of the other to the fastest of the base

    def reaches(self, least: float) -> bool | None:
        """Return whether the ratio is at least so much; None if the repeats allow either."""
        low = self.ratio / FACTOR_OF_FEW if self.low is None else self.low
        high = self.ratio * FACTOR_OF_FEW if self.high is None else self.high
        if low >= least:
            return True
        return False if high < least else None

    def held_back(self, threshold: float) -> Literal["fastest", "waiting"] | None:
        """Say what keeps a verdict from being certain although its interval is."""
        # ``fastest``: the fastest repeats of both sides do not differ by more than the threshold.
        # ``waiting``: they do, and who judged found that a side may have waited for a processor.
        # None if the interval itself leaves it open, or nothing does.
        if self.word != "cannot tell" or self.low is None or self.high is None:
            return None
        best = self.ratio if self.fastest is None else self.fastest
        if self.low > threshold:
            return "fastest" if best <= threshold else "waiting"
        if self.high < 1 / threshold:
            return "fastest" if best >= 1 / threshold else "waiting"
        return None


def verdict(
    base: Sequence[float], other: Sequence[float], threshold: float = THRESHOLD
) -> Verdict:
    """Say whether `other` is slower or faster than `base`."""
    if not base or not other or not all(0 < t < math.inf for t in (*base, *other)):
        raise UsageError("a verdict needs times on both sides, each above 0 seconds")
    check_threshold(threshold)
    if sorted(base) == sorted(other):
        # The very same measurements: a run compared with itself.
        return Verdict("same", 1.0, 1.0, 1.0, fastest=1.0)
    # As logarithms, so that swapping the sides changes signs and nothing else.
    middle = math.log(statistics.median(other)) - math.log(statistics.median(base))
    # Noise only adds time: what is slower is slower at its best, too.
    best = math.log(min(other)) - math.log(min(base))
    ratio = math.exp(middle)
    if min(len(base), len(other)) < FEWEST:
        word = _beyond(middle, middle, best, max(math.log(threshold), math.log(FACTOR_OF_FEW)))
        needed = FEWEST if word == "cannot tell" else None
        return Verdict(word, ratio, repeats=needed, fastest=math.exp(best))
    limit = math.log(threshold)
    spread = _spread(base, other)
    half = _half_width(spread, len(base), len(other))
    word = _beyond(middle - half, middle + half, best, limit)
    if abs(middle) + half < limit:
        word = "same"
    repeats = None
    if word == "cannot tell":
        fewest = min(len(base), len(other)) + 1
        repeats = _deciding(abs(abs(middle) - limit), spread, fewest)
    low, high = math.exp(middle - half), math.exp(middle + half)
    return Verdict(word, ratio, low, high, repeats, math.exp(best))


def within(values: Sequence[float], most: float) -> bool | None:
    """Return whether a figure is at most so much; None if its repeats allow either."""
    ratio = most / statistics.median(values)
    if len(values) < FEWEST:
        return Verdict("cannot tell", ratio).reaches(1)
    half = math.exp(_half_width(_spread(values), len(values)))
    return Verdict("cannot tell", ratio, ratio / half, ratio * half).reaches(1)


def check_threshold(threshold: float) -> None:
    """Raise UsageError for a threshold that separates nothing."""
    if not 1 < threshold < math.inf:
        raise UsageError(
            f"a threshold of {threshold:g} is too small: give a ratio above 1, such as "
            f"{THRESHOLD:g}"
        )


def _beyond(low: float, high: float, best: float, limit: float) -> Word:
    """Return which side is slower, if the whole interval and the fastest repeats say so."""
    if min(low, best) > limit:
        return "slower"
    if max(high, best) < -limit:
        return "faster"
    return "cannot tell"


def _spread(*sides: Sequence[float]) -> float:
    """Return the standard deviation of a repeat's logarithm, of all sides together."""
    deviations = sorted(
        abs(math.log(time / statistics.median(side))) for side in sides for time in side
    )
    # The median of an odd number of repeats is one of them: its 0 says nothing.
    informative = deviations[sum(len(side) % 2 for side in sides) :]
    limit = CAP * max(statistics.median(informative), MEDIAN_DEVIATION * USUAL_SPREAD)
    squares = math.fsum(min(deviation, limit) ** 2 for deviation in deviations)
    freedom = _freedom(*map(len, sides))
    return math.sqrt((USUAL_WEIGHT * USUAL_SPREAD**2 + squares) / freedom)


def _freedom(*repeats: int) -> int:
    return USUAL_WEIGHT + sum(repeats) - len(repeats)


def _half_width(spread: float, *repeats: int) -> float:
    """Return half of the interval for the logarithm of the ratio, or of the one side."""
    # Student's t from the normal quantile, right to 0.1 percent from 8 degrees of freedom on.
    n, z = _freedom(*repeats), _Z
    t = z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
    return t * spread * MEDIAN_PENALTY * math.sqrt(math.fsum(1 / each for each in repeats))


def _deciding(room: float, spread: float, fewest: int) -> int | None:
    """Find how many repeats a side make the interval small enough, if nothing else changes."""
    for repeats in range(fewest, MOST_REPEATS + 1):
        if _half_width(spread, repeats, repeats) < room:
            return repeats
    return None
