"""How is a run written as a table for other programs?"""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from chunkwise.benching.results import Results
from chunkwise.names import printable


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
