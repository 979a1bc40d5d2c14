"""How does a user ask which shapes serve two patterns, and at which bandwidth a codec pays?

The model answers (`chunkwise.model.tradeoff`), from the machine and a sample of the data.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from chunkwise.advice.work import Work
from chunkwise.errors import UsageError
from chunkwise.measure.schedule import Step
from chunkwise.model.search import search
from chunkwise.model.tradeoff import Bandwidth, Tradeoff, by_bandwidth, tradeoff
from chunkwise.names import printable
from chunkwise.words import offered

# Nothing but samples is measured.
_BUDGET_S: Final = 60.0


def ask_tradeoff(
    path: str | os.PathLike[str],
    dataset: str,
    names: Sequence[str],
    access: Sequence[str],
    *,
    calibrate: bool = False,
    progress: Callable[[Step], None] | None = None,
    **wishes: Any,
) -> Tradeoff:
    """Find the frontier between two of the patterns."""
    if len(names) != 2 or names[0] == names[1]:
        raise UsageError("--tradeoff A,B: name two of the patterns, as in --tradeoff map,series")
    work = Work.of(
        path, dataset, access, begun=time.monotonic(), budget_s=_BUDGET_S, progress=progress,
        **wishes,
    )  # fmt: skip
    known = {one.pattern.name: one.pattern for one in work.asked}
    for name in names:
        if name not in known:
            raise UsageError(f"no pattern is called '{printable(name)}'{offered(name, known)}")
        if known[name].writes:
            raise UsageError(f"'{printable(name)}' writes: a tradeoff is between two that read")
    problem = work.modelled(calibrate=calibrate)
    return tradeoff(problem, known[names[0]], known[names[1]])


def ask_bandwidth(
    path: str | os.PathLike[str],
    dataset: str,
    access: Sequence[str],
    *,
    calibrate: bool = False,
    progress: Callable[[Step], None] | None = None,
    **wishes: Any,
) -> Bandwidth:
    """Find the fastest filters for each bandwidth, in the best chunks for the patterns.

    Parameters are those of `ask_tradeoff`.
    """
    work = Work.of(
        path, dataset, access, begun=time.monotonic(), budget_s=_BUDGET_S, progress=progress,
        **wishes,
    )  # fmt: skip
    problem = work.modelled(calibrate=calibrate)
    best = search(problem).ranked[0].layout
    chunks = work.target.chunks if "chunk" in work.wishes.keep else best.chunks
    return by_bandwidth(problem, chunks or work.target.shape)
