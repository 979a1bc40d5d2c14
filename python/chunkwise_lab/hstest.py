"""Does each reader read complex selections right, and how fast?  As *h5_hstest* of paper 003."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from chunkwise.errors import UsageError
from chunkwise.grammar import format_shape
from chunkwise.measure.results import Cell, Results
from chunkwise.measure.run import MOST_SECONDS
from chunkwise.measure.run import run as run_bench
from chunkwise.measure.schedule import Step
from chunkwise.measure.space import Space
from chunkwise.measure.tables import fallback_notes, plain_table, say
from chunkwise.names import printable
from chunkwise.words import LAYOUTS, counted, three_digits

# All that read unions: compiled loops, and as programs in Python do.
READERS: Final = ("libhdf5", "h5py", "chunkwise", "chunkwise-py")
COUNT: Final = 100


def run(
    file: str | os.PathLike[str],
    dataset: str | None = None,
    *,
    planes: int = 20,  # Random planes that cut each dimension; 2 make boxes, 20 complex shapes
    count: int = COUNT,
    seed: int = 0,
    readers: Sequence[str] = READERS,
    libhdf5: Sequence[str] = ("default",),
    reopen: bool = False,
    repeat: int = 1,
    seconds: float | None = None,
    scratch: str | None = None,
    progress: Callable[[Step], None] | None = None,
) -> Results:
    """Read unions of cells with each reader, and check every element."""
    if "netcdf4" in readers:
        raise UsageError("netCDF-C has no unions of hyperslabs: leave the reader netcdf4 out")
    space = Space.of(
        access=[f"cells:{planes}:{count}:{seed}"],
        reader=tuple(readers),
        libhdf5=tuple(libhdf5),
        reopen=["each" if reopen else "once"],
    )
    budget = MOST_SECONDS if seconds is None else seconds
    return run_bench(
        file,
        dataset,
        space,
        repeat=repeat,
        seconds=budget,
        progress=progress,
        scratch=scratch,
        check=True,
    )


def failed(results: Results) -> bool:
    """Whether anything was read wrong, or could not be read."""
    return bool(
        results.wrong
        or results.mismatches
        or any(m.status != "ok" for cell in results.cells for m in cell.measurements)
    )


def show(results: Results, console: Console) -> None:
    """Print what was read, a row for each reader and library, and what was wrong."""
    for line in _heading(results):
        say(console, line)
    console.print()
    console.print(_table(results), highlight=False)
    notes = []
    if any(cell.extrapolated for cell in results.cells):
        notes.append("~: not all were read in the seconds given; times are of those read.")
    notes += [f"WRONG: {text}" for text in results.wrong]
    notes += [f"DIFFERENT BYTES: {mismatch}" for mismatch in results.mismatches]
    notes += [
        f"{cell.reader}: {measurement.error}"
        for cell in results.cells
        for measurement in cell.measurements
        if measurement.status != "ok" and not measurement.wrong
    ]
    notes += fallback_notes(results)
    for note in notes:
        console.print()
        say(console, printable(note))


def _heading(results: Results) -> list[str]:
    target, access = results.target, results.cells[0].access
    if target.chunks is None:
        stored = LAYOUTS[target.layout]
    else:
        stored = f"chunks of {format_shape(target.chunks)}, filters {target.filters}"
    kind = "each a box" if access.cells == 2 else "of cells taken by a toss"
    return [
        f"{printable(target.dataset)} in {printable(Path(target.file).name)}: "
        f"{format_shape(target.shape)} {target.dtype}, {stored}",
        f"{counted(access.limit or 0, 'union')}, {kind}, between {access.cells} random planes a "
        f"dimension (seed {access.seed}); every element is compared with a plain read of "
        "everything",
    ]


def _table(results: Results) -> Table:
    table = plain_table(2)
    table.add_column("reader")
    table.add_column("HDF5")
    for title in ("open s", "select s", "read s", "MB/s", "checked", "wrong"):
        table.add_column(title, justify="right", no_wrap=True)
    for cell in results.cells:
        table.add_row(*_row(cell))
    return table


def _row(cell: Cell) -> list[str]:
    version = next((str(m.environment["hdf5"]) for m in cell.succeeded), "")
    name = cell.reader + ("~" if cell.extrapolated else "")
    wrong = sum(measurement.wrong for measurement in cell.measurements)
    if not cell.succeeded:
        return [name, version, *["-"] * 5, "yes" if wrong else "failed"]
    times = map(cell.median, map(attrgetter, ("open_s", "select_s", "read_s", "mb_per_s")))
    checked = sum(m.checked_elements or 0 for m in cell.succeeded)
    return [name, version, *map(_number, times), f"{checked:,}", "yes" if wrong else "0"]


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "-"
    return f"{value:.4f}" if value < 0.1 else three_digits(value)
