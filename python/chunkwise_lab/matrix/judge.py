"""Is one of two slower by more than noise?  As everywhere, `measure.verdict` says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from chunkwise.measure.process import in_turns
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

    def enough(taken: Mapping[str, list[float]]) -> bool:
        one, other = taken.values()
        count = len(one)
        settled = count >= 10 and count % 5 == 0 and not judge(one, other).is_open
        return count >= 5 and (settled or spent + sum(one) + sum(other) > seconds)

    one, other = in_turns({"first": first, "second": second}, most, enough).values()
    return one, other
