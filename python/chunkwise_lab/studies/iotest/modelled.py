"""How long would ranks take with a core each, if the measured ranks shared some?

The model is fitted to the rows in which each rank had a core.  Writing counts as encoding, because
both are measured together: this holds where cores are the limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from chunkwise.measure.verdict import THRESHOLD, spread
from chunkwise_lab.mpi_model.calibrate import OTHER, Run, calibrate
from chunkwise_lab.mpi_model.model import Job, Machine, predict
from chunkwise_lab.studies.results import Row
from chunkwise_lab.studies.wording import plain

# All of it is in what was measured: storage is never the limit, and chunks cost nothing beside.
_REST: Final = Machine(
    rank_rate=1e18, node_rate=1e18, storage_rate=1e18, index_s=0, exchange_s=0, request_s=0
)
_NEEDED: Final = ("total_s", "elapsed_s", "selected_nbytes")


@dataclass(frozen=True)
class Modelled:
    """A value that was not measured."""

    point: dict[str, str]  # As a row's; ``oversubscribed`` is ``no``
    figure: str  # A name of `chunkwise_lab.studies.figures.FIGURES`
    value: float  # In its unit


@dataclass(frozen=True)
class _Series:
    """Rows that differ in their ranks alone, and the machine that explains them."""

    rows: Sequence[Row]
    machine: Machine


def modelled(rows: Sequence[Row]) -> list[Modelled]:
    """Model series that have oversubscribed rows; nothing if none has."""
    return [one for series in _explained(rows) for one in _values(series)]


def said(rows: Sequence[Row], cpu_count: object) -> str:
    """Say what the model's points are, and how far they may be off; nothing if there are none."""
    found = _explained(rows)
    if not found:
        return ""
    return (
        "The model's points say what as many ranks take with a core each. It is fitted to the "
        "runs that are not oversubscribed: what a core writes in a second, and all else as it is "
        "there. If it does not give these runs of a series, within a factor of "
        f"{plain(THRESHOLD)}, there is no model beside it: cores are not the limit there, but "
        "what ranks share, such as memory. It knows nothing of the network and the storage of a "
        f"larger machine.{_off(found, cpu_count)}"
    )


def _off(found: Sequence[_Series], cpu_count: object) -> str:
    """Compare the model with the oversubscribed runs, on the cores that they had."""
    if not isinstance(cpu_count, int):
        return ""
    shares = [
        100 * _seconds(series, row, cpu_count) / _middle(row, "total_s")
        for series in found
        for row in series.rows
        if _crowded(row)
    ]
    ends = dict.fromkeys(f"{share:.0f}" for share in (min(shares), max(shares)))
    return (
        f" Its own error: of the oversubscribed runs, with the {cpu_count} processors that they "
        f"had, it gives {' to '.join(ends)}% of the seconds that they took."
    )


def _explained(rows: Sequence[Row]) -> list[_Series]:
    """Return the series with oversubscribed rows, whose other rows the model gives."""
    groups: dict[tuple[tuple[str, str], ...], list[Row]] = {}
    for row in rows:
        if "ranks" in row.point and "oversubscribed" in row.point and _records(row):
            names = ("ranks", "oversubscribed")
            rest = tuple((k, v) for k, v in row.point.items() if k not in names)
            groups.setdefault(rest, []).append(row)
    found = []
    for group in groups.values():
        alone = [row for row in group if not _crowded(row)]
        if not alone or len(alone) == len(group):
            continue
        series = _Series(group, calibrate([_run(row) for row in alone], _REST).machine)
        off = [_seconds(series, row) / _middle(row, "total_s") for row in alone]
        if min(off) >= 1 / THRESHOLD and max(off) <= THRESHOLD:
            found.append(series)
    return found


def _values(series: _Series) -> list[Modelled]:
    rows = sorted(series.rows, key=lambda row: int(row.point["ranks"]))
    base = _seconds(series, rows[0])
    found = []
    for row in rows:
        point = {**row.point, "oversubscribed": "no"}
        seconds = _seconds(series, row)
        found.append(Modelled(point, "total_s", seconds))
        if any("efficiency" in record for record in _records(row)):
            found.append(Modelled(point, "efficiency", 100 * base / seconds))
    return found


def _crowded(row: Row) -> bool:
    return row.point["oversubscribed"] == "yes"


def _records(row: Row) -> list[dict[str, Any]]:
    return [one for one in row.records if all(one.get(name) for name in _NEEDED)]


def _middle(row: Row, name: str) -> float:
    return spread([float(one[name]) for one in _records(row)]).median


def _seconds(series: _Series, row: Row, n_cores: int | None = None) -> float:
    """Seconds of a row by the model, by default with a core for each rank."""
    return predict(series.machine, replace(_job(row), n_cores=n_cores)).elapsed_s


def _job(row: Row) -> Job:
    ranks, nbytes = int(row.point["ranks"]), int(_records(row)[0]["selected_nbytes"])
    # Each rank has something to encode; how many chunks that is makes no difference.
    return Job(nbytes=nbytes, chunk_nbytes=max(1, nbytes // ranks), n_ranks=ranks, verify=False)


def _run(row: Row) -> Run:
    total, writing = _middle(row, "total_s"), _middle(row, "elapsed_s")
    return Run(_job(row), {"encode": writing, OTHER: max(0.0, total - writing)}, total)
