"""Which cases are slower for a reason that stays, and what is the reason?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chunkwise_lab.matrix.cases import Case


@dataclass(frozen=True)
class Reason:
    """Why cases are slower."""

    text: str  # The reason
    # What it costs at most; a case that loses more is slower for another reason as well.
    most_s: float
    holds: Callable[[Case], bool]  # Whether it holds for a case


REASONS = (
    Reason(
        "the first read of a process binds libhdf5, and begins threads",
        20e-3,
        lambda case: case.process == "fresh",
    ),
    Reason(
        "a file of its own: what is wrong with it is said, it is known again, and closed by "
        "whoever is last",
        0.6e-3,
        lambda case: case.work == "write" and case.face == "open",
    ),
    Reason(
        "the first read of a file asks libhdf5 where the data lies, and opens the file once more",
        0.25e-3,
        lambda case: case.work == "read" and case.phase in ("open", "first"),
    ),
    Reason(
        "two threads fill new memory; what another processor has in its cache is cleared six "
        "times as slowly",
        3e-3,
        lambda case: case.how == "all" and case.layout.endswith("contiguous"),
    ),
    Reason(
        "a walk of few steps, of which the first asks libhdf5 where the data lies",
        0.25e-3,
        lambda case: case.phase == "walk" and case.filters == "none",
    ),
)


def reason(case: Case, lost_s: float) -> str | None:
    """Say why a case is slower; None where nothing explains so much."""
    fitting = (one for one in REASONS if one.holds(case) and lost_s <= one.most_s)
    return next((one.text for one in fitting), None)
