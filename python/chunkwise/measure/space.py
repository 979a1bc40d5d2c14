"""Which combinations of parameters are measured?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from chunkwise.errors import UsageError
from chunkwise.grammar import Pipeline
from chunkwise.measure.axes import AXES, check_axis
from chunkwise.patterns.pattern import Access
from chunkwise.trials.formats import is_netcdf3
from chunkwise.trials.readers import NATIVE, READERS, check_reader
from chunkwise.words import joined

DESIGNS: Final = ("product", "each", "list")
# One value of each axis, as text.
Point = dict[str, str]


@dataclass(frozen=True)
class Space:
    """Values for axes, and how they are combined; what makes no sense raises UsageError."""

    # Names (`chunkwise.measure.axes.AXES`) and values as text; what is left out has its default.
    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # ``product``: every value with every other.  ``each``: the first value of every axis is the
    # standard trial; from there one axis at a time is varied (paper 000).  ``list``: `trials`.
    design: str = "product"
    # One value for some axes; the others have the first of `axes`.
    trials: tuple[Mapping[str, str], ...] = ()
    # Access patterns of a program, by the words of the axis ``access``, which are not parsed.
    accesses: Mapping[str, Access] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.design not in DESIGNS:
            raise UsageError(f"unknown design '{self.design}': choose from {', '.join(DESIGNS)}")
        if bool(self.trials) != (self.design == "list"):
            raise UsageError("trials are listed for the design 'list', and for no other")
        for name, values in self._values():
            axis = check_axis(name)
            if not values:
                raise UsageError(f"{name}: name at least one value")
            for text in values:
                if name == "reader":
                    check_reader(text)
                axis.value(text)

    @classmethod
    def of(cls, design: str = "product", **axes: Sequence[str]) -> Space:
        """Make a space from keywords: ``page_cache=("warm",)`` for ``page-cache``."""
        return cls({name.replace("_", "-"): tuple(v) for name, v in axes.items()}, design)

    def _values(self) -> Iterator[tuple[str, Sequence[str]]]:
        yield from self.axes.items()
        for trial in self.trials:
            for name, text in trial.items():
                yield name, (text,)

    def points(self, accesses: Sequence[str]) -> list[Point]:
        """Spell out the combinations, in the order of `AXES`, each once."""
        values = {
            name: tuple(dict.fromkeys(self.axes.get(name, (axis.default,))))
            for name, axis in AXES.items()
        }
        if "access" not in self.axes:
            values["access"] = tuple(accesses)
        kept = map(_collapsed, self._combined(values))
        points = [dict(pairs) for pairs in dict.fromkeys(tuple(p.items()) for p in kept)]
        self._check_all_used(points)
        return points

    def _combined(self, values: Mapping[str, tuple[str, ...]]) -> Iterable[Point]:
        if self.design == "product":
            return (dict(zip(values, point, strict=True)) for point in product(*values.values()))
        standard = {name: texts[0] for name, texts in values.items()}
        if self.design == "list":
            return [{**standard, **trial} for trial in self.trials]
        varied = [{**standard, name: text} for name, texts in values.items() for text in texts[1:]]
        return [standard, *varied]

    def _check_all_used(self, points: Sequence[Point]) -> None:
        """Raise UsageError for what was requested and would silently not be measured."""
        for name, texts in self._values():
            for text in texts:
                if text != AXES[name].default and all(p[name] != text for p in points):
                    raise UsageError(_unused(name, text, points))


def _collapsed(point: Point) -> Point:
    """Set values that make no difference to their defaults."""
    # The format decides what else concerns a reader.
    if not AXES["format"].concerns(point):
        point = {**point, "format": AXES["format"].default}
    kept = {
        name: text if AXES[name].concerns(point) else AXES[name].default
        for name, text in point.items()
    }
    if point["operation"] == "read" or point["reader"] not in NATIVE:
        kept["filter"] = _as_stored(kept["filter"])
    return kept


def _as_stored(text: str) -> str:
    """Write filters as files have them: that deflate is to be fast, only a writer knows."""
    pipeline = Pipeline() if text == AXES["filter"].default else Pipeline.parse(text)
    return text if pipeline.effort == "as-stated" else str(pipeline.as_stated)


def _unused(name: str, text: str, points: Sequence[Point]) -> str:
    axis = AXES[name]
    if axis.hdf5 and points and all(is_netcdf3(point["format"]) for point in points):
        return (
            f"{name} {text} concerns HDF5 files, and only files of netCDF-3 are asked for: add "
            "the format netcdf4, or leave it out"
        )
    if name == "filter":
        return (
            f"filter {text} concerns writes by chunkwise, which chooses the encoder, and no such "
            f"trial is asked for; add one, or write {_as_stored(text)}"
        )
    if name == "cache":
        return (
            "--cache concerns libhdf5 and h5py, which --reader leaves out: chunkwise has a "
            "cache of its own; add one of the two, or leave --cache out"
        )
    readers = axis.readers
    if name == "libhdf5":
        readers = frozenset(d.name for d in READERS.values() if d.any_libhdf5)
    who = joined(sorted(readers))
    return (
        f"{name} {text} concerns {joined(axis.operations)} by {who}, and no such trial is "
        "asked for; add one, or leave it out"
    )
