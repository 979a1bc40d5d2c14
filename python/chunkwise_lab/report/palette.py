"""Which colours, marks and dashes tell series apart, for everyone and on any background?

Okabe and Ito's colours.  The light ones are darkened until each has a contrast of
3 to 1 against white and against the dark page.  Marks and dashes differ as well, so no series
depends on its colour alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Style:
    """How a series looks, by the names of plotly and of matplotlib."""

    colour: str
    mark: str
    still_mark: str
    dash: str
    still_dash: str | tuple[int, tuple[int, ...]]


_COLOURS: Final = ("#0077b8", "#d55e00", "#009068", "#b4649a", "#a07800", "#7a72d0")
_MARKS: Final = (
    ("circle", "o"),
    ("square", "s"),
    ("triangle-up", "^"),
    ("diamond", "D"),
    ("triangle-down", "v"),
    ("pentagon", "p"),
)
_DASHES: Final = (
    ("solid", "-"),
    ("7px,3px", (0, (7, 3))),
    ("3px,3px", (0, (3, 3))),
    ("9px,3px,2px,3px", (0, (9, 3, 2, 3))),
    ("12px,4px", (0, (12, 4))),
    ("6px,2px,2px,2px,2px,2px", (0, (6, 2, 2, 2, 2, 2))),
)
# What a paper printed: crosses and stars, joined by dots, in the colour of what they stand beside.
_PUBLISHED_MARKS: Final = (("x", "X"), ("cross", "P"), ("star", "*"))
PUBLISHED_DASH: Final = ("2px,3px", (0, (1, 2)))
PUBLISHED_COLOUR: Final = "#7d7d7d"


def style(index: int | None, *, published: bool = False) -> Style:
    """Return the style of a series; beyond six, colours come again with other marks."""
    colour = PUBLISHED_COLOUR if index is None else _COLOURS[index % 6]
    if published or index is None:
        return Style(colour, *_PUBLISHED_MARKS[(index or 0) % 3], *PUBLISHED_DASH)
    turn = index // 6
    return Style(colour, *_MARKS[(index + turn) % 6], *_DASHES[(index + turn) % 6])
