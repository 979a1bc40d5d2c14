"""Do a study's results have the values and types that all other code relies on?

A file may come from anywhere.  If something is wrong in it, this module says so in one line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from chunkwise_lab.studies.figures import FIGURES
from chunkwise_lab.studies.study import SCALES

Is = Callable[[Any], bool]
# What no figure can be; so much less than a float can hold that sums of squares are floats.
_MOST: Final = 1e100


def check(values: Mapping[str, Any]) -> None:
    """Look at the object that `chunkwise_lab.studies.results` writes."""
    _each("", values, _RESULTS)
    if values.get("target") is not None:
        _each("target", values["target"], _TARGET)
    for name, outcome in values["outcomes"].items():
        _each(name, outcome, _OUTCOME)
        for number, record in enumerate(outcome["records"]):
            _record(f"{name}, record {number}", record)


def _record(place: str, record: Mapping[str, Any]) -> None:
    _each(place, record, _RECORD)
    for name, figure in FIGURES.items():
        try:
            value = figure.of(record)
            if value is not None and not (_is_number(value) and abs(value) < _MOST):
                raise ValueError(value)
        except (KeyError, TypeError, ValueError, ArithmeticError):
            raise ValueError(f"{place}: gives no {name}") from None


def _each(place: str, values: Any, wanted: Mapping[str, Is]) -> None:
    if not isinstance(values, Mapping):
        raise ValueError(f"{place}: is no object")
    for name, is_so in wanted.items():
        if not is_so(values.get(name)):
            raise ValueError(
                f"{place}: {name}".removeprefix(": ") + " is missing, or no such value"
            )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_length(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_fact(value: Any) -> bool:
    return _is_text(value) or _is_length(value)


def _optional(is_so: Is) -> Is:
    return lambda value: value is None or is_so(value)


def _list_of(is_so: Is) -> Is:
    return lambda value: isinstance(value, list | tuple) and all(map(is_so, value))


def _names(is_so: Is) -> Is:
    return lambda value: isinstance(value, dict) and all(map(is_so, value.values()))


_RESULTS: Final[Mapping[str, Is]] = {
    "study": _is_text,
    "scale": lambda value: value in SCALES,
    "repeat": lambda value: _is_length(value) and value > 0,
    "begun": _is_text,
    "elapsed_s": lambda value: _is_number(value) and 0 <= value < _MOST,
    "libraries": _names(_is_text),
    "outcomes": _names(lambda value: isinstance(value, dict)),
    "complete": _is_flag,
    "source": _is_text,
    "environment": _names(_is_fact),
    "target": _optional(lambda value: isinstance(value, dict)),
    "values": _names(_names(_is_text)),
}
_TARGET: Final[Mapping[str, Is]] = {
    "file": _is_text,
    "dataset": _is_text,
    "shape": _list_of(_is_length),
    "dtype": _is_text,
    "chunks": _list_of(_is_length),
    "filters": _is_text,
}
_OUTCOME: Final[Mapping[str, Is]] = {
    "records": _list_of(lambda value: isinstance(value, dict)),
    "skipped": _list_of(_is_text),
    "mismatches": _list_of(_is_text),
    "elapsed_s": _is_number,
    "complete": _is_flag,
}
_RECORD: Final[Mapping[str, Is]] = {
    "status": _is_text,
    "error": _optional(_is_text),
    "fallback": _optional(_is_text),
    "point": _names(_is_text),
    "shape": _optional(_list_of(_is_length)),
    "cpu_count": _optional(_is_fact),
}
