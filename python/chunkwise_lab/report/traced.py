"""What does a report say of a trace: what was read when, and how often each chunk?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chunkwise.grammar import format_shape, format_size
from chunkwise.names import printable
from chunkwise.running import telling
from chunkwise.running.trace import Run, Trace, TracedDataset, in_words, of_run, totals
from chunkwise.words import counted, format_seconds
from chunkwise_lab.report import places
from chunkwise_lab.report.model import Axis, Block, Chart, Point, Section, Series, Table

# Of so many datasets each is shown; the others are counted.
_MOST_SHOWN: Final = 12
# Marks in a chart of time, those of one walk, and places along a chart of chunks: beyond, marks
# cover each other.
_MOST_MARKS: Final = 1500
_MOST_OF_WALK: Final = 60
_MOST_BINS: Final = 80
# Rows of a table of walks.
_MOST_ROWS: Final = 50
# Processes with a colour of their own.
_MOST_PROCESSES: Final = 6
# How often a chunk was read, from each of these to below the next.
_OFTEN: Final = (0, 1, 2, 11, 101, 1001)


def section(values: Mapping[str, Any], path: str, id_: str) -> Section:
    """Make the section of one trace."""
    trace = Trace.of(values)
    found = values["found"]
    _, nbytes, seconds = totals(trace.datasets)
    shown = trace.datasets[:_MOST_SHOWN]
    programs = dict.fromkeys(PurePath(program).name for program in trace.processes.values())
    facts = [
        ("Program", f"{', '.join(programs)}; {_processes(len(trace.processes))}"),
    ]
    if trace.datasets:
        amount = f"{format_size(nbytes)} in {format_seconds(seconds)}"
        facts.append(("Calls", f"{telling.calls(trace.datasets)}, {amount}"))
    left = trace.datasets[_MOST_SHOWN:]
    if left:
        facts.append(("Not shown", f"{counted(len(left), 'dataset')} that took less time"))
    about = str(found["summary"]) if found else ""
    if not trace.datasets:
        about = "The program read and wrote no HDF5 dataset that could be seen."
    remedy = str(found["line"]) if found else ""
    if not remedy and trace.datasets:
        remedy = telling.advice(trace.datasets[0]) or ""
    return Section(
        id_,
        f"{next(iter(programs), 'a program')}: {PurePath(path).name}",
        "trace",
        printable(path),
        about,
        tuple(facts),
        (),
        tuple(_block(one, seconds, f"{id_}-{n}") for n, one in enumerate(shown, 1)),
        remedy,
    )


def _processes(count: int) -> str:
    return counted(count, "process", "processes")


def _block(one: TracedDataset, seconds: float, id_: str) -> Block:
    cells = places.cells(one)
    stored = f"chunks of {format_shape(one.chunk)}" if one.chunk else "without chunks"
    shape = format_shape(one.shape) if one.shape else "one value"
    texts = [
        ("How much", f"{telling.amount(one, seconds)}."),
        (telling.DONE[one.operation], f"{in_words(one)}."),
        ("Stored", f"{shape}, {stored}; {counted(one.item_nbytes, 'byte')} an element."),
    ]
    decoding = " ".join(telling.decoding(one))
    if decoding:
        texts.append(("Decoded", decoding))
    pictures: list[tuple[Chart | None, Table]] = []
    if one.runs:
        over_time = _over_time(one, cells, f"{id_}-time")
        counts = places.times_read(one, cells).reshape(-1)
        over_chunks = _over_chunks(one, counts, cells, f"{id_}-chunks")
        pictures = [
            (over_time, _walks(one)),
            (over_chunks, _often(one, counts, cells)),
        ]
    title = f"{PurePath(one.file).name}: {one.dataset}"
    if one.operation == "write":
        title += ", written"
    return Block(id_, title, one.file, tuple(texts), pictures=tuple(pictures))


def _unit(cells: places.Cells, *, plural: bool = True) -> str:
    """Name what a cell is."""
    noun = {0: "row", 1: "chunk"}.get(cells.chunks)
    if noun:
        return f"{noun}s" if plural else noun
    group = "groups" if plural else "group"
    return f"{group} of {cells.chunks:,} chunks"


# --- over time -----------------------------------------------------------------------------


def _over_time(one: TracedDataset, cells: places.Cells, id_: str) -> Chart:
    """Draw where each read began, and how far it reached."""
    # The longest are drawn; of these, the more reads of one, the more of its marks.
    runs = sorted(one.runs, key=lambda run: -run.seconds)[:_MOST_MARKS]
    each = min(_MOST_OF_WALK, max(2, _MOST_MARKS // len(runs)))
    by_process: dict[int, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.began):
        by_process.setdefault(run.process, []).append(run)
    several = len(by_process) > 1
    series = []
    for style, (process, members) in enumerate(list(by_process.items())[:_MOST_PROCESSES]):
        name = f"process {process}" if several else f"{one.operation}s"
        drawn = tuple(tuple(_marks(one, run, each, cells)) for run in members)
        series.append(Series(name, style, False, drawn))
    unit = _unit(cells, plural=False)
    notes = [
        f"Each mark is a {one.operation}, at the first {unit} that it touches; its bar ends at "
        "the last.",
        f"A line joins the {one.operation}s of one walk. Between its ends, times are "
        "interpolated.",
    ]
    if len(runs) < len(one.runs):
        notes.append(f"Of {len(one.runs):,} walks the {len(runs):,} that took longest are drawn.")
    if len(by_process) > _MOST_PROCESSES:
        notes.append(f"Of {len(by_process):,} processes the first {_MOST_PROCESSES} are drawn.")
    if one.unlisted:
        notes.append(f"{counted(one.unlisted, one.operation)} of other selections are not drawn.")
    since, until = min(run.began for run in runs), max(run.ended for run in runs)
    return Chart(
        id_,
        f"{one.operation.capitalize()}s over time",
        "lines",
        Axis("seconds since the program's first call"),
        Axis(f"which of the {_unit(cells)}, in row-major order"),
        tuple(series),
        f"{counted(len(runs), 'walk')} over {format_seconds(until - since)}; the table has them.",
        tuple(notes),
    )


def _marks(one: TracedDataset, run: Run, each: int, cells: places.Cells) -> Iterator[Point]:
    moments = list(places.moments(run, each))
    steps = np.array([step for _, step in moments], dtype=np.int64)
    first, last = places.touched(run, steps, cells)
    lows, highs = places.number(first, cells.count), places.number(last, cells.count)
    for (at, step), low, high in zip(moments, lows.tolist(), highs.tolist(), strict=True):
        details = (
            f"{one.operation} {step + 1:,} of {run.times:,}, {of_run(run, one.shape)}",
            f"after {format_seconds(at)}",
            f"{_unit(cells)} {low:,} to {high:,}",
            f"the walk took {format_seconds(run.seconds)}",
        )
        yield Point(at, low, low, high, details)


def _walks(one: TracedDataset) -> Table:
    runs = sorted(one.runs, key=lambda run: -run.seconds)
    rows = tuple(
        (
            of_run(run, one.shape),
            f"{run.times:,}",
            format_seconds(run.began),
            format_seconds(run.ended - run.began),
            format_seconds(run.seconds),
        )
        for run in runs[:_MOST_ROWS]
    )
    columns = ("walk", f"{one.operation}s", "begun after", "lasted", "within HDF5's calls")
    title = "Walks, the longest first"
    if len(runs) > _MOST_ROWS:
        title += f" ({_MOST_ROWS} of {len(runs):,})"
    return Table(title, columns, (False, True, True, True, True), rows)


# --- over chunks ---------------------------------------------------------------------------


def _over_chunks(
    one: TracedDataset, counts: npt.NDArray[np.float64], cells: places.Cells, id_: str
) -> Chart:
    """Draw how many calls touched each cell."""
    what = one.operation
    ends = np.unique(np.linspace(0, len(counts), _MOST_BINS + 1).round().astype(np.int64))
    points = []
    for first, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        part = counts[first:end]
        middle = float(part.mean())
        which = f"{_unit(cells)} {first:,} to {end - 1:,}"
        touched = f"{_times(middle, what)} on average"
        if end - first == 1:
            which, touched = f"{_unit(cells, plural=False)} {first:,}", _times(middle, what)
        details = (which, f"touched by {touched}")
        at = (first + end - 1) / 2
        points.append(Point(at, middle, float(part.min()), float(part.max()), details))
    notes = []
    if len(points) < len(counts):
        notes.append(
            f"Each mark is the mean of some {-(-len(counts) // len(points)):,} {_unit(cells)}; "
            "bars are the lowest and the highest."
        )
    middles = [point.value for point in points]
    most, least = max(middles), min(middles)
    return Chart(
        id_,
        f"{what.capitalize()}s over its {'chunks' if cells.chunks else 'rows'}",
        "lines",
        Axis(f"which of the {_unit(cells)}, in row-major order"),
        Axis(f"{what}s that touched it", log=least > 0 and most > 100 * least),
        (Series(f"{what}s", 0, False, (tuple(points),)),),
        f"{len(counts):,} {_unit(cells)}, touched by {_times(least, what)} to "
        f"{_times(most, what)}; the table counts them.",
        tuple(notes),
    )


def _times(calls: float, what: str) -> str:
    return f"{calls:,.3g} {what}s" if calls < 1000 else f"{calls:,.0f} {what}s"


def _often(one: TracedDataset, counts: npt.NDArray[np.float64], cells: places.Cells) -> Table:
    """Count the cells by how often they were read or written."""
    rows = []
    for least, end in zip(_OFTEN, (*_OFTEN[1:], math.inf), strict=True):
        # Of many calls some stand for all, so that counts may be fractions.
        number = int(((counts.round() >= least) & (counts.round() < end)).sum())
        if number:
            rows.append((_said(least, end), f"{number:,}", f"{number / len(counts):.0%}"))
    done = telling.DONE[one.operation].lower()
    title = f"How often its {'chunks' if cells.chunks else 'rows'} were {done}"
    return Table(
        title, (f"{one.operation}s", _unit(cells), "of all"), (False, True, True), tuple(rows)
    )


def _said(least: int, end: float) -> str:
    if least == 0:
        return "never"
    if end == least + 1:
        return "once" if least == 1 else f"{least} times"
    return f"{least:,} times and more" if end == math.inf else f"{least:,} to {end - 1:,.0f} times"
