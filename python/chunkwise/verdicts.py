"""What is said of a file, in which words everywhere, and with which exit code?"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum


class Exit(IntEnum):
    """The exit codes of all commands."""

    DONE = 0
    WRONG = 1  # Damage, or a result that differs from its source or that nothing proved
    FAILED = 2  # Wrong usage, or another failure: no such file, a full disk
    UNJUDGED = 3  # Cannot be judged or done here
    BUSY = 4  # Try later
    INTERRUPTED = 130


class FileVerdict(str, Enum):
    """What is said of a file."""

    SOUND = "sound"
    LOOSE = "sound, with loose ends"
    FAILED = "could not be read"
    UNJUDGED = "cannot be judged here"
    BUSY = "busy"
    DAMAGED = "damaged"

    def __str__(self) -> str:
        """Return the words."""
        return self.value

    @property
    def exit(self) -> Exit:
        """The exit code of a command that finds this."""
        return _EXITS[self]


_EXITS = {
    FileVerdict.SOUND: Exit.DONE,
    FileVerdict.LOOSE: Exit.DONE,
    FileVerdict.FAILED: Exit.FAILED,
    FileVerdict.UNJUDGED: Exit.UNJUDGED,
    FileVerdict.BUSY: Exit.BUSY,
    FileVerdict.DAMAGED: Exit.WRONG,
}


def worst_verdict(verdicts: Iterable[FileVerdict]) -> FileVerdict:
    """Return what is said of a whole: damage first, then failures, and so on."""
    return min(verdicts, key=_ORDER.index, default=FileVerdict.SOUND)


_ORDER = (
    FileVerdict.DAMAGED,
    FileVerdict.FAILED,
    FileVerdict.UNJUDGED,
    FileVerdict.BUSY,
    FileVerdict.LOOSE,
    FileVerdict.SOUND,
)


def worst(codes: Iterable[int]) -> int:
    """Return the exit code for several results: the first of 130, 1, 2, 3, 4 that is there."""
    found = {int(code) for code in codes} - {int(Exit.DONE)}
    return Exit.INTERRUPTED if Exit.INTERRUPTED in found else min(found, default=Exit.DONE)
