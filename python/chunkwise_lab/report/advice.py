"""What does a report say about an answer of advise: the choices, before and after?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from chunkwise.grammar import format_shape, format_size
from chunkwise.names import printable
from chunkwise.words import format_seconds, format_speed
from chunkwise_lab.report.model import Axis, Block, Chart, Point, Section, Series, Table, Tick

FORMAT: Final = "chunkwise-advise"
# If figures differ by more, a linear axis shows only the largest.
_FAR_APART: Final = 20.0
_CHOICES: Final = "The choices"
_COLUMNS: Final = ("layout", "reading", "writing", "size", "")
# Writing that differs by less is no choice.
_WORTH_IT: Final = 1.1


def section(values: Mapping[str, Any], path: str, id_: str) -> Section:
    """Make the section of one answer."""
    name = values["dataset"]
    title = f"{PurePath(values['file']).name}: {name}" if values["file"] else "A new dataset"
    blocks = [_front(values, f"{id_}-front"), _patterns(values, f"{id_}-patterns")]
    return Section(
        id_,
        title,
        "advise",
        printable(path),
        str(values["reason"]),
        _facts(values),
        (),
        tuple(block for block in blocks if block.pictures),
        "" if values["leave"] else str(next((f["text"] for f in values["fixes"]), "")),
    )


def _facts(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    present = values["present"]
    stored = "not there yet" if present is None else _layout(present)
    nbytes = values["present_nbytes"]
    if nbytes is not None:
        stored += f", {format_size(nbytes)}"
    proof = "measured" if values["verified"] else "the model's word, not measured"
    facts = [
        ("Dataset", f"{format_shape(values['shape'])}, {stored}"),
        ("Advised", f"{_layout(values['best'])}, {format_size(values['best_nbytes'])}"),
        ("For", f"{values['reader']}; objective: {values['objective']}"),
        ("Answer", f"{proof}; {values['looked_at']:,} layouts compared"),
    ]
    if values["part"]:
        facts.append(("Of it", str(values["part"])))
    return (*facts, *(("Note", str(note)) for note in values["notes"]))


def _layout(values: Mapping[str, Any]) -> str:
    chunks = values["chunks"]
    where = "contiguous" if chunks is None else format_shape(chunks)
    return f"{where} {'no filter' if values['filters'] == 'none' else values['filters']}"


# --- the front -----------------------------------------------------------------------------


def _front(values: Mapping[str, Any], id_: str) -> Block:
    """Draw reading against size, and against writing if that differs."""
    front = sorted(values["front"], key=lambda one: float(one["read_s"]))
    if not front:
        return Block(id_, _CHOICES)
    pictures: list[tuple[Chart | None, Table]] = [
        (_against(values, front, "nbytes", f"{id_}-size"), _table(values, front, "reading"))
    ]
    writing = [float(one["write_s"]) for one in front]
    if min(writing) > 0 and max(writing) > _WORTH_IT * min(writing):
        by_writing = sorted(front, key=lambda one: float(one["write_s"]))
        chart = _against(values, front, "write_s", f"{id_}-write")
        pictures.append((chart, _table(values, by_writing, "writing")))
    text = (
        "Layouts to which no other is better in reading, writing and size at once. Hollow marks "
        "are the model's; the others were measured. Left and low is better."
    )
    return Block(id_, _CHOICES, texts=(("How to read it", text),), pictures=tuple(pictures))


def _table(values: Mapping[str, Any], front: Sequence[Mapping[str, Any]], by: str) -> Table:
    rows = tuple(_row(one, values) for one in front)
    title = f"The choices, by the time of {by}"
    return Table(title, _COLUMNS, (False, True, True, True, False), rows)


def _row(one: Mapping[str, Any], values: Mapping[str, Any]) -> tuple[str, ...]:
    mark = "" if one["measured"] else "~ "
    words = []
    if one["layout"] == values["best"]:
        words.append("advised")
    if one["layout"] == values["present"]:
        words.append("as it is")
    return (
        _layout(one["layout"]),
        mark + format_seconds(one["read_s"]),
        f"~ {format_seconds(one['write_s'])}",
        format_size(one["nbytes"]),
        ", ".join(words),
    )


def _against(
    values: Mapping[str, Any], front: Sequence[Mapping[str, Any]], name: str, id_: str
) -> Chart:
    """Draw the front: reading along, something else up."""
    said = {"nbytes": "size in the file, MiB", "write_s": "writing all of it, seconds"}[name]
    groups: dict[str, list[Point]] = {"choices": [], "advised": [], "as it is": []}
    present = _present(values)
    if present is not None and all(one["layout"] != values["present"] for one in front):
        front = [*front, present]
    for one in front:
        group = "choices"
        if one["layout"] == values["best"] and one is not present:
            group = "advised"
        elif one["layout"] == values["present"]:
            group = "as it is"
        if one[name] is not None:
            groups[group].append(_point(one, name))
    series = [
        Series(text, style, False, (tuple(points),))
        for style, (text, points) in enumerate(groups.items())
    ]
    shown = tuple(one for one in series if one.points)
    points = [point for one in shown for point in one.points]
    heights = [point.value for point in points]
    return Chart(
        id_,
        f"Reading against {said.partition(',')[0]}",
        "lines",
        Axis("reading all patterns, each as often as its weight says, seconds", log=True),
        Axis(said, log=min(heights) > 0 and max(heights) > _FAR_APART * min(heights)),
        shown,
        f"{len(points)} layouts by the time of reading and by {said}; the table has them all.",
    )


def _point(one: Mapping[str, Any], name: str) -> Point:
    value = one["nbytes"] / (1 << 20) if name == "nbytes" else one["write_s"]
    writing_s = one["write_s"]
    details = (
        _layout(one["layout"]),
        f"reading: {format_seconds(one['read_s'])}",
        *(() if writing_s is None else (f"writing: {format_seconds(writing_s)}, by the model",)),
        f"size: {format_size(one['nbytes'])}",
        "reading was measured" if one["measured"] else "by the model",
    )
    return Point(max(one["read_s"], 1e-9), value, value, value, details, not one["measured"])


def _present(values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what is known of the present layout, as of a choice; None without its place."""
    reads = [one for one in values["patterns"] if not one["writes"]]
    times = [_seconds(one, "present") for one in reads]
    if values["present"] is None or None in times or values["present_nbytes"] is None:
        return None
    read_s = sum(float(one["weight"]) * (t or 0.0) for one, t in zip(reads, times, strict=True))
    measured = all(one["present"] for one in reads)
    found = {"layout": values["present"], "read_s": read_s, "write_s": None}
    return {**found, "nbytes": values["present_nbytes"], "measured": measured} if read_s else None


# --- before and after ----------------------------------------------------------------------


def _patterns(values: Mapping[str, Any], id_: str) -> Block:
    patterns = values["patterns"]
    # Each in the colour that it has among the choices.
    names = {
        "present": ("as it is", 2),
        "best": ("as advised", 1),
        "ours": ("by chunkwise, as it is", 3),
    }
    series = []
    for place, (key, (name, style)) in enumerate(names.items()):
        points = [
            found
            for row, one in enumerate(patterns)
            if (found := _timed(one, key, row + (place - 1) * 0.22, name)) is not None
        ]
        if points:
            series.append(Series(name, style, False, (tuple(points),)))
    rows = tuple(_before_and_after(one) for one in patterns)
    columns = ("pattern", "as it is", "as advised", "speed", "by chunkwise, as it is")
    table = Table("Before and after", columns, (False, True, True, True, True), rows)
    known = [point.value for one in series for point in one.points if point.value > 0]
    if not known:
        return Block(id_, "Before and after")
    chart = Chart(
        f"{id_}-times",
        "What each pattern takes",
        "dots",
        Axis("", ticks=tuple(Tick(float(n), _named(one)) for n, one in enumerate(patterns))),
        Axis("seconds for the whole pattern", log=max(known) > _FAR_APART * min(known)),
        tuple(series),
        "Seconds of each pattern before and after; the table has them.",
    )
    return Block(id_, "Before and after", pictures=((chart, table),))


def _named(one: Mapping[str, Any]) -> str:
    return f"{printable(str(one['name']))}{', written' if one['writes'] else ''}"


def _seconds(one: Mapping[str, Any], key: str) -> float | None:
    """Return what a pattern takes: as measured, else by the model."""
    found = one[key]
    if found is not None:
        return float(found["median"])
    model = one.get(f"{key}_model_s")
    return None if model is None else float(model)


def _timed(one: Mapping[str, Any], key: str, at: float, name: str) -> Point | None:
    seconds, found = _seconds(one, key), one[key]
    if seconds is None:
        return None
    low, high = (found["lowest"], found["highest"]) if found else (seconds, seconds)
    estimated = found is None or bool(found["estimated"])
    how = "by the model" if found is None else f"{found['repeats']} times"
    details = (f"{_named(one)}, {name}: {format_seconds(seconds)}", how)
    return Point(at, seconds, low, high, details, estimated)


def _before_and_after(one: Mapping[str, Any]) -> tuple[str, ...]:
    def said(key: str) -> str:
        seconds = _seconds(one, key)
        if seconds is None:
            return ""
        estimated = one[key] is None or one[key]["estimated"]
        return ("~ " if estimated else "") + format_seconds(seconds)

    gain = one.get("gain")
    speed = "" if gain is None else format_speed(gain)
    return _named(one), said("present"), said("best"), speed, said("ours")
