"""Is one of two slower by more than noise?  As everywhere, `measure.verdict` says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from chunkwise.measure.verdict import verdict

# What differs by less is not slower.
TOLERANCE: Final = 1.03


@dataclass(frozen=True)
class Judged:
    """How much faster the second is than the first."""

    ratio: float  # The first one's median time divided by the second's
    low: float  # The interval for it; the ratio itself where samples are too few for one
    high: float
    is_slower: bool  # Whether the second is slower, by more than noise
    is_open: bool  # Whether more samples may change the answer


def judge(first: Sequence[float], second: Sequence[float]) -> Judged:
    """Compare samples that were taken in turns."""
    found = verdict(first, second, TOLERANCE)
    ratio, low, high = (1 / (one or found.ratio) for one in (found.ratio, found.high, found.low))
    return Judged(ratio, low, high, found.word == "slower", found.word == "cannot tell")


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
