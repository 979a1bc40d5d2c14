"""Which measured runs does a JSON file hold?"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from chunkwise.errors import UsageError
from chunkwise.names import printable, shown
from chunkwise_lab.mpi_model.calibrate import Run
from chunkwise_lab.mpi_model.model import Job

_NEEDED: Final = ("nbytes", "stored_nbytes", "n_chunks", "n_ranks", "phases")
_COUNTS: Final = ("threads", "n_cores", "ranks_per_node", "batch", "source_nbytes")
_KNOWN: Final = frozenset((*_NEEDED, *_COUNTS, "elapsed_s", "storage"))


def read_runs(paths: Iterable[str]) -> list[Run]:
    """Read files of measured runs."""
    return [run for path in paths for run in _of_file(path)]


def _of_file(path: str) -> Iterator[Run]:
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        reason = wrong.strerror if isinstance(wrong, OSError) else "not a text file"
        raise UsageError(f"{printable(path)}: {reason}") from None
    try:
        values = list(_values(text))
    except ValueError as wrong:
        raise UsageError(f"{printable(path)}: not JSON: {wrong}") from None
    records = values[0] if len(values) == 1 and isinstance(values[0], list) else values
    if not records:
        raise UsageError(f"{printable(path)}: it holds no runs")
    for number, record in enumerate(records, 1):
        try:
            yield run_of(record)
        except UsageError as wrong:
            raise UsageError(f"{printable(path)}: record {number}: {wrong}") from None


def _values(text: str) -> Iterator[Any]:
    """Read one value of JSON after another."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        value, at = decoder.raw_decode(text, at)
        yield value


def run_of(record: Any) -> Run:
    """Make a run of a record."""
    if not isinstance(record, dict):
        raise UsageError(f"a record is an object, not {shown(record)}")
    missing = [name for name in _NEEDED if record.get(name) is None]
    if missing:
        raise UsageError(f"{', '.join(missing)} missing")
    if not isinstance(record["phases"], dict):
        raise UsageError("phases must be an object of seconds by name")
    known = {name: record[name] for name in _KNOWN if record.get(name) is not None}
    nbytes = _number(known, "nbytes", whole=True)
    n_chunks = _number(known, "n_chunks", whole=True)
    if nbytes < 1 or n_chunks < 1:
        raise UsageError("nbytes and n_chunks must be at least 1")
    job = Job(
        nbytes=int(nbytes),
        chunk_nbytes=max(1, math.ceil(nbytes / n_chunks)),
        ratio=_number(known, "stored_nbytes") / nbytes,
        n_ranks=int(_number(known, "n_ranks", whole=True)),
        verify="verify" in record["phases"],
        **{name: int(_number(known, name, whole=True)) for name in _COUNTS if name in known},
    )
    phases = {str(name): _number(record["phases"], name) for name in record["phases"]}
    elapsed = _number(known, "elapsed_s") if "elapsed_s" in known else None
    return Run(job, phases, elapsed, str(known.get("storage", "")))


def _number(record: dict[str, Any], name: str, *, whole: bool = False) -> float:
    value = record[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UsageError(f"{name} must be a number, not {shown(value)}")
    if whole and value != int(value):
        raise UsageError(f"{name} must be a whole number, not {shown(value)}")
    return value
