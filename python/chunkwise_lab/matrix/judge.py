"""Is one of two slower by more than noise?  As everywhere, `measure.verdict` says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from chunkwise.measure.process import in_turns
from chunkwise.measure.verdict import Verdict, verdict

# What differs by less is not slower.
TOLERANCE: Final = 1.03


def judge(first: Sequence[float], second: Sequence[float]) -> Verdict:
    """Say by how much the first is slower than the second; both were sampled in turns."""
    return verdict(second, first, TOLERANCE)


def compare(
    first: Callable[[], float], second: Callable[[], float], seconds: float, most: int
) -> tuple[list[float], list[float]]:
    """Take samples in turns, each beginning every other time, until time or doubt is used up."""
    # The first time files are read from storage, and libraries load what they need.
    spent = first() + second()

    def enough(taken: Mapping[str, list[float]]) -> bool:
        one, other = taken.values()
        count = len(one)
        settled = count >= 10 and count % 5 == 0 and judge(one, other).word != "cannot tell"
        return count >= 5 and (settled or spent + sum(one) + sum(other) > seconds)

    one, other = in_turns({"first": first, "second": second}, most, enough).values()
    return one, other
