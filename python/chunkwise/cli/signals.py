"""How does a long command end when a signal arrives, and how if a file cannot be written?

Python's exception for Ctrl-C is lost in code that must not raise, such as finalisers.  So the
signal is also remembered, and code that works step by step looks at it between two steps.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from chunkwise import system
from chunkwise.cli.echo import echo
from chunkwise.errors import CannotWriteError, notes_of


class Ending:
    """Whether a signal has come that ends the command."""

    def __init__(self) -> None:
        self._received: int | None = None

    def check(self) -> None:
        """Raise KeyboardInterrupt or SystemExit if a signal has come."""
        if self._received == signal.SIGINT:
            raise KeyboardInterrupt
        if self._received is not None:
            # As a shell reports the end by a signal.
            sys.exit(128 + self._received)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        self._received = number
        self.check()

    def _is_of_signal(self, lost: sys.UnraisableHookArgs) -> bool:
        """Whether an exception that was lost is the signal's."""
        ends = isinstance(lost.exc_value, KeyboardInterrupt | SystemExit)
        return ends and self._received is not None


@contextmanager
def ending() -> Iterator[Ending]:
    """End on SIGINT, SIGTERM and SIGHUP by an exception, so that what was made is removed."""
    found = Ending()
    # Signals that the parent had ignored, as by nohup or a shell's &, stay ignored.
    before = {
        number: signal.getsignal(number)
        for number in system.ENDING
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    for number in before:
        signal.signal(number, found._receive)
    hook = sys.unraisablehook
    sys.unraisablehook = lambda lost: None if found._is_of_signal(lost) else hook(lost)
    try:
        yield found
        found.check()
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


@contextmanager
def leaving() -> Iterator[None]:
    """End the process at once if a file could not be written."""
    # libhdf5 would crash on what it could not write; half-written files are removed by now.
    try:
        yield
    except CannotWriteError as wrong:
        echo(f"chunkwise: {wrong}", err=True)
        for line in notes_of(wrong):
            echo(f"chunkwise: {line}", err=True)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(wrong.exit_code)
