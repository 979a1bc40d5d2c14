"""Which shapes serve two patterns, and at which bandwidth does a codec pay?

The model answers both questions for every weight, reader and storage at once.  Only the machine
and a sample of the data are measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from chunkwise.model.layout import Layout
from chunkwise.model.readers import CHUNKWISE, reader
from chunkwise.model.search import Outcome, Problem, search
from chunkwise.model.seconds import Storage
from chunkwise.model.traffic import Pattern

# The share of the first of two patterns.
WEIGHTS: Final = (1.0, 0.99, 0.9, 0.75, 0.5, 0.25, 0.1, 0.01, 0.0)
_SEARCHED: Final = (1.0, 0.5, 0.0)
# An object store, as it is reached from elsewhere.
REMOTE: Final = Storage(0.05, 100e6)
# A local disk, where this machine's cannot be measured.
DISK: Final = Storage(1e-4, 500e6, reads_ahead=True)
BANDWIDTHS: Final = (1e7, 2e7, 5e7, 1e8, 2e8, 5e8, 1e9, 2e9, 5e9, 1e10)
READERS: Final = ("libhdf5", CHUNKWISE)


@dataclass(frozen=True)
class Point:
    """The best layout for one weight."""

    share: float  # Of the first pattern, 0 to 1: how much its seconds count
    layout: Layout  # The best
    first_s: float  # Seconds of each pattern
    second_s: float


@dataclass(frozen=True)
class Tradeoff:
    """The frontier between two patterns, for each place the bytes come from and each reader."""

    first: str  # The patterns' names
    second: str
    # For each storage (``warm``, ``cold``, ``remote``) and reader, the best layouts from one
    # pattern to the other.
    fronts: dict[tuple[str, str], tuple[Point, ...]]
    storages: dict[str, Storage | None]  # What the words mean; None for memory
    # The seconds of both with the present layout, for the same.
    present: dict[tuple[str, str], tuple[float, float]]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "first": self.first,
            "second": self.second,
            "storages": {n: None if s is None else asdict(s) for n, s in self.storages.items()},
            "fronts": [
                {
                    "storage": storage,
                    "reader": name,
                    "points": [asdict(point) for point in points],
                    "present": self.present.get((storage, name)),
                }
                for (storage, name), points in self.fronts.items()
            ],
        }


def storages(problem: Problem) -> dict[str, Storage | None]:
    """Say from where bytes may come: memory, this machine's storage, an object store."""
    here = problem.machine.cold or DISK
    return {
        "warm": None,
        "cold": replace(here, remembers=True, reads_ahead=True),
        "remote": REMOTE,
    }


def tradeoff(problem: Problem, first: Pattern, second: Pattern) -> Tradeoff:
    """Find the best layouts between two patterns, for libhdf5 and chunkwise."""
    fronts = {}
    present = {}
    known = storages(problem)
    for storage, where in known.items():
        for name in READERS:
            pair = _problem(problem, (first, second), name, where)
            outcomes: dict[Layout, Outcome] = {}
            # The layouts between are found on the way from one end to the other.
            for share in _SEARCHED:
                weights = (max(share, 1e-6), max(1 - share, 1e-6))
                asked = tuple(
                    replace(p, weight=w) for p, w in zip((first, second), weights, strict=True)
                )
                found = search(replace(pair, patterns=asked, known={}))
                outcomes |= {one.layout: one for one in found.ranked if pair.fits(one)}
            fronts[storage, name] = tuple(_points(outcomes))
            if problem.present is not None:
                one = pair.outcome(problem.present)
                present[storage, name] = (one.pattern_s[0], one.pattern_s[1])
    return Tradeoff(first.name, second.name, fronts, known, present)


def _problem(
    problem: Problem, patterns: tuple[Pattern, ...], name: str, where: Storage | None
) -> Problem:
    who = reader(CHUNKWISE) if name == CHUNKWISE else problem.reader
    if name != CHUNKWISE and problem.reader_name == CHUNKWISE:
        who = reader("libhdf5-2")
    return replace(
        problem, patterns=patterns, reader=who, reader_name=name, storage=where,
        objective="read", known={}, timed={},
    )  # fmt: skip


def _points(outcomes: Mapping[Layout, Outcome]) -> list[Point]:
    """Give the best layout of each weight, of all that were looked at, each once."""
    found: list[Point] = []
    for share in WEIGHTS:
        best = min(
            outcomes.values(),
            key=lambda one, a=share: (  # type: ignore[misc]
                a * one.pattern_s[0] + (1 - a) * one.pattern_s[1],
                one.pattern_s,
            ),
        )
        point = Point(share, best.layout, best.pattern_s[0], best.pattern_s[1])
        if not found or found[-1].layout != point.layout:
            found.append(point)
    return found


@dataclass(frozen=True)
class Bandwidth:
    """The fastest filters by the storage's bandwidth."""

    chunks: tuple[int, ...]  # The chunk shape, the same for all
    bandwidths: tuple[float, ...]  # Bytes a second
    # For each reader and pipeline, the seconds of all patterns at each bandwidth.
    seconds: dict[tuple[str, str], tuple[float, ...]]
    here: Storage | None  # This machine's storage; None if it could not be measured

    def fastest(self, name: str, place: int) -> str:
        """Return the fastest pipeline of a reader at one of the bandwidths."""
        able = {f: s[place] for (who, f), s in self.seconds.items() if who == name}
        return min(able, key=lambda filters: (able[filters], filters))

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "chunks": list(self.chunks),
            "bandwidths": list(self.bandwidths),
            "here": None if self.here is None else asdict(self.here),
            "readers": [
                {
                    "reader": name,
                    "fastest": [self.fastest(name, i) for i in range(len(self.bandwidths))],
                    "seconds": {f: list(s) for (who, f), s in self.seconds.items() if who == name},
                }
                for name in READERS
            ],
        }


def by_bandwidth(
    problem: Problem, chunks: tuple[int, ...], bandwidths: Sequence[float] = BANDWIDTHS
) -> Bandwidth:
    """Find the fastest filters for each bandwidth of the storage."""
    request_s = (problem.machine.cold or DISK).request_s
    seconds = {}
    for name in READERS:
        for filters in problem.codecs:
            times = []
            for rate in bandwidths:
                one = _problem(
                    problem,
                    problem.patterns,
                    name,
                    Storage(request_s, rate, remembers=True, reads_ahead=True),
                )
                times.append(one.outcome(Layout(chunks, filters)).read_s)
            seconds[name, filters] = tuple(times)
    return Bandwidth(chunks, tuple(bandwidths), seconds, problem.machine.cold)
