"""How does a notebook show how far long work is?  By a bar, in the place of its output."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from chunkwise.names import printable

if TYPE_CHECKING:
    from rich.progress import Progress

# Words, how much is done, and of how much; 0 if nobody knows.
Show = Callable[[str, int, int], None]
_INTERVAL_S: Final = 0.1
_WORDS: Final = 60
# The shells of Jupyter and of Google Colab.
_SHELLS: Final = frozenset({"ZMQInteractiveShell", "Shell"})


@contextmanager
def in_notebook(*, unless: object = None) -> Iterator[Show]:
    """Show a bar for as long as the block lasts; nothing elsewhere, or if a caller follows."""
    display = _display() if unless is None else None
    if display is None:
        yield lambda *_: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn()
    bar = Progress(*columns, auto_refresh=False)
    bar.add_task("", total=None)
    handle = display(bar.make_tasks_table(bar.tasks), display_id=True)
    shown_at = 0.0

    def show(words: str, done: int, total: int) -> None:
        nonlocal shown_at
        task = bar.task_ids[0]
        bar.update(
            task, description=printable(words)[:_WORDS], completed=done, total=total or None
        )
        if time.monotonic() - shown_at >= _INTERVAL_S:
            shown_at = time.monotonic()
            handle.update(bar.make_tasks_table(bar.tasks))

    try:
        yield show
    finally:
        handle.update(_ended(bar))


def _ended(bar: Progress) -> Any:
    from rich.text import Text

    # Nothing stays of a bar on a terminal, either.
    return Text(f"{bar.tasks[0].description.strip()}: ended")


def _display() -> Any:
    """Return what shows something in the notebook in which this runs; None elsewhere."""
    found = sys.modules.get("IPython")
    if found is None or type(found.get_ipython()).__name__ not in _SHELLS:
        return None
    return found.display.display
