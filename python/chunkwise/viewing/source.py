"""Which file is looked at?  A local one, or one far away, which stays open."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import h5py

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.files.opening import find_dataset
from chunkwise.files.unclosed import open_readable
from chunkwise.inspection import FileFacts, inspect
from chunkwise.model.far import Link
from chunkwise.names import is_url, printable, shown_url
from chunkwise.remote.opening import Opened, open_url, storage_of


@dataclass
class Source:
    """A file by its path or URL."""

    path: str
    _far: Opened | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_far(self) -> bool:
        """Whether each request for its bytes waits."""
        return is_url(self.path)

    @property
    def shown(self) -> str:
        """What it is called, without passwords."""
        return printable(shown_url(self.path) if self.is_far else os.fspath(self.path))

    def _opened(self) -> Opened:
        with self._lock:
            if self._far is None:
                self._far = open_url(self.path, None)
            return self._far

    @contextmanager
    def file(self) -> Iterator[h5py.File]:
        """Open the file for as long as the block lasts."""
        if self.is_far:
            yield self._opened().file
        else:
            with open_readable(self.path) as file:
                yield file

    @contextmanager
    def dataset(self, path: str) -> Iterator[h5py.Dataset]:
        """Open one of its datasets for as long as the block lasts."""
        with self.file() as file:
            yield find_dataset(file, path)

    @property
    def link(self) -> Link | None:
        """The way to it, as opening it has measured; None for a local file."""
        source = self._opened().source if self.is_far else None
        if source is None:
            return None
        latency_ns, nbytes_per_s, _, in_flight = source.cost
        return Link(latency_ns / 1e9, nbytes_per_s, in_flight)


# Facts, and requests that it took to collect them; None of a local file.
Looked = tuple[FileFacts, int | None]


def look(
    path: str,
    *,
    sample: bool,
    metadata: bool,
    dataset: str | None = None,
    access: Sequence[str] = (),
) -> Looked:
    """Inspect a file, also one far away; of one here, refuse reads that fit nothing in it."""
    if not is_url(path):
        if access:
            inspect(path, dataset, access=access, sample=False, metadata=False)
        return inspect(path, sample=sample, metadata=metadata), None
    facts = inspect(path, sample=False, metadata=False)
    return facts, None if facts.far is None else facts.far.requests


def listing(dataset: h5py.Dataset) -> _native.ChunkListing:
    """List the chunks of an open dataset, wherever its bytes are."""
    return library().chunk_listing(dataset.id.id, storage_of(dataset))
