"""What is drawn of a dataset, as the options of `chunkwise view` have it?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from chunkwise.errors import UsageError
from chunkwise.inspection.facts import DatasetFacts
from chunkwise.names import printable


@dataclass(frozen=True)
class Drawn:
    """Which plane, and its colours; empty for what the page chooses."""

    dimensions: str = ""  # Down and across, or across alone: names or numbers
    at: str = ""  # An element in that plane
    colour: str = ""
    zoom: str = ""  # Ranges of elements down and across, or across alone

    def view(self, facts: DatasetFacts) -> dict[str, Any]:
        """Say it as the page does."""
        shape = facts.shape or ()
        found: dict[str, Any] = {"colour": self.colour} if self.colour else {}
        if self.dimensions:
            if not shape:
                raise UsageError("--draw: the dataset has no dimensions")
            names = [str(name).rsplit("/", 1)[-1] for name in facts.dimensions or ()]
            axes = [_axis(word, names, len(shape)) for word in self.dimensions.split(",")]
            if len(axes) > 2 or len(set(axes)) < len(axes):
                raise UsageError("--draw: one dimension or two, such as lat,lon or 1,2")
            found |= {"vertical": axes[0] if len(axes) > 1 else -1, "horizontal": axes[-1]}
        if self.at:
            words = self.at.split(",")
            if len(words) != len(shape) or not all(map(_is_number, words)):
                raise UsageError(f"--at: {len(shape)} numbers, one for each dimension")
            place = list(map(int, words))
            if any(i >= n for i, n in zip(place, shape, strict=True)):
                raise UsageError(f"--at {printable(self.at)} is outside the dataset")
            found["at"] = place
        if self.zoom:
            ranges = [tuple(map(int, one)) for one in _RANGE.findall(self.zoom)]
            said = ",".join(f"{begin}:{end}" for begin, end in ranges)
            if said != self.zoom or len(ranges) > 2 or any(a >= b for a, b in ranges):
                raise UsageError("--zoom: elements down and across, such as 0:50,100:200")
            found["zoom"] = ranges
        return found


USUAL: Final = Drawn()
_RANGE: Final = re.compile("([0-9]{1,19}):([0-9]{1,19})")


def _axis(word: str, names: list[str], rank: int) -> int:
    if word in names:
        return names.index(word)
    if _is_number(word) and int(word) < rank:
        return int(word)
    there = [*dict.fromkeys(map(printable, names)), *map(str, range(rank))]
    raise UsageError(f"--draw: no dimension '{printable(word)}'; there are {', '.join(there)}")


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 20
