"""How does a name stand in a table's first column?"""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text


class Hung:
    """A text whose lines go on indented where they are broken: a name in it can forge no line."""

    def __init__(self, text: str) -> None:
        self._text = Text(text)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        for line in self._text.split("\n", allow_blank=True):
            if line.cell_len <= width:
                yield line
            else:
                broken = line.wrap(console, max(width - 2, 1), overflow="fold")
                yield Text("\n  ").join(broken)
