"""Which findings count: all, or only those that are new and that nobody wants to ignore?

A baseline is what an earlier ``chunkwise inspect --json`` printed.  A finding is known if the
baseline has one of the same code about the same object of the same file, at least as severe.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from chunkwise.errors import UsageError
from chunkwise.inspection.facts import FileFacts
from chunkwise.inspection.finding import SEVERITIES, Finding
from chunkwise.names import printable

_Key = tuple[str, str | None, str]


@dataclass(frozen=True, slots=True)
class Counted:
    """Which findings count."""

    ignored: frozenset[str] = frozenset()  # Codes that do not
    # How severe each known finding was, by file, object and code.
    known: dict[_Key, int] = field(default_factory=dict)

    def of(self, path: str, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return those of a file's findings that count, in their order."""
        return tuple(
            finding
            for finding in findings
            if finding.code not in self.ignored
            and SEVERITIES.index(finding.severity) > self.known.get(_key(path, finding), -1)
        )

    def in_facts(self, facts: FileFacts) -> FileFacts:
        """Leave those that do not count out of the facts about a file."""
        return replace(facts, findings=self.of(facts.path, facts.findings))


ALL: Final = Counted()


def read_baseline(path: str | os.PathLike[str]) -> dict[_Key, int]:
    """Read a baseline."""
    name = printable(os.fspath(path))
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"--baseline {name}: cannot be read: {reason}") from None
    known: dict[_Key, int] = {}
    try:
        for record in _records(text):
            if record["format"] != "chunkwise-inspect":
                raise ValueError
            for finding in record["findings"]:
                key = (_normal(record["path"]), finding["path"], finding["code"])
                level = SEVERITIES.index(finding["severity"])
                known[key] = max(level, known.get(key, level))
    except (KeyError, TypeError, ValueError):
        raise UsageError(
            f"--baseline {name}: is not what chunkwise inspect --json prints; make one with "
            "chunkwise inspect FILE... --json > BASELINE"
        ) from None
    return known


def _records(text: str) -> list[dict[str, Any]]:
    """Give one object of several lines, or an object a line."""
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def _key(path: str, finding: Finding) -> _Key:
    return _normal(path), finding.path, finding.code


def _normal(path: str) -> str:
    """Write a path so that ``./a.nc`` and ``a.nc`` are one file."""
    return os.path.normpath(path)
