"""How are findings written for code hosts: as SARIF 2.1.0 (an OASIS standard)?"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Final
from urllib.parse import quote

from chunkwise.errors import CannotWriteError
from chunkwise.files.durable import write_whole
from chunkwise.inspection.finding import CODES, Finding, Severity
from chunkwise.inspection.records import plain
from chunkwise.names import json_text, printable, printable_lines

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
# Of rules; each result has its own.
_USUAL: Final[dict[str, Severity]] = {
    "filter-unavailable": "error",
    "sources-missing": "error",
    "unreadable-object": "error",
    "unreadable-chunks": "error",
    "not-closed": "error",
    "early-end": "error",
    "cannot-open": "error",
}


def sarif(findings: Sequence[tuple[str, Finding]], *, complete: bool = True) -> dict[str, Any]:
    """Make a log of findings."""
    used = [code for code in CODES if any(finding.code == code for _, finding in findings)]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "chunkwise",
                        "version": version("chunkwise"),
                        "rules": [_rule(code) for code in used],
                    }
                },
                "invocations": [{"executionSuccessful": complete}],
                "columnKind": "unicodeCodePoints",
                "results": [
                    _result(path, found, used.index(found.code)) for path, found in findings
                ],
            }
        ],
    }


def save(log: dict[str, Any], path: str) -> None:
    """Write a log to a file, whole or not at all; ``-`` prints it."""
    text = json_text(log, indent=1) + "\n"
    if path == "-":
        sys.stdout.write(text)
        return
    try:
        write_whole(path, text.encode())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CannotWriteError(
            f"--sarif {printable(path)}: cannot be written: {reason}; name another place"
        ) from None


def uri(path: str) -> str:
    """Write a file's path as a URI: relative ones as they are, others with their scheme."""
    escaped = quote(os.fsencode(path.removeprefix("./")))
    if path.startswith("/"):
        return f"file://{escaped}"
    # A colon in the first part would make a scheme of it.
    first, slash, rest = escaped.partition("/")
    return first.replace(":", "%3A") + slash + rest


def _rule(code: str) -> dict[str, Any]:
    return {
        "id": code,
        "shortDescription": {"text": CODES[code]},
        "help": {"text": f"chunkwise's docs/findings.md explains '{code}'."},
        "defaultConfiguration": {"level": _USUAL.get(code, "warning")},
    }


def _result(path: str, finding: Finding, rule: int) -> dict[str, Any]:
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": uri(path)}}}
    if finding.path is not None:
        # Half pairs, which stand for bytes that are no UTF-8, are no JSON to some.
        full = printable(finding.path)
        name = printable(finding.path.rpartition("/")[2]) or "/"
        location["logicalLocations"] = [{"fullyQualifiedName": full, "name": name}]
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": finding.severity,
        "message": {"text": _message(finding)},
        "locations": [location],
        # What tells it from others in the next run, whatever its numbers are then.
        "partialFingerprints": {"finding/v1": f"{uri(path)}:{quote(_bytes(finding))}"},
        "properties": {
            "evidence": {
                name: printable(value) if isinstance(value, str) else plain(value)
                for name, value in finding.evidence.items()
            },
            "wasteBytes": finding.waste_nbytes,
        },
    }


def _message(finding: Finding) -> str:
    where = "" if finding.path is None else f"{finding.path}: "
    fix = next((fix for fix in finding.fixes if not fix.writing), None)
    remedy = "" if fix is None else f"\n\nFix ({fix.tool}):\n{fix.text}"
    return printable_lines(f"{where}{finding.summary}{remedy}")


def _bytes(finding: Finding) -> bytes:
    return f"{finding.path or ''}:{finding.code}".encode("utf-8", "surrogateescape")
