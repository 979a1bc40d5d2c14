"""Does what a paper says still hold, by today's figures?

Each rule takes a claim and the rows of its experiment, and gives a verdict in a sentence,
with the numbers: it holds, no longer holds, is reversed, or cannot be told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from chunkwise.studies.results import Row
from chunkwise.studies.study import Claim, Statistic

Word = Literal["holds", "no longer holds", "reversed", "cannot tell", "not measured"]


@dataclass(frozen=True)
class Verdict:
    """What became of a claim.

    Attributes
    ----------
    word : Word
    sentence : str
        With today's numbers; begins with a capital and ends with a full stop.
    """

    word: Word
    sentence: str


Rule = Callable[[Claim, Sequence[Row], Statistic], Verdict]
RULES: Final[dict[str, Rule]] = {}


def judge(claim: Claim, rows: Sequence[Row], statistic: Statistic) -> Verdict:
    """Apply a claim's rule."""
    return RULES[claim.rule](claim, rows, statistic)
