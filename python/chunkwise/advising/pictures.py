"""How are a tradeoff and the gain of codecs drawn and printed?"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from chunkwise.benching.printing import plain_table, say
from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.grammar import format_shape, format_size
from chunkwise.model.tradeoff import READERS, Bandwidth, Point, Tradeoff
from chunkwise.names import printable
from chunkwise.words import format_seconds

_MARKERS: Final = {"warm": "o", "cold": "s", "remote": "^"}


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


def draw(found: Tradeoff | Bandwidth, path: str) -> None:
    """Draw one of them to a file."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise UsageError("a picture needs matplotlib: pip install matplotlib") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, sides = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    try:
        for axes, name in zip(sides, READERS, strict=True):
            if isinstance(found, Tradeoff):
                _draw_tradeoff(found, name, axes)
            else:
                _draw_bandwidth(found, name, axes)
            axes.set(xscale="log", yscale="log", title=f"by {name}")
            axes.grid(True, which="major", alpha=0.3)
            axes.legend(fontsize="small")
        figure.savefig(Path(path))
    except OSError as wrong:
        raise CannotWriteError(f"{printable(path)}: {wrong.strerror or wrong}") from None
    except ValueError as wrong:
        raise UsageError(f"{printable(path)}: {wrong}") from None
    finally:
        pyplot.close(figure)


def _draw_tradeoff(found: Tradeoff, name: str, axes: Any) -> None:
    for (storage, reader), points in found.fronts.items():
        if reader != name:
            continue
        x, y = [p.first_s for p in points], [p.second_s for p in points]
        (line,) = axes.plot(x, y, marker=_MARKERS[storage], label=storage, linewidth=1.2)
        now = found.present.get((storage, reader))
        if now is not None:
            axes.plot(*now, marker="x", color=line.get_color(), label=f"{storage}, as it is")
        for point in points:
            chunks = "" if point.layout.chunks is None else format_shape(point.layout.chunks)
            axes.annotate(chunks, (point.first_s, point.second_s), fontsize=6)
    axes.set(xlabel=f"{found.first}, seconds", ylabel=f"{found.second}, seconds")


def _draw_bandwidth(found: Bandwidth, name: str, axes: Any) -> None:
    rates = [rate / 1e6 for rate in found.bandwidths]
    for (reader, filters), times in found.seconds.items():
        if reader == name:
            axes.plot(rates, times, marker=".", label=filters, linewidth=1.2)
    if found.here is not None:
        axes.axvline(found.here.nbytes_per_s / 1e6, color="k", linestyle=":", label="this machine")
    axes.set(xlabel="storage, MB/s", ylabel="all reads, seconds")
