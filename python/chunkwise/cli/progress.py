"""How does a long run of measurements show where it is, and how does it end?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from chunkwise.cli.echo import echo
from chunkwise.cli.signals import ending
from chunkwise.cli.terminal import for_messages
from chunkwise.words import format_seconds

if TYPE_CHECKING:
    from chunkwise.benching.schedule import Step


@contextmanager
def following() -> Iterator[Callable[[Step], None]]:
    """Give what follows a run: it shows each step, prints warnings, and ends it on a signal."""
    with ending() as end, _showing() as show:

        def follow(step: Step) -> None:
            end.check()
            if step.warning:
                echo(f"chunkwise: {step.text}", err=True)
            elif show is not None:
                show(step)

        yield follow


@contextmanager
def _showing() -> Iterator[Callable[[Step], None] | None]:
    """Show a bar with what is being done and the time left, on a terminal only."""
    console = for_messages()
    if not console.is_terminal:
        yield None
        return
    columns = (
        SpinnerColumn(),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("looking at the file", total=None, left="")

        def show(step: Step) -> None:
            left = "" if step.left_s is None else f"{format_seconds(step.left_s)} left"
            total = step.total or None
            bar.update(task, description=step.text, completed=step.done, total=total, left=left)

        yield show
