"""What does a file that `chunkwise bench` wrote hold: which trials, of what, where?

A trial is identified by every parameter of `Trial` except those in `_NOT_MEASURED`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Final

from chunkwise.errors import UsageError
from chunkwise.measure import store
from chunkwise.names import printable
from chunkwise.trials.trial import BOUNDS, FACTS, Measurement, Trial

FORMAT: Final = "chunkwise-bench"
VERSION: Final = 2
# What does not identify a trial: places, names, limits, and what is looked at outside it.
_NOT_MEASURED: Final = frozenset({*BOUNDS, *FACTS, "access", "warm_first", "check"})
# The run's own way to store the data has no name: the heading says how runs differ.
_STORAGE: Final = ("chunks", "filters")
AS_STORED: Final = "as stored"
# Figures of a record that are no field of its own (`Measurement.to_record`).
_RESULTS: Final = ("asked_", "time_")

PARAMETERS: Final = tuple(f for f in fields(Trial) if f.name not in _NOT_MEASURED)
_KNOWN: Final = {f.name for f in (*fields(Trial), *fields(Measurement))}
_DATA: Final = ("dataset", "shape", "dtype", "chunks", "filters", "stored_nbytes")

Values = Mapping[str, Any]


@dataclass
class Sample:
    """All repeats of one trial in one file."""

    parameters: dict[str, Any]  # What was measured, by the names of `Trial`
    access: str  # What the pattern is called there
    total_s: list[float]  # Seconds for the whole pattern, a value for each repeat that gave one
    cpu_s: list[float | None]  # Processor seconds for the same; None if nobody counted them
    extrapolated: bool = False  # Whether a total is an estimate
    page_cache: str = ""  # What the page cache turned out to be; ``mixed`` where that differs
    error: str | None = None  # Why the last repeat without figures has none
    fallback: str | None = None  # Why libhdf5 did it in the place of chunkwise; None if it did not
    status: str = "failed"  # ``ok`` if a repeat has figures; else ``failed`` or ``timeout``

    @property
    def worked_s(self) -> list[float]:
        """What is judged: `total_s` without the waiting for a processor."""
        if self.page_cache != "warm" or self.parameters.get("operation", "read") != "read":
            return self.total_s
        times = zip(self.total_s, self.cpu_s, strict=True)
        return [min(total_s, cpu_s) if cpu_s else total_s for total_s, cpu_s in times]


@dataclass(frozen=True)
class Saved:
    """One file."""

    path: str  # Its name
    # Dataset, shape, type, chunks, filters and stored size; None if the file does not say.
    data: dict[str, Any]
    environment: dict[str, str]  # Machine and versions; several are joined
    samples: dict[str, Sample]  # By what was measured


def load(path: str | os.PathLike[str]) -> Saved:
    """Read a file that `chunkwise bench` wrote; raise UsageError for any other."""
    name = printable(os.fspath(path))
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(
            f"{name}: cannot be read: {reason}; name a file that chunkwise bench wrote"
        ) from None
    try:
        saved = _collect(os.fspath(path), *_parsed(text, name))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(
            f"{name}: is no whole file of chunkwise bench ({type(error).__name__}: {error}); "
            "write it again with chunkwise bench FILE --json"
        ) from None
    if not any(sample.total_s for sample in saved.samples.values()):
        raise UsageError(f"{name}: holds no trial with figures; run chunkwise bench again")
    return saved


def _parsed(text: str, name: str) -> tuple[Values, list[Values]]:
    """Return what is known of the dataset, and a flat record for each trial."""
    first_line = text.partition("\n")[0]
    try:
        header = json.loads(first_line)
    except ValueError:
        header = None
    if isinstance(header, dict) and header.get("format") == store.FORMAT:
        _check_version(header, store.VERSION, name)
        return header, _lines(text)
    try:
        document = json.loads(text)
    except ValueError as error:
        cut = ": it is cut short" if text.lstrip().startswith("{") else ""
        raise UsageError(
            f"{name}: is not JSON{cut} ({error}); write it again with chunkwise bench FILE --json"
        ) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UsageError(
            f"{name}: is JSON, but not of chunkwise bench; write one with chunkwise bench FILE "
            "--json, or --save"
        )
    _check_version(document, VERSION, name)
    return document["target"], document["records"]


def _check_version(values: Values, version: int, name: str) -> None:
    if values.get("version") != version:
        raise UsageError(
            f"{name}: has version {values.get('version')} of its format, and this chunkwise reads "
            f"{version}; measure again with this one"
        )


def _lines(text: str) -> list[Values]:
    """Read the trials of `--save`; a last line that was cut short is left out, as there."""
    whole = text[: text.rfind("\n") + 1].splitlines()[1:]
    records: list[Values] = []
    for line in whole:
        values = json.loads(line)
        trial, environment = values.pop("trial"), values.pop("environment", {})
        requested = {f"asked_{key}": trial[key] for key in trial.keys() & values.keys()}
        records.append({**trial, **values, **requested, **environment})
    return records


def _collect(path: str, target: Values, records: list[Values]) -> Saved:
    first = records[0] if records else {}
    data = {name: target.get(name, first.get(name)) for name in _DATA}
    data["dataset"] = str(data["dataset"]).strip("/")
    stored = tuple(data[name] for name in _STORAGE)
    samples: dict[str, Sample] = {}
    environment: dict[str, dict[str, None]] = {}
    for record in records:
        parameters = _parameters(record, stored)
        key = json.dumps(parameters, sort_keys=True)
        sample = samples.setdefault(key, Sample(parameters, str(record["access"]), [], []))
        _add(sample, record)
        for name, value in record.items():
            is_fact = isinstance(value, str | int) and not isinstance(value, bool)
            if is_fact and name not in _KNOWN and not name.startswith(_RESULTS):
                environment.setdefault(name, {})[str(value)] = None
    joined = {name: ", ".join(values) for name, values in environment.items()}
    return Saved(path, data, joined, samples)


def _parameters(record: Values, stored: tuple[Any, ...]) -> dict[str, Any]:
    """Return what was measured; a parameter that the file does not know has its default."""
    found = {}
    for field in PARAMETERS:
        # Where a result has a parameter's name, the record keeps the parameter apart.
        names = (name for name in (f"asked_{field.name}", field.name) if name in record)
        name = next(names, None)
        if name is None and field.default is MISSING:
            raise KeyError(field.name)
        found[field.name] = field.default if name is None else record[name]
    found["dataset"] = str(found["dataset"]).strip("/")
    if tuple(found[name] for name in _STORAGE) == stored:
        found.update(dict.fromkeys(_STORAGE, AS_STORED))
    return found


def _add(sample: Sample, record: Values) -> None:
    total = record.get("total_s")
    if record["status"] != "ok" or not total or not 0 < total < math.inf:
        sample.error = record.get("error") or "no reason given"
        if not sample.total_s:
            sample.status = "failed" if record["status"] == "ok" else record["status"]
        return
    cpu, elapsed = record.get("cpu_s"), record.get("elapsed_s")
    sample.total_s.append(float(total))
    # Counts of the reads done, scaled to all of them.
    sample.cpu_s.append(float(cpu) / elapsed * total if cpu and elapsed else None)
    sample.fallback = record.get("fallback") or sample.fallback
    sample.extrapolated |= bool(record.get("extrapolated"))
    page_cache = str(record.get("page_cache", "uncontrolled"))
    sample.page_cache = page_cache if sample.page_cache in ("", page_cache) else "mixed"
    sample.status = "ok"
