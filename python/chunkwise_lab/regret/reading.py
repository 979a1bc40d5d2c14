"""How much processor time do the same reads take of a file before and after a change?

In turns, opened anew each time; the shortest time counts: other programs only add to it.  A file
that seems slower by a twentieth counts as slower.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import h5py

import chunkwise
from chunkwise.measure.process import Ended, finished
from chunkwise.patterns import Access
from chunkwise.trials.unions import Index, index_of

# At most this many reads, and so much processor time for those of one file.
_MOST_READS: Final = 2000
# Below this difference, processor times of the same reads differ by themselves.
NOTHING_S: Final = 1e-3
# Read at less than this share of its former speed, a file is slower.
SLOWER: Final = 0.95
# A ratio that says slower is measured again, so often.
_AGAIN: Final = 4

Open = Callable[[Path], Any]


@dataclass(frozen=True)
class Cost:
    """What reads took before and after, in seconds of processor time."""

    before_s: float
    after_s: float

    @property
    def times(self) -> float:
        """How many times as fast they are after."""
        return self.before_s / self.after_s

    @property
    def is_slower(self) -> bool:
        """Whether they became slower by more than repeats differ by."""
        return self.times < SLOWER and self.after_s - self.before_s > NOTHING_S


def by_h5py(**cache: Any) -> Open:
    """Open as h5py does, with its chunk cache or another."""
    return lambda path: h5py.File(path, **cache)


def by_chunkwise(path: Path) -> Any:
    """Open as chunkwise does."""
    return chunkwise.open(path)


def succeeded(command: Sequence[str], **options: Any) -> Ended:
    """Run a program to its end, which must be a good one."""
    done = finished(command, **options)
    if done.returncode:
        raise RuntimeError(f"{command[0]} {done.how}")
    return done


def selections(access: Access, shape: Sequence[int]) -> list[Index]:
    """List what a pattern reads first."""
    walk = access.walk(shape)
    return [index_of(walk[number]) for number in range(min(walk.operations, _MOST_READS))]


def compare(
    before: tuple[Path, Open],
    after: tuple[Path, Open],
    dataset: str,
    reads: Sequence[Index],
    *,
    most_s: float = 0.1,
    repeats: int = 3,
) -> Cost:
    """Time as many of the reads as `most_s` allows before, in both files."""
    first, number = _seconds(before, dataset, reads, most_s)
    reads = reads[:number]
    best = [first, float("inf")]
    for turn in range(repeats + _AGAIN):
        if turn >= repeats and not Cost(*best).is_slower:
            break
        for side, place in enumerate((before, after)):
            best[side] = min(best[side], _seconds(place, dataset, reads)[0])
    return Cost(*best)


def _seconds(
    place: tuple[Path, Open], dataset: str, reads: Sequence[Index], most_s: float = float("inf")
) -> tuple[float, int]:
    path, opened = place
    begun = time.process_time()
    with opened(path) as file:
        found, number = file[dataset], 0
        for index in reads:
            found[index]
            number += 1
            if time.process_time() - begun > most_s:
                break
    return time.process_time() - begun, number
