"""How does a whole file come from afar, where all of its bytes will be read?"""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from chunkwise.errors import CannotWriteError, ChunkwiseError, like
from chunkwise.grammar import format_size
from chunkwise.model.far import Fetched
from chunkwise.names import printable, shown_url
from chunkwise.remote.opening import source_of_url, whole_copy
from chunkwise.remote.source import RemoteBytes
from chunkwise.remote.urls import file_name

# A thread asks for so much together, by requests that are under way at the same time.
_PIECE_NBYTES: Final = 32 << 20
_THREADS: Final = 3
# It says of which format a file should be.
_ENDING: Final = re.compile(r"\.\w{1,8}$", re.ASCII)


@dataclass
class Copied:
    """A copy of a file, in a folder of its own."""

    path: Path
    name: str  # Of the file, in its URL
    shown: str  # The URL without passwords
    # None of what fsspec has copied itself.
    source: RemoteBytes | None

    def fetched(self, latency_s: float | None) -> Fetched | None:
        """What it took."""
        return None if self.source is None else self.source.fetched(latency_s)


@contextmanager
def copied(url: str, begun: Callable[[int], Callable[[int], None]]) -> Iterator[Copied]:
    """Copy a file for as long as the block lasts."""
    # `begun` is called with the file's bytes, and gives what is called with those that have come.
    shown = shown_url(url)
    local = whole_copy(url, {}, shown)
    source = None if local is not None else source_of_url(url, None)
    name = file_name(url)
    ending = _ENDING.search(name)
    with TemporaryDirectory(prefix="chunkwise.") as folder:
        path = Path(folder) / f"copy{ending[0] if ending else '.h5'}"
        try:
            if source is not None:
                _require_room(folder, source.size, shown)
                _copy(source, path, begun(source.size))
            elif local is not None:
                path = Path(local[0].name)
        except ChunkwiseError:
            raise
        except OSError as error:
            said = f"cannot be copied to {printable(folder)}: {error.strerror}"
            raise like(CannotWriteError, error)(f"{shown}: {said}; set TMPDIR") from error
        yield Copied(path, name, shown, source)


def _require_room(folder: str, nbytes: int, shown: str) -> None:
    free = shutil.disk_usage(folder).free
    if free < nbytes:
        raise CannotWriteError(
            f"{shown}: is read from a copy of {format_size(nbytes)}, and {printable(folder)} has "
            f"{format_size(free)} free; set TMPDIR to a folder with more"
        )


def _copy(source: RemoteBytes, path: Path, progress: Callable[[int], None]) -> None:
    """Write all bytes of a source to a file, several pieces at a time."""
    lock = threading.Lock()

    def piece(target: Any, start: int) -> None:
        stop = min(start + _PIECE_NBYTES, source.size)
        (content,) = source.read_ranges([(start, stop - start)])
        with lock:
            target.seek(start)
            target.write(content)
        progress(len(content))

    with path.open("wb") as target, ThreadPoolExecutor(_THREADS) as pool:
        try:
            for _ in pool.map(partial(piece, target), range(0, source.size, _PIECE_NBYTES)):
                pass
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            source.interrupt()
            raise
