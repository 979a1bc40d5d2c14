"""How is shown how much of many files is read, and how long the rest takes?"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from chunkwise.cli.echo import echo
from chunkwise.cli.progress import bar

_TICK_S = 0.2


class Reading(Protocol):
    """How far something is."""

    @property
    def total_nbytes(self) -> int:
        """Bytes of all files."""

    @property
    def done_nbytes(self) -> Callable[[], int]:
        """Tells how many were read."""


@contextmanager
def showing_bytes(reading: Reading, *, hidden: bool = False) -> Iterator[Callable[[str], None]]:
    """Show a bar of bytes on a terminal while the block runs; give what prints lines beside it."""
    if hidden or not sys.stderr.isatty():
        yield echo
        return
    # Here, as they take a twentieth of a second.
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    ended = threading.Event()
    columns = BarColumn(bar_width=20), DownloadColumn(True), TransferSpeedColumn()
    with bar(*columns, TimeRemainingColumn()) as shown:
        task = shown.add_task("", total=None)

        def follow() -> None:
            while not ended.wait(_TICK_S):
                total = reading.total_nbytes or None
                shown.update(task, completed=reading.done_nbytes(), total=total)

        def say(line: str) -> None:
            if not sys.stdout.isatty():
                echo(line)
            else:
                shown.console.print(line, markup=False, highlight=False, soft_wrap=True)

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield say
        finally:
            ended.set()
            thread.join()
