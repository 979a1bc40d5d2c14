"""How is a run shown on a terminal of 80 columns?"""

from __future__ import annotations

import textwrap

from rich.console import Console
from rich.text import Text

from chunkwise.grammar import format_shape, format_size
from chunkwise.measure import tables
from chunkwise.measure.explain import explain
from chunkwise.measure.results import Advice, Cell, Results
from chunkwise.measure.variants import Variant, stored
from chunkwise.names import printable, printable_lines
from chunkwise.trials.readers import COMPILED
from chunkwise.trials.trial import Operation
from chunkwise.words import LAYOUTS, counted


def show_briefly(results: Results, console: Console) -> None:
    """Print what was measured, and the table."""
    for line in _heading(results):
        console.print(line, highlight=False, markup=False)
    console.print()
    found = _tables(results)
    for (operation, variant), cells in found.items():
        if len(found) > 1 or operation != "read":
            console.print(_stored(results, operation, variant), highlight=False, markup=False)
        for part in tables.tables_of(results, cells):
            console.print(part, highlight=False, markup=False)
        console.print()


def show(results: Results, console: Console) -> None:
    """Print the table, what has to be said about it, and the advice."""
    show_briefly(results, console)
    for line in _footnotes(results):
        tables.say(console, line, indent="  ")
    for mismatch in results.mismatches:
        console.print(Text(f"DIFFERENT BYTES: {mismatch}", style="bold red"))
    where = _where_the_time_goes(results)
    if where:
        console.print()
    for line in where:
        tables.say(console, line, indent="  ")
    advice = explain(results)
    if advice is not None:
        console.print()
        _show_advice(advice, console)


def _tables(results: Results) -> dict[tuple[Operation, Variant], list[Cell]]:
    """Divide the trials among tables: one for each operation on each way of storing the data."""
    found: dict[tuple[Operation, Variant], list[Cell]] = {}
    for cell in results.cells:
        found.setdefault((cell.operation, cell.variant), []).append(cell)
    return found


def _heading(results: Results) -> list[str]:
    target = results.file
    stored = f"{target.filters}, {format_size(target.stored_nbytes)} stored"
    if target.chunks is None:
        layout = LAYOUTS[target.layout]
    else:
        layout = f"chunks {format_shape(target.chunks)} ({format_size(target.chunk_nbytes)})"
    return [
        f"{printable(target.file)}: {printable(target.dataset)}",
        f"{format_shape(target.shape)} {target.dtype} ({format_size(target.nbytes)}), {layout}",
        stored,
    ]


def _stored(results: Results, operation: Operation, variant: Variant) -> str:
    """Say how the data of a table is stored, and whether the file has it so."""
    cells = [c for c in results.cells if c.operation == operation and c.variant == variant]
    if operation != "read":
        written = [cell.median(lambda m: m.file_nbytes) for cell in cells]
        nbytes = next((int(n) for n in written if n and not cells[0].extrapolated), 0)
        where = "written to new files"
    else:
        same = variant == stored(results.file) and results.sampled is None
        nbytes = cells[0].trial.stored_nbytes
        where = "as stored" if same else "scratch file"
    size = f": {format_size(nbytes)}" if nbytes else ""
    return f"{variant}{size} ({where})"


def _footnotes(results: Results) -> list[str]:
    lines = []
    if results.sampled is not None:
        lines.append(
            f"Sampled: {counted(results.sampled, 'index', 'indexes')} of dimension 0, whole "
            "slabs of chunks spread "
            "over the dataset; shape and times above are the sample's."
        )
    if len(results.variants) > 1:
        lines.append("speed: against the first row of the same pattern in the first table.")
    bounded = [cell for cell in results.cells if cell.extrapolated]
    if bounded:
        fewest = min(bounded, key=lambda cell: cell.operations)
        lines.append(
            f"~ estimated: not every {fewest.operation} was done ('{fewest.access.name}' by "
            f"{tables.reader_label(results, fewest.reader)}: {fewest.operations:,} of "
            f"{fewest.total_operations or 0:,}). Reads of three kinds (first touch of a "
            "chunk, return to an earlier one, same chunk as before) are averaged separately, "
            "and the total is extrapolated from these averages."
        )
    for cell in results.cells:
        problem = cell.problem
        if problem is not None:
            who = f"'{cell.access.name}' by {tables.reader_label(results, cell.reader)}"
            lines.append(
                f"{problem.status}: {who}: {printable(problem.error or 'no reason given')}"
            )
    lines += tables.fallback_notes(results)
    shown = {
        name for cells in _tables(results).values() for name in tables.further(results, cells)
    }
    lines += [*tables.notes(tuple(shown)), _timing(results), _bytes(results), _versions(results)]
    return [line for line in lines if line]


def _where_the_time_goes(results: Results) -> list[str]:
    """Split the time of each pattern's slowest trial; the records have it for every trial."""
    lines = []
    groups = results.patterns()
    if not set(results.varied) - {"operation", "access", "reader"}:
        groups = [list(results.cells)]
    for cells in groups:
        broken_down = [c for c in cells if any(m.breakdown for m in c.succeeded)]
        if not broken_down:
            continue
        cell = max(broken_down, key=lambda cell: cell.total_s or 0.0)
        measured = next(m for m in cell.succeeded if m.breakdown)
        assert measured.breakdown is not None
        done = ""
        if measured.extrapolated:
            operations = f"{measured.operations or 0:,} of {cell.total_operations or 0:,}"
            done = f" ({operations} {cell.operation}s)"
        lines.append(
            f"'{cell.access.name}', {tables.full_label(results, cell)}{done}: "
            f"{tables.sentence(measured.breakdown, cell.operation)}"
        )
    if len(lines) == 1:
        return [f"Where the time goes: {lines[0]}"]
    return lines and ["Where the time goes, of the slowest of each pattern:", *lines]


def _timing(results: Results) -> str:
    """Say what is timed, how often, and from where."""
    used = list(dict.fromkeys(cell.reader for cell in results.cells))
    loops = []
    for language, names in (("Rust", COMPILED), ("Python", frozenset(used) - COMPILED)):
        inside = [tables.reader_label(results, name) for name in used if name in names]
        if inside:
            loops.append(f"{' and '.join(inside)} called from {language}")
    times = [len(cell.measurements) for cell in results.cells]
    often = f"{min(times)}" if min(times) == max(times) else f"{min(times)} to {max(times)}"
    reads = [cell for cell in results.cells if cell.operation == "read"]
    pages = dict.fromkeys(m.page_cache for cell in reads for m in cell.measurements)
    what = f"the {' and '.join(dict.fromkeys(c.operation + 's' for c in results.cells))} alone"
    text = f"Timed: {what}, {'; '.join(loops)}"
    if reads:
        text += f"; page cache {' and '.join(pages)}"
    text += (
        f". Median of {often}, in turns, each in a fresh process; spread: (highest - lowest) / "
        "median."
    )
    if reads:
        text += " The first read finds no chunk cached and loads the chunk index."
    if len(reads) < len(results.cells):
        text += (
            " What was written is read back and compared; close is the flush and the "
            "close, in which libraries do what they put off; in all is both together and the "
            "creation before them, without sync (fsync)."
        )
    return text


def _bytes(results: Results) -> str:
    if results.mismatches:
        return ""
    if not results.target.comparable:
        return "Bytes not compared: the elements hold padding."
    if not results.compared and any(
        sum(len(cell.succeeded) for cell in group) > 1 for group in results.patterns()
    ):
        return "Bytes not compared: readers or types give them in different orders."
    if not results.compared:
        return "Bytes not compared: no two runs of one pattern gave figures."
    return f"Bytes equal in all {results.compared} runs that can be compared."


def _versions(results: Results) -> str:
    found = next((m.environment for c in results.cells for m in c.succeeded), None)
    if not found:
        return ""
    cache = format_size(results.target.cache_nbytes)
    all_of = [m.environment for c in results.cells for m in c.succeeded]
    netcdf = next((f"netCDF-C {e['netcdf']}, " for e in all_of if "netcdf" in e), "")
    hdf5, zlib = (
        " and ".join(dict.fromkeys(str(e[name]) for e in all_of)) for name in ("hdf5", "zlib")
    )
    return (
        f"h5py {found['h5py']}, HDF5 {hdf5} (chunk cache by default {cache} in h5py's), {netcdf}"
        f"zlib {zlib}, chunkwise {found['chunkwise']}; {counted(int(found['cpu_count']), 'CPU')}, "
        f"{found['machine']}."
    )


def _show_advice(advice: Advice, console: Console) -> None:
    tables.say(console, f"Why: {advice.why}", "bold")
    if advice.fix is not None:
        # Never wrapped: each line is there to be copied.
        console.print("What helps:", highlight=False)
        console.print(Text(textwrap.indent(advice.fix, "  ")), soft_wrap=True)
    if advice.in_c is not None:
        console.print("or, in C:", highlight=False)
        console.print(Text(textwrap.indent(printable_lines(advice.in_c), "  ")), soft_wrap=True)
    if advice.effect is not None:
        effect = advice.effect[0].upper() + advice.effect[1:]
        tables.say(console, f"{effect}.")
