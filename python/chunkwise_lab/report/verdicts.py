"""How is a verdict written: on a terminal, as Markdown, on a page?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from chunkwise_lab.studies.rules import Word


@dataclass(frozen=True)
class Look:
    """All that stands for one word."""

    # On a terminal: read well also if there are no colours, and no letters but ASCII's.
    ascii: str
    style: str
    mark: str  # As Markdown
    icon: str  # On a page, in a square of 16: a shape of its own for each
    of_advice: str  # What it is called if it is one on advice
    # What one piece of advice does then, and several do.
    one: str
    several: str


# In the order in which verdicts are counted.
VERDICTS: Final[dict[Word, Look]] = {
    "holds": Look(
        "+", "green", "✓", '<path d="M2 8.5 6.2 13 14 3.5"/>', "stands", "stands", "stand"
    ),
    "weaker": Look(
        "<", "green", "↘", '<path d="M2 4l4.5 7L9 7.5l5 5.5M14 8.5V13H9.5"/>', "gains less",
        "gains less than in the paper", "gain less than in the papers",
    ),
    "no longer holds": Look(
        "-", "yellow", "✗", '<path d="M3 3l10 10M13 3 3 13"/>', "no longer",
        "no longer does", "no longer do",
    ),
    "reversed": Look(
        "!", "bold red", "⇄", '<path d="M2 5h11M10 2l3 3-3 3M14 11H3M6 8l-3 3 3 3"/>', "reversed",
        "is reversed", "are reversed",
    ),
    "cannot tell": Look(
        "?", "cyan", "?", '<path d="M5 5.5a3 3 0 1 1 4.2 2.8Q8 9 8 10.5M8 13v1"/>', "cannot tell",
        "cannot be told", "cannot be told",
    ),
    "not measured": Look(
        ".", "dim", "–", '<path d="M3 8h10"/>', "not measured",
        "was not measured", "were not measured",
    ),
}  # fmt: skip
