"""How are files verified on which libhdf5 may crash, or never finish?

In child processes, which may crash alone, and end themselves if they make no progress.  A large
file has its own child.  Small ones share one, and are verified alone if one of them has ended it.
Children report how much they read through memory that both processes see.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from chunkwise import _native, system
from chunkwise._lib import library
from chunkwise.errors import ChunkwiseError, CrashedError
from chunkwise.files.contained import batches, contained_each
from chunkwise.manifest.manifest import FileManifest
from chunkwise.names import HDF5_ERRORS, printable
from chunkwise.settings import settings
from chunkwise.verifying.file import Checked, ManifestOptions, failed, verify_file

# A child that has read nothing for so long is ended.
STILL_S: Final = 300.0
# A file of fewer bytes is read on one thread, where several are verified at a time.
_SMALL_NBYTES: Final = 32 << 20
_WORD: Final = 8


@dataclass
class Counter:
    """Counts the bytes that children have read."""

    slots: int
    done_nbytes: int = 0  # Of files that are done
    _shared: mmap.mmap = field(init=False)

    def __post_init__(self) -> None:
        self._shared = mmap.mmap(-1, max(1, self.slots) * _WORD)

    @property
    def nbytes(self) -> int:
        """All that was read until now."""
        return self.done_nbytes + sum(self._at(slot) for slot in range(self.slots))

    def add(self, slot: int, nbytes: int) -> None:
        """Count bytes, in a child."""
        self._set(slot, self._at(slot) + nbytes)

    def end(self, slot: int, nbytes: int) -> None:
        """Count a file as done, however much of it was read."""
        self._set(slot, 0)
        self.done_nbytes += nbytes

    def _at(self, slot: int) -> int:
        begin = slot * _WORD
        return int.from_bytes(self._shared[begin : begin + _WORD], "little")

    def _set(self, slot: int, nbytes: int) -> None:
        begin = slot * _WORD
        self._shared[begin : begin + _WORD] = nbytes.to_bytes(_WORD, "little")


# So many children for each at work, as `contained_each` has it, and some to spare.
SLOTS_EACH: Final = 8


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
    together = list(batches(files, jobs))
    threads = _native.thread_count()

    def work(number: int, batch: list[tuple[str, int]]) -> Callable[[], list[Checked]]:
        small = jobs > 1 and all(nbytes < _SMALL_NBYTES for _, nbytes in batch)
        known = {path: expected.get(path) for path, _ in batch}
        count = partial(counter.add, number % counter.slots)
        return partial(_verify_each, known, options, 1 if small else threads, count, still_s)

    works = (
        (work(number, batch), printable(batch[0][0])) for number, batch in enumerate(together)
    )
    outcomes = contained_each(works, jobs)
    for number, (batch, outcome) in enumerate(zip(together, outcomes, strict=True)):
        error = outcome.error
        if isinstance(error, CrashedError) and len(batch) > 1:
            # One of them has ended the child.
            counter.end(number % counter.slots, 0)
            alone = Counter(SLOTS_EACH)
            for file in batch:
                yield from verify_apart([file], options, 1, alone, expected, still_s)
            counter.done_nbytes += alone.done_nbytes
            continue
        counter.end(number % counter.slots, sum(nbytes for _, nbytes in batch))
        if error is not None:
            yield from (failed(path, error) for path, _ in batch)
        else:
            yield from outcome.get()


def _verify_each(
    known: Mapping[str, FileManifest | None],
    options: ManifestOptions,
    threads: int,
    count: Callable[[int], None],
    still_s: float,
) -> list[Checked]:
    """Verify some files in the child; an alarm ends it if nothing is read any more."""

    def beat(nbytes: int) -> None:
        system.alarm(still_s)
        count(nbytes)

    results = []
    system.reset_alarm()
    for path, expected in known.items():
        beat(0)
        try:
            with settings(threads=threads):
                results.append(verify_file(path, options, expected, beat))
        except (ChunkwiseError, MemoryError, *HDF5_ERRORS) as error:
            # Whatever it is, it is no crash.
            results.append(failed(path, error))
        finally:
            system.alarm(0)
    return results
