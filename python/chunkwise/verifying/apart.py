"""How are files verified on which libhdf5 may crash, or never finish?

In child processes, which end themselves without progress.  Small files share one, and are verified
alone if one of them has ended it.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from chunkwise import _native, system
from chunkwise._lib import library
from chunkwise.errors import ChunkwiseError
from chunkwise.files.contained import contained_files
from chunkwise.manifest.manifest import FileManifest
from chunkwise.names import HDF5_ERRORS
from chunkwise.settings import settings
from chunkwise.verifying.file import Checked, ManifestOptions, failed, verify_file

# A child that has read nothing for so long is ended.
STILL_S: Final = 300.0
# A file of fewer bytes is read on one thread, where several are verified at a time.
_SMALL_NBYTES: Final = 32 << 20


class Counter:
    """Counts the bytes that children have read of each file."""

    def __init__(self, files: int) -> None:
        shared = mmap.mmap(-1, max(1, files) * np.dtype(np.int64).itemsize)
        self.read = np.frombuffer(shared, np.int64)

    @property
    def nbytes(self) -> int:
        """All that was read until now."""
        return int(self.read.sum())


def verify_apart(
    files: Sequence[tuple[str, int]],
    options: ManifestOptions,
    jobs: int,
    counter: Counter,
    expected: Mapping[str, FileManifest | None],  # What a manifest has of each path; None for none
    still_s: float = STILL_S,
) -> Iterator[Checked]:
    """Verify files in other processes."""
    # Here, so that not every child has to find it.
    library()
    all_threads = _native.thread_count()
    numbers = {path: number for number, (path, _) in enumerate(files)}

    def verify(path: str) -> Checked:
        """Verify a file in the child; an alarm ends it if nothing is read any more."""
        number = numbers[path]
        counter.read[number] = 0

        def beat(nbytes: int) -> None:
            system.alarm(still_s)
            counter.read[number] += nbytes

        small = jobs > 1 and files[number][1] < _SMALL_NBYTES
        system.reset_alarm()
        beat(0)
        try:
            with settings(threads=1 if small else all_threads):
                return verify_file(path, options, expected.get(path), beat)
        except (ChunkwiseError, MemoryError, *HDF5_ERRORS) as error:
            # Whatever it is, it is no crash.
            return failed(path, error)
        finally:
            system.alarm(0)

    outcomes = contained_files(verify, [path for path, _ in files], jobs)
    for number, ((path, nbytes), outcome) in enumerate(zip(files, outcomes, strict=True)):
        # However much of it was read.
        counter.read[number] = nbytes
        yield outcome.get() if outcome.error is None else failed(path, outcome.error)
