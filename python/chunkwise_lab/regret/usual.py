"""Does `fix`, without a stated pattern, make any usual read slower, in files of eight kinds?"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.usual import Usual, make

import chunkwise
from chunkwise.fixing.choose import Change
from chunkwise.inspection.facts import DatasetFacts
from chunkwise.inspection.promise import promised_s
from chunkwise.model.cost import Shape
from chunkwise.model.readers import LIBHDF5_1, Reader, this_process
from chunkwise.patterns import Access, as_pattern
from chunkwise_lab.regret.reading import (
    SLOWER,
    Cost,
    by_chunkwise,
    by_h5py,
    compare,
    selections,
)

READERS: Final[dict[str, Callable[[], Reader]]] = {
    "here": this_process,
    "before HDF5 2.0": lambda: LIBHDF5_1,
}


@dataclass(frozen=True)
class Read:
    """How many times as fast one usual read of a changed dataset is: 2 is half the time."""

    number: int  # Of the file
    kind: str
    name: str  # Of the read
    chunks: tuple[Shape | None, Shape | None]  # Before and after
    model: dict[str, float]  # Seconds by the model, for each reader
    measured: dict[str, Cost]  # Processor time, for h5py and chunkwise; empty if not measured

    @property
    def is_slower(self) -> bool:
        """Whether the model or a measurement says so."""
        return any(times < SLOWER for times in self.model.values()) or any(
            cost.is_slower for cost in self.measured.values()
        )


@dataclass(frozen=True)
class UsualResults:
    """What all files showed: how many there were, and were changed, of each kind."""

    files: Counter[str]
    changed: Counter[str]
    reads: tuple[Read, ...]

    @property
    def slower(self) -> list[Read]:
        """Reads that became slower."""
        return [one for one in self.reads if one.is_slower]


def run(
    numbers: Sequence[int], *, measure: bool = True, say: Callable[[str], None] = lambda _: None
) -> UsualResults:
    """Make and fix the files of these numbers, and compare."""
    files: Counter[str] = Counter()
    changed: Counter[str] = Counter()
    reads: list[Read] = []
    with tempfile.TemporaryDirectory(prefix="chunkwise-") as folder:
        before, after = Path(folder, "before.h5"), Path(folder, "after.h5")
        for number in numbers:
            after.unlink(missing_ok=True)
            usual = make(before, number)
            done = chunkwise.fix(before, after, seconds=0)
            say(f"{number}: {usual.kind}: {done.outcome}")
            files[usual.kind] += 1
            if done.outcome != "fixed":
                continue
            changed[usual.kind] += 1
            # A change of the file as a whole touches every read, too.
            same = Change(usual.path, None, None, "", None, ())
            change = next((one for one in done.changes if one.path == usual.path), same)
            places = (before, after) if measure else None
            reads += _compared(number, usual, before, change, places)
    return UsualResults(files, changed, tuple(reads))


def _compared(
    number: int, usual: Usual, before: Path, change: Change, places: tuple[Path, Path] | None
) -> Iterator[Read]:
    facts = next(
        one.dataset for one in chunkwise.inspect(before).objects if one.path == usual.path
    )
    assert facts is not None
    chunks = None if facts.chunks is None else facts.chunks.shape
    for access in usual.reads:
        was, now = (
            (chunks, facts.filters),
            (change.chunk or chunks, change.filters or facts.filters),
        )
        model, measured = {}, {}
        for name, reader in READERS.items():
            seconds = [_seconds(facts, access, layout, reader()) for layout in (was, now)]
            model[name] = seconds[0] / seconds[1]
        if places is not None:
            reads = selections(access, facts.shape or ())
            for name, opened in (("h5py", by_h5py()), ("chunkwise", by_chunkwise)):
                sides = [(place, opened) for place in places]
                measured[name] = compare(sides[0], sides[1], usual.path, reads)
        yield Read(number, usual.kind, access.name, (was[0], now[0]), model, measured)


def _seconds(
    facts: DatasetFacts, access: Access, layout: tuple[Shape | None, str], reader: Reader
) -> float:
    chunk, filters = layout
    pattern = as_pattern(access, facts.shape or ())
    found = promised_s(facts, pattern, chunk=chunk, filters=filters, reader=reader)
    assert found
    return found


def lines(found: UsualResults) -> Iterator[str]:
    """Say how many files were changed, and what their reads cost since."""
    yield f"{'kind':8} {'files':>6} {'changed':>8} {'reads':>6}  times as fast, at the least"
    for kind in found.files:
        reads = [one for one in found.reads if one.kind == kind]
        least = {
            "model": [times for one in reads for times in one.model.values()],
            "h5py": [one.measured["h5py"].times for one in reads if one.measured],
            "chunkwise": [one.measured["chunkwise"].times for one in reads if one.measured],
        }
        said = ", ".join(f"{name} {min(times):.2f}" for name, times in least.items() if times)
        yield (
            f"{kind:8} {found.files[kind]:6} {found.changed[kind]:8} {len(reads):6}  {said or '-'}"
        )
    yield ""
    for one in found.slower:
        yield (
            f"SLOWER: file {one.number} ({one.kind}), {one.name}: chunks {one.chunks[0]} -> "
            f"{one.chunks[1]}: {one.model | {n: c.times for n, c in one.measured.items()}}"
        )
    files, changed = sum(found.files.values()), sum(found.changed.values())
    yield (
        f"{files} files, {changed} changed: {len(found.slower)} of their {len(found.reads)} usual "
        "reads are slower"
    )
