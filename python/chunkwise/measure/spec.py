"""How is a run written down in a TOML file?

::

    file = "cris.h5"                 # paths are relative to this file
    dataset = "/All_Data/CrIS-SDR_All/ES_ImaginaryLW"
    design = "each"                  # product (the default), each, or list
    repeat = 5
    budget = "10min"                 # or a number of seconds

    [axes]                           # the first value of each is the standard trial's
    access = ["row=1x1x1x717", "all"]
    reader = ["libhdf5"]
    cache = ["1MiB", "3MiB"]

    [[trial]]                        # with the design "list": one combination each
    cache = "3MiB"
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from chunkwise.errors import UsageError
from chunkwise.grammar import parse_duration, parse_size
from chunkwise.measure.axes import AXES
from chunkwise.measure.space import Space
from chunkwise.names import printable

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_KEYS: Final = frozenset(
    {"file", "dataset", "design", "repeat", "budget", "sample", "axes", "trial"}
)


@dataclass(frozen=True)
class Spec:
    """What a run is asked to do; None if the file does not say."""

    space: Space  # What is varied
    # What is measured.
    file: str | None = None
    dataset: str | None = None
    repeat: int | None = None  # How often
    seconds: float | None = None  # The budget
    sample_nbytes: int | None = None  # Of a larger dataset, at most so many bytes in scratch files


def read(path: str) -> Spec:
    """Read a TOML file."""
    name = printable(path)
    try:
        with Path(path).open("rb") as stream:
            values = tomllib.load(stream)
    except OSError as error:
        raise UsageError(f"{name}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{name}: no TOML: {error}") from None
    try:
        return _spec(values, Path(path).parent)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None


def _spec(values: Mapping[str, Any], folder: Path) -> Spec:
    unknown = sorted(values.keys() - _KEYS)
    if unknown:
        raise UsageError(f"unknown key '{unknown[0]}': there are {', '.join(sorted(_KEYS))}")
    file = values.get("file")
    trials = tuple(
        {name: _text(name, value, folder) for name, value in _table("trial", trial).items()}
        for trial in _list("trial", values.get("trial", []))
    )
    axes = {
        name: tuple(
            _text(name, v, folder) for v in (given if isinstance(given, list) else [given])
        )
        for name, given in _table("axes", values.get("axes", {})).items()
    }
    design = values.get("design", "list" if trials else "product")
    sample = values.get("sample")
    return Spec(
        Space(axes, _string("design", design), trials),
        None if file is None else str(folder / _string("file", file)),
        None if "dataset" not in values else _string("dataset", values["dataset"]),
        None if "repeat" not in values else _whole("repeat", values["repeat"]),
        None if "budget" not in values else _seconds("budget", values["budget"]),
        None if sample is None else parse_size(_text("sample", sample, folder)),
    )


def _text(name: str, value: Any, folder: Path) -> str:
    """Write a value as the command line would; numbers need no quotes.

    Paths are relative to the file that names them.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UsageError(f'{name}: values are text or numbers, such as "1MiB" or 521')
    text = str(value)
    if name == "libhdf5" and text != AXES[name].default:
        return str(folder / text)
    before, listed, path = text.partition("list:")
    if name == "access" and listed and before in ("", before.partition("=")[0] + "="):
        return f"{before}{listed}{folder / path}"
    return text


def _string(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{name} is text, in quotes")
    return value


def _number(name: str, value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise UsageError(f"{name} is a number above 0")
    return value


def _seconds(name: str, value: Any) -> float:
    return float(_number(name, parse_duration(value) if isinstance(value, str) else value))


def _whole(name: str, value: Any) -> int:
    number = _number(name, value)
    if number != int(number):
        raise UsageError(f"{name} is a whole number")
    return int(number)


def _table(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{name} is a table: write [{name}] and a line for each axis")
    return value


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise UsageError(f"{name} is a list of tables: write [[{name}]] above each")
    return value
