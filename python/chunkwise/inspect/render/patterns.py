"""How are the costs of reading a dataset in different ways shown?

Two tables: what one read of each pattern touches, and whether what it touches is
still in the reader's cache for the next one, so that reading everything that way
decodes each chunk once.  Readers that fare equally share a row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from chunkwise.grammar import format_shape, format_size
from chunkwise.inspect.facts import DatasetFacts, PatternFacts, Survival
from chunkwise.inspect.render.words import dimension, enumerated, ratio_words, wrapped
from chunkwise.objects import printable
from chunkwise.words import format_seconds

# Of a table's columns the first two are names, which may be broken into such pieces.
_NAMES = 2
_NAME_WIDTH = 6
_ALONG = re.compile(r"(?P<words>line along|plane across) (?P<axis>\d+)")


def print_patterns(dataset: DatasetFacts, console: Console) -> None:
    """Print what reading a dataset costs; nothing where it was not computed."""
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
    note = (
        "kept: of one read's chunks those that the next one beside it still finds decoded; "
        "sharing: chunks that share a slot of the cache's hash table, where only one can stay; "
        "decodes: of each chunk."
    )
    if any(each.total_s is None for pattern in patterns for each in pattern.survival):
        note += " No times: the data was not sampled."
    console.print(Text("\n".join(wrapped(note, console.width)), style="dim"))


def pattern_words(dataset: DatasetFacts, name: str) -> str:
    """Name a pattern by the name of its dimension, where that has one."""
    found = _ALONG.fullmatch(name)
    if found is None or not dataset.dimensions:
        return printable(name)
    axis = int(found["axis"])
    if axis >= len(dataset.dimensions) or dataset.dimensions[axis] is None:
        return printable(name)
    return f"{found['words']} {dimension(dataset, axis)}"


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
    return _table(("pattern", "block", unit, "asked for", "decoded", "ratio", "time"), rows)


def _everything(dataset: DatasetFacts, patterns: Sequence[PatternFacts]) -> Table:
    rows = []
    for pattern in patterns:
        name = pattern_words(dataset, pattern.name)
        for readers, one in _alike(pattern.survival):
            rows.append(
                (
                    name,
                    enumerated([printable(reader) for reader in readers]),
                    _kept(pattern, one),
                    f"{one.collisions:,}",
                    ratio_words(one.decodes),
                    _time(one.total_s),
                )
            )
            name = ""
    return _table(("pattern", "reader", "kept", "sharing", "decodes", "time"), rows)


def _table(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    """Make a table of two columns of names, which may break, and figures, which may not."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    for i, title in enumerate(titles):
        if i < _NAMES:
            table.add_column(title, overflow="fold", min_width=_NAME_WIDTH)
        else:
            widest = max(len(row[i]) for row in [titles, *rows])
            table.add_column(title, justify="right", no_wrap=True, min_width=widest)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _print_table(table: Table, console: Console) -> None:
    """Print a table without the spaces that rich puts at the end of a line.

    Where not even the figures fit the console, its lines are longer: rich would cut them.
    """
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
