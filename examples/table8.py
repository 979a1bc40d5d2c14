"""What do paper 004's read times look like today, through libhdf5 and through chunkwise?

Paper 004 is *Improving I/O Performance When Working with HDF5 Compressed Datasets*
(The HDF Group).  Its Table 8 sums up how long 46.5 MB take, read in small rows or
whole chunks, with two cache sizes and two chunk shapes; the times without
compression stand in its Tables 6 and 3.  `measure` times the same
reads with `chunkwise.bench`; the result is saved as JSON, and drawn from there:

    python examples/table8.py demo-files/table8.json
"""

from __future__ import annotations

import json
import math
import sys
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from chunkwise import bench
from chunkwise.bench.results import Cell
from chunkwise.bench.schedule import Step
from chunkwise.bench.space import Space
from chunkwise.grammar import format_size

DATASET = "/All_Data/CrIS-SDR_All/ES_ImaginaryLW"
CHUNK_NBYTES = 4 * 30 * 9 * 717 * 4
ROW, CHUNK, ALL = "row=1x1x1x717", "chunk=4x30x9x717", "all"
MIB = 1 << 20
# The paper's dataset, compressed, not compressed, and in smaller chunks.
COMPRESSED, PLAIN, SMALL = "cris.h5", "cris-plain.h5", "cris-small-chunk.h5"
WIDTH = 80


@dataclass(frozen=True)
class Case:
    """One way of reading the array.

    Attributes
    ----------
    key : str
        Its name in JSON.
    section, what : str
        How it is called in the table; ``{default}`` stands for the default cache's size.
    published_s : float or None
        The paper's seconds; None where it has none.
    file, access : str
        One of the three files, and a pattern for `bench.run`.
    cache_nbytes : int or None
        libhdf5's chunk cache; None is the library's default.
    """

    key: str
    section: str
    what: str
    published_s: float | None
    file: str
    access: str
    cache_nbytes: int | None


_TABLE_8 = "Table 8: deflate 6, chunk 4x30x9x717"
_PLAIN = "Tables 6 and 3: not compressed"
_TODAY = "Today's default cache ({default})"
CASES = (
    Case("row", _TABLE_8, "rows, cache 1 MB", 345.0, COMPRESSED, ROW, MIB),
    Case("row_3mb", _TABLE_8, "rows, cache 3 MB", 0.37, COMPRESSED, ROW, 3 * MIB),
    Case("chunk", _TABLE_8, "whole chunks, cache 1 MB", 0.36, COMPRESSED, CHUNK, MIB),
    Case("small", _TABLE_8, "rows, chunk 1x30x9x717, cache 1 MB", 0.36, SMALL, ROW, MIB),
    Case("plain_row", _PLAIN, "rows, cache 1 MB", 0.1, PLAIN, ROW, MIB),
    Case("plain_chunk", _PLAIN, "whole chunks, cache 1 MB", 0.04, PLAIN, CHUNK, MIB),
    Case("row_default", _TODAY, "rows, deflate 6", None, COMPRESSED, ROW, None),
    Case("all_default", _TODAY, "everything in one read, deflate 6", None, COMPRESSED, ALL, None),
)
# What a text may quote: of each case both times in seconds, and their ratio.
FIGURES = (
    *(f"{case.key}_{kind}" for case in CASES for kind in ("libhdf5", "chunkwise", "speedup")),
    "machine",
)
# What is measured together: file, patterns, caches, seconds.
RUNS: tuple[tuple[str, tuple[str, ...], tuple[int | None, ...], float], ...] = (
    (COMPRESSED, (ROW,), (MIB, 3 * MIB, None), 16.0),
    (COMPRESSED, (CHUNK,), (MIB,), 9.0),
    (COMPRESSED, (ALL,), (None,), 6.0),
    (SMALL, (ROW,), (MIB,), 9.0),
    (PLAIN, (ROW, CHUNK), (MIB,), 8.0),
)


@dataclass(frozen=True)
class Figure:
    """Seconds for the whole array by one driver.

    Attributes
    ----------
    total_s : float or None
        Median; None if there was no figure.
    operations, total_operations : int
        Reads done, and reads that the pattern has.
    """

    total_s: float | None
    operations: int
    total_operations: int

    @property
    def estimated(self) -> bool:
        """Whether not every read was done."""
        return self.total_s is not None and self.operations < self.total_operations


@dataclass(frozen=True)
class Row:
    """One line of the table: a case and today's figures."""

    case: Case
    libhdf5: Figure
    chunkwise: Figure

    @property
    def ratio(self) -> float | None:
        """How many times as fast chunkwise is."""
        if self.libhdf5.total_s is None or not self.chunkwise.total_s:
            return None
        return self.libhdf5.total_s / self.chunkwise.total_s


@dataclass(frozen=True)
class Report:
    """The table's rows, and where they were measured.

    Attributes
    ----------
    rows : tuple of Row
        As `CASES`.
    default_cache_nbytes : int
        The chunk cache that libhdf5 gives by default.
    environment : dict
        Machine, processors and versions.
    mismatches : tuple of str
        A sentence for each pair of readers that gave different bytes.
    records : tuple of dict
        A flat row for each trial.
    """

    rows: tuple[Row, ...]
    default_cache_nbytes: int
    environment: dict[str, Any]
    mismatches: tuple[str, ...]
    records: tuple[dict[str, Any], ...]


def measure(folder: Path, progress: Callable[[Step], None] | None = None) -> Report:
    """Time all cases on the three files in `folder`, within 50 seconds.

    Raises
    ------
    chunkwise.errors.ChunkwiseError
        If a file is missing or is not what it should be.
    """
    drivers = ("libhdf5", "chunkwise")
    return report(
        [
            bench.run(
                folder / file,
                DATASET,
                Space.of(
                    access=patterns,
                    driver=drivers,
                    cache=["default" if nbytes is None else str(nbytes) for nbytes in caches],
                ),
                seconds=seconds,
                progress=progress,
            )
            for file, patterns, caches, seconds in RUNS
        ]
    )


def report(results: Iterable[bench.Results]) -> Report:
    """Draw the table's rows from finished runs."""
    runs = list(results)
    records = tuple(record for run in runs for record in run.records)
    done = [m for run in runs for cell in run.cells for m in cell.succeeded]
    return Report(
        tuple(
            Row(case, _figure(runs, case, "libhdf5"), _figure(runs, case, "chunkwise"))
            for case in CASES
        ),
        runs[0].target.cache_nbytes,
        done[0].environment if done else {},
        tuple(str(mismatch) for run in runs for mismatch in run.mismatches),
        records,
    )


def _figure(runs: list[bench.Results], case: Case, driver: str) -> Figure:
    cell = next(
        cell
        for run in runs
        for cell in run.cells
        if Path(run.target.file).name == case.file
        and cell.access.name == case.access.partition("=")[0]
        and cell.driver == driver
        and (driver == "chunkwise" or cell.cache_nbytes == case.cache_nbytes)
    )
    return Figure(cell.total_s, _operations(cell), cell.total_operations or 0)


def _operations(cell: Cell) -> int:
    """Reads done by the repeat that did most."""
    return max((m.operations or 0 for m in cell.succeeded), default=0)


def to_json(found: Report) -> str:
    """Write a report; `from_json` reads it again."""
    return json.dumps(asdict(found), indent=1)


def from_json(text: str) -> Report:
    """Read what `to_json` wrote."""
    values = json.loads(text)
    rows = (
        Row(Case(**row["case"]), Figure(**row["libhdf5"]), Figure(**row["chunkwise"]))
        for row in values["rows"]
    )
    return Report(
        tuple(rows),
        values["default_cache_nbytes"],
        values["environment"],
        tuple(values["mismatches"]),
        tuple(values["records"]),
    )


def seconds(value: float | None) -> str:
    """Write seconds with two digits, as the paper does: ``345``, ``0.37``, ``0.0054``."""
    if value is None:
        return "-"
    if value >= 9.95:
        return f"{value:,.0f}"
    return f"{value:.{max(1, 1 - math.floor(math.log10(value)))}f}" if value > 0 else "0"


def times(value: float | None) -> str:
    """Write a ratio with two digits: ``1,600``, ``1.7``, ``0.94``."""
    if value is None or value <= 0:
        return "-"
    digits = 1 - math.floor(math.log10(value))
    return f"{round(value, digits):,.{max(0, digits)}f}"


def show(found: Report, console: Console) -> None:
    """Print the table and what has to be said about it."""
    version = found.environment.get("hdf5", "")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("seconds for all 46.5 MB")
    for title in ("published", f"libhdf5\n{version}", "chunkwise", "times as\nfast"):
        table.add_column(title, justify="right", no_wrap=True)
    section = ""
    for row in found.rows:
        if row.case.section != section:
            section = row.case.section
            default = format_size(found.default_cache_nbytes)
            table.add_row(Text(section.format(default=default), style="italic"))
        table.add_row(
            f"  {row.case.what}",
            "-" if row.case.published_s is None else f"{row.case.published_s:g}",
            _marked(row.libhdf5),
            _marked(row.chunkwise),
            ("~" if row.libhdf5.estimated or row.chunkwise.estimated else "") + times(row.ratio),
        )
    console.print(table, highlight=False)
    console.print()
    for note in _notes(found):
        for line in textwrap.wrap(note, WIDTH, subsequent_indent="  "):
            console.print(line, highlight=False, markup=False)


def _marked(figure: Figure) -> str:
    return ("~" if figure.estimated else "") + seconds(figure.total_s)


def _notes(found: Report) -> list[str]:
    notes = [f"DIFFERENT BYTES: {mismatch}" for mismatch in found.mismatches]
    for row in found.rows:
        for name, figure in (("libhdf5", row.libhdf5), ("chunkwise", row.chunkwise)):
            if figure.estimated:
                notes.append(
                    f"~ estimated: '{row.case.what}' by {name} from {figure.operations:,} of "
                    f"{figure.total_operations:,} reads."
                )
    notes += [
        "Rows are 16,200 reads of 1x1x1x717, whole chunks 15 reads of 4x30x9x717. Both "
        "programs are called in a loop in Rust, each trial in a fresh process, page cache "
        "warm; medians. chunkwise has a cache of its own, the same in all rows.",
        "The paper's repacking into chunks of 1x30x9x717 took 12 s; here that file is generated.",
        _collapse(found),
    ]
    env = found.environment
    if env:
        notes.append(
            f"{env['cpu']}, {env['cpu_count']} CPUs; HDF5 {env['hdf5']}, zlib {env['zlib']}, "
            f"chunkwise {env['chunkwise']}."
        )
    return notes


def _collapse(found: Report) -> str:
    """Say when the first row happens, and whether it does with this library's default."""
    text = (
        f"The collapse in the first row needs a chunk cache smaller than one chunk "
        f"({CHUNK_NBYTES:,} bytes, under 3 MiB): each of 1,080 rows then decodes its chunk "
        "again. 1 MiB was the default before HDF5 2.0."
    )
    size = format_size(found.default_cache_nbytes)
    today = next(row.libhdf5 for row in found.rows if row.case.key == "row_default")
    version = found.environment.get("hdf5", "of this environment")
    if found.default_cache_nbytes < CHUNK_NBYTES:
        return f"{text} HDF5 {version} still gives {size}: the collapse is today's default."
    took = "" if today.total_s is None else f": {_marked(today)} s"
    return f"{text} HDF5 {version} gives {size}, and the rows do not collapse{took}."


def figures(found: Report) -> dict[str, str]:
    """Return the single figures that a text may quote, named as in `FIGURES`."""
    values = []
    for row in found.rows:
        values += [seconds(row.libhdf5.total_s), seconds(row.chunkwise.total_s), times(row.ratio)]
    env = found.environment
    values.append(f"{env.get('cpu')}, {env.get('cpu_count')} CPUs")
    return dict(zip(FIGURES, values, strict=True))


def main() -> None:
    """Draw the table from a report that was saved."""
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/table8.py demo-files/table8.json")
    try:
        found = from_json(Path(sys.argv[1]).read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError) as wrong:
        sys.exit(f"{sys.argv[1]} is no report of `make demo`: {wrong}")
    show(found, Console(width=None if sys.stdout.isatty() else WIDTH))


if __name__ == "__main__":
    main()
