"""By what factor do two sets of measurements differ, and how sure is that?

A ratio has an interval (`chunkwise.measure.verdict`); for sizes and counts it is the ratio itself.
If several pairs of rows say the same thing, their geometric mean is taken.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final, Literal

from chunkwise.measure.verdict import (
    CONFIDENCE,
    FACTOR_OF_FEW,
    FEWEST,
    MOST_REPEATS,
    THRESHOLD,
    verdict,
)
from chunkwise_lab.studies.figures import FIGURES
from chunkwise_lab.studies.results import Row, middle, standard_error
from chunkwise_lab.studies.study import LIBRARIES, Statistic, Where, matches

# With too few repeats to show their spread, 3 times counts as slower.
_HALF_OF_FEW: Final = math.log(FACTOR_OF_FEW / THRESHOLD)
_TIMED: Final = ("s", "MB/s")


@dataclass(frozen=True)
class Sample:
    """The figure of one row, or of several that are summed up."""

    point: Mapping[str, str]  # Labels and values on axes; without the one that is summed over
    values: tuple[float, ...]  # One a repeat
    # As the study sums up repeats; the standard error of their mean.
    middle: float
    error: float = 0.0
    estimated: bool = False  # Whether some of it is extrapolated
    noisy: bool = True  # Whether another run would give other values
    rate: bool = False  # Whether more is faster
    records: tuple[dict[str, Any], ...] = ()  # Of what was measured

    @property
    def versions(self) -> tuple[str, ...]:
        """The libraries that were measured, such as ``HDF5 2.0.0``."""
        return tuple(dict.fromkeys(text for one in self.records if (text := _version(one))))

    @property
    def numbers(self) -> str | None:
        """The same for a label, as in ``1.10.8, 2.0.0``; None if nothing is known."""
        found = dict.fromkeys(text for one in self.records if (text := _version(one, "")))
        return ", ".join(found) or None


def samples(
    rows: Iterable[Row],
    figure: str,
    statistic: Statistic,
    over: str | None = None,
    total: Literal["mean", "sum"] = "mean",
) -> list[Sample]:
    """Sum up rows, each alone or all that differ in one axis; a sum that lacks a part is none."""
    groups: dict[tuple[tuple[str, str], ...], list[Row]] = {}
    for row in rows:
        key = tuple((name, text) for name, text in row.point.items() if name != over)
        groups.setdefault(key, []).append(row)
    # A build has as many libraries as were found.
    most = 1 if over in LIBRARIES else max(map(len, groups.values()), default=1)
    found = []
    for key, group in groups.items():
        parts = [row.values(figure) for row in group]
        lacks = len(group) < most and over in group[0].point
        if all(parts) and not lacks:
            # If rows were measured less often, as many repeats as all have.
            repeats = zip(*parts, strict=False)
            add = statistics.fmean if total == "mean" else math.fsum
            added = tuple(map(add, repeats))
            # Each row's repeats are summed up before rows are, as papers and tables do it.
            best = max if FIGURES[figure].better == "higher" else min
            middles = add(
                [best(p) if statistic == "best" else middle(p, statistic) for p in parts]
            )
            error = math.hypot(*map(standard_error, parts)) / (
                len(parts) if total == "mean" else 1
            )
            records = tuple(r for row in group for r in row.records if r["status"] == "ok")
            estimated = any(record.get("extrapolated") for record in records)
            noisy = FIGURES[figure].unit in _TIMED or len(set(added)) > 1
            rate = FIGURES[figure].unit == "MB/s"
            found.append(Sample(dict(key), added, middles, error, estimated, noisy, rate, records))
    return found


def _version(record: Mapping[str, Any], name: str = "HDF5 ") -> str:
    if not record.get("hdf5"):
        return ""
    if record.get("netcdf"):
        return f"netCDF-C {record['netcdf']} on HDF5 {record['hdf5']}"
    return f"{name}{record['hdf5']}"


Pair = tuple[Sample, Sample]


def pairs(found: Sequence[Sample], first: Where, second: Where) -> list[Pair]:
    """Pair samples that agree in everything that neither side names."""
    named = {*first, *second}

    def rest(sample: Sample) -> frozenset[tuple[str, str]]:
        return frozenset((k, v) for k, v in sample.point.items() if k not in named)

    sides = [[one for one in found if matches(one.point, where)] for where in (first, second)]
    return [(a, b) for a, b in product(*sides) if a is not b and rest(a) == rest(b)]


def series(found: Sequence[Sample], axis: str) -> list[dict[str, Sample]]:
    """Return samples by their value on an axis, for the largest sets that differ in it alone."""
    groups: dict[frozenset[tuple[str, str]], dict[str, Sample]] = {}
    for sample in found:
        if axis in sample.point:
            key = frozenset((k, v) for k, v in sample.point.items() if k != axis)
            groups.setdefault(key, {})[sample.point[axis]] = sample
    largest = max(groups.values(), key=len, default={})
    return [
        group for group in groups.values() if len(group) > 1 and group.keys() == largest.keys()
    ]


@dataclass(frozen=True)
class Ratio:
    """How many times one side is the other."""

    pairs: tuple[Pair, ...]  # Of which it is the geometric mean
    value: float  # By the middles; infinite if the second is 0 and the first is not
    # The interval in which noise may put it.
    low: float
    high: float
    repeats: int  # The fewest that a sample has
    # Whether pairs differ both ways, beyond the noise: then their mean says nothing.
    opposed: bool = False

    @property
    def distance(self) -> float:
        """How far it is from 1, in either direction."""
        return abs(math.log(self.value)) if 0 < self.value < math.inf else math.inf

    def widened(self, comparisons: int) -> Ratio:
        """Return it with the interval that holds for this many ratios at once."""
        if comparisons < 2:
            return self
        # Bonferroni's: each is wrong so much more rarely.
        quantile, side = statistics.NormalDist().inv_cdf, (1 - CONFIDENCE) / 2
        return self.scaled(quantile(1 - side / comparisons) / quantile(1 - side))

    def scaled(self, times: float) -> Ratio:
        """Return it with an interval this many times as wide, where its repeats show one."""
        if times == 1 or self.repeats < FEWEST or not 0 < self.low < self.high < math.inf:
            return self
        centre = math.log(self.low * self.high) / 2
        half = math.log(self.high / self.low) / 2 * times
        return replace(self, low=math.exp(centre - half), high=math.exp(centre + half))

    @property
    def estimated(self) -> bool:
        """Whether a side is extrapolated."""
        return any(first.estimated or second.estimated for first, second in self.pairs)

    def reaches(self, border: float) -> bool | None:
        """Whether it is at least so much; None if the noise allows either."""
        if self.low >= border:
            return True
        return False if self.high < border else None

    def deciding(self, border: float) -> int | None:
        """Return how many repeats would likely separate it from a border; None for too many."""
        if self.repeats < FEWEST:
            return FEWEST
        room = abs(math.log(self.value / border))
        # The interval need not be symmetrical: what counts is the end beyond the border.
        half = abs(math.log((self.high if border > self.value else self.low) / self.value))
        if room <= half / math.sqrt(MOST_REPEATS / self.repeats):
            return None
        return max(self.repeats + 1, math.ceil(self.repeats * (half / room) ** 2))


def ratio(found: Sequence[Pair]) -> Ratio:
    """Compare the sides of one or several pairs; no value may be below 0."""
    by_middle = _mean([_ratio(first.middle, second.middle) for first, second in found])
    repeats = min(len(side.values) for pair in found for side in pair)
    ends = [_interval(first, second) for first, second in found]
    beyond = math.log(THRESHOLD)
    opposed = (
        max(low for low, _, _ in ends) >= beyond and min(high for _, _, high in ends) <= -beyond
    )
    if by_middle in (0.0, math.inf):
        return Ratio(tuple(found), by_middle, by_middle, by_middle, repeats, opposed)
    # The noise of what stands in several pairs is the same in each, and is not averaged out.
    shared = len({id(side) for pair in found for side in pair}) < 2 * len(found)
    centre = statistics.fmean(centre for _, centre, _ in ends)
    below, above = (
        statistics.fmean(halves) if shared else math.hypot(*halves) / len(found)
        for halves in (
            [centre - low for low, centre, _ in ends],
            [high - centre for _, centre, high in ends],
        )
    )
    if not below and not above:
        return Ratio(tuple(found), by_middle, by_middle, by_middle, repeats, opposed)
    # The interval is one of medians; it reaches to where the study's own statistic is.
    low, high = math.exp(centre - below), math.exp(centre + above)
    low, high = min(low, by_middle), max(high, by_middle)
    return Ratio(tuple(found), by_middle, low, high, repeats, opposed)


def _interval(first: Sample, second: Sample) -> tuple[float, float, float]:
    """Return the low end, centre and high end of the interval for the logarithm of a ratio.

    It reaches to the ratio of the fastest repeats: noise only adds time (`measure.verdict`).
    """
    if not (first.noisy or second.noisy) or not all((*first.values, *second.values)):
        value = _ratio(first.middle, second.middle)
        centre = math.log(value) if value else -math.inf
        return centre, centre, centre
    # A verdict is one of times: of rates, the other way round.
    base, other = (first, second) if first.rate else (second, first)
    found = verdict(_times(base), _times(other))
    centre = math.log(found.ratio)
    half = _HALF_OF_FEW if found.high is None else math.log(found.high / found.ratio)
    fastest = centre if found.fastest is None else math.log(found.fastest)
    low, high = centre - half, centre + half
    low = min(low, fastest) if centre >= 0 else low
    return low, centre, max(high, fastest) if centre <= 0 else high


def _times(sample: Sample) -> list[float]:
    return [1 / value for value in sample.values] if sample.rate else list(sample.values)


def _ratio(first: float, second: float) -> float:
    if first == second:
        return 1.0
    return first / second if second else math.inf


def _mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean, also of ratios that are 0 or infinite."""
    if math.inf in ratios:
        return math.inf
    if 0 in ratios:
        return 0.0
    return statistics.geometric_mean(ratios)
