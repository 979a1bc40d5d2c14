"""How does a long run of measurements show where it is, and how does it end?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
)

from chunkwise.cli.echo import echo
from chunkwise.cli.signals import ending
from chunkwise.cli.terminal import for_messages
from chunkwise.words import format_seconds

if TYPE_CHECKING:
    from chunkwise.measure.schedule import Step


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
        *columns,
        console=console,
        transient=True,
        disable=hidden or not console.is_terminal,
    )
    # Some versions of rich end a disabled bar with an empty line.
    with nullcontext() if shown.disable else shown:
        yield shown
