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
    """How a series looks, by plotly's names."""

    colour: str
    mark: str
    dash: str


_COLOURS: Final = ("#0077b8", "#d55e00", "#009068", "#b4649a", "#a07800", "#7a72d0")
_MARKS: Final = ("circle", "square", "triangle-up", "diamond", "triangle-down", "pentagon")
_DASHES: Final = (
    *("solid", "7px,3px", "3px,3px", "9px,3px,2px,3px", "12px,4px"),
    "6px,2px,2px,2px,2px,2px",
)
# What a paper printed: crosses and stars, joined by dots, in the colour of what they stand beside.
_PUBLISHED_MARKS: Final = ("x", "cross", "star")
PUBLISHED_DASH: Final = "2px,3px"
PUBLISHED_COLOUR: Final = "#7d7d7d"


def style(index: int | None, *, published: bool = False) -> Style:
    """Return the style of a series; beyond six, colours come again with other marks."""
    colour = PUBLISHED_COLOUR if index is None else _COLOURS[index % 6]
    if published or index is None:
        return Style(colour, _PUBLISHED_MARKS[(index or 0) % 3], PUBLISHED_DASH)
    turn = index // 6
    return Style(colour, _MARKS[(index + turn) % 6], _DASHES[(index + turn) % 6])
