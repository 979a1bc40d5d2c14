"""How do the figures of a run stand side by side, in 80 columns?"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from chunkwise.cells import Hung
from chunkwise.grammar import format_shape, format_size
from chunkwise.measure.axes import AXES
from chunkwise.measure.results import Cell, Results, standard_of
from chunkwise.model import worth
from chunkwise.names import printable
from chunkwise.patterns.pattern import Access
from chunkwise.trials.breakdown import Breakdown
from chunkwise.trials.readers import WITH_LIBRARY_CACHE
from chunkwise.trials.trial import Operation
from chunkwise.words import counted, format_ratio, format_seconds, format_speed

WIDTH: Final = 80
# Characters of the longest bar, and the parts of one.
_BAR_WIDTH: Final = 26
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"


def say(console: Console, text: str, style: str = "", indent: str = "") -> None:
    """Print a text, broken at spaces, with `indent` before what follows its first line."""
    for part in textwrap.wrap(text, WIDTH, subsequent_indent=indent):
        console.print(part, highlight=False, markup=False, style=style)


def plain_table(gap: int = 1) -> Table:
    """Make a table without lines, its columns this many spaces apart."""
    return Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="bold")


def bar(share: float, width: int = _BAR_WIDTH) -> str:
    """Draw a bar of a share of the width, to an eighth of a character."""
    eighths = max(1, round(share * width * 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


# Axes that a table states in its heading, or in its first columns.
_ELSEWHERE = frozenset({"operation", "access", "format", "chunk", "filter", "reader"})


def reader_label(results: Results, reader: str) -> str:
    """Name a reader: the one from Python is simply chunkwise if it is the only one."""
    alone = all(cell.reader != "chunkwise" for cell in results.cells)
    return "chunkwise" if reader == "chunkwise-py" and alone else reader


def cell_label(results: Results, cell: Cell) -> str:
    """Name a trial by its reader, and by everything else that varies within a table."""
    return ", ".join([reader_label(results, cell.reader), *_settings(results, cell).values()])


def full_label(results: Results, cell: Cell) -> str:
    """Name a trial in a sentence, without a table that says of what a value is."""
    parts = [reader_label(results, cell.reader)]
    if {"format", "chunk", "filter"} & set(results.varied):
        parts.append(str(cell.variant))
    said = {"cache": "cache ", "libhdf5": "HDF5 "}
    found = _settings(results, cell)
    return ", ".join([*parts, *(said.get(axis, "") + text for axis, text in found.items())])


def _settings(results: Results, cell: Cell) -> dict[str, str]:
    """Write a trial's value of each axis that varies and makes a difference to it."""
    standard = standard_of(results, cell) if results.design == "each" else None
    found = {
        name: _setting(results, cell, name)
        for name in results.varied
        if name not in _ELSEWHERE
        and AXES[name].concerns(cell.point)
        and (standard is None or cell.point[name] != standard.point[name])
    }
    return {name: text for name, text in found.items() if text}


def _setting(results: Results, cell: Cell, axis: str) -> str:
    text = cell.point[axis]
    if axis == "libhdf5":
        # By its version, and also by its path if several have it.
        found = _in_force(cell, "hdf5")
        same = {c.point[axis] for c in results.cells if _in_force(c, "hdf5") == found}
        return text if found is None else found if len(same) == 1 else f"{found} ({text})"
    if axis == "zlib":
        found = _in_force(cell, "zlib")
        return AXES[axis].label(text) if found is None else f"zlib {found}"
    if axis == "page-cache":
        return "cold" if text == "cold" else ""
    if axis == "cache" and text == AXES[axis].default:
        return "default" if cell.reader in WITH_LIBRARY_CACHE else ""
    return AXES[axis].label(text)


def _in_force(cell: Cell, library: str) -> str | None:
    """Return the version of a library that a trial used."""
    found = (m.environment.get(library) for m in cell.succeeded)
    return next((str(text) for text in found if text), None)


def fallback_notes(results: Results) -> list[str]:
    """Say which figures of chunkwise are libhdf5's, and why."""
    found: dict[str, list[Cell]] = {}
    for cell in results.cells:
        if cell.fallback is not None:
            found.setdefault(cell.fallback, []).append(cell)
    notes = []
    for why, (first, *others) in found.items():
        what = f"'{first.access.name}' by {reader_label(results, first.reader)}"
        what += f" (and {len(others)} more)" if others else ""
        notes.append(f"done by libhdf5 in chunkwise's place: {what}: {printable(why)}")
    return notes


# What filters do, which of its figures counts how often they did it, and what else takes time.
_WORDS: Final[Mapping[Operation, tuple[str, str, Mapping[str, str]]]] = {
    "read": (
        "decode",
        "chunk_loads",
        {
            "index_s": "list the chunk index",
            "storage_s": "read storage",
            "scatter_s": "copy elements to their places",
        },
    ),
    "write": (
        "encode",
        "chunks_encoded",
        {
            "scatter_s": "put elements into chunks",
            "storage_s": "write storage",
            "index_s": "keep the chunk index",
        },
    ),
}


def sentence(found: Breakdown, operation: Operation) -> str:
    """Say where the time of reads, or of writes, went."""
    values: Mapping[str, Any] = {**found}
    verb, count, phases = _WORDS[operation]
    chunks, seconds = values[count], found["filters_s"]
    known = {name: s for name, s in seconds.items() if s is not None}
    shared = bool(found["other_threads_s"])
    parts = []
    if known:
        what = f"{verb} chunks" if chunks is None else f"{verb} {counted(chunks, 'chunk')}"
        names = next(iter(known))
        if len(known) > 1:
            names = ", ".join(f"{name} {format_seconds(s)}" for name, s in known.items())
        notes = "; ".join(filter(None, (names, _often(found, operation, chunks))))
        parts.append(f"{format_seconds(sum(known.values()))} {what} ({notes})")
    rest = {} if shared else {"other_s": "are the rest"}
    for key, text in {**phases, **rest}.items():
        if values[key]:
            parts.append(f"{format_seconds(values[key])} {text}")
    took = format_seconds(found["elapsed_s"])
    if not parts:
        why = "what filters take is not known"
        if operation == "read" and not seconds:
            why = "the data is not filtered, and storage, copying and calls are one measurement"
        return f"The parts of {took} are not known: {why}."
    if not shared:
        return f"Of {took}, {', '.join(parts)}."
    waiting_s, other_s = (format_seconds(found[key] or 0.0) for key in ("waiting_s", "other_s"))
    thread = "reading" if operation == "read" else "writing"
    return (
        f"In {took}, with all threads added up, {', '.join(parts)}; "
        f"the {thread} thread waited {waiting_s} for the others, and {other_s} are the rest."
    )


def _often(found: Breakdown, operation: Operation, times: int | None) -> str | None:
    """Say how often chunks passed the filters, and what the cache had to do with it."""
    distinct, loads = found["chunks_touched"], found["chunk_loads"]
    if not times or not distinct or times < distinct:
        return None
    if times == distinct:
        return "each of them once"
    which = f"each of {distinct:,} chunks" if distinct > 1 else "the same chunk"
    often = f"{which} {format_ratio(times / distinct)}"
    if operation == "write":
        return f"{often}: {loads:,} were loaded again" if loads else often
    touches = found["chunk_touches"]
    if touches is None:
        return often
    if touches == times:
        return f"{often}: the chunk cache missed every time"
    return f"{often}: the chunk cache missed {times:,} of {counted(touches, 'time')}"


# What a table's columns are, behind the pattern and its number of operations.
_READ = ("first", "mean", "all reads", "spread", "speed")
_WRITE = ("writes", "close", "sync", "in all", "spread", "speed")
# If the names of trials are longer, patterns have no column beside them.
LONGEST_LABEL = 18
_LONGEST_TITLE = 32
# The width of a further column.
_FURTHER_WIDTH = 9
# Less is what libraries and the interpreter differ by.
_NOTICED_NBYTES: Final = 16 << 20
# A smaller share of a file's size is a difference of metadata.
_NOTICED_SHARE: Final = 0.01

MEMORY: Final = "memory"
FILE: Final = "file"


def tables_of(results: Results, cells: Sequence[Cell]) -> Iterator[str | Table]:
    """Draw the trials of one operation on one way of storing the data."""
    groups: dict[Access, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.access, []).append(cell)
    longest = max(len(cell_label(results, cell)) for cell in cells)
    more = further(results, cells)
    if longest <= LONGEST_LABEL - _FURTHER_WIDTH * len(more):
        table = _empty(results, cells, more, patterns=True)
        for access, group in groups.items():
            _fill(table, results, group, access, more)
        yield table
        return
    for access, group in groups.items():
        total = next((c.total_operations for c in group if c.total_operations), None)
        count = "" if total is None else f"{total:,} "
        shape = "" if access.name == spelled(access) else f" of {spelled(access)}"
        yield f"{access.name}: {count}{cells[0].operation}s{shape}"
        table = _empty(results, cells, more, patterns=False)
        _fill(table, results, group, None, more)
        yield table


def _empty(
    results: Results, cells: Sequence[Cell], more: Sequence[str], *, patterns: bool
) -> Table:
    writes = cells[0].operation != "read"
    table = plain_table()
    # Only a long block shape or list of settings may fold.
    if patterns:
        table.add_column("pattern", overflow="fold")
        table.add_column("writes" if writes else "reads", justify="right", no_wrap=True)
    table.add_column(_title(results), no_wrap=patterns, overflow="fold")
    for title in (*(_WRITE if writes else _READ), *more):
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _fill(
    table: Table,
    results: Results,
    group: Sequence[Cell],
    access: Access | None,
    more: Sequence[str],
) -> None:
    """Add the trials of a pattern; with its name, if the table has a column for that."""
    figures = _read if group[0].operation == "read" else _written
    total = next((c.total_operations for c in group if c.total_operations), None)
    labels = [] if access is None else list(dict.fromkeys((access.name, spelled(access))))
    if len(group) == 1:
        labels = ["\n".join(labels)]
    for i, cell in enumerate(group):
        first: tuple[Hung | str, ...] = ()
        if access is not None:
            count = f"{total:,}" if total is not None and i == 0 else ""
            first = (Hung(labels[i] if i < len(labels) else ""), count)
        table.add_row(
            *first,
            Text(cell_label(results, cell)),
            *figures(results, cell),
            *(value(cell, column) for column in more),
            end_section=cell is group[-1],
        )


def _title(results: Results) -> str:
    """Head the column that names trials."""
    inside = [
        axis
        for axis in results.varied
        if axis not in ("operation", "access", "chunk", "filter", "reader", "page-cache")
    ]
    title = ", ".join(["reader", *inside])
    return title if len(title) <= _LONGEST_TITLE else "reader, settings"


def spelled(access: Access) -> str:
    """Say what is read, and in which order if not in C order."""
    if access.cells is not None:
        return "unions of cells"
    if access.slabs is not None:
        return counted(len(access.slabs), "selection")
    order = ""
    if access.order is not None:
        order = "@" + ",".join(map(str, access.order))
    elif access.seed is not None:
        order = "@random"
    return format_shape(access.block) + order


def _read(results: Results, cell: Cell) -> list[str]:
    if cell.problem is not None:
        return _without_figures(cell, len(_READ))
    first = cell.median(lambda m: m.first_s)
    each = cell.median(lambda m: m.mean_s)
    mark = "~" if cell.extrapolated else ""
    # One read that is the whole pattern has one time, which need not stand there thrice.
    one = cell.total_operations == 1
    return [
        "-" if one else _seconds(first),
        "-" if one else _seconds(each, mark),
        _seconds(cell.total_s, mark),
        *_compared(results, cell),
    ]


def _written(results: Results, cell: Cell) -> list[str]:
    if cell.problem is not None:
        return _without_figures(cell, len(_WRITE))
    mark = "~" if cell.extrapolated else ""
    return [
        _seconds(cell.median(lambda m: m.written_s), mark),
        _seconds(cell.median(lambda m: m.put_off_s), mark),
        _seconds(cell.median(lambda m: m.sync_s)),
        _seconds(cell.total_s, mark),
        *_compared(results, cell),
    ]


def _compared(results: Results, cell: Cell) -> list[str]:
    """Return the spread of a trial's repeats, and its speed."""
    total = cell.spread(lambda m: m.total_s)
    width = 0.0
    if total and total.median:
        width = (total.highest - total.lowest) / total.median
    speed = results.speed(cell)
    about = "~" if results.speed_is_estimated(cell) else ""
    return [
        f"{width:.0%}" if len(cell.succeeded) > 1 else "-",
        "-" if speed is None else about + format_speed(speed),
    ]


def _without_figures(cell: Cell, columns: int) -> list[str]:
    problem = cell.problem
    late = problem is not None and problem.status == "timeout"
    said = f">{problem.trial.timeout_s:.0f} s" if problem and late else "failed"
    return [said, *["-"] * (columns - 1)]


def _seconds(seconds: float | None, mark: str = "") -> str:
    return "-" if seconds is None else mark + format_seconds(seconds)


# --- columns besides the times ----------------------------------------------------------


def further(results: Results, cells: Sequence[Cell]) -> tuple[str, ...]:
    """Name the columns that a table of these trials has besides the times."""
    found = []
    patterns = {cell.pattern for cell in cells}
    if any(_memory_differs(c) for c in results.patterns() if c and c[0].pattern in patterns):
        found.append(MEMORY)
    if cells[0].operation == "write" and _files_differ(cells):
        found.append(FILE)
    return tuple(found)


def value(cell: Cell, column: str) -> str:
    """Write a trial's value in such a column."""
    if column == MEMORY:
        peak = cell.median(lambda m: m.peak_rss_nbytes)
        # A process has tens of MiB at the least, and a table should fit 80 columns.
        return "-" if peak is None else f"{round(peak / 2**20):,} MiB"
    # Not all of the file was written, if that was estimated.
    nbytes = _file_nbytes(cell)
    return "-" if nbytes is None else format_size(int(nbytes))


def notes(columns: Sequence[str]) -> list[str]:
    """Say what these columns are."""
    found = []
    if MEMORY in columns:
        found.append("memory: the most that the whole process had, Python and libraries included.")
    if FILE in columns:
        found.append("file: its size once it was closed.")
    return found


def _memory_differs(cells: Sequence[Cell]) -> bool:
    known = [n for cell in cells if (n := cell.median(lambda m: m.peak_rss_nbytes)) is not None]
    if len(known) < 2:
        return False
    least, most = min(known), max(known)
    return most - least >= _NOTICED_NBYTES and most >= worth.MEMORY * least


def _files_differ(cells: Sequence[Cell]) -> bool:
    known = [nbytes for cell in cells if (nbytes := _file_nbytes(cell)) is not None]
    return len(known) > 1 and max(known) > (1 + _NOTICED_SHARE) * min(known)


def _file_nbytes(cell: Cell) -> float | None:
    return None if cell.extrapolated else cell.median(lambda m: m.file_nbytes)
