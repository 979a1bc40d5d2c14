"""How do the figures of a run stand side by side, in 80 columns?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from chunkwise.cells import Hung
from chunkwise.grammar import format_shape, format_size
from chunkwise.measure.labels import cell_label
from chunkwise.measure.printing import plain_table
from chunkwise.measure.results import Cell, Results
from chunkwise.patterns.pattern import Access
from chunkwise.words import counted, format_seconds, format_speed

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
_NOTICED_TIMES: Final = 1.25
# A smaller share of a file's size is a difference of metadata.
_NOTICED_SHARE: Final = 0.01

MEMORY: Final = "memory"
FILE: Final = "file"


def tables_of(results: Results, cells: Sequence[Cell]) -> Iterator[str | Table]:
    """Draw the trials of one operation on one way of storing the data.

    One table for all patterns; where trials have long names, one for each, below a line
    that says what it is of.
    """
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
    # Of all columns, a long block shape or a long list of settings may fold; nothing else
    # may lose a letter.
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
    """Name the columns that a table of these trials has besides the times.

    ``memory`` where the trials of a pattern differ in their peak; of writes ``file`` where they
    differ in the size of the file that they leave.
    """
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
    return most - least >= _NOTICED_NBYTES and most >= _NOTICED_TIMES * least


def _files_differ(cells: Sequence[Cell]) -> bool:
    known = [nbytes for cell in cells if (nbytes := _file_nbytes(cell)) is not None]
    return len(known) > 1 and max(known) > (1 + _NOTICED_SHARE) * min(known)


def _file_nbytes(cell: Cell) -> float | None:
    return None if cell.extrapolated else cell.median(lambda m: m.file_nbytes)
