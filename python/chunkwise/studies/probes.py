"""What does a study measure that is no access pattern?

A probe takes a `Context` and gives points, each with its records: as a trial's, with
``status`` and whatever figures it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from chunkwise.benching.schedule import Step
from chunkwise.benching.space import Space
from chunkwise.studies import chunk_slots, elsewhere, open_datasets, phases, repacking
from chunkwise.studies.iotest import launching
from chunkwise.studies.libraries import Found


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
    # What the run's axes say at this scale; None where nothing of it can be measured.
    space: Space | None = None
    # How many processes of MPI the user wants; empty for what the study says.
    ranks: tuple[int, ...] = ()


Probe = Callable[[Context], Iterator[tuple[dict[str, str], list[dict[str, Any]]]]]
PROBES: Final[dict[str, Probe]] = {
    "chunk-slots": chunk_slots.predict,
    "elsewhere": elsewhere.measure,
    "iotest": launching.measure,
    "open-datasets": open_datasets.measure,
    "phases": phases.measure,
    "repack": repacking.measure,
}
