"""What does a study measure that no access pattern can express?

A probe takes a `Context` and gives points, each with its records: like a trial's, with
``status`` and its own figures.
"""

from __future__ import annotations

from typing import Final

from chunkwise_lab.studies import (
    chunk_slots,
    elsewhere,
    functions,
    open_datasets,
    phases,
    reads,
    repacking,
)
from chunkwise_lab.studies.context import Probe
from chunkwise_lab.studies.iotest import launching

PROBES: Final[dict[str, Probe]] = {
    "chunk-slots": chunk_slots.predict,
    "elsewhere": elsewhere.measure,
    "functions": functions.measure,
    "iotest": launching.measure,
    "open-datasets": open_datasets.measure,
    "phases": phases.measure,
    "reads": reads.measure,
    "repack": repacking.measure,
}
