"""How long would the same take with the file on other storage?

A probe.  Each trial is measured with the file in memory.  The time that storage of a stated
bandwidth and latency would need for the bytes and requests is added: nothing overlaps, as in a
program that reads, decodes, and reads on.  For a library that does both at once this is too long.
The same figures give the bandwidth below which a filter pays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from chunkwise.errors import UsageError
from chunkwise.measure.results import Cell

if TYPE_CHECKING:
    from chunkwise_lab.studies.context import Context

# What a filter is compared with.
_NONE: Final = "none"
# For a filter that takes no time and saves bytes: no storage is faster.
_MOST_MB_PER_S: Final = 1e6


def measure(context: Context) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Give a point for each combination of the run's space on each kind of storage.

    The study's file says ``places``: tables with ``name``, ``mb_per_s`` (10^6 bytes) and
    ``latency_ms``.  Points have ``place`` and ``bandwidth``; records ``total_s``, of it
    ``storage_s``, ``requests`` and ``moved_nbytes``.  The place ``measured`` has the seconds from
    memory alone.  Where the space varies the filter, each filter has one point more with
    ``pays_below``: in MB/s, the bandwidth below which the whole run takes less time with it than
    without any.
    """
    places = [_place(one) for one in context.settings.get("places", ())]
    for path, dataset, labels in context.data.values():
        measured = [(cell, [_known(one.to_record(), cell) for one in cell.measurements])
                    for cell in context.measured(path, dataset, touch=True)]  # fmt: skip
        for cell, records in measured:
            for name, mb_per_s, latency_s in (("measured", math.inf, 0.0), *places):
                text = f"{mb_per_s:g}" if mb_per_s < math.inf else "-"
                point = {**labels, **cell.point, "place": name, "bandwidth": text}
                yield point, [_moved(one, mb_per_s, latency_s) for one in records]
        yield from _paying(labels, measured)


def _place(values: Mapping[str, Any]) -> tuple[str, float, float]:
    try:
        name, mb_per_s = str(values["name"]), float(values["mb_per_s"])
        latency_s = float(values.get("latency_ms", 0)) / 1e3
    except (KeyError, TypeError, ValueError) as wrong:
        raise UsageError(f"places: a place has a name and mb_per_s: {wrong}") from None
    if not (mb_per_s > 0 and latency_s >= 0):
        raise UsageError(f"places, {name}: give mb_per_s above 0, and latency_ms from 0")
    return name, mb_per_s, latency_s


def _known(record: Mapping[str, Any], cell: Cell) -> dict[str, Any]:
    """Return what a trial took, and what it moves."""
    kept = ("status", "error", "repeat", "hdf5", "extrapolated")
    found = {name: record[name] for name in kept if record.get(name) is not None}
    if record["status"] != "ok":
        return found
    chunk = record.get("chunks")
    if record["operation"] != "read":
        requests = record.get("time_chunk_loads") or record["operations"]
        moved = record.get("file_nbytes") or 0
    else:
        requests = record.get("time_chunk_loads") or _touches(cell, record["shape"], chunk)
        moved = record["selected_nbytes"]
    if chunk and record["operation"] == "read":
        # As much of each chunk as is stored of all.
        raw_nbytes = math.prod(record["shape"]) * record["itemsize"]
        share = (record.get("stored_nbytes") or raw_nbytes) / raw_nbytes
        moved = requests * (math.prod(chunk) * record["itemsize"] * share)
    return {**found, "memory_s": record["total_s"], "requests": requests, "moved": moved}


def _touches(cell: Cell, shape: Sequence[int], chunks: Sequence[int] | None) -> int:
    """Count the chunks that each operation goes through, one after the other."""
    walk = cell.access.walk(shape)
    if chunks is None:
        return int(walk.operations)
    count = 0
    for number in range(walk.operations):
        start, _, _, block = walk[number]
        count += math.prod(
            (first + length - 1) // chunk - first // chunk + 1
            for first, length, chunk in zip(start, block, chunks, strict=True)
        )
    return count


def _moved(known: Mapping[str, Any], mb_per_s: float, latency_s: float) -> dict[str, Any]:
    """Add what storage takes."""
    kept = {name: value for name, value in known.items() if name not in ("memory_s", "moved")}
    if "memory_s" not in known:
        return kept
    storage_s = known["moved"] / (mb_per_s * 1e6) + known["requests"] * latency_s
    return {
        **kept,
        "total_s": known["memory_s"] + storage_s,
        "storage_s": storage_s,
        "moved_nbytes": known["moved"],
    }


def _paying(
    labels: Mapping[str, str], measured: Sequence[tuple[Cell, list[dict[str, Any]]]]
) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Give each filter the bandwidth below which it pays, repeat by repeat."""
    plain = {
        _others(cell): records for cell, records in measured if cell.point.get("filter") == _NONE
    }
    for cell, records in measured:
        beside = plain.get(_others(cell), ())
        if cell.point.get("filter") == _NONE:
            continue
        pairs = [
            (one, other)
            for one, other in zip(records, beside, strict=False)
            if "memory_s" in one and "memory_s" in other
        ]
        if pairs:
            point = {**labels, **cell.point, "place": "pays below", "bandwidth": "-"}
            yield point, [{"status": "ok", "pays_below": _pays_below(*pair)} for pair in pairs]


def _others(cell: Cell) -> tuple[tuple[str, str], ...]:
    return tuple((name, text) for name, text in cell.point.items() if name != "filter")


def _pays_below(one: Mapping[str, Any], plain: Mapping[str, Any]) -> float:
    """Return MB/s: the bytes that a filter saves by the seconds that it costs."""
    saved, cost_s = plain["moved"] - one["moved"], one["memory_s"] - plain["memory_s"]
    if saved <= 0:
        return 0.0
    return min(_MOST_MB_PER_S, saved / 1e6 / cost_s) if cost_s > 0 else _MOST_MB_PER_S
