"""How far is a run, for the code that shows it?"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from chunkwise.notebook import Show

Phase = Literal["planning", "copying", "verifying", "syncing"]


@dataclass(frozen=True)
class Moment:
    """The state of a run at one moment.

    Attributes
    ----------
    phase
        The present phase.
    path
        The dataset; empty between datasets.
    done_nbytes, of_nbytes
        Bytes of the dataset, before filters.
    total_done_nbytes, total_nbytes
        Of the file.
    read_nbytes, written_nbytes
        Stored bytes of the dataset.
    elapsed_s
        Since the phase began.
    """

    phase: Phase
    path: str = ""
    done_nbytes: int = 0
    of_nbytes: int = 0
    total_done_nbytes: int = 0
    total_nbytes: int = 0
    read_nbytes: int = 0
    written_nbytes: int = 0
    elapsed_s: float = 0.0

    @property
    def nbytes_per_s(self) -> float | None:
        """Bytes a second so far; None at the beginning."""
        return self.total_done_nbytes / self.elapsed_s if self.elapsed_s > 0 else None

    @property
    def left_s(self) -> float | None:
        """Seconds left at this rate; None while there is none."""
        rate = self.nbytes_per_s
        return (self.total_nbytes - self.total_done_nbytes) / rate if rate else None


Watch: TypeAlias = Callable[[Moment], None]


def by_bar(show: Show) -> Watch:
    """Show moments in a notebook."""
    return lambda now: show(f"{now.phase} {now.path}", now.total_done_nbytes, now.total_nbytes)


@dataclass
class ProgressReporter:
    """Turns what single datasets report into moments of the whole."""

    watch: Watch
    phase: Phase
    total_nbytes: int
    _before_nbytes: int = 0
    _begin: float = field(default_factory=time.monotonic)

    def of(self, path: str, nbytes: int) -> Callable[[int, int, int], None]:
        """Make the callback for one dataset: bytes done, stored bytes read and written."""

        def report(done: int, read: int, written: int) -> None:
            self.watch(
                Moment(
                    self.phase,
                    path,
                    done,
                    nbytes,
                    self._before_nbytes + done,
                    self.total_nbytes,
                    read,
                    written,
                    time.monotonic() - self._begin,
                )
            )

        report(0, 0, 0)
        return report

    def idle(self, *_: object) -> None:
        """Be the callback of work whose bytes are not counted, that may be ended too."""
        self.watch(
            Moment(
                self.phase,
                total_done_nbytes=self._before_nbytes,
                total_nbytes=self.total_nbytes,
                elapsed_s=time.monotonic() - self._begin,
            )
        )

    def more(self, nbytes: int) -> None:
        """Note that this many more bytes are done, of any dataset."""
        self._before_nbytes = min(self._before_nbytes + nbytes, self.total_nbytes)
        self.idle()

    def ended(self, nbytes: int) -> None:
        """Note that a dataset of `nbytes` bytes is done."""
        self._before_nbytes += nbytes
