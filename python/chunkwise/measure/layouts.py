"""What does it cost to change to each way of storing the data, and which lines do that?"""

from __future__ import annotations

import math
import statistics
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from chunkwise import _native
from chunkwise.grammar import format_size
from chunkwise.measure.printing import plain_table, say
from chunkwise.measure.restoring import commands
from chunkwise.measure.results import Cell, Results
from chunkwise.measure.variants import Variant, stored
from chunkwise.model import worth
from chunkwise.names import printable_lines
from chunkwise.remedy.fix import Fix
from chunkwise.trials.formats import is_netcdf3
from chunkwise.words import counted, format_seconds, format_speed


@dataclass(frozen=True)
class Pays:
    """When the time of repacking is won back."""

    access: str  # The name of the pattern that gains most
    runs: int  # How many times all of it has to be read or written until then


def shown(results: Results) -> list[Variant]:
    """Return the ways of storing the data, if HDF5 has several; the file's first."""
    found = [variant for variant in results.variants if not is_netcdf3(variant.format)]
    present = stored(results.file)
    found.sort(key=lambda variant: variant != present)
    return found if len(found) > 1 or (found and found[0] in results.repack_s) else []


def speeds(results: Results, variant: Variant) -> list[float]:
    """Return how many times as fast a variant is as the stored one, for each trial of both."""
    return [before / after for _, before, after in _pairs(results, variant)]


def best(results: Results) -> Variant | None:
    """Return the variant that is fastest on the whole, by the geometric mean over all trials.

    None if the stored one was not measured, or none is much faster than that.
    """
    means = {
        variant: statistics.geometric_mean(found)
        for variant in shown(results)
        if variant not in (stored(results.file), *_late(results))
        and (found := speeds(results, variant))
    }
    fastest = max(means, key=lambda variant: means[variant], default=None)
    return fastest if fastest is not None and means[fastest] >= worth.MEASURED else None


def _late(results: Results) -> set[Variant]:
    """Return the variants with a trial without figures: nobody knows how slow they are."""
    return {cell.variant for cell in results.cells if cell.problem is not None}


def pays(results: Results, variant: Variant) -> Pays | None:
    """Say after how many runs of a pattern repacking has paid for itself; None if never."""
    # If a sample is measured, the patterns' times are the sample's, and so is this.
    took = results.repack_s.get(variant)
    gains = [(before - after, name) for name, before, after in _pairs(results, variant)]
    gain, name = max(gains, default=(0.0, ""))
    if took is None or gain <= 0:
        return None
    return Pays(name, math.ceil(took / gain))


def remedies(results: Results, variant: Variant) -> tuple[Fix, ...]:
    """Give the lines that store the data so."""
    target = results.file
    return () if target.unclosed or variant == stored(target) else commands(target, variant)


def show_layouts(results: Results, console: Console) -> None:
    """Print a table of the ways of storing the data, and the lines for the best of them."""
    variants = shown(results)
    if not variants:
        return
    console.print()
    console.print(_table(results, variants), highlight=False, markup=False)
    for note in _notes(results):
        say(console, note, indent="  ")
    fastest = best(results)
    lines = () if fastest is None else remedies(results, fastest)
    if fastest is None or not lines:
        return
    mean = format_speed(statistics.geometric_mean(speeds(results, fastest)))
    say(console, f"On the whole fastest: {fastest}, {mean} the present layout. To store it so:")
    for number, fix in enumerate(lines):
        if number:
            console.print(f"or, by {fix.tool}:", highlight=False)
        # Never wrapped: each line is there to be copied.
        console.print(Text(textwrap.indent(printable_lines(fix.text), "  ")), soft_wrap=True)


def _table(results: Results, variants: list[Variant]) -> Table:
    table = plain_table()
    table.add_column("stored as", overflow="fold")
    for title in ("size", "repacking", "pays after"):
        table.add_column(title, justify="right", no_wrap=title != "pays after", overflow="fold")
    about = "" if results.sampled is None else "~"
    for variant in variants:
        nbytes = _stored_nbytes(results, variant)
        took = results.whole_repack_s(variant)
        runs = pays(results, variant)
        table.add_row(
            str(variant),
            format_size(nbytes) if nbytes else "-",
            "-" if took is None else about + format_seconds(took),
            "-" if runs is None else f"{runs.runs:,} x {runs.access}",
        )
    return table


def _stored_nbytes(results: Results, variant: Variant) -> int:
    """Return the bytes of the data that was read, stored so; else of the file written so."""
    cells = [cell for cell in results.cells if cell.variant == variant]
    for cell in cells:
        if cell.operation == "read":
            return cell.trial.stored_nbytes
    found = (cell.median(lambda m: m.file_nbytes) for cell in cells if not cell.extrapolated)
    return int(next((n for n in found if n), 0))


def _notes(results: Results) -> Iterator[str]:
    if not results.repack_s:
        return
    text = (
        "repacking: the data copied into this layout by chunkwise repack, on "
        f"{counted(_native.thread_count(), 'thread')}, without verification and the rest of the "
        "file."
    )
    if results.sampled is not None:
        text += " ~ from the sample."
    yield text + (
        " Pays after: so often the pattern that gains most has to be run until the time is won "
        "back."
    )


def _pairs(results: Results, variant: Variant) -> list[tuple[str, float, float]]:
    """Pair the trials of a variant with those of the stored one that differ in nothing else."""
    before = {
        _rest(cell): cell.total_s
        for cell in results.cells
        if cell.variant == stored(results.file) and cell.total_s
    }
    return [
        (cell.access.name, before[_rest(cell)] or 0.0, cell.total_s)
        for cell in results.cells
        if cell.variant == variant and cell.total_s and _rest(cell) in before
    ]


def _rest(cell: Cell) -> tuple[tuple[str, str], ...]:
    """Return the values of all axes but those of the layout."""
    axes = {name: text for name, text in cell.point.items() if name not in ("chunk", "filter")}
    return tuple(axes.items())
