"""What is compared with what, and what has to come of it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Unit = Literal["seconds", "s of processor time", "bytes", "rounds"]

# Whom the targets are about.
SUBJECT: Final = "chunkwise"


@dataclass(frozen=True)
class Reader:
    """One of those that are compared: a process of its own."""

    name: str  # As in the table
    # ``module:function`` below `chunkwise_lab.peers`; or ``limits``, the compiled program.
    task: str
    # Plain JSON values for that function; for ``limits`` the key ``argv``.
    arguments: Mapping[str, Any] = field(default_factory=dict)
    limit: bool = False  # Whether it is no reader, but what the machine allows
    compared: bool = True  # Whether its bytes have to be those of the others
    # Samples that are enough of it, where one takes minutes; None for the comparison's.
    most: int | None = None


@dataclass(frozen=True)
class Goal:
    """What chunkwise's figure has to be."""

    # How many times as fast as `against` at least; without it, the largest figure allowed.
    value: float
    against: str | None = None  # The reader that is compared with
    by: str = SUBJECT  # The reader that has to be so fast


@dataclass(frozen=True)
class Comparison:
    """One row of work, done by several readers in turns."""

    name: str  # Short, unique; ``make bench ONLY=...`` takes a group, or ``group/name``
    group: str  # What it belongs to
    title: str  # The work, in words
    readers: tuple[Reader, ...]  # In the order of the table
    targets: tuple[Goal, ...] = ()  # There may be none
    unit: Unit = "seconds"  # Of the figures
    repeat: int = 5  # Samples of each reader
    note: str = ""  # What a reader of the table should know
    patience_s: float = 180.0  # A worker that says nothing for so long is ended

    def __post_init__(self) -> None:
        names = {reader.name for reader in self.readers}
        for target in self.targets:
            missing = {target.by, target.against or target.by} - names
            if missing:
                raise ValueError(f"{self.name}: no reader is called {missing}")
