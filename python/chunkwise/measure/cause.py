"""Why did it take so long, and what helps, before that is said in words?"""

from __future__ import annotations

from dataclasses import dataclass

from chunkwise.remedy.records import Remedy


@dataclass(frozen=True)
class Cause:
    """What makes a pattern slow."""

    why: str  # In one sentence
    # What helps: one of them, or a copy and the cache that it is to be opened with.
    remedies: tuple[Remedy, ...] = ()
    effect: str | None = None  # What they change, and whether that was measured or computed
