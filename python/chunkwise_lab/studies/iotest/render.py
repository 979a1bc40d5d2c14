"""What does a walk say at its end, on a terminal of 80 columns?"""

from __future__ import annotations

from rich.console import Console

from chunkwise.grammar import format_size
from chunkwise.measure.tables import plain_table, say
from chunkwise.names import printable
from chunkwise.words import counted, format_seconds, three_digits
from chunkwise_lab.studies.iotest.run import Walked
from chunkwise_lab.studies.iotest.table import effects


def show(walked: Walked, console: Console) -> None:
    """Print what a walk measured: the fastest and slowest, and what each parameter does."""
    settings, rows = walked.settings, walked.rows
    again = f", after {walked.kept:,} that were there" if walked.kept else ""
    grid = f"{settings.process_rows}x{settings.process_columns}"
    say(
        console,
        f"{counted(len(rows), 'combination')}{again}: {counted(settings.steps, 'step')}, "
        f"{counted(settings.arrays, 'array')} of {settings.plane[0]}x{settings.plane[1]}, "
        f"{counted(walked.ranks, 'rank')} ({grid}), {settings.scaling} scaling, HDF5 "
        f"{walked.version}, {format_size(settings.nbytes)} each; every value compared",
    )
    if walked.crowded:
        say(
            console,
            f"{walked.crowded}: oversubscribed, they take turns; do not read scaling from these "
            "times. Open MPI's ranks wait busily: mpirun --mca mpi_yield_when_idle 1 makes this "
            "several times as fast",
            "yellow",
        )
    if not rows:
        return
    ordered = sorted(rows, key=lambda row: row.wall_s)
    for name, row in (("fastest", ordered[0]), ("slowest", ordered[-1])):
        one = row.combination
        say(
            console,
            f"{name}: {one.number} ({one.label}, {one.format}), {format_seconds(row.wall_s)}, "
            f"{format_size(row.file_nbytes)}",
            indent="    ",
        )
    found = list(effects(rows))
    if found:
        console.print()
        table = plain_table(gap=2)
        table.add_column("against", overflow="fold")
        for name in ("wall time", "from", "to", "file size", "pairs"):
            table.add_column(name, justify="right")
        for effect in found:
            table.add_row(
                f"{effect.parameter} {effect.second}, not {effect.first}",
                *(f"{three_digits(v)}x" for v in (effect.wall, effect.least, effect.most)),
                f"{three_digits(effect.nbytes)}x",
                str(effect.pairs),
            )
        console.print(table)
    if settings.csv_file:
        console.print()
        say(console, f"rows: {printable(settings.csv_file)}")
