"""How are files verified on which libhdf5 may crash, or never finish?

In child processes, which may crash alone, and end themselves if they make no progress.  They
report how much they read through memory that both processes see.
"""

from __future__ import annotations

import mmap
import signal
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from chunkwise import _native
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


class Progress:
    """How far a survey is."""

    def __init__(self) -> None:
        self.total_nbytes = 0  # Bytes of all files
        # Bytes that were read of each, also by children; all of it when it is done.
        self.read = memoryview(b"").cast("Q")

    def begin(self, sizes: Sequence[int]) -> None:
        """Note which files there are."""
        self.total_nbytes = sum(sizes)
        self.read = memoryview(mmap.mmap(-1, max(1, len(sizes)) * 8)).cast("Q")

    @property
    def done_nbytes(self) -> int:
        """Bytes that were read until now."""
        return sum(self.read)


def verify_apart(
    files: Sequence[tuple[str, int]],
    options: ManifestOptions,
    jobs: int,
    progress: Progress,
    expected: Mapping[str, FileManifest | None],  # What a manifest has of each path; None for none
    still_s: float = STILL_S,
) -> Iterator[Checked]:
    """Verify files in other processes."""
    # Here, so that not every child has to find it.
    library()
    progress.begin([nbytes for _, nbytes in files])
    numbers = {path: number for number, (path, _) in enumerate(files)}
    threads = _native.thread_count()

    def verify(path: str) -> Checked:
        """Verify a file in the child; an alarm ends it if nothing is read any more."""
        number = numbers[path]
        small = jobs > 1 and files[number][1] < _SMALL_NBYTES

        def beat(nbytes: int) -> None:
            signal.setitimer(signal.ITIMER_REAL, still_s)
            progress.read[number] += nbytes

        # The parent may have set another meaning.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        # Another child may have been ended by a file, and this one begins anew.
        progress.read[number] = 0
        beat(0)
        try:
            with settings(threads=1 if small else threads):
                return verify_file(path, options, expected.get(path), beat)
        except (ChunkwiseError, MemoryError, *HDF5_ERRORS) as error:
            # Whatever it is, it is no crash.
            return failed(path, error)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    outcomes = contained_files(verify, [path for path, _ in files], jobs)
    for number, ((path, nbytes), outcome) in enumerate(zip(files, outcomes, strict=True)):
        progress.read[number] = nbytes
        yield outcome.get() if outcome.error is None else failed(path, outcome.error)
