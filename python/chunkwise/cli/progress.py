"""How does a long run of measurements show where it is, and how does it end?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from chunkwise.cli.echo import echo
from chunkwise.cli.signals import ending
from chunkwise.cli.terminal import for_messages
from chunkwise.words import format_seconds

if TYPE_CHECKING:
    from chunkwise.measure.schedule import Step
    from chunkwise.verifying.survey import Progress as Reading


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


class _Asking(Progress):
    """A bar that asks how far the work is each time it is drawn."""

    reading: Reading

    def get_renderables(self) -> Iterable[RenderableType]:
        done, total = self.reading.done_nbytes(), self.reading.total_nbytes or None
        for task in self.task_ids:
            self.update(task, completed=done, total=total)
        yield from super().get_renderables()


@contextmanager
def showing_bytes(reading: Reading, *, hidden: bool = False) -> Iterator[Callable[[str], None]]:
    """Show a bar of bytes on a terminal while the block runs; give what prints lines beside it."""
    if hidden or not sys.stderr.isatty():
        yield echo
        return
    columns = BarColumn(bar_width=20), DownloadColumn(True), TransferSpeedColumn()
    shown = _Asking(*columns, TimeRemainingColumn(), console=for_messages(), transient=True)
    shown.reading = reading
    with shown:
        shown.add_task("", total=None)
        yield partial(say_beside, shown)


def say_beside(shown: Progress, line: str) -> None:
    """Print a result without tearing bars apart."""
    if not sys.stdout.isatty():
        echo(line)
    else:
        shown.console.print(line, markup=False, highlight=False, soft_wrap=True)
