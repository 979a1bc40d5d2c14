"""Does a study's file name only rows that will exist, and known settings?

Nobody would notice a claim about rows that nobody measures: all is checked before measuring.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final, get_args

from chunkwise.errors import UsageError
from chunkwise.measure.axes import DEFAULT, check_axis
from chunkwise.measure.space import Space
from chunkwise.names import printable
from chunkwise.words import nearest, offered
from chunkwise_lab.sample import SAMPLES
from chunkwise_lab.studies.figures import FIGURES
from chunkwise_lab.studies.libraries import ALL, BUILD, NETCDF4, OLDER
from chunkwise_lab.studies.own_data import PLACEHOLDERS
from chunkwise_lab.studies.rules import FIRST, RULES
from chunkwise_lab.studies.study import (
    LIBRARIES,
    OTHERS,
    SCALES,
    Claim,
    Data,
    Experiment,
    Own,
    Plot,
    Published,
    Run,
    Statistic,
    Study,
    Where,
    matches,
)

_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
# What every rule takes.
_COMMON: Final = ("where", "over", "total", "statistic")
# What some settings may be.
_VALUES: Final[Mapping[str, tuple[Any, ...]]] = {
    "rises": (True, False), "total": ("mean", "sum"), "statistic": get_args(Statistic),
}  # fmt: skip
# What a space's values for libraries mean if none has been looked for.
_LIBRARIES: Final = {ALL: (DEFAULT, OTHERS), OLDER: (OTHERS,), NETCDF4: (OTHERS,)}


@dataclass(frozen=True)
class Points:
    """The axes and labels that identify an experiment's rows."""

    all: tuple[Mapping[str, str], ...]  # Labels and values of every row, at either scale
    names: tuple[str, ...]  # Axes and labels that some have
    # Whether rows may exist that are not known yet: of probes, or a dataset's own patterns.
    open: bool

    def check(self, what: str, where: Where) -> None:
        """Raise UsageError if no row can match."""
        if any(matches(point, where) for point in self.all):
            return
        for name, wanted in where.items():
            self.check_name(what, name)
            values = tuple(dict.fromkeys(point[name] for point in self.all if name in point))
            for text in wanted if isinstance(wanted, tuple) else (wanted,):
                if not isinstance(text, str):
                    raise UsageError(f"{what}: {name} is {text!r}: write it as text, in quotes")
                if self.open or any(matches(point, {name: text}) for point in self.all):
                    continue
                raise UsageError(f'{what}: no run has {name} = "{text}"{offered(text, values)}')
        if not self.open:
            said = ", ".join(f"{name} = {wanted!r}" for name, wanted in where.items())
            raise UsageError(f"{what}: no run has all of {said} in one row")

    def check_name(self, what: str, name: str) -> None:
        """Raise UsageError if no row has such an axis or label."""
        if name not in self.names and not self.open:
            raise UsageError(
                f"{what}: no run has an axis or label '{name}'{offered(name, self.names)}"
            )


def check_study(study: Study) -> None:
    """Check what a study says besides its experiments."""
    if study.statistic not in get_args(Statistic):
        raise UsageError(
            f"no statistic is called '{study.statistic}': there are "
            f"{', '.join(get_args(Statistic))}"
        )
    needs = {"repeat": study.repeat, "minutes": study.minutes, "disk": study.disk_nbytes}
    for name, values in needs.items():
        for scale in SCALES:
            if scale not in values:
                raise UsageError(f"{name} says nothing of the scale {scale}")
    for one in study.data.values():
        if one.sample not in SAMPLES:
            raise UsageError(
                f"data.{one.name}: no sample is called '{one.sample}'"
                f"{offered(one.sample, SAMPLES)}"
            )
    if study.own is not None:
        _check_own(study, study.own)
    ids = [experiment.id for experiment in study.experiments]
    for name in (*ids, *study.data):
        if _NAME.fullmatch(name) is None:
            raise UsageError(
                f"'{printable(name)}': an id, and a name of data, is letters, digits, - and _, as "
                "files and parts of a report are called so"
            )
    for repeated in sorted({name for name in ids if ids.count(name) > 1}):
        raise UsageError(f"two experiments are called '{repeated}'")


def _check_own(study: Study, own: Own) -> None:
    """Check that what is replaced on a user's dataset is there to be replaced."""
    if own.data not in study.data:
        raise UsageError(f"own: there is no data '{own.data}'{offered(own.data, study.data)}")
    spaces = [
        space
        for experiment in study.experiments
        for run in experiment.runs
        if run.own and run.data == (own.data,)
        for space in run.spaces.values()
    ]
    for axis, texts in own.values.items():
        used = {
            text
            for space in spaces
            for text in (
                *space.axes.get(axis, (check_axis(axis).default,)),
                *(trial[axis] for trial in space.trials if axis in trial),
            )
        }
        for ours, theirs in texts.items():
            if ours not in used:
                raise UsageError(f'own.{axis}: no run has "{ours}"{offered(ours, sorted(used))}')
            if theirs.startswith("@") and theirs not in PLACEHOLDERS:
                raise UsageError(
                    f"own.{axis}: '{theirs}' is no placeholder{offered(theirs, PLACEHOLDERS)}"
                )


def check_experiment(experiment: Experiment, data: Mapping[str, Data]) -> None:
    """Check one experiment against its own runs."""
    points = points_of(experiment.runs, data)
    ids = [claim.id for claim in experiment.claims]
    for repeated in {name for name in ids if ids.count(name) > 1}:
        raise UsageError(f"two claims are called '{repeated}'")
    for plot in experiment.plots:
        _check_plot(plot, points)
    for published in experiment.published:
        _check_published(published, points)
    for claim in experiment.claims:
        _check_claim(claim, points)


def points_of(runs: Iterable[Run], data: Mapping[str, Data]) -> Points:
    """Spell out the rows that runs give at either scale."""
    found: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}
    unknown = False
    for run in runs:
        for name in run.data:
            if name not in data:
                raise UsageError(f"there is no data '{name}': there are {', '.join(data)}")
        unknown = unknown or BUILD in run.labels.values()
        if run.probe is not None:
            unknown = True
            continue
        labels = [data[name].labels for name in run.data]
        if not labels:
            raise UsageError('a run names no data: give data = ["NAME"]')
        for scale in run.scales:
            space = _with_libraries(run.spaces[scale])
            unknown = unknown or not _named(space)
            for point in space.points((DEFAULT,)):
                for own, given in product(labels, run.labels_at(scale)):
                    row = {**given, **own, **point}
                    found[tuple(row.items())] = row
    names = dict.fromkeys(name for row in found.values() for name in row)
    return Points(tuple(found.values()), tuple(names), unknown)


def _named(space: Space) -> bool:
    """Whether a space names its access patterns; else the dataset decides."""
    return "access" in space.axes or all("access" in trial for trial in space.trials or ({},))


def _with_libraries(space: Space) -> Space:
    found = {
        axis: tuple(one for text in space.axes[axis] for one in _LIBRARIES.get(text, (text,)))
        for axis in LIBRARIES
        if axis in space.axes
    }
    return replace(space, axes={**space.axes, **found})


def _check_figure(what: str, name: str) -> None:
    if name not in FIGURES:
        raise UsageError(f"{what}: no figure is called '{name}'{offered(name, FIGURES)}")


def _check_plot(plot: Plot, points: Points) -> None:
    what = f"plot '{plot.title}'"
    _check_figure(what, plot.figure)
    x = () if plot.x in FIGURES else (plot.x,)
    for name in (*x, *plot.by, *((plot.over,) if plot.over else ())):
        points.check_name(what, name)
    points.check(what, plot.where)
    if plot.relative is not None:
        points.check(f"{what}, relative", {**plot.where, **plot.relative})


def _check_published(published: Published, points: Points) -> None:
    what = f"published {published.value:g} ({published.source})"
    _check_figure(what, published.figure)
    if published.elsewhere:
        return
    try:
        points.check(what, published.where)
        if published.over:
            points.check_name(what, published.over)
    except UsageError as wrong:
        raise UsageError(
            f"{wrong}; of what is not measured here at all, say elsewhere = true"
        ) from None


def _check_claim(claim: Claim, points: Points) -> None:
    what = f"claim '{claim.id}'"
    _check_figure(what, claim.figure)
    if claim.rule not in RULES:
        raise UsageError(f"{what}: no rule is called '{claim.rule}': there are {', '.join(RULES)}")
    rule, settings = RULES[claim.rule], claim.settings
    needed = (*rule.sides, *(("axis",) if rule.axis else ()), *rule.others)
    others = (*rule.numbers, *rule.optional)
    known = (*needed, *others, *(("words",) if rule.sides else ()), *_COMMON)
    for name in settings:
        if name not in known:
            raise UsageError(
                f"{what}: the rule {claim.rule} has no setting '{name}'{nearest(name, known)}: "
                f"it has {', '.join(known)}"
            )
    for name in needed:
        if name not in settings:
            raise UsageError(f"{what}: the rule {claim.rule} needs {name}")
    common: Where = settings.get("where", {})
    points.check(f"{what}, where", common)
    for name in rule.sides:
        points.check(f"{what}, {name}", {**common, **settings[name]})
    for name in rule.numbers:
        _check_number(what, name, settings)
    if rule.axis:
        points.check_name(what, settings["axis"])
    for name in ("standard", "against"):
        if settings.get(name, FIRST) != FIRST:
            points.check(f"{what}, {name}", {**common, settings["axis"]: settings[name]})
    if "value" in settings:
        points.check(f"{what}, value", {**common, settings["axis"]: settings["value"]})
        if FIGURES[claim.figure].better == "neither":
            raise UsageError(f"{what}: of the figure {claim.figure} nothing is the best")
    if "over" in settings:
        points.check_name(what, settings["over"])
    for name, values in _VALUES.items():
        if name in settings and settings[name] not in values:
            raise UsageError(f"{what}: {name} is one of {', '.join(map(str, values)).lower()}")
    words = settings.get("words", ("", ""))
    if not isinstance(words, tuple) or len(words) != 2:
        raise UsageError(f"{what}: words are two, what each side is called")


def _check_number(what: str, name: str, settings: Mapping[str, Any]) -> None:
    value = settings.get(name, 2.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 1:
        raise UsageError(f"{what}: {name} is a ratio: give a number above 1")
