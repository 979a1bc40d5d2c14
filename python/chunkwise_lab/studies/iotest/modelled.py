"""How long would ranks take with a core each, if the measured ranks shared some?

The model of the parallel write is fitted to the rows in which each rank had a core.  Their writing
counts as encoding, because storage and filters are measured together; the rest is fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from chunkwise.measure.verdict import spread
from chunkwise_lab.mpi_model.calibrate import OTHER, Run, calibrate
from chunkwise_lab.mpi_model.model import Job, Machine, predict
from chunkwise_lab.studies.results import Row

# Neither is the limit: both are in what was measured.
_STORAGE: Final = Machine(rank_rate=1e18, node_rate=1e18, storage_rate=1e18)
SAID: Final = (
    "The model's points say what as many ranks take with a core each. It is fitted to the runs "
    "that are not oversubscribed: what a core writes in a second, and all else as it is there. It "
    "knows nothing of the network and the storage of a larger machine."
)


@dataclass(frozen=True)
class Modelled:
    """A value that was not measured."""

    point: dict[str, str]  # As a row's; ``oversubscribed`` is ``no``
    figure: str  # A name of `chunkwise_lab.studies.figures.FIGURES`
    value: float  # In its unit


def modelled(rows: Sequence[Row]) -> list[Modelled]:
    """Model series that have oversubscribed rows; nothing if none has."""
    groups: dict[tuple[tuple[str, str], ...], list[Row]] = {}
    for row in rows:
        if "ranks" in row.point and "oversubscribed" in row.point and _told(row):
            names = ("ranks", "oversubscribed")
            rest = tuple((k, v) for k, v in row.point.items() if k not in names)
            groups.setdefault(rest, []).append(row)
    return [one for group in groups.values() for one in _series(group)]


def _series(rows: Sequence[Row]) -> list[Modelled]:
    crowded = [row for row in rows if row.point["oversubscribed"] == "yes"]
    alone = [row for row in rows if row.point["oversubscribed"] == "no"]
    if not crowded or not alone:
        return []
    machine = calibrate([_run(row) for row in alone], _STORAGE).machine
    fewest = min(alone, key=lambda row: int(row.point["ranks"]))
    base = predict(machine, _job(fewest)).elapsed_s
    found = []
    for row in sorted(rows, key=lambda row: int(row.point["ranks"])):
        point = {**row.point, "oversubscribed": "no"}
        seconds = predict(machine, _job(row)).elapsed_s
        found.append(Modelled(point, "total_s", seconds))
        if any("efficiency" in record for record in _told(row)):
            found.append(Modelled(point, "efficiency", 100 * base / seconds))
    return found


def _told(row: Row) -> list[dict[str, Any]]:
    needed = ("total_s", "elapsed_s", "selected_nbytes", "file_nbytes", "shape")
    return [one for one in row.records if all(one.get(name) for name in needed)]


def _middle(row: Row, name: str) -> float:
    return spread([float(one[name]) for one in _told(row)]).median


def _job(row: Row) -> Job:
    record = _told(row)[0]
    ranks, nbytes = int(row.point["ranks"]), int(record["selected_nbytes"])
    steps, arrays = record["shape"][:2]
    # For rank 4, all arrays of a step lie in one chunk of each rank.
    chunks = steps * ranks * (1 if row.point.get("dataset-rank") == "4" else arrays)
    return Job(
        nbytes=nbytes,
        chunk_nbytes=max(1, nbytes // chunks),
        ratio=_middle(row, "file_nbytes") / nbytes,
        n_ranks=ranks,
        verify=False,
    )


def _run(row: Row) -> Run:
    total, writing = _middle(row, "total_s"), _middle(row, "elapsed_s")
    return Run(_job(row), {"encode": writing, OTHER: max(0.0, total - writing)}, total)
