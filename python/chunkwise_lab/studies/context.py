"""What may a probe use?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chunkwise import measure
from chunkwise.errors import UsageError
from chunkwise.measure.axes import DEFAULT
from chunkwise.measure.results import Cell
from chunkwise.measure.run import MOST_SECONDS
from chunkwise.measure.schedule import Step
from chunkwise.measure.space import Space
from chunkwise_lab.studies.claims import Undecided
from chunkwise_lab.studies.libraries import Found


@dataclass(frozen=True)
class Context:
    """What a probe may use."""

    data: Mapping[str, tuple[str, str, dict[str, str]]]  # Of each dataset: file, path, labels
    settings: Mapping[str, Any]  # What the study's file says at this scale
    repeat: int
    libraries: Mapping[str, Found]
    folder: Path  # For files that are removed at the end
    readers: tuple[str, ...]  # Readers that are wanted; empty for all
    say: Callable[[Step], None]  # Reports progress; may raise to end the run
    # What the run's axes say at this scale; None if nothing of it can be measured.
    space: Space | None = None
    # How many processes of MPI the user wants; empty for what the study says.
    ranks: tuple[int, ...] = ()
    # What of earlier measurements is to be there `repeat` times; None for everything.
    again: Undecided | None = None
    # How the names of files begin in which a probe keeps what it measured, if it is stopped.
    save: Path = Path("kept")

    def wants(self, known: Mapping[str, str]) -> bool:
        """Whether a row with these labels and values, and any others, is to be measured."""
        return self.again is None or self.again.touches(known)

    def measured(self, path: str, dataset: str, *, touch: bool = False) -> Sequence[Cell]:
        """Measure what the axes say of a dataset, all of it; `touch`, after a trial before it."""
        if self.space is None:
            raise UsageError("this probe needs axes: what is read or written, and how")
        # A filter is compared with none: all of them, or nothing.
        kept = tuple(
            point
            for point in self.space.points((DEFAULT,))
            if self.wants({name: text for name, text in point.items() if name != "filter"})
        )
        if not kept:
            return []
        space = self.space if self.again is None else Space(design="list", trials=kept)
        results = measure.run(
            path,
            dataset,
            space,
            repeat=self.repeat,
            seconds=MOST_SECONDS,
            progress=self.say,
            sample_nbytes=sys.maxsize,
            scratch=str(self.folder),
            touch=touch,
        )
        return results.cells


Probe = Callable[[Context], Iterator[tuple[dict[str, str], list[dict[str, Any]]]]]
