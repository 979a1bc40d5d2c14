"""What may reach a terminal?  No control sequence from a name.

Code that writes a name escapes it (`chunkwise.names.printable`); forgotten names are escaped here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from chunkwise.names import printable_lines

# Width of output that is not a terminal, unless COLUMNS says otherwise.
WIDTH: Final = 80


class PrintableConsole(Console):
    """A console whose texts hold no control characters but the ends of lines."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as any console does, the texts escaped.  Rich's own commands stay."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield segment._replace(text=printable_lines(segment.text))


def for_results() -> Console:
    """Make the console for results: in a pipe of 80 columns, or as many as COLUMNS says."""
    # The same for every terminal at the pipe's other end.
    columns = os.environ.get("COLUMNS", "")
    fixed = not sys.stdout.isatty() and not (columns.isdigit() and int(columns))
    return PrintableConsole(width=WIDTH if fixed else None)


def for_messages() -> Console:
    """Make the console for progress."""
    return PrintableConsole(stderr=True)
