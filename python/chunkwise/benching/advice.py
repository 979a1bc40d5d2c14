"""What is the answer that a run gives?"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Advice:
    """The answer that a run gives.

    Attributes
    ----------
    why : str
        One sentence.
    fix : str or None
        A line of Python or a shell command, or a command and the line that its
        output is to be opened with; None if nothing needs to be done.
    effect : str or None
        What the fix changes, and whether that was measured or computed.
    """

    why: str
    fix: str | None = None
    effect: str | None = None
