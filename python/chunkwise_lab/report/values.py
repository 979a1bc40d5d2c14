"""Which values does a plot show: measured ones, summed up, and published ones?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from chunkwise_lab.report.labels import Libraries
from chunkwise_lab.report.scales import number
from chunkwise_lab.studies.comparing import Sample, samples
from chunkwise_lab.studies.figures import FIGURES
from chunkwise_lab.studies.iotest.modelled import Modelled
from chunkwise_lab.studies.results import Row
from chunkwise_lab.studies.study import Plot, Published, Statistic, Where, matches

# What stands before the number, where values along a plot are split: a name in points.
FAMILY: Final = "family"


@dataclass(frozen=True)
class Value:
    """One value, before it has a place."""

    point: dict[str, str]  # Its value on each axis, and its labels
    # The ends are those of its error bar.
    middle: float
    low: float
    high: float
    repeats: int = 0  # 0 for a published one
    estimated: bool = False
    versions: tuple[str, ...] = ()  # Of the libraries that took part
    # Of a published one.
    label: str = ""
    note: str = ""
    sources: tuple[str, ...] = ()  # Where it is printed
    elsewhere: bool = False  # Whether nothing that is measured today is of the same
    modelled: bool = False  # Whether a model says so, and neither this run nor a paper

    @property
    def published(self) -> bool:
        """Whether a paper or a model gives it: it stands beside the measured value."""
        return self.repeats == 0

    def scaled(self, factor: float) -> Value:
        """Return it in another unit."""
        return replace(
            self, middle=self.middle * factor, low=self.low * factor, high=self.high * factor
        )


@dataclass(frozen=True)
class Drawing:
    """What is the same for all plots of an experiment."""

    rows: Sequence[Row]
    published: Sequence[Published]
    statistic: Statistic
    libraries: Libraries  # What values of the axis ``libhdf5`` stand for
    reduced: bool = False  # Whether less data was measured than the paper did
    modelled: Sequence[Modelled] = ()  # Values of a model, drawn beside those that were measured


def measured(plot: Plot, rows: Iterable[Row], statistic: Statistic) -> list[Value]:
    """Return what a plot shows of some rows."""
    drawn = [row for row in rows if matches(row.point, plot.where)]
    found = []
    for one in samples(drawn, plot.figure, statistic, plot.over, plot.total):
        if math.isfinite(one.middle):
            low, high = one.middle - one.error, one.middle + one.error
            point, versions = _placed(plot, one, statistic), _versions(one.records)
            repeats = len(one.values)
            found.append(Value(point, one.middle, low, high, repeats, one.estimated, versions))
    return found if plot.relative is None else _divided(found, plot, plot.relative)


def _placed(plot: Plot, one: Sample, statistic: Statistic) -> dict[str, str]:
    """Return a point with the value that it is drawn at."""
    point = dict(one.point)
    if plot.x in FIGURES:
        along = samples([Row(point, one.records)], plot.x, statistic)
        return {**point, plot.x: f"{along[0].middle:.12g}"} if along else point
    return _split(plot, point)


def _split(plot: Plot, point: dict[str, str]) -> dict[str, str]:
    family, _, last = point.get(plot.x, "").rpartition(":")
    if not plot.split or not family or number(last) is None:
        return point
    return {**point, plot.x: last, FAMILY: family}


def _versions(records: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Name the library that did the work, and h5py if that was called."""
    record = next((r for r in records if r.get("hdf5")), {})
    names = {"hdf5": "HDF5", "netcdf": "netCDF-C"}
    if record.get("reader") == "h5py":
        names["h5py"] = "h5py"
    if record.get("reader") in ("chunkwise", "chunkwise-py"):
        names["chunkwise"] = "chunkwise"
    return tuple(f"{names[name]} {record[name]}" for name in names if record.get(name))


def _divided(values: list[Value], plot: Plot, base: Where) -> list[Value]:
    """Divide by the value of the same series that `base` chooses; leave out if none is."""
    chosen = [value for value in values if matches(value.point, base)]
    found = []
    for value in values:
        same = {name: value.point[name] for name in plot.by if name in value.point}
        same = {k: v for k, v in same.items() if k not in base}
        under = next((one for one in chosen if matches(one.point, same)), None)
        if under is None or not under.middle:
            continue
        if value is under:
            found.append(replace(value, middle=1.0, low=1.0, high=1.0))
            continue
        ratio = value.middle / under.middle
        relative = (under.high - under.low) / 2 / under.middle
        below = math.hypot((value.middle - value.low) / under.middle, ratio * relative)
        above = math.hypot((value.high - value.middle) / under.middle, ratio * relative)
        found.append(replace(value, middle=ratio, low=ratio - below, high=ratio + above))
    return found


def published(plot: Plot, printed: Iterable[Published], rows: Sequence[Row]) -> list[Value]:
    """Return a paper's printed values for a plot."""
    found = []
    for one in printed:
        if one.figure != plot.figure or not _compatible(one.where, plot.where):
            continue
        same = [r.point for r in rows if matches(r.point, plot.where)]
        same = [p for p in same if matches(p, one.where) and not one.elsewhere]
        point = {name: value for name, value in one.where.items() if isinstance(value, str)}
        for name in (plot.x, *plot.by):
            values = {row.get(name) for row in same}
            if name not in point and len(values) == 1 and None not in values:
                point[name] = str(values.pop())
        if plot.x in point:
            value = one.value
            found.append(
                Value(
                    _split(plot, point),
                    value,
                    value,
                    value,
                    label=one.label,
                    sources=(one.source,),
                    note=one.note,
                    elsewhere=one.elsewhere,
                )
            )
    found = _once(found)
    return found if plot.relative is None else _divided(found, plot, plot.relative)


def by_model(plot: Plot, drawing: Drawing) -> list[Value]:
    """Return a model's values for a plot."""
    return [
        Value(one.point, one.value, one.value, one.value, label="with a core each", modelled=True)
        for one in drawing.modelled
        if one.figure == plot.figure and plot.relative is None and plot.over is None
        if matches(one.point, plot.where)
    ]


def _once(values: Iterable[Value]) -> list[Value]:
    """Keep one of those that a paper prints in several places."""
    found: dict[tuple[frozenset[tuple[str, str]], float, bool], Value] = {}
    for value in values:
        key = frozenset(value.point.items()), value.middle, value.elsewhere
        before = found.get(key)
        if before is None:
            found[key] = value
        else:
            sources = dict.fromkeys((*before.sources, *value.sources))
            found[key] = replace(before, sources=tuple(sources))
    return list(found.values())


def _compatible(one: Where, other: Where) -> bool:
    for name in one.keys() & other.keys():
        mine, its = one[name], other[name]
        mine_all = mine if isinstance(mine, tuple) else (mine,)
        if not set(mine_all) & set(its if isinstance(its, tuple) else (its,)):
            return False
    return True


def distinguished(values: Sequence[Value], x: str, by: Sequence[str]) -> list[str]:
    """Return the axes that distinguish series: `by`, and all others that differ at one place."""
    groups: dict[tuple[str | None, ...], list[Value]] = {}
    for value in values:
        if not value.published:
            key = tuple(value.point.get(name) for name in (x, *by))
            groups.setdefault(key, []).append(value)
    others = [n for n in dict.fromkeys(n for v in values for n in v.point) if n not in (x, *by)]
    more = [name for name in others if any(_differ(group, name) for group in groups.values())]
    return [name for name in (*by, *more) if _differ(values, name)]


def _differ(values: Sequence[Value], name: str) -> bool:
    said = (value for value in values if name in value.point or not value.published)
    return len({value.point.get(name) for value in said}) > 1
