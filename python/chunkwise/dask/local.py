"""How do the threads of this process write one file, without a cluster?

Dask's scheduler runs one task a block, which encodes its chunks and writes them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from chunkwise.dask.finding import getter
from chunkwise.dask.pieces import Piece, token
from chunkwise.dask.tasks import Encoded, forget, write_at
from chunkwise.errors import CannotWriteError


@dataclass
class Local:
    """Threads that write one file."""

    kind: Literal["threads", "sync"]  # Dask's scheduler
    descriptor: int  # Of the file
    # Called with each piece that is written, by any thread.
    tell: Callable[[Piece], None] = lambda _: None
    again: int = 0
    _held: int = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._held = os.dup(self.descriptor)

    def write(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Write pieces, and yield each."""
        graph: dict[Any, Any] = {}
        ends = []
        all_pieces = list(pieces)
        name = token()
        for number, piece in enumerate(all_pieces):
            encoded, end = (f"chunkwise-{what}-{name}{number:x}" for what in ("encode", "write"))
            graph.update(piece.graph())
            graph[encoded] = piece.task
            graph[end] = (partial(self._put, piece), encoded)
            ends.append(end)
        if ends:
            getter(self.kind)(graph, ends)
        for form in {piece.target.form for piece in all_pieces}:
            forget(form)
        yield from all_pieces

    def _put(self, piece: Piece, encoded: Encoded) -> None:
        # A thread that goes on after Ctrl-C has a descriptor of this file, or none.
        with self._lock:
            if self._held < 0:
                raise CannotWriteError("the run has ended")
            descriptor = os.dup(self._held)
        try:
            addresses = piece.target.places.allocate(encoded.table)
            write_at(descriptor, encoded.chunks, addresses)
        finally:
            os.close(descriptor)
        self.tell(piece)

    def stop(self) -> None:
        """Let nothing more be written."""
        with self._lock:
            if self._held >= 0:
                os.close(self._held)
            self._held = -1
