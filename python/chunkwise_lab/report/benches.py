"""What does a report say about a run of bench: its times, pattern by pattern, and its advice?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from chunkwise.grammar import format_shape, format_size
from chunkwise.measure.axes import AXES
from chunkwise.measure.saved import AS_STORED, Sample, Saved
from chunkwise.measure.verdict import spread
from chunkwise.names import printable
from chunkwise.words import counted, format_seconds, format_speed
from chunkwise_lab.report.charts import draw
from chunkwise_lab.report.facts import FALLBACK, fallbacks, machine, problems, shortened
from chunkwise_lab.report.labels import phrase
from chunkwise_lab.report.model import Block, Section, Table
from chunkwise_lab.report.scales import number
from chunkwise_lab.report.values import Drawing
from chunkwise_lab.studies.results import Row
from chunkwise_lab.studies.study import Plot
from chunkwise_lab.studies.wording import differing

# If times differ by more, a linear axis shows only the longest.
_FAR_APART: Final = 20.0
_DONE: Final = {"write": "written", "append": "appended", "update": "updated in place"}
_DOING: Final = {
    "read": "Reading",
    "write": "Writing",
    "append": "Appending",
    "update": "Updating",
}
# An axis of fewer numbers is one of words.
_LEAST_NUMBERS: Final = 3
_FIELDS: Final = {axis.field: axis for axis in AXES.values() if axis.field is not None}


def section(saved: Saved, document: Mapping[str, Any], id_: str) -> Section:
    """Make the section of one run."""
    rows = [_row(sample) for sample in saved.samples.values()]
    patterns: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        key = row.point["operation"], row.point["access"]
        patterns.setdefault(key, []).append(row)
    blocks = [
        _block(operation, access, members, f"{id_}-{n}")
        for n, ((operation, access), members) in enumerate(patterns.items(), 1)
    ]
    data = saved.data
    return Section(
        id_,
        f"{PurePath(saved.path).name}: {data['dataset']}",
        "bench",
        printable(saved.path),
        _about(document, patterns),
        (*_data(data, document), *machine({k: [v] for k, v in saved.environment.items()})),
        (),
        tuple(blocks),
        str((document.get("advice") or {}).get("fix") or ""),
        wrong=tuple(shortened(document.get("mismatches", ()))),
    )


def _data(data: Mapping[str, Any], document: Mapping[str, Any]) -> list[tuple[str, str]]:
    parts = []
    if data["shape"]:
        parts.append(format_shape(data["shape"]))
    if data["dtype"]:
        parts.append(str(data["dtype"]))
    parts.append(f"chunks {format_shape(data['chunks'])}" if data["chunks"] else "not chunked")
    if data["filters"]:
        parts.append("no filter" if data["filters"] == "none" else str(data["filters"]))
    if data["stored_nbytes"]:
        parts.append(f"{format_size(data['stored_nbytes'])} stored")
    found = [("Dataset", ", ".join(parts))]
    equal = document.get("bytes_equal")
    if equal is not None:
        text = "equal in all runs that can be compared" if equal else "differ: see below"
        found.append(("Bytes", text))
    return found


def _about(document: Mapping[str, Any], patterns: Mapping[tuple[str, str], Sequence[Row]]) -> str:
    """Give the answer of the run; if it has none, say what is fastest."""
    advice = document.get("advice")
    if not advice:
        found = (_fastest(access, rows) for (_, access), rows in patterns.items())
        return " ".join(filter(None, found))
    effect = str(advice.get("effect") or "")
    sentences = (str(advice["why"]), f"{effect[:1].upper()}{effect[1:]}." if effect else "")
    return " ".join(sentence for sentence in sentences if sentence)


def _fastest(access: str, rows: Sequence[Row]) -> str:
    """Say what the fastest and the slowest way of one pattern take."""
    names = differing([row.point for row in rows])
    done = [row for row in rows if row.values("total_s")]
    if not done:
        return f"No trial of '{printable(access)}' gave figures."
    ordered = sorted(done, key=_median)
    times = [format_seconds(_median(row)) for row in (ordered[0], ordered[-1])]
    said = [phrase(row.point, names, {}) for row in (ordered[0], ordered[-1])]
    if len(done) == 1:
        return f"'{printable(access)}' takes {times[0]}."
    return f"'{printable(access)}' takes {times[0]} with {said[0]}, and {times[1]} with {said[1]}."


def _median(row: Row) -> float:
    return spread(row.values("total_s")).median


def _row(sample: Sample) -> Row:
    """Write a sample as a study's row: values of axes as text, a record a repeat."""
    point = {"operation": "read", "access": sample.access}
    for name, value in sample.parameters.items():
        axis = _FIELDS.get(name)
        if axis is not None:
            point[axis.name] = _text(value)
    chunks, filters = sample.parameters["chunks"], sample.parameters["filters"]
    stored = chunks == AS_STORED
    point["chunk"] = "stored" if stored else format_shape(chunks) if chunks else "contiguous"
    point["filter"] = "stored" if stored else str(filters)
    common = {"extrapolated": sample.extrapolated, "fallback": sample.fallback}
    records = [{"status": "ok", "total_s": seconds, **common} for seconds in sample.total_s]
    if not records:
        records = [{"status": sample.status, "error": sample.error}]
    return Row(point, tuple(records))


def _text(value: Any) -> str:
    if value is None:
        return "default"
    if isinstance(value, bool):
        return "native" if value else "stored"
    if isinstance(value, int) and value >= 1024 and value % 1024 == 0:
        return format_size(value, exact=True)
    return ":".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _block(operation: str, access: str, rows: Sequence[Row], id_: str) -> Block:
    plot = _plot(operation, access, rows)
    drawn = draw(id_, plot, Drawing(rows, (), "median", {}, ends=True))
    pictures = () if drawn is None else ((drawn[0], _table(rows, plot.title)),)
    title = printable(access)
    if operation != "read":
        title += f", {_DONE[operation]}"
    left = " ".join(fallbacks(rows, {}))
    texts = ((FALLBACK, left),) if left else ()
    return Block(id_, title, texts=texts, missing=tuple(problems(rows, {})), pictures=pictures)


def _plot(operation: str, access: str, rows: Sequence[Row]) -> Plot:
    """Choose what is drawn along: the axis with most numbers, else who does it."""
    names = differing([row.point for row in rows])
    sizes = {name: len(_numbers(name, rows)) for name in names}
    x = max(sizes, key=lambda name: sizes[name], default="reader")
    along_numbers = sizes.get(x, 0) >= _LEAST_NUMBERS
    if not along_numbers:
        x = "reader" if "reader" in names or not names else names[0]
    times = [v for row in rows for v in row.values("total_s") if v > 0]
    log = ("y",) if times and max(times) > _FAR_APART * min(times) else ()
    if along_numbers and all(n > 0 for n in _numbers(x, rows)):
        log = ("x", *log)
    verb = _DOING[operation]
    title = f"{verb} '{printable(access)}'"
    by = tuple(name for name in names if name != x)
    return Plot(title, x, "total_s", by, log=log, kind="line" if along_numbers else "bar")


def _numbers(name: str, rows: Sequence[Row]) -> set[float]:
    found = (number(row.point[name]) for row in rows if name in row.point)
    return {value for value in found if value is not None}


def _table(rows: Sequence[Row], title: str) -> Table:
    names = differing([row.point for row in rows]) or ["reader"]
    base = next((_median(row) for row in rows if row.values("total_s")), 0.0)
    columns = ("by", "median", "lowest to highest", "of", "speed")
    lines = tuple((phrase(row.point, names, {}), *_cells(row, base)) for row in rows)
    return Table(title, columns, (False, True, True, True, True), lines)


def _cells(row: Row, base: float) -> tuple[str, ...]:
    times = row.values("total_s")
    if not times:
        return row.problem or "", "", "", ""
    middle = _median(row)
    estimated = any(record.get("extrapolated") for record in row.records)
    return (
        ("~ " if estimated else "") + format_seconds(middle),
        f"{format_seconds(min(times))} to {format_seconds(max(times))}",
        counted(len(times), "repeat"),
        format_speed(base / middle),
    )
