"""How is the progress of a repack shown, of one file and of many?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from chunkwise.cli.echo import echo
from chunkwise.cli.signals import Ending
from chunkwise.grammar import format_size
from chunkwise.words import format_seconds

if TYPE_CHECKING:
    from rich.progress import Progress

    from chunkwise.repacking.progress import Moment

# Beside a bar and figures, in a terminal of 80 columns.
PATH_WIDTH = 20
_BAR_WIDTH = 10
_WORDS_WIDTH = 60


class Unshown:
    """Shows no progress, because nobody would see it, but ends on request."""

    def __init__(self, ends: Ending) -> None:
        self.file = ""
        self._ends = ends

    def __call__(self, _: Moment) -> None:
        """Take note of a moment of the repack."""
        self._ends.check()

    def say(self, line: str) -> None:
        """Print a result."""
        echo(line)

    def tell(self, _: str) -> None:
        """Say what is done next, unless it is the repack itself."""
        self._ends.check()


class Shown(Unshown):
    """Progress on a terminal: a line for the dataset, and one for the file."""

    def __init__(self, bar: Progress, ends: Ending) -> None:
        super().__init__(ends)
        self._bar = bar
        self._total = bar.add_task("", total=None, said="")
        self._dataset = bar.add_task("", total=None, said="")

    def __call__(self, moment: Moment) -> None:
        """Show a moment of the repack."""
        from chunkwise.repacking.render import shortened

        self._ends.check()
        rate, left = moment.nbytes_per_s, moment.left_s
        said = f"{format_size(moment.total_done_nbytes)} of {format_size(moment.total_nbytes)}"
        if rate and left is not None:
            said += f", {format_size(round(rate))}/s, {format_seconds(left)} left"
        self._bar.update(
            self._total,
            description=f"{self.file}{moment.phase}",
            total=moment.total_nbytes or None,
            completed=moment.total_done_nbytes,
            said=said if moment.total_nbytes else "",
        )
        within = ""
        if moment.path:
            within = f"{format_size(moment.done_nbytes)} of {format_size(moment.of_nbytes)}"
            if rate:
                dataset_left = (moment.of_nbytes - moment.done_nbytes) / rate
                within += f", {format_seconds(dataset_left)} left"
        self._bar.update(
            self._dataset,
            description=shortened(moment.path, PATH_WIDTH),
            total=moment.of_nbytes or None,
            completed=moment.done_nbytes,
            said=within,
            visible=bool(moment.path),
        )

    def tell(self, text: str) -> None:
        """Say what is done next, unless it is the repack itself."""
        from chunkwise.names import printable

        self._ends.check()
        words = f"{self.file}{printable(text)}"[:_WORDS_WIDTH]
        self._bar.update(self._total, description=words, total=None, completed=0, said="")
        self._bar.update(self._dataset, description="", visible=False)

    def say(self, line: str) -> None:
        """Print a result without tearing the bars apart."""
        if not sys.stdout.isatty():
            super().say(line)
        else:
            self._bar.console.print(line, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def showing(as_json: bool, ends: Ending, files: int = 1) -> Iterator[Unshown]:
    """Show progress while the block runs, on a terminal only."""
    if not sys.stderr.isatty() or (as_json and sys.stdout.isatty() and files > 1):
        yield Unshown(ends)
        return
    # Here, as it takes a twentieth of a second.
    from rich.progress import BarColumn, Progress, TextColumn

    from chunkwise.cli.terminal import for_messages

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=_BAR_WIDTH),
        TextColumn("{task.fields[said]}", markup=False),
        console=for_messages(),
        transient=True,
    )
    with bar:
        yield Shown(bar, ends)
