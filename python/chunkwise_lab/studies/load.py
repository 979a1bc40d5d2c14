"""How is a study written down?  docs/studies.md ("Writing one") has every key."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from chunkwise.errors import UsageError
from chunkwise.grammar import parse_size
from chunkwise.measure.space import Space
from chunkwise.names import printable
from chunkwise.words import nearest, offered
from chunkwise_lab.studies.checks import check_experiment, check_study
from chunkwise_lab.studies.study import (
    SCALES,
    Claim,
    Data,
    Experiment,
    Own,
    Plot,
    Published,
    Run,
    Study,
)

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

T = TypeVar("T")

# In the order of their papers; then those that ask what the papers leave open.
NAMES: Final = (
    "occam", "netcdf4", "iotest", "hyperslabs", "cris", "bandwidth", "two-ways", "selections",
)  # fmt: skip


def load(name: str) -> Study:
    """Read one study."""
    folder = _folder(name)
    place = name if name in NAMES else printable(name)
    head = _toml(folder, place, "study.toml")
    standard = head.pop("axes", {})
    found: list[Experiment] = []
    places: list[str] = []
    for file in _needed(f"{place}/study.toml", head, "files"):
        entries = _needed(f"{place}/{file}", _toml(folder, place, file), "experiment")
        for number, entry in enumerate(entries, 1):
            places.append(f"{place}/{file}, {entry.get('id', f'experiment {number}')}")
            found.append(_located(places[-1], _experiment, entry, standard))
    study = _located(f"{place}/study.toml", _study, head, tuple(found))
    _located(f"{place}/study.toml", check_study, study)
    for where, experiment in zip(places, found, strict=True):
        _located(where, check_experiment, experiment, study.data)
    return study


def _folder(name: str) -> Traversable:
    if name in NAMES:
        return files("chunkwise_lab.studies") / name
    folder = Path(name)
    if (folder / "study.toml").is_file():
        return folder
    if folder.is_dir():
        raise UsageError(f"{printable(name)}: a folder without a study.toml is no study")
    raise UsageError(
        f"no study is called '{printable(name)}'{nearest(name, NAMES)}: choose from "
        f"{', '.join(NAMES)}, or name a folder with a study.toml"
    )


def _toml(folder: Traversable, place: str, file: str) -> dict[str, Any]:
    try:
        found = tomllib.loads((folder / file).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{place}/{file}: cannot be read: {error.strerror}") from None
    except ValueError as wrong:
        raise UsageError(f"{place}/{file}: not TOML: {wrong}") from None
    return found


def _needed(where: str, values: dict[str, Any], name: str) -> list[Any]:
    found = values.pop(name, None)
    if not isinstance(found, list) or not found:
        raise UsageError(f"{where}: '{name}' is missing, or no list")
    return found


def _located(where: str, make: Callable[..., T], *arguments: Any) -> T:
    """Make an object from a file's values, or say where they are wrong."""
    try:
        return make(*arguments)
    except KeyError as missing:
        raise UsageError(f"{where}: {missing} is missing") from None
    except (AttributeError, TypeError, ValueError) as wrong:
        raise UsageError(f"{where}: {wrong}") from None


def _made(kind: type[T], what: str, values: Mapping[str, Any]) -> T:
    """Make a part of a study of values that it knows, and of all that it needs."""
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            raise UsageError(f"{what} has no '{name}'{offered(name, known)}")
    for name, one in known.items():
        if name not in values and one.default is MISSING and one.default_factory is MISSING:
            raise UsageError(f"{what}: '{name}' is missing")
    return kind(**values)


def _study(head: dict[str, Any], experiments: tuple[Experiment, ...]) -> Study:
    data = {name: _data(name, values) for name, values in head.pop("data", {}).items()}
    disk = {scale: parse_size(text) for scale, text in head.pop("disk").items()}
    entry = head.pop("own", None)
    own = None if entry is None else Own(entry.pop("data"), entry)
    values = {**head, "disk_nbytes": disk, "data": data, "experiments": experiments, "own": own}
    return _made(Study, "a study", values)


def _data(name: str, values: dict[str, Any]) -> Data:
    both = values.pop("both", {})
    options = {scale: _tuples({**both, **values.pop(scale, {})}) for scale in SCALES}
    return _made(Data, f"data.{name}", {**values, "name": name, "options": options})


def _experiment(entry: dict[str, Any], standard: Mapping[str, Any]) -> Experiment:
    parts = {
        "runs": tuple(_run(one, standard) for one in entry.pop("run")),
        "plots": _parts(Plot, "a plot", entry.pop("plot", ())),
        "published": _parts(
            Published, "a published value", map(_labelled, entry.pop("published", ()))
        ),
        "claims": tuple(map(_claim, entry.pop("claim", ()))),
    }
    return _made(Experiment, "an experiment", {**entry, **parts})


def _labelled(entry: dict[str, Any]) -> dict[str, Any]:
    """Call what stands in a table by its place there."""
    place = f"{entry['row']}: {entry['column']}" if "row" in entry else ""
    return {"label": place, **entry}


def _run(entry: dict[str, Any], standard: Mapping[str, Any]) -> Run:
    axes, trials = {**standard, **entry.pop("axes", {})}, entry.pop("trials", ())
    design = entry.pop("design", "list" if trials else "product")
    own = {scale: entry.pop(scale, {}) for scale in SCALES}
    seconds = entry.pop("seconds", {})
    settings = entry.pop("settings", {})
    parts = {
        "data": tuple(entry.pop("data", ())),
        "scales": tuple(entry.pop("scales", SCALES)),
        "datasets": _tuples(entry.pop("datasets", {})),
        "spaces": {scale: _space({**axes, **own[scale]}, design, trials) for scale in SCALES},
        "seconds": {scale: seconds.get(scale) for scale in SCALES},
        "settings": {
            scale: {
                **{k: v for k, v in settings.items() if k not in SCALES},
                **settings.get(scale, {}),
            }
            for scale in SCALES
        },
    }
    return _made(Run, "a run", {**entry, **parts})


def _space(axes: Mapping[str, Any], design: str, trials: Any) -> Space:
    return Space({name: tuple(texts) for name, texts in axes.items()}, design, tuple(trials))


def _parts(kind: type[T], what: str, entries: Iterable[dict[str, Any]]) -> tuple[T, ...]:
    return tuple(_made(kind, what, _tuples(entry)) for entry in entries)


def _claim(entry: dict[str, Any]) -> Claim:
    own = {name: entry.pop(name) for name in ("id", "says", "rule", "figure")}
    words = {name: entry.pop(name, "") for name in ("published", "limit", "advice")}
    return Claim(**own, **words, settings=_tuples(entry))


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    """TOML's lists, at any depth, as tuples."""
    return {name: _frozen(value) for name, value in values.items()}


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return _tuples(value) if isinstance(value, dict) else value
