"""What did a probe measure before, in an earlier round or before it was stopped?

One record a line; the first line says under which settings; the last may be cut, and is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chunkwise.files.durable import write_whole

Point = dict[str, str]


class Kept:
    """The records of a probe, in the order in which they were measured."""

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path, self.settings = path, settings
        self._first = json.dumps(settings, sort_keys=True)
        self.records: list[tuple[Point, Any]] = []
        self.read()

    def read(self) -> None:
        """Read what the file has; under other settings, that is nothing."""
        text = self.path.read_text("utf-8") if self.path.exists() else ""
        first, *lines = text.split("\n")[:-1] or [""]
        self.records = [tuple(json.loads(line)) for line in lines] if first == self._first else []

    def begin(self) -> None:
        """Write the file anew, whole, so that lines can be added to it."""
        lines = [self._first, *map(json.dumps, self.records)]
        write_whole(self.path, "".join(f"{line}\n" for line in lines).encode())

    def add(self, point: Point, record: Any) -> None:
        """Add a record, to the file as well; `begin` must have been called."""
        self.records.append((point, record))
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps((point, record)) + "\n")

    def of(self, point: Point) -> list[Any]:
        """Return the records of a point."""
        return [record for one, record in self.records if one == point]
