"""What did a study measure: which rows, each with which figures?"""

from __future__ import annotations

import gzip
import json
import math
import os
import statistics
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from chunkwise.errors import UsageError
from chunkwise.files.durable import write_whole
from chunkwise.measure.verdict import spread
from chunkwise.names import printable
from chunkwise_lab.studies.figures import FIGURES
from chunkwise_lab.studies.study import Scale, Statistic, Where, matches
from chunkwise_lab.turns import busy_text

FORMAT: Final = "chunkwise-study"
VERSION: Final = 2
# What a folder of results has.
NAMES: Final = ("results.json.gz", "results.json")
# Fields of a record that no figure and no report needs.
_LEFT_OUT: Final = frozenset({"checksums", "slabs", "file", "storage", "data", "scratch"})
# What no figure can be; so much less than a float can hold that sums of squares are floats.
_MOST: Final = 1e100
# What all other code relies on, of a file that may come from anywhere.
_TARGET: Final = {
    "file": str, "dataset": str, "shape": list[int], "dtype": str, "chunks": list[int],
    "filters": str,
}  # fmt: skip
_RECORD: Final = {
    "status": str, "error": str | None, "fallback": str | None, "point": dict[str, str],
    "shape": list[int] | None, "cpu_count": str | int | None,
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One combination that was measured, with all its repeats."""

    point: dict[str, str]  # Its labels, and its value on each axis of bench, as text
    records: tuple[dict[str, Any], ...]  # One a repeat

    def values(self, figure: str) -> tuple[float, ...]:
        """Return a figure of all repeats that have it."""
        found = (FIGURES[figure].of(record) for record in self.records if record["status"] == "ok")
        return tuple(value for value in found if value is not None)

    @property
    def problem(self) -> str | None:
        """Why there are no figures; None if there are some."""
        if any(record["status"] == "ok" for record in self.records):
            return None
        return str(self.records[0].get("error") or self.records[0]["status"])

    @property
    def refused(self) -> bool:
        """Whether the library said that it does not do this: an answer, and no fault."""
        return all(record["status"] == "refused" for record in self.records)

    @property
    def fallback(self) -> str | None:
        """Why libhdf5 did it in the place of chunkwise; None if it did not."""
        reasons = (record.get("fallback") for record in self.records)
        return next((str(why) for why in reasons if why), None)


def middle(values: Sequence[float], statistic: Statistic) -> float:
    """Sum up repeats; a trimmed mean of fewer than three is their mean."""
    if statistic == "mean":
        return statistics.fmean(values)
    found = spread(values)
    return found.median if statistic == "median" else found.trimmed_mean


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of the mean; 0 of a single value."""
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


@dataclass
class Outcome:
    """What became of one experiment."""

    # One a trial, in the order of the points.
    records: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)  # What was not measured, and why
    # Trials that read different bytes, or wrong values.
    mismatches: list[str] = field(default_factory=list)
    elapsed_s: float = 0.0
    complete: bool = True  # Whether it was measured to its end

    def rows(self, where: Where | None = None) -> list[Row]:
        """Return the rows, in the order in which they were first measured."""
        found: dict[tuple[tuple[str, str], ...], list[dict[str, Any]]] = {}
        for record in self.records:
            if where is None or matches(record["point"], where):
                found.setdefault(tuple(record["point"].items()), []).append(record)
        return [Row(dict(point), tuple(records)) for point, records in found.items()]

    def after(self, earlier: Outcome) -> Outcome:
        """Return this outcome with what an earlier run measured, and this one did not or less."""
        rows = {tuple(row.point.items()): row for row in earlier.rows()}
        for row in self.rows():
            point = tuple(row.point.items())
            if point not in rows or len(row.records) >= len(rows[point].records):
                rows[point] = row
        return Outcome(
            [record for row in rows.values() for record in row.records],
            list(self.skipped),
            list(dict.fromkeys((*earlier.mismatches, *self.mismatches))),
            earlier.elapsed_s + self.elapsed_s,
            self.complete,
        )


@dataclass
class StudyResults:
    """One run of a study."""

    study: str
    scale: Scale
    repeat: int  # How often everything was to be measured
    begun: str  # When, in UTC, ISO 8601
    elapsed_s: float = 0.0
    # What values of the axis ``libhdf5`` stand for: version and build.
    libraries: dict[str, str] = field(default_factory=dict)
    # By the experiment's id, in the study's order.
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    complete: bool = False  # Whether all that was requested was measured
    source: str = ""  # The folder of a study that is none of this package; else empty
    # The machine, its processors and system, and the versions of all that is installed.
    environment: dict[str, str | int] = field(default_factory=dict)
    # The user's dataset that was measured; None if the study's own data was.
    target: dict[str, Any] | None = None
    # By axis: values in place of the study's (`chunkwise_lab.studies.own_data.adapted`).
    values: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def busy(self) -> str:
        """Say whether other programs were at work meanwhile; empty if not."""
        records = (record for one in self.outcomes.values() for record in one.records)
        return busy_text(record.get("others_share") for record in records)

    def to_json(self) -> dict[str, Any]:
        """Return the run as JSON values."""
        return {"format": FORMAT, "version": VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> StudyResults:
        """Undo `to_json`."""
        if values.get("format") != FORMAT or values.get("version") != VERSION:
            raise UsageError("no results of a study, or of a version that is not known here")
        _check(values)
        kept = {k: v for k, v in values.items() if k not in ("format", "version", "verdicts")}
        outcomes = {k: Outcome(**v) for k, v in kept.pop("outcomes").items()}
        return cls(outcomes=outcomes, **kept)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file; there is never half of one."""
        text = json.dumps(self.to_json(), separators=(",", ":")).encode()
        # Without a time in it, equal results are equal files.
        content = gzip.compress(text, mtime=0) if str(path).endswith(".gz") else text
        write_whole(path, content)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> StudyResults:
        """Read a file, or the one that a folder holds."""
        name = printable(os.fspath(path))
        if Path(path).is_dir():
            found = next((one for n in NAMES if (one := Path(path, n)).is_file()), None)
            if found is None:
                raise UsageError(f"{name}: holds no {' or '.join(NAMES)}; run chunkwise study")
            path = found
        try:
            content = Path(path).read_bytes()
            text = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
            return cls.from_json(json.loads(text))
        except OSError as error:
            raise UsageError(f"{name}: cannot be read: {error.strerror or error}") from None
        except (ValueError, TypeError, AttributeError, RecursionError) as wrong:
            reason = printable(str(wrong))
            raise UsageError(f"{name}: no results of a study: {reason}") from None
        except (EOFError, zlib.error):
            raise UsageError(f"{name}: no results of a study: it is cut short") from None


def labelled(
    records: Iterable[dict[str, Any]], labels: dict[str, str], point: dict[str, str]
) -> list[dict[str, Any]]:
    """Give records what distinguishes them, and leave out what nobody needs."""
    return [
        {
            **{k: v for k, v in record.items() if k not in _LEFT_OUT and v is not None},
            "point": {**labels, **point},
        }
        for record in records
    ]


def _check(values: Mapping[str, Any]) -> None:
    """Raise ValueError if a run's JSON values are not of the types that the records here state."""
    _each("", values, get_type_hints(StudyResults))
    if not values["repeat"] or not 0 <= values["elapsed_s"] < _MOST:
        raise ValueError("repeat or elapsed_s is missing, or no such value")
    if values.get("target") is not None:
        _each("target", values["target"], _TARGET)
    for name, outcome in values["outcomes"].items():
        _each(name, outcome, get_type_hints(Outcome))
        for number, record in enumerate(outcome["records"]):
            _each(f"{name}, record {number}", record, _RECORD)
            for figure in FIGURES.values():
                try:
                    value = figure.of(record)
                    if value is not None and not (_fits(value, float) and abs(value) < _MOST):
                        raise ValueError(value)
                except (KeyError, TypeError, ValueError, ArithmeticError):
                    place = f"{name}, record {number}"
                    raise ValueError(f"{place}: gives no {figure.name}") from None


def _each(place: str, values: Any, kinds: Mapping[str, Any]) -> None:
    if not isinstance(values, Mapping):
        raise ValueError(f"{place}: is no object")
    for name, kind in kinds.items():
        if not _fits(values.get(name), kind):
            raise ValueError(
                f"{place}: {name}".removeprefix(": ") + " is missing, or no such value"
            )


def _fits(value: Any, kind: Any) -> bool:
    """Whether a JSON value is of a type; whole numbers are counts, and numbers are finite."""
    origin, of = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return any(_fits(value, one) for one in of)
    if origin is Literal:
        return value in of
    if origin is list:
        return isinstance(value, list | tuple) and all(_fits(one, of[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(one, of[1]) for one in value.values())
    if kind in (int, float):
        is_number = isinstance(value, int | kind) and not isinstance(value, bool)
        return is_number and math.isfinite(value) and (kind is float or value >= 0)
    return kind is Any or isinstance(value, dict if kind is Outcome else kind)
