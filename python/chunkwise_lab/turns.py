"""How do works take turns, and who disturbed them?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from chunkwise.words import counted

T = TypeVar("T")

# What others may have of the processors without being said: daemons have a percent or two.
_DISTURBS: Final = 0.1


def busy_text(shares: Iterable[float | None]) -> str:
    """Say during how many measurements other programs were at work; empty if during none."""
    known = [share for share in shares if share is not None]
    disturbed = sum(share > _DISTURBS for share in known)
    if not disturbed:
        return ""
    return (
        f"Other programs had more than {_DISTURBS:.0%} of the processors during {disturbed:,} of "
        f"{counted(len(known), 'measurement')}: those figures may be too slow; measure again on a "
        "quiet machine."
    )


def in_turns(
    works: Mapping[str, Callable[[], T | None]],
    rounds: int,
    enough: Callable[[Mapping[str, list[T]]], bool] = lambda _: False,
) -> dict[str, list[T]]:
    """Let works take turns (A B C, B C A, ...), so that a machine that slows down slows all.

    A work that returns None gives no sample; `enough` is called after each round.
    """
    taken: dict[str, list[T]] = {name: [] for name in works}
    names = list(works)
    for number in range(rounds):
        first = number % len(names)
        for name in (*names[first:], *names[:first]):
            sample = works[name]()
            if sample is not None:
                taken[name].append(sample)
        if enough(taken):
            break
    return taken
