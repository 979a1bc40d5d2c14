"""How is a run shown on a terminal of 80 columns?"""

from __future__ import annotations

import textwrap

from rich.console import Console
from rich.table import Table
from rich.text import Text

from chunkwise.bench.access import Access
from chunkwise.bench.advice import Advice
from chunkwise.bench.explain import explain
from chunkwise.bench.results import Cell, Results
from chunkwise.bench.variants import Variant
from chunkwise.grammar import format_shape, format_size
from chunkwise.objects import printable
from chunkwise.trials.drivers import COMPILED, WITH_LIBRARY_CACHE
from chunkwise.words import LAYOUTS, format_seconds, format_speed

WIDTH = 80


def show(results: Results, console: Console) -> None:
    """Print the table, what has to be said about it, and the advice."""
    for line in _heading(results):
        console.print(line, highlight=False, markup=False)
    console.print()
    for variant in results.variants:
        if len(results.variants) > 1:
            console.print(_stored(results, variant), highlight=False, markup=False)
        console.print(_table(results, variant), highlight=False)
        console.print()
    for line in _footnotes(results):
        for part in textwrap.wrap(line, WIDTH, subsequent_indent="  "):
            console.print(part, highlight=False, markup=False)
    for mismatch in results.mismatches:
        console.print(Text(f"DIFFERENT BYTES: {mismatch}", style="bold red"))
    advice = explain(results)
    if advice is not None:
        console.print()
        _show_advice(advice, console)


def _heading(results: Results) -> list[str]:
    target = results.target
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


def _stored(results: Results, variant: Variant | None) -> str:
    """Say how the data of a table is stored, and whether the file has it so."""
    target = results.target
    same = variant == Variant(target.chunks, target.filters) and results.sampled is None
    cells = (cell for cell in results.cells if cell.variant == variant)
    nbytes = next((cell.trial.stored_nbytes for cell in cells), 0)
    size = f": {format_size(nbytes)}" if nbytes else ""
    return f"{variant}{size}{' (as stored)' if same else ' (scratch file)'}"


def _table(results: Results, variant: Variant | None) -> Table:
    caches = len({c.cache_nbytes for c in results.cells if c.driver in WITH_LIBRARY_CACHE}) > 1
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", width=None)
    # Of all columns, a long block shape may fold; nothing else may lose a letter.
    table.add_column("pattern", overflow="fold")
    table.add_column("reads", justify="right", no_wrap=True)
    table.add_column("driver, cache" if caches else "driver", no_wrap=True)
    for title in ("first", "mean", "all reads", "spread", "speed"):
        table.add_column(title, justify="right", no_wrap=True)
    for cells in results.patterns():
        group = [cell for cell in cells if cell.variant == variant]
        total = next((c.total_operations for c in group if c.total_operations), None)
        labels = [group[0].access.name]
        spelled = _spelled(group[0].access)
        if group[0].access.name != spelled:
            labels.append(spelled)
        if len(group) == 1:
            labels = ["\n".join(labels)]
        for i, cell in enumerate(group):
            table.add_row(
                Text(labels[i] if i < len(labels) else ""),
                f"{total:,}" if total is not None and i == 0 else "",
                label(results, cell.driver)
                + (_cache(cell) if caches else "")
                + (", cold" if cell.page_cache == "cold" else ""),
                *_figures(results, cell),
                end_section=cell is group[-1],
            )
    return table


def _spelled(access: Access) -> str:
    """Say what is read, and in which order if not in C order."""
    if access.slabs is not None:
        return "1 selection" if len(access.slabs) == 1 else f"{len(access.slabs):,} selections"
    order = ""
    if access.order is not None:
        order = "@" + ",".join(map(str, access.order))
    elif access.seed is not None:
        order = "@random"
    return format_shape(access.block) + order


def label(results: Results, driver: str) -> str:
    """Name a driver: the one from Python is simply chunkwise where it is the only one."""
    alone = all(cell.driver != "chunkwise" for cell in results.cells)
    return "chunkwise" if driver == "chunkwise-py" and alone else driver


def _cache(cell: Cell) -> str:
    """Return the end of a driver's label: the cache that it was given."""
    if cell.driver not in WITH_LIBRARY_CACHE:
        return ""  # chunkwise has a cache of its own
    if cell.cache_nbytes is None:
        return ", default"
    return f", {format_size(cell.cache_nbytes).replace('.0 ', ' ')}"


def _figures(results: Results, cell: Cell) -> list[str]:
    problem = cell.problem
    if problem is not None:
        if problem.status == "timeout":
            return [f">{problem.trial.timeout_s:.0f} s", "-", "-", "-", "-"]
        return ["failed", "-", "-", "-", "-"]
    first = cell.spread(lambda m: m.first_s)
    each = cell.spread(lambda m: m.mean_s)
    total = cell.spread(lambda m: m.total_s)
    assert first is not None
    assert each is not None
    assert total is not None
    mark = "~" if cell.extrapolated else ""
    repeats = len(cell.succeeded)
    width = (total.highest - total.lowest) / total.median if total.median else 0.0
    speed = results.speed(cell)
    about = "~" if results.speed_is_estimated(cell) else ""
    # One read that is the whole pattern has one time, which need not stand there thrice.
    one = cell.total_operations == 1
    return [
        "-" if one else format_seconds(first.median),
        "-" if one else mark + format_seconds(each.median),
        mark + format_seconds(total.median),
        f"{width:.0%}" if repeats > 1 else "-",
        "-" if speed is None else about + format_speed(speed),
    ]


def _footnotes(results: Results) -> list[str]:
    lines = []
    if results.sampled is not None:
        lines.append(
            f"Sampled: {results.sampled:,} indexes of dimension 0, whole slabs of chunks spread "
            "over the dataset; shape and times above are the sample's."
        )
    if len(results.variants) > 1:
        lines.append("speed: against the first row of the same pattern in the first table.")
    bounded = [cell for cell in results.cells if cell.extrapolated]
    if bounded:
        fewest = min(bounded, key=lambda cell: cell.operations)
        lines.append(
            f"~ estimated: not every read was done ('{fewest.access.name}' by "
            f"{label(results, fewest.driver)}: {fewest.operations:,} of "
            f"{fewest.total_operations or 0:,}). Reads that enter new chunks, come back to "
            "some, or stay in theirs are averaged apart and counted out."
        )
    for cell in results.cells:
        problem = cell.problem
        if problem is not None:
            who = f"'{cell.access.name}' by {label(results, cell.driver)}"
            lines.append(
                f"{problem.status}: {who}: {printable(problem.error or 'no reason given')}"
            )
    lines += [_timing(results), _bytes(results), _versions(results)]
    return [line for line in lines if line]


def _timing(results: Results) -> str:
    """Say what is timed, how often, and from where."""
    used = list(dict.fromkeys(cell.driver for cell in results.cells))
    loops = []
    for language, names in (("Rust", COMPILED), ("Python", frozenset(used) - COMPILED)):
        inside = [label(results, name) for name in used if name in names]
        if inside:
            loops.append(f"{' and '.join(inside)} called from {language}")
    times = [len(cell.measurements) for cell in results.cells]
    often = f"{min(times)}" if min(times) == max(times) else f"{min(times)} to {max(times)}"
    pages = dict.fromkeys(m.page_cache for cell in results.cells for m in cell.measurements)
    return (
        f"Timed: the reads alone, {'; '.join(loops)}; page cache {' and '.join(pages)}. Median of "
        f"{often}, in turns, each in a fresh process; spread: (highest - lowest) / median. "
        "The first read finds no chunk cached and loads the chunk index."
    )


def _bytes(results: Results) -> str:
    if results.mismatches:
        return ""
    if not results.target.comparable:
        return "Bytes not compared: the elements hold padding."
    if not results.compared:
        return "Bytes not compared: no two runs of one pattern gave figures."
    return f"Bytes equal in all {results.compared} runs that can be compared."


def _versions(results: Results) -> str:
    found = next((m.environment for c in results.cells for m in c.succeeded), None)
    if not found:
        return ""
    cache = format_size(results.target.cache_nbytes)
    environments = (m.environment for c in results.cells for m in c.succeeded)
    netcdf = next((f"netCDF-C {e['netcdf']}, " for e in environments if "netcdf" in e), "")
    return (
        f"h5py {found['h5py']}, HDF5 {found['hdf5']} (chunk cache by default {cache}), {netcdf}"
        f"zlib {found['zlib']}, chunkwise {found['chunkwise']}; {found['cpu_count']} CPUs, "
        f"{found['machine']}."
    )


def _show_advice(advice: Advice, console: Console) -> None:
    for part in textwrap.wrap(f"Why: {advice.why}", WIDTH):
        console.print(part, highlight=False, markup=False, style="bold")
    if advice.fix is not None:
        # Never wrapped: each line is there to be copied.
        console.print("What helps:", highlight=False)
        console.print(Text(textwrap.indent(advice.fix, "  ")), soft_wrap=True)
    if advice.effect is not None:
        effect = advice.effect[0].upper() + advice.effect[1:]
        for part in textwrap.wrap(f"{effect}.", WIDTH):
            console.print(part, highlight=False, markup=False)
