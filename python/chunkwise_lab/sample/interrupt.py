"""What happens to Ctrl-C while libhdf5 works?

Python raises KeyboardInterrupt wherever it next runs Python code.  During h5py
calls that is often a weak reference's callback, where exceptions are dropped and
the interrupt is lost.  So this module notes it, and raises it if that is safe.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def deferred_interrupt() -> Iterator[Callable[[], None]]:
    """Hold Ctrl-C back within the block.

    Does nothing outside the main thread, or where the program handles SIGINT in
    a way of its own.
    """
    came = False

    def note(_signal: int, _frame: FrameType | None) -> None:
        nonlocal came
        came = True

    def check() -> None:
        nonlocal came
        if came:
            came = False
            raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield check
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    check()
