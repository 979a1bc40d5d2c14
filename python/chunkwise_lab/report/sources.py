"""Which kinds of results are these files?

A study's (one JSON object, gzipped or not, or the folder that holds it), a run of bench
(``--json``), its trials (``--save``), an answer of advise (``--json``), or a trace: each says so
in its ``format``.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from chunkwise.errors import UsageError
from chunkwise.measure import store
from chunkwise.measure.saved import FORMAT as BENCH
from chunkwise.measure.saved import Saved
from chunkwise.measure.saved import load as load_bench
from chunkwise.names import printable
from chunkwise.running.trace import FORMAT as TRACE
from chunkwise_lab.report.advice import FORMAT as ADVICE
from chunkwise_lab.studies.results import FORMAT as STUDY
from chunkwise_lab.studies.results import StudyResults

_NAMES: Final = ("results.json.gz", "results.json")
_HELP: Final = (
    "name what chunkwise study, chunkwise bench (--json, --save), chunkwise advise FILE DATASET "
    "--json or chunkwise trace -o has written"
)


@dataclass(frozen=True)
class Printed:
    """What another command printed as JSON, and where it was saved."""

    kind: Literal["bench", "advise", "trace"]
    values: dict[str, Any]
    saved: Saved | None = None  # Of bench


Source = StudyResults | Printed


def read(paths: Sequence[str | Path]) -> list[tuple[Source, Path]]:
    """Read results, each of its kind."""
    return [(source, Path(path)) for path in paths for source in _read(Path(path))]


def _read(path: Path) -> Sequence[Source]:
    name = printable(str(path))
    if path.is_dir():
        found = next((path / n for n in _NAMES if (path / n).is_file()), None)
        if found is None:
            raise UsageError(f"{name}: holds no {' or '.join(_NAMES)}; {_HELP}")
        return [StudyResults.read(found)]
    head = _head(path, name)
    kind = head.get("format")
    if kind == STUDY:
        return [StudyResults.read(path)]
    if kind in (BENCH, store.FORMAT):
        return [Printed("bench", head if kind == BENCH else {}, load_bench(path))]
    if kind in (ADVICE, TRACE):
        return [Printed("advise" if kind == ADVICE else "trace", head)]
    what = (
        f"its format is '{printable(str(kind))}'" if kind else "it does not say of what kind it is"
    )
    raise UsageError(f"{name}: no results that can be reported: {what}; {_HELP}")


def _head(path: Path, name: str) -> dict[str, Any]:
    """Read the object of a file of JSON, or the first of several lines."""
    try:
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        text = content.decode("utf-8")
    except (EOFError, zlib.error, UnicodeDecodeError):
        raise UsageError(f"{name}: no results: it is no text, or cut short; {_HELP}") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"{name}: cannot be read: {reason}; {_HELP}") from None
    for part in (text, text.partition("\n")[0]):
        try:
            values = json.loads(part)
        except (ValueError, RecursionError):
            continue
        return values if isinstance(values, dict) else {}
    raise UsageError(f"{name}: no results: it is no JSON; {_HELP}")
