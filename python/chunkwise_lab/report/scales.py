"""Where along an axis does a value stand that is a text?

Numbers and sizes stand at their value or its logarithm; other words to their left, beyond a break.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from chunkwise.errors import UsageError
from chunkwise.grammar import parse_size
from chunkwise_lab.report.model import Tick

_SHAPE: Final = re.compile(r"[0-9]{1,18}(x[0-9]{1,18})+")
# Of the width of all numbers: between them and what stands apart; between two texts.
_APART: Final = 0.12
_NEAR: Final = 0.001
_BETWEEN: Final = 0.014
_A_CHARACTER: Final = 0.0125


@dataclass(frozen=True)
class Scale:
    """Places for texts."""

    places: dict[str, float]
    ticks: tuple[Tick, ...]  # In the order of their places; of texts that would touch, the first
    breaks: tuple[float, ...]
    # Whether there is nothing to scale: texts stand at 0, 1, 2, ... in their order.
    of_words: bool

    @property
    def crowded(self) -> bool:
        """Whether some places nearly coincide."""
        places = sorted(self.places.values())
        near = _NEAR * (places[-1] - places[0])
        return any(0 < after - before < near for before, after in pairwise(places))


def number(text: str) -> float | None:
    """Read a number, a number of bytes, or of a shape its elements; None for a word."""
    try:
        value = float(text)
        return value if math.isfinite(value) else None
    except ValueError:
        pass
    if _SHAPE.fullmatch(text):
        return float(math.prod(map(int, text.split("x"))))
    try:
        return float(parse_size(text))
    except UsageError:
        return None


def words(texts: Sequence[str], label: Callable[[str], str] = str) -> Scale:
    """Give each text its own place: in order, or by value if all are numbers."""
    order = list(dict.fromkeys(texts))
    values = [number(text) for text in order]
    if None not in values:
        order.sort(key=lambda text: number(text) or 0.0)
    places = {text: float(n) for n, text in enumerate(order)}
    ticks = tuple(Tick(at, label(text)) for text, at in places.items())
    return Scale(places, ticks, (), True)


def numbers(texts: Sequence[str], log: bool, label: Callable[[str], str] = str) -> Scale:
    """Place texts by the numbers they say; as `words` does if fewer than two say one."""
    values = {text: number(text) for text in dict.fromkeys(texts)}
    found = {t: v for t, v in values.items() if v is not None and (v > 0 or not log)}
    if len(set(found.values())) < 2:
        return words(texts, label)
    places = {text: math.log10(value) if log else value for text, value in found.items()}
    least, most = min(places.values()), max(places.values())
    step = _APART * (most - least)
    apart = [[t for t, v in values.items() if v is not None and v <= 0]] if log else []
    apart.append([t for t, v in values.items() if v is None])
    breaks = []
    at = least
    for group in apart:
        if group:
            breaks.append(at - step / 2)
        for text in reversed(group):
            at -= step
            places[text] = at
    return Scale(places, _ticks(places, label), tuple(breaks), False)


def _ticks(places: dict[str, float], label: Callable[[str], str]) -> tuple[Tick, ...]:
    ordered = sorted((at, label(text)) for text, at in places.items())
    width = ordered[-1][0] - ordered[0][0]
    kept: list[Tick] = []
    for at, text in ordered:
        if not kept:
            kept.append(Tick(at, text))
            continue
        half = (len(text) + len(kept[-1].text)) / 2
        if at - kept[-1].at >= width * (_BETWEEN + _A_CHARACTER * half):
            kept.append(Tick(at, text))
    return tuple(kept)
