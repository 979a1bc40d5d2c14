"""What may a probe use?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
from chunkwise_lab.studies.kept import Kept, Point
from chunkwise_lab.studies.libraries import Library
from chunkwise_lab.turns import in_turns

# Measures once; the record says how it went (``status``).
Work = Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Context:
    """What a probe may use."""

    data: Mapping[str, tuple[str, str, dict[str, str]]]  # Of each dataset: file, path, labels
    settings: Mapping[str, Any]  # What the study's file says at this scale
    repeat: int
    libraries: Mapping[str, Library]
    folder: Path  # For files that are removed at the end
    save: Path  # How the names of files begin in which a probe keeps what it measured
    readers: tuple[str, ...]  # Readers that are wanted; empty for all
    say: Callable[[Step], None]  # Reports progress; may raise to end the run
    # What the run's axes say at this scale; None if nothing of it can be measured.
    space: Space | None = None
    # How many processes of MPI the user wants; empty for what the study says.
    ranks: tuple[int, ...] = ()
    # What of earlier measurements is to be there `repeat` times; None for everything.
    again: Undecided | None = None

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
            save=self.save.with_name(f"{self.save.name}-{Path(path).stem}.jsonl"),
            sample_nbytes=sys.maxsize,
            scratch=str(self.folder),
            touch=touch,
        )
        return results.cells

    def repeated(
        self, works: Sequence[tuple[Point, Work]], *, touch: bool = False
    ) -> Iterator[tuple[Point, list[dict[str, Any]]]]:
        """Let works take turns until each has as many records as are wanted."""
        kept = Kept(self.save.with_name(f"{self.save.name}.jsonl"), self.settings)
        found = {_key(point): list(kept.of(point)) for point, _ in works}
        missing = [n for n, (point, _) in enumerate(works) if self._misses(found[_key(point)])]

        def measured(point: Point, work: Work) -> None:
            records = found[_key(point)]
            if self._misses(records):
                record = work()
                records.append(record)
                if record["status"] == "ok":
                    kept.add(point, record)

        if missing:
            kept.begin()
            if touch:
                works[missing[0]][1]()
            rounds = max(self._misses(records) for records in found.values())
            turns = {str(n): partial(measured, *works[n]) for n in missing}
            in_turns(turns, rounds)
        yield from ((point, found[_key(point)]) for point, _ in works)

    def _misses(self, records: Sequence[Mapping[str, Any]]) -> int:
        return max(0, self.repeat - len(records))


def _key(point: Point) -> tuple[tuple[str, str], ...]:
    return tuple(point.items())


Probe = Callable[[Context], Iterator[tuple[dict[str, str], list[dict[str, Any]]]]]
