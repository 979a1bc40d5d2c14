"""What does a worker run, and what does that give?

A task is a generator function that yields one callable; each call of it is one sample, with
a clock of its own around the reading alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt


class CannotReadError(Exception):
    """The reader is not installed, or does not read this: one line says why."""


@dataclass(frozen=True)
class Sample:
    """What one call gave."""

    value: float  # Seconds of the reading alone, or bytes
    # What was read, or the CRC-32 of it, to be compared; None where there is nothing.
    data: npt.NDArray[Any] | int | None = None
    told: dict[str, Any] = field(default_factory=dict)  # Anything else worth keeping, as JSON


# What the checksum of a sample's data is of; compiled loops tell those of their beginnings, too.
EVERYTHING = "everything"

Measure = Callable[[], Sample]
Task = Iterator[Measure]
