"""How are the costs of reading a dataset in different ways shown?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from chunkwise.cells import Hung
from chunkwise.grammar import format_shape, format_size
from chunkwise.inspection.facts import DatasetFacts, PatternFacts, Survival
from chunkwise.inspection.patterns import ACROSS, ALONG
from chunkwise.inspection.render.words import (
    dimension,
    enumerated,
    print_wrapped,
    ratio_words,
    wrapped,
)
from chunkwise.model.readers import LIBRARIES, Reader, this_process
from chunkwise.names import printable
from chunkwise.words import format_seconds

# The first two columns of a table are names, which may be broken into such pieces.
_NAMES = 2
_NAME_WIDTH = 6


def print_patterns(dataset: DatasetFacts, console: Console) -> None:
    """Print what reading a dataset costs; nothing if it was not computed."""
    patterns = dataset.patterns
    if not patterns:
        return
    console.print(Text("One read, with nothing cached", style="bold"))
    _print_table(_one_read(dataset, patterns), console)
    if not any(pattern.survival for pattern in patterns):
        return
    console.print()
    title = "The whole dataset read so, with each reader's cache as it is by default"
    console.print(Text("\n".join(wrapped(title, console.width)), style="bold"))
    _print_table(_everything(dataset, patterns), console)
    for words in _legend(patterns):
        print_wrapped(words, console, "dim")


def _legend(patterns: Sequence[PatternFacts]) -> Iterator[str]:
    """Explain the columns of the second table."""
    survival = [each for pattern in patterns for each in pattern.survival]
    yield "still cached: what the next read finds decoded, of the chunks of the one before"
    yield "slot clashes: chunks of one read that share a slot, where the cache keeps one"
    yield "times decoded: of each chunk, while the whole dataset is read; 1.00 is the least"
    if any(each.reader == _here() for each in survival):
        yield "(here): the HDF5 that read this file"
    if all(each.total_s is None for each in survival):
        yield "No times: the data was not sampled."
    else:
        yield "time: of decoding alone; each call takes some microseconds more"


def pattern_words(dataset: DatasetFacts, name: str) -> str:
    """Name a pattern by the name of its dimension, if it has one."""
    for axis, named in enumerate(dataset.dimensions or ()):
        for words in (ALONG, ACROSS):
            if named is not None and name == f"{words} {axis}":
                return f"{words} {dimension(dataset, axis)}"
    return printable(name)


def _one_read(dataset: DatasetFacts, patterns: Sequence[PatternFacts]) -> Table:
    unit = "pieces" if dataset.chunks is None else "chunks"
    rows = [
        (
            pattern_words(dataset, pattern.name),
            format_shape(pattern.block),
            f"{pattern.chunks:,}",
            format_size(pattern.selected_nbytes),
            format_size(pattern.decoded_nbytes),
            ratio_words(pattern.amplification),
            _time(pattern.read_s),
        )
        for pattern in patterns
    ]
    titles = ("pattern", "block", unit, "asked\nfor", "decoded", "decoded\n/asked", "time")
    return _table(titles, rows)


def _everything(dataset: DatasetFacts, patterns: Sequence[PatternFacts]) -> Table:
    rows = []
    for pattern in patterns:
        name = pattern_words(dataset, pattern.name)
        for readers, one in _alike(pattern.survival):
            rows.append(
                (
                    name,
                    enumerated([_reader_words(reader) for reader in readers]),
                    _kept(pattern, one),
                    f"{one.collisions:,}",
                    ratio_words(one.decodes),
                    _time(one.total_s),
                )
            )
            name = ""
    titles = ("pattern", "reader", "still\ncached", "slot\nclashes", "times\ndecoded", "time")
    return _table(titles, rows)


def _reader_words(name: str) -> str:
    return f"{printable(name)} (here)" if name == _here() else printable(name)


def _here() -> str | None:
    """Name the library with the defaults of this process's own, if there is one."""
    own = _defaults(this_process())
    return next((each.name for each in LIBRARIES if _defaults(each) == own), None)


def _defaults(reader: Reader) -> tuple[int, int | None, float | None]:
    return reader.cache_nbytes, reader.nslots, reader.w0


def _table(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    """Make a table of two columns of names, which may break, and figures, which may not."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    # All titles stand on the line above the figures.
    height = max(title.count("\n") for title in titles)
    for i, title in enumerate(titles):
        widest = max(len(line) for row in rows for line in (*title.split("\n"), row[i]))
        title = "\n" * (height - title.count("\n")) + title
        if i < _NAMES:
            table.add_column(title, overflow="fold", min_width=_NAME_WIDTH)
        else:
            table.add_column(title, justify="right", no_wrap=True, min_width=widest)
    for first, *others in rows:
        table.add_row(Hung(first), *map(Text, others))
    return table


def _print_table(table: Table, console: Console) -> None:
    """Print a table without the spaces that rich puts at the end of a line."""
    least = sum((column.min_width or 0) + 1 for column in table.columns) - 1
    options = console.options.update(width=max(console.width, least))
    for line in console.render_lines(table, options, pad=False):
        text = Text.assemble(*((segment.text, segment.style or "") for segment in line))
        text.rstrip()
        console.print(text, highlight=False, soft_wrap=True)


def _alike(survival: Sequence[Survival]) -> list[tuple[list[str], Survival]]:
    """Put readers together whose caches do the same."""
    rows: dict[tuple[int, int, float, float | None], tuple[list[str], Survival]] = {}
    for one in survival:
        key = (one.reloads, one.collisions, one.decodes, one.total_s)
        rows.setdefault(key, ([], one))[0].append(one.reader)
    return list(rows.values())


def _kept(pattern: PatternFacts, one: Survival) -> str:
    kept = pattern.chunks - one.reloads
    if one.reloads <= 0:
        return "all"
    # Rounded down: 100% would say that nothing is lost.
    return f"{100 * kept // pattern.chunks}%" if kept > 0 else "none"


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else format_seconds(seconds)
