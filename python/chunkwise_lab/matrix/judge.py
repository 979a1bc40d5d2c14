"""Is one of two slower by more than noise?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

# Whoever differs by less is not slower.
TOLERANCE = 0.03
RESAMPLES = 2000


@dataclass(frozen=True)
class Verdict:
    """How much faster the second is than the first."""

    # The first one's median time divided by the second's, and the interval that holds it with 95%
    # by bootstrap.
    ratio: float
    low: float
    high: float

    @property
    def is_slower(self) -> bool:
        """Whether the second is slower, by more than noise."""
        return self.high < 1 - TOLERANCE

    @property
    def is_open(self) -> bool:
        """Whether more samples may change the answer."""
        return not self.is_slower and self.low < 1 < self.high + TOLERANCE


def judge(first: Sequence[float], second: Sequence[float]) -> Verdict:
    """Compare samples that were taken in turns: each pair is drawn together."""
    one, other = np.asarray(first), np.asarray(second)
    drawn = np.random.default_rng(0).integers(0, len(one), (RESAMPLES, len(one)))
    ratios = np.median(one[drawn], axis=1) / np.median(other[drawn], axis=1)
    low, high = np.percentile(ratios, [2.5, 97.5])
    return Verdict(float(np.median(one) / np.median(other)), float(low), float(high))


def compare(
    first: Callable[[], float], second: Callable[[], float], seconds: float, most: int
) -> tuple[list[float], list[float]]:
    """Take samples in turns, each beginning every other time, until time or doubt is used up."""
    # The first time files are read from storage, and libraries load what they need.
    spent = first() + second()
    samples: tuple[list[float], list[float]] = ([], [])
    while len(samples[0]) < most:
        turn = len(samples[0]) % 2
        for which in (turn, 1 - turn):
            samples[which].append((first, second)[which]())
        spent += samples[0][-1] + samples[1][-1]
        count = len(samples[0])
        enough = count >= 10 and count % 5 == 0 and not judge(*samples).is_open
        if count >= 5 and (enough or spent > seconds):
            break
    return samples
