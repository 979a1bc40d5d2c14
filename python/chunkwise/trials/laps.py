"""Which part of an operation took how long, in a loop in Python?"""

from __future__ import annotations

from collections.abc import Callable

Clock = Callable[[], int]


class Laps:
    """The moments between the parts of one operation, as its code reports them.

    A reader that tells none pays nothing for it.
    """

    __slots__ = ("_clock", "_done_ns", "_opened_ns", "_selected_ns")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._opened_ns: int | None = None
        self._selected_ns: int | None = None
        self._done_ns: int | None = None

    def opened(self) -> None:
        """The dataset is open."""
        self._opened_ns = self._clock()

    def selected(self) -> None:
        """The selection is put together."""
        self._selected_ns = self._clock()

    def done(self) -> None:
        """The elements are there; what follows is not a part of the operation."""
        self._done_ns = self._clock()

    def finish(self, begun_ns: int, ended_ns: int) -> tuple[int, int | None, int | None]:
        """Start again, and return nanoseconds of the whole, of opening, and of selecting."""
        done = ended_ns if self._done_ns is None else self._done_ns
        opened = None if self._opened_ns is None else self._opened_ns - begun_ns
        select = None
        if self._selected_ns is not None:
            select = self._selected_ns - (begun_ns + (opened or 0))
        self._opened_ns = self._selected_ns = self._done_ns = None
        return done - begun_ns, opened, select
