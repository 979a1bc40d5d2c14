"""Which further columns does a table need to tell its trials apart?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from chunkwise.grammar import format_size
from chunkwise.measure.results import Cell, Results

# Less is what libraries and the interpreter differ by.
_NOTICED_NBYTES: Final = 16 << 20
_NOTICED_TIMES: Final = 1.25
# A smaller share of a file's size is a difference of metadata.
_NOTICED_SHARE: Final = 0.01

MEMORY: Final = "memory"
FILE: Final = "file"


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
