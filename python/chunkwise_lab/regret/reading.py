"""How much processor time do the same reads take of a file before and after a change?

In turns, opened anew each time; the repeats of both sides are judged as those of bench are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import h5py

import chunkwise
from chunkwise.measure.process import Ended, finished
from chunkwise.measure.verdict import Verdict, verdict
from chunkwise.patterns import Access
from chunkwise.trials.unions import Index, index_of
from chunkwise_lab.turns import in_turns

# At most this many reads, and so much processor time for those of one file.
_MOST_READS: Final = 2000
# Below this difference, processor times of the same reads differ by themselves.
NOTHING_S: Final = 1e-3
# Read at less than this share of its former speed, a file is slower.
SLOWER: Final = 0.95
_REPEATS: Final = 5

Open = Callable[[Path], Any]


@dataclass(frozen=True)
class Cost:
    """What repeats of the same reads took before and after, in seconds of processor time."""

    before_s: Sequence[float]
    after_s: Sequence[float]

    @property
    def times(self) -> float:
        """How many times as fast they are after, by the shortest: others only add to a time."""
        return min(self.before_s) / min(self.after_s)

    @property
    def is_slower(self) -> bool:
        """Whether they became slower by more than repeats differ by."""
        added_s = min(self.after_s) - min(self.before_s)
        return added_s > NOTHING_S and self.judged(1 / SLOWER).word == "slower"

    def judged(self, threshold: float) -> Verdict:
        """Say whether they became slower or faster."""
        return verdict(self.before_s, self.after_s, threshold)


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
) -> Cost:
    """Time as many of the reads as `most_s` allows before, in both files."""
    _, number = _seconds(before, dataset, reads, most_s)
    works = {
        side: partial(_seconds, place, dataset, reads[:number])
        for side, place in (("before", before), ("after", after))
    }
    found = in_turns(works, _REPEATS)
    return Cost(*([seconds for seconds, _ in found[side]] for side in works))


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
