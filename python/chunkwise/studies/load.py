"""How is a study written down?

In a folder of this package: ``study.toml`` says what it is and names the files of its
experiments.  ::

    # study.toml
    name = "cris"
    files = ["tables.toml"]
    statistic = "median"
    repeat = {quick = 3, paper = 5}
    ...
    [data.cris]
    sample = "cris"
    quick = {shape = [20, 30, 9, 717]}     # keywords of chunkwise.sample.write; `both = {...}`

    [own]                                  # only where the user's data can be measured too
    data = "cris"                          # in the place of this
    cache = {"1MiB" = "@small-cache"}      # by axis: values that take the place of the study's

    # tables.toml
    [[experiment]]
    id = "rows"
    ...
    [[experiment.run]]
    data = ["cris"]
    design = "product"                     # as in `chunkwise bench --plan`
    axes = {driver = ["libhdf5"], cache = ["1MiB", "3MiB"]}
    quick = {cache = ["1MiB"]}             # axes that differ at this scale
    seconds = {quick = 20}
    repeat = 1                             # where it differs from the study
    own = false                            # not of the user's dataset
    check = true                           # compare every element that is read
    [[experiment.plot]]
    [[experiment.published]]
    [[experiment.claim]]

Values of ``[own]`` are worked out from the user's dataset where they are placeholders
(`chunkwise.studies.own`):

===================  ============================================================
``@row``             the pattern of lines along the last dimension
``@whole-chunk``     the pattern of its chunk's shape
``@small-chunk``     its chunk, cut along the slowest dimensions until a row's chunks
                     fit ``@small-cache``
``@small-cache``     half of a chunk's bytes, 1 MiB at most
``@row-chunks``      the bytes of the chunks that one row goes through;
                     ``@row-chunks-1``: one less
``@large-cache``     what reading by rows needs, so that no chunk is decoded twice:
                     two chunks at the least, 512 MiB at most
``@filters``         as it is stored; ``deflate:6`` where it has no filter
===================  ============================================================

What is unknown or missing is an error that names the file and the entry: a published value
that nothing is compared with must not pass unseen.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any, Final, TypeVar

from chunkwise.bench.space import Space
from chunkwise.errors import UsageError
from chunkwise.grammar import parse_size
from chunkwise.studies.checks import check_experiment
from chunkwise.studies.own import PLACEHOLDERS
from chunkwise.studies.study import (
    SCALES,
    Claim,
    Data,
    Experiment,
    Own,
    Plot,
    Published,
    Run,
    Scale,
    Study,
    matches,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

T = TypeVar("T")

# In the order of their papers.
NAMES: Final = ("occam", "netcdf4", "hyperslabs", "cris")


def load(name: str) -> Study:
    """Read one study.

    Raises
    ------
    UsageError
        There is none of that name; or its files say what a study does not know.
    """
    if name not in NAMES:
        raise UsageError(f"no study is called '{name}': choose from {', '.join(NAMES)}")
    head = _toml(name, "study.toml")
    found: list[Experiment] = []
    places: list[str] = []
    for file in head.pop("files"):
        for entry in _toml(name, file).pop("experiment"):
            places.append(f"{name}/{file}, {entry.get('id')}")
            found.append(_located(places[-1], _experiment, entry))
    study = _located(f"{name}/study.toml", _study, head, tuple(found))
    for place, experiment in zip(places, found, strict=True):
        _located(place, check_experiment, experiment, study.data)
    return study


def _toml(study: str, file: str) -> dict[str, Any]:
    text = files("chunkwise.studies").joinpath(study, file).read_text(encoding="utf-8")
    return tomllib.loads(text)


def _located(where: str, make: Callable[..., T], *arguments: Any) -> T:
    try:
        return make(*arguments)
    except (KeyError, TypeError, ValueError) as wrong:
        raise UsageError(f"{where}: {wrong}") from None


def _study(head: dict[str, Any], experiments: tuple[Experiment, ...]) -> Study:
    data = {name: _data(name, values) for name, values in head.pop("data").items()}
    disk = {scale: parse_size(text) for scale, text in head.pop("disk").items()}
    own = _own(head.pop("own"), data) if "own" in head else None
    return Study(**head, disk_nbytes=disk, data=data, experiments=experiments, own=own)


def _own(entry: dict[str, Any], data: Mapping[str, Data]) -> Own:
    name = entry.pop("data")
    if name not in data:
        raise UsageError(f"own: there is no data '{name}'")
    for axis, values in entry.items():
        for text in values.values():
            if text.startswith("@") and text not in PLACEHOLDERS:
                known = ", ".join(PLACEHOLDERS)
                raise UsageError(f"own, {axis}: '{text}' is no placeholder: there are {known}")
    return Own(name, entry)


def _data(name: str, values: dict[str, Any]) -> Data:
    both = values.pop("both", {})
    options = {scale: _tuples({**both, **values.pop(scale, {})}) for scale in SCALES}
    return Data(name, options=options, **values)


def _experiment(entry: dict[str, Any]) -> Experiment:
    return Experiment(
        runs=tuple(map(_run, entry.pop("run"))),
        plots=tuple(map(_plot, entry.pop("plot", ()))),
        published=tuple(map(_published, entry.pop("published", ()))),
        claims=tuple(map(_claim, entry.pop("claim", ()))),
        **entry,
    )


def _run(entry: dict[str, Any]) -> Run:
    axes, trials = entry.pop("axes", {}), entry.pop("trials", ())
    design = entry.pop("design", "list" if trials else "product")
    own = {scale: entry.pop(scale, {}) for scale in SCALES}
    seconds = entry.pop("seconds", {})
    settings = entry.pop("settings", {})
    return Run(
        data=tuple(entry.pop("data", ())),
        spaces={scale: _space({**axes, **own[scale]}, design, trials) for scale in SCALES},
        seconds={scale: seconds.get(scale) for scale in SCALES},
        settings={
            scale: {
                **{k: v for k, v in settings.items() if k not in SCALES},
                **settings.get(scale, {}),
            }
            for scale in SCALES
        },
        **entry,
    )


def _space(axes: Mapping[str, Any], design: str, trials: Any) -> Space:
    return Space({name: tuple(texts) for name, texts in axes.items()}, design, tuple(trials))


def _plot(entry: dict[str, Any]) -> Plot:
    return Plot(**_tuples(entry))


def _published(entry: dict[str, Any]) -> Published:
    return Published(**_tuples(entry))


def _claim(entry: dict[str, Any]) -> Claim:
    own = {name: entry.pop(name) for name in ("id", "says", "rule", "figure")}
    words = {name: entry.pop(name, "") for name in ("published", "advice")}
    return Claim(**own, **words, settings=_tuples(entry))


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    """TOML's lists, at any depth, as tuples."""
    return {name: _frozen(value) for name, value in values.items()}


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return _tuples(value) if isinstance(value, dict) else value


__all__ = ["NAMES", "Scale", "load", "matches"]
