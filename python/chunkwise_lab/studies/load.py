"""How is a study written down?

In a folder, of this package or of a user: ``study.toml`` says what it is and names the files of
its experiments; docs/studies.md ("Writing one") has every key.  That no published value and no
claim of this package's studies stands without a row is for the tests to see.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from chunkwise.errors import UsageError
from chunkwise.grammar import parse_size
from chunkwise.measure.space import Space
from chunkwise.names import printable
from chunkwise.words import nearest, offered
from chunkwise_lab.studies.figures import FIGURES
from chunkwise_lab.studies.rules import RULES
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
# Files and parts of a report are called so.
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")


def load(name: str) -> Study:
    """Read one study."""
    folder = _folder(name)
    file = "study.toml"
    try:
        head = _toml(folder, file)
        standard, found = head.pop("axes", {}), []
        for file in head.pop("files"):
            entries = _toml(folder, file)["experiment"]
            found += [_experiment(entry, standard) for entry in entries]
        file = "study.toml"
        return _checked(_study(head, tuple(found)))
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
    except (AttributeError, KeyError, TypeError, ValueError) as wrong:
        why = f"{wrong} is missing" if isinstance(wrong, KeyError) else str(wrong)
    raise UsageError(
        f"{printable(name)}/{file}: {why}; docs/studies.md says how a study is written"
    )


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


def _toml(folder: Traversable, file: str) -> dict[str, Any]:
    return tomllib.loads((folder / file).read_text(encoding="utf-8"))


def _checked(study: Study) -> Study:
    """Raise ValueError for a name that there is not; whether rows match, only tests look."""
    for values in (study.repeat, study.minutes, study.disk_nbytes):
        if set(values) != set(SCALES):
            raise ValueError(f"repeat, minutes and disk need {' and '.join(SCALES)}")
    for name in (*(one.id for one in study.experiments), *study.data):
        if _NAME.fullmatch(name) is None:
            raise ValueError(f"'{printable(name)}': a name is letters, digits, - and _")
    for one in study.experiments:
        used: list[tuple[str, Iterable[str]]] = [(n, study.data) for r in one.runs for n in r.data]
        drawn: tuple[Plot | Published | Claim, ...] = (*one.plots, *one.published, *one.claims)
        used += [(of.figure, FIGURES) for of in drawn]
        for claim in one.claims:
            used.append((claim.rule, RULES))
            rule = RULES.get(claim.rule)
            needed = (*rule.sides, *rule.others, *(["axis"] if rule.axis else ())) if rule else ()
            used += [(name, claim.settings) for name in needed]
        for name, known in used:
            if name not in known:
                raise ValueError(f"{one.id}: there is no '{name}'{offered(name, known)}")
    return study


def _study(head: dict[str, Any], experiments: tuple[Experiment, ...]) -> Study:
    data = {name: _data(name, values) for name, values in head.pop("data", {}).items()}
    disk = {scale: parse_size(text) for scale, text in head.pop("disk").items()}
    entry = head.pop("own", None)
    own = None if entry is None else Own(entry.pop("data"), entry)
    values = {**head, "disk_nbytes": disk, "data": data, "experiments": experiments, "own": own}
    return Study(**values)


def _data(name: str, values: dict[str, Any]) -> Data:
    both = values.pop("both", {})
    options = {scale: _tuples({**both, **values.pop(scale, {})}) for scale in SCALES}
    return Data(**{**values, "name": name, "options": options})


def _experiment(entry: dict[str, Any], standard: Mapping[str, Any]) -> Experiment:
    parts = {
        "runs": tuple(_run(one, standard) for one in entry.pop("run")),
        "plots": _parts(Plot, entry.pop("plot", ())),
        "published": _parts(Published, map(_labelled, entry.pop("published", ()))),
        "claims": tuple(map(_claim, entry.pop("claim", ()))),
    }
    return Experiment(**{**entry, **parts})


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
    return Run(**{**entry, **parts})


def _space(axes: Mapping[str, Any], design: str, trials: Any) -> Space:
    return Space({name: tuple(texts) for name, texts in axes.items()}, design, tuple(trials))


def _parts(kind: type[T], entries: Iterable[dict[str, Any]]) -> tuple[T, ...]:
    return tuple(kind(**_tuples(entry)) for entry in entries)


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
