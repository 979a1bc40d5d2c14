"""How does a stopped run continue?  It finds the finished trials in a file of JSON Lines."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from chunkwise.errors import UsageError
from chunkwise.files.identity import sample_of
from chunkwise.measure.target import Target
from chunkwise.names import printable
from chunkwise.trials.trial import BOUNDS, Measurement, Trial, from_worker

FORMAT: Final = "chunkwise-bench-trials"
VERSION: Final = 1
# An estimate is made again if it may take this many times as long.
_FAR_MORE: Final = 2.0


class Store:
    """The trials of one run, in a file."""

    def __init__(self, path: str | os.PathLike[str], target: Target) -> None:
        self._path = Path(path)
        header = _header(target)
        try:
            self._done = self._load(header)
            self._stream = self._path.open("a", encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"{self._name}: cannot be used for results: {error.strerror}"
            ) from None
        if self._stream.tell() == 0:
            self._append(header)

    @property
    def _name(self) -> str:
        return printable(str(self._path))

    def done(self, trial: Trial) -> list[Measurement]:
        """Return what was measured of a trial before, in order."""
        before = self._done.get(_key(trial.to_json()), ())
        return [
            measurement
            for measurement in before
            if measurement.status != "timeout"
            and not (
                measurement.extrapolated
                and trial.max_seconds >= _FAR_MORE * measurement.trial.max_seconds
            )
        ]

    def add(self, measurement: Measurement) -> None:
        """Save a measurement; it is on its way to the disk when this returns."""
        values = {
            field.name: getattr(measurement, field.name)
            for field in fields(measurement)
            if field.name != "trial"
        }
        self._append({"trial": measurement.trial.to_json(), **values})

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _append(self, values: Mapping[str, Any]) -> None:
        self._stream.write(json.dumps(values) + "\n")
        self._stream.flush()

    def _load(self, header: dict[str, Any]) -> dict[str, list[Measurement]]:
        if not self._path.exists():
            return {}
        text = self._path.read_text(encoding="utf-8", errors="replace")
        # A line that a kill cut short has no end, and the next one would be joined to it.
        if text and not text.endswith("\n"):
            text = text[: text.rfind("\n") + 1]
            os.truncate(self._path, len(text.encode()))
        lines = text.splitlines()
        if not lines:
            return {}
        first = _parsed(lines[0])
        if first.get("format") != FORMAT or first.get("version") != VERSION:
            raise UsageError(f"{self._name}: not a file of trials; name another one to save to")
        first["dataset"] = str(first.get("dataset")).strip("/")
        # Older ones do not say.
        first.setdefault("sample", header["sample"])
        if first != header:
            changed = [key for key in header if first.get(key) != header[key]]
            raise UsageError(
                f"{self._name}: its trials are of another file or dataset ({', '.join(changed)} "
                "differ); remove it, or name another one to save to"
            )
        found: dict[str, list[Measurement]] = {}
        for line in lines[1:]:
            values = _parsed(line)
            if "trial" in values:
                try:
                    trial = Trial.from_json(values.pop("trial"))
                except TypeError:
                    raise UsageError(
                        f"{self._name}: its trials are of another version of chunkwise; remove "
                        "it, or name another one to save to"
                    ) from None
                found.setdefault(_key(trial.to_json()), []).append(from_worker(trial, values))
        return found


def _header(target: Target) -> dict[str, Any]:
    status = Path(target.storage).stat()
    return {
        "format": FORMAT,
        "version": VERSION,
        "file": str(Path(target.file).resolve()),
        "dataset": target.dataset.strip("/"),
        "nbytes": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        # Programs may set the time back.
        "sample": sample_of(target.storage),
    }


def _key(trial: dict[str, Any]) -> str:
    # Only the other trials of a run make it necessary to warm the file first.
    kept = {k: value for k, value in trial.items() if k not in BOUNDS and k != "warm_first"}
    kept["dataset"] = str(kept["dataset"]).strip("/")
    return json.dumps(kept, sort_keys=True)


def _parsed(line: str) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}
