"""Who learns how far writing is?"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from chunkwise.dask.pieces import Piece

# Called with bytes done and bytes in all.
Progress: TypeAlias = Callable[[int, int], None]


@dataclass
class Telling:
    """Adds up what is written."""

    progress: Progress | None  # The observer; may raise to end the run
    total_nbytes: int  # Of all elements
    _done_nbytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of_piece(self, piece: Piece) -> None:
        """Note that a piece is written."""
        self.of_nbytes(piece.nbytes)

    def of_nbytes(self, nbytes: int) -> None:
        """Note that so many bytes of elements are written."""
        with self._lock:
            self._done_nbytes += nbytes
            if self.progress is not None:
                self.progress(self._done_nbytes, self.total_nbytes)
