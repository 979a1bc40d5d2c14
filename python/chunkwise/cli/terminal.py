"""What may reach a terminal?  No control sequence from a name.

Names, values and messages come from files that nobody vouches for.  Code that writes a name
escapes it there (`chunkwise.names.printable`), because columns are counted there.
Names that were forgotten are escaped here, and in `chunkwise.cli.echo` for output without a
console.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
)
from rich.segment import Segment

from chunkwise.cli.echo import echo
from chunkwise.cli.signals import ending
from chunkwise.names import printable_lines
from chunkwise.words import format_seconds

if TYPE_CHECKING:
    from chunkwise.measure.schedule import Step

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


@contextmanager
def following() -> Iterator[Callable[[Step], None]]:
    """Return an observer of a run: it shows steps, prints warnings, and ends it on a signal."""
    columns = (
        SpinnerColumn(),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.description}", markup=False),
    )
    with ending() as end, bar(*columns) as shown:
        task = shown.add_task("looking at the file", total=None, left="")

        def follow(step: Step) -> None:
            end.check()
            if step.warning:
                echo(f"chunkwise: {step.text}", err=True)
                return
            left = "" if step.left_s is None else f"{format_seconds(step.left_s)} left"
            total = step.total or None
            shown.update(task, description=step.text, completed=step.done, total=total, left=left)

        yield follow


@contextmanager
def bar(*columns: str | ProgressColumn, hidden: bool = False) -> Iterator[Progress]:
    """Show a bar on a terminal, for as long as the block lasts; elsewhere it stays unseen."""
    console = for_messages()
    shown = Progress(
        *columns, console=console, transient=True, disable=hidden or not console.is_terminal
    )
    # Some versions of rich end a disabled bar with an empty line.
    with nullcontext() if shown.disable else shown:
        yield shown
