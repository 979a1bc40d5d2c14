"""How are a tradeoff and the gain of codecs printed?"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from chunkwise.grammar import format_shape, format_size
from chunkwise.measure.printing import plain_table, say
from chunkwise.model.tradeoff import READERS, Bandwidth, Point, Tradeoff
from chunkwise.names import printable
from chunkwise.words import format_seconds


def show_tradeoff(found: Tradeoff, console: Console) -> None:
    """Print the frontier for each storage and reader."""
    first, second = printable(found.first), printable(found.second)
    say(
        console,
        f"The best layouts from '{first}' alone to '{second}' alone, by the model. Share is how "
        f"much a second of '{first}' counts.",
    )
    for (storage, name), points in found.fronts.items():
        where = found.storages[storage]
        told = "" if where is None else (
            f" ({format_seconds(where.request_s)} a request, "
            f"{format_size(round(where.nbytes_per_s))} a second)"
        )  # fmt: skip
        console.print()
        say(console, f"{storage}{told}, by {name}", style="bold")
        table = plain_table(gap=2)
        table.add_column("share", justify="right", no_wrap=True)
        table.add_column("layout", overflow="fold")
        table.add_column(first, justify="right", overflow="fold")
        table.add_column(second, justify="right", overflow="fold")
        for point in points:
            table.add_row(
                f"{point.share:.0%}", Text(_layout(point)),
                format_seconds(point.first_s), format_seconds(point.second_s),
            )  # fmt: skip
        now = found.present.get((storage, name))
        if now is not None:
            table.add_row("", "the present layout", *map(format_seconds, now))
        console.print(table)


def _layout(point: Point) -> str:
    chunks = "contiguous" if point.layout.chunks is None else format_shape(point.layout.chunks)
    return f"{chunks} {point.layout.filters}"


def show_bandwidth(found: Bandwidth, console: Console) -> None:
    """Print the fastest filters for each bandwidth; this machine's is marked."""
    say(
        console,
        f"The fastest filters by the storage's bandwidth, in chunks of "
        f"{format_shape(found.chunks)}, by the model.",
    )
    console.print()
    table = plain_table(gap=2)
    table.add_column("storage", justify="right", no_wrap=True)
    for name in READERS:
        table.add_column(f"by {name}", overflow="fold")
        table.add_column("all reads", justify="right", no_wrap=True)
    for place, rate in enumerate(found.bandwidths):
        row: list[Any] = [f"{_mark(found, place)}{format_size(round(rate))}/s"]
        for name in READERS:
            filters = found.fastest(name, place)
            row += [Text(filters), format_seconds(found.seconds[name, filters][place])]
        table.add_row(*row)
    console.print(table)
    if found.here is not None:
        console.print()
        say(
            console,
            f"* this machine: {format_size(round(found.here.nbytes_per_s))} a second, "
            f"{format_seconds(found.here.request_s)} a request.",
        )


def _mark(found: Bandwidth, place: int) -> str:
    if found.here is None:
        return ""
    rate = found.here.nbytes_per_s
    nearest = min(range(len(found.bandwidths)), key=lambda i: abs(found.bandwidths[i] - rate))
    return "* " if place == nearest else ""
