"""What do the tables of paper 004 look like today, through libhdf5 and through chunkwise?

Paper 004 is *Improving I/O Performance When Working with HDF5 Compressed Datasets*
(The HDF Group).  Its Tables 1 to 8 say how long 46.5 MB take, read in small rows or in
whole chunks, with two cache sizes, two chunk shapes, compressed and not.  `make demo`
measures them (`paper004_reads`) and saves the run as JSON; they are drawn from there:

    python examples/paper004.py demo-files/paper004.json [--table 8]
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from paper004_findings import findings
from paper004_reads import CASES, CHUNK_NBYTES, DRIVERS, REPACKS, Report, seconds, times

from chunkwise.grammar import format_size

WIDTH: Final = 80


@dataclass(frozen=True)
class Cell:
    """One figure of a table.

    Attributes
    ----------
    what : str
        What is read, beyond what the table's title says.
    published_s : float or None
        The paper's seconds; None where it has none.
    key : str
        One of `CASES` or of `REPACKS`.
    mark : str
        Beside the published figure, if the table's note is about it.
    """

    what: str
    published_s: float | None
    key: str
    mark: str = ""


@dataclass(frozen=True)
class Table:
    """One of the paper's tables; `number` is None for what is not in the paper."""

    number: int | None
    title: str
    cells: tuple[Cell, ...]
    note: str = ""


TABLES: Final = (
    Table(
        1,
        "rows, cache 1 MB",
        (Cell("not compressed", 0.1, "plain_row"), Cell("compressed", 0.37, "row", "*")),
        "* So printed. For the same read Tables 5, 7 and 8 have 345, and only that fits the "
        "drop of more than 3,000 times which Table 1's own title names.",
    ),
    Table(
        2,
        "rows, cache 3 MB",
        (Cell("not compressed", 0.1, "plain_row_3mb"), Cell("compressed", 0.37, "row_3mb")),
    ),
    Table(
        3,
        "whole chunks, cache 1 MB",
        (Cell("not compressed", 0.04, "plain_chunk"), Cell("compressed", 0.36, "chunk")),
    ),
    Table(
        4,
        "rows, chunks of 1x30x9x717, cache 1 MB",
        (
            Cell("not compressed", 0.08, "plain_small"),
            Cell("compressed", 0.36, "small"),
            Cell("repacking so, not compressed", 3.0, "plain_repack"),
            Cell("repacking so, compressed", 12.0, "repack"),
        ),
    ),
    Table(
        5,
        "rows, compressed",
        (Cell("cache 1 MB", 345.0, "row"), Cell("cache 3 MB", 0.37, "row_3mb")),
    ),
    Table(
        6,
        "rows",
        (
            Cell("compressed, cache 3 MB", 0.37, "row_3mb"),
            Cell("not compressed, cache 1 MB", 0.1, "plain_row"),
            Cell("not compressed, cache 3 MB", 0.1, "plain_row_3mb"),
        ),
    ),
    Table(
        7,
        "compressed, cache 1 MB",
        (Cell("rows", 345.0, "row"), Cell("whole chunks", 0.36, "chunk")),
    ),
    Table(
        8,
        "compressed, the summary",
        (
            Cell("rows, cache 1 MB", 345.0, "row"),
            Cell("rows, cache 3 MB", 0.37, "row_3mb"),
            Cell("whole chunks, cache 1 MB", 0.36, "chunk"),
            Cell("rows, chunks of 1x30x9x717, cache 1 MB", 0.36, "small"),
            Cell("repacking so", 12.0, "repack"),
        ),
    ),
    Table(
        None,
        "Not in the paper: compressed, today's default cache ({default})",
        (Cell("rows", None, "row_default"), Cell("everything in one read", None, "all_default")),
    ),
)
# What a text may quote: of each case both times in seconds, and their ratio.
FIGURES: Final = (
    *(f"{key}_{kind}" for key in CASES for kind in (*DRIVERS, "speedup")),
    "machine",
)


def draw(report: Report, number: int | None = None) -> str:
    """Return all tables, or the one with a number, and what has to be said about them."""
    tables = [table for table in TABLES if number in (None, table.number)]
    version = report.environment.get("hdf5", "")
    lines = [
        _line("", "", "libhdf5", "", "times as"),
        _line("seconds for all 46.5 MB", "published ", version, "chunkwise", "fast"),
    ]
    for place, table in enumerate(tables):
        lines += ["", *_table(report, table)] if place else _table(report, table)
    for paragraphs in (_notes(report, tables), findings(report)):
        lines.append("")
        for text in paragraphs:
            lines += _wrapped(text)
    return "\n".join(lines)


def _table(report: Report, table: Table) -> Iterator[str]:
    title = table.title.format(default=format_size(report.default_cache_nbytes))
    yield f"Table {table.number}: {title}" if table.number else title
    for cell in table.cells:
        libhdf5, chunkwise = (report.figure(cell.key, driver) for driver in DRIVERS)
        published = "-" if cell.published_s is None else f"{cell.published_s:g}"
        yield _line(
            f"  {cell.what}",
            f"{published}{cell.mark or ' '}",
            str(libhdf5),
            str(chunkwise),
            report.mark(cell.key) + times(report.speedup(cell.key)),
        )
    yield from _wrapped(table.note)


def _line(what: str, published: str, libhdf5: str, chunkwise: str, ratio: str) -> str:
    return f"{what:<41}{published:>11}{libhdf5:>8}{chunkwise:>11}{ratio:>9}".rstrip()


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ")


def _notes(report: Report, tables: Sequence[Table]) -> Iterator[str]:
    shown = {cell.key for table in tables for cell in table.cells}
    for mismatch in report.mismatches:
        yield f"DIFFERENT BYTES: {mismatch}"
    counted = [
        f"'{case}' by {driver}: {figure.operations:,} of {figure.total_operations:,}"
        for key, case in CASES.items()
        if key in shown
        for driver in DRIVERS
        if (figure := report.figure(key, driver)).estimated
    ]
    if counted:
        yield f"~ estimated: not every read was done ({'; '.join(counted)})."
    yield (
        "Rows are 16,200 reads of 1x1x1x717, whole chunks 15 reads of 4x30x9x717; compressed "
        "is deflate 6; chunks are 4x30x9x717 where nothing else is said; caches are 1 and 3 "
        "MiB. Both programs are called in a loop in Rust, each trial in a fresh process, in "
        "turns, page cache warm; medians. chunkwise has a cache of its own, whatever "
        "libhdf5's is."
    )
    if shown & REPACKS.keys():
        yield _repacking(report)
    yield (
        "The collapse needs a chunk cache smaller than one chunk "
        f"({CHUNK_NBYTES:,} bytes, under 3 MiB): each of its 1,080 rows then decodes it again."
    )
    env = report.environment
    if env:
        yield (
            f"{env['cpu']}, {env['cpu_count']} CPUs; HDF5 {env['hdf5']}, zlib {env['zlib']}, "
            f"chunkwise {env['chunkwise']}."
        )


def _repacking(report: Report) -> str:
    if report.repack_version is None:
        return "Repacking was not measured: h5repack is not installed, or did not do as asked."
    return (
        f"Repacking is by h5repack {report.repack_version}, with the libhdf5 of that version, "
        "of files with this dataset alone; the paper's hold more."
    )


def figures(report: Report) -> dict[str, str]:
    """Return the single figures that a text may quote, named as in `FIGURES`."""
    values = []
    for key in CASES:
        values += [seconds(report.figure(key, driver).total_s) for driver in DRIVERS]
        values.append(times(report.speedup(key)))
    env = report.environment
    values.append(f"{env.get('cpu')}, {env.get('cpu_count')} CPUs")
    return dict(zip(FIGURES, values, strict=True))


def load(path: Path) -> Report:
    """Read a run that was saved.

    Raises
    ------
    OSError, ValueError, KeyError, TypeError
        There is none.
    """
    return Report(json.loads(path.read_text(encoding="utf-8")))


def main() -> None:
    """Draw the tables from a run that was saved."""
    parser = argparse.ArgumentParser(description="Draw paper 004's tables with today's figures.")
    parser.add_argument("saved", type=Path, help="demo-files/paper004.json, as make demo saves it")
    numbers = [table.number for table in TABLES if table.number]
    parser.add_argument("--table", type=int, choices=numbers, help="this one alone")
    asked = parser.parse_args()
    try:
        report = load(asked.saved)
    except (OSError, ValueError, KeyError, TypeError) as wrong:
        sys.exit(f"{asked.saved} is no report of `make demo`: {wrong}")
    print(draw(report, asked.table))


if __name__ == "__main__":
    main()
