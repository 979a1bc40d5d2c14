"""What does `--json` print?  `python scripts/schemas.py` writes a JSON schema of each format.

Each is made from the record that a command prints, into docs/_static/schemas.  A test compares
the files with the records, and with what each command prints.  Further keys are allowed: they may
come in any version.  A key that goes, or changes its meaning, changes `version`.
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from chunkwise import verdicts
from chunkwise.advice import answer
from chunkwise.fixing import records as fixing
from chunkwise.indexing import records as indexing
from chunkwise.inspection import facts
from chunkwise.measure import compare_render, results
from chunkwise.measure.target import Target
from chunkwise.remedy.fix import Fix
from chunkwise.repacking import folder
from chunkwise.repacking import records as repacking
from chunkwise.verifying import records as verifying
from chunkwise_lab.studies import results as studies

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "_static" / "schemas"
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Printed:
    """What a command prints."""

    command: str
    version: int
    # Its keys: a record's, and those that are added to them.
    record: type | None
    more: Mapping[str, Any]
    # What the record has, and is not printed.
    left_out: Sequence[str] = ()
    # Whether each key of the record may be null: of a file that cannot be opened.
    nullable: bool = False
    # What states the format, where that is not the key `format`.
    has_format: bool = True


VERDICT = {"verdict": verdicts.FileVerdict, "exit_code": int}
PRINTED = {
    "chunkwise-inspect": Printed(
        "inspect", facts.VERSION, facts.FileFacts,
        {**VERDICT, "error": str | None, "commands": tuple[Fix, ...]}, nullable=True,
    ),
    "chunkwise-bench": Printed(
        "bench, hstest", results.JSON_VERSION, None,
        {
            "target": Target, "design": str, "varied": list[str], "seconds": float,
            "elapsed_s": float, "bytes_equal": bool | None, "mismatches": list[str],
            "wrong": list[str], "advice": results.Advice | None, "summary": Rows,
            "records": Rows,
        },
    ),
    "chunkwise-advise": Printed(
        "advise", answer.JSON_VERSION, answer.Advice,
        {"rules": list[str], "fixes": tuple[Fix, ...], "open_fixes": tuple[Fix, ...]},
        left_out=["remedies", "open_remedies"],
    ),
    "chunkwise-compare": Printed(
        "compare", compare_render.JSON_VERSION, None,
        {
            "threshold": float, "confidence": float, "verdict": str, "base": dict[str, Any],
            "others": Rows,
        },
    ),
    "chunkwise-fix": Printed(
        "fix", fixing.VERSION, fixing.Fixed, {"options": str | None}, left_out=["layout"]
    ),
    "chunkwise-repack": Printed("repack", repacking.VERSION, repacking.Summary, {}),
    "chunkwise-repack-plan": Printed(
        "repack --dry-run", repacking.VERSION, None,
        {
            "source": str, "target": str, "memory_budget_nbytes": int, "memory_nbytes": int,
            "threads": int, "stored_nbytes_before": int, "expected_stored_nbytes": int | None,
            "expected_s": float | None, "readers": list[str], "datasets": Rows,
        },
    ),
    "chunkwise-repack-file": Printed("repack, of many files", 1, folder.FileResult, {}),
    "chunkwise-verify-file": Printed(
        "verify", verifying.VERSION, verifying.Verified, {**VERDICT, "whole_datasets": int}
    ),
    "chunkwise-salvage": Printed(
        "verify --salvage", 1, None,
        {"verified": dict[str, Any], "salvaged": dict[str, Any], "result": dict[str, Any]},
    ),
    "chunkwise-index": Printed(
        "index", 1, indexing.Indexed, {}, has_format=False
    ),
    "chunkwise-study": Printed(
        "study", studies.VERSION, studies.StudyResults, {"verdicts": Rows}
    ),
    "chunkwise-mpi-check": Printed(
        "mpi-check", 1, None,
        {
            "libraries": dict[str, Any], "ranks": dict[str, Any], "mpi_io": dict[str, Any],
            "filesystem": dict[str, Any], "path": str, "shared": bool | None, "findings": Rows,
        },
    ),
    "chunkwise-mpi-model": Printed(
        "mpi-model", 1, None,
        {
            "job": dict[str, Any], "machine": dict[str, float], "estimates": dict[str, Any],
            "most_ranks": int | None, "checked": Rows, "predictions": Rows,
        },
    ),
    "chunkwise-iotest": Printed(
        "study iotest", 2, None,
        {
            "ranks": int, "hdf5": str, "steps": int, "arrays": int, "rows": int, "columns": int,
            "process_rows": int, "process_columns": int, "scaling": str, "oversubscribed": bool,
            "combinations": Rows,
        },
    ),
}  # fmt: skip


class _Schema:
    """A schema, with the records within it under `$defs`."""

    def __init__(self) -> None:
        self.records: dict[str, Any] = {}

    def of(self, hint: Any) -> dict[str, Any]:
        """The schema of a type."""
        plain = {str: "string", bool: "boolean", int: "integer", type(None): "null"}
        if hint in plain:
            return {"type": plain[hint]}
        if hint is float:
            # Python's numbers that JSON lacks are null.
            return {"type": ["number", "null"]}
        origin, inner = get_origin(hint), get_args(hint)
        if origin is Literal:
            return {"enum": list(inner)}
        if origin in (Union, types.UnionType):
            return {"anyOf": [self.of(one) for one in inner]}
        if origin in (tuple, list, Sequence) or hint is tuple:
            if origin is tuple and inner[-1] is not ...:
                each = [self.of(one) for one in inner]
                return {"type": "array", "prefixItems": each, "minItems": len(each)}
            return {"type": "array", "items": self.of(inner[0])}
        if origin in (dict, Mapping):
            return {"type": "object", "additionalProperties": self.of(inner[1])}
        if isinstance(hint, type) and issubclass(hint, Enum):
            return {"enum": [one.value for one in hint]}
        if is_dataclass(hint) and isinstance(hint, type):
            if hint.__name__ not in self.records:
                # It may be within itself.
                self.records[hint.__name__] = {}
                self.records[hint.__name__] = self.fields(hint, {})
            return {"$ref": f"#/$defs/{hint.__name__}"}
        # Text that is a type of its own, and what may be anything.
        return {}

    def fields(
        self, record: type | None, more: Mapping[str, Any], left_out: Sequence[str] = (),
        nullable: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """The schema of an object."""
        keys: dict[str, Any] = {}
        if record is not None:
            hints = get_type_hints(record)
            for name in getattr(record, "KEYS", [one.name for one in fields(record)]):
                if name not in left_out:
                    hint = hints.get(name) or get_type_hints(getattr(record, name).fget)["return"]
                    keys[name] = self.of(hint | None if nullable else hint)
        keys |= {name: self.of(hint) for name, hint in more.items()}
        return {"type": "object", "properties": keys, "required": list(keys)}


def schema(name: str) -> dict[str, Any]:
    """Make the schema of a format."""
    printed, made = PRINTED[name], _Schema()
    whole = made.fields(printed.record, printed.more, printed.left_out, printed.nullable)
    head: dict[str, Any] = {"version": {"const": printed.version}}
    if printed.has_format:
        head["format"] = {"const": name}
    whole["properties"] |= head
    whole["required"] = [*dict.fromkeys([*head, *whole["required"]])]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{name}, version {printed.version}",
        "description": f"What chunkwise {printed.command} --json prints.",
        **whole,
        "$defs": dict(sorted(made.records.items())),
    }


def text(name: str) -> str:
    """Write a schema: each key, and each record within it, on a line."""
    lines = []
    for key, value in schema(name).items():
        if key in ("properties", "$defs"):
            inner = (f"\n  {json.dumps(one)}: {json.dumps(more)}" for one, more in value.items())
            lines.append(f" {json.dumps(key)}: {{{','.join(inner)}}}")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> int:
    """Write all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for name in PRINTED:
        (FOLDER / f"{name}.json").write_text(text(name), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
