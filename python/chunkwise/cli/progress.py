"""How does a long run show where it is?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from chunkwise.words import format_seconds

if TYPE_CHECKING:
    from chunkwise.benching.schedule import Step


@contextmanager
def showing(console: Console) -> Iterator[Callable[[Step], None] | None]:
    """Show a bar with what is being done and the time left, on a terminal only.

    Parameters
    ----------
    console : Console
        Where; not the one that results go to.
    """
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
