"""How is a run given to other programs?"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from typing import Any, Final

from chunkwise.benching.results import Results
from chunkwise.names import printable

JSON_VERSION: Final = 2


def as_json(results: Results) -> dict[str, Any]:
    """Return the run as one JSON object; docs/bench.md describes it."""
    advice = results.advice
    return {
        "format": "chunkwise-bench",
        "version": JSON_VERSION,
        "target": asdict(results.target),
        "design": results.design,
        "varied": results.varied,
        "seconds": results.seconds,
        "elapsed_s": results.elapsed_s,
        "bytes_equal": not results.mismatches if results.compared else None,
        "mismatches": [str(mismatch) for mismatch in results.mismatches],
        "wrong": results.wrong,
        "advice": asdict(advice) if advice else None,
        "summary": results.summary(),
        "records": results.records,
    }


def as_csv(results: Results) -> str:
    """Return a row for each trial, with a line of names above.

    What is no single value (shapes, checksums) is written as JSON; what is not known is
    empty.  A row is one line: what does not print is escaped.
    """
    records = results.records
    names = list(dict.fromkeys(name for record in records for name in record))
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    for record in records:
        writer.writerow([_cell(record.get(name)) for name in names])
    return stream.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list | tuple | dict):
        return json.dumps(value)
    return "" if value is None else value
