"""Made-up rows, for tests of what follows from them."""

from __future__ import annotations

from typing import Any

from chunkwise.studies.results import Row
from chunkwise.studies.study import Claim


def row(
    *total_s: float, hdf5: str = "2.0.0", extra: dict[str, Any] | None = None, **point: str
) -> Row:
    """Make a row that was measured so often; without figures, one that failed."""
    point = {name.replace("_", "-"): text for name, text in point.items()}
    records: list[dict[str, Any]] = [
        {"status": "ok", "total_s": seconds, "hdf5": hdf5, **(extra or {})} for seconds in total_s
    ]
    failed = {"status": "failed", "error": "the worker was ended by SIGKILL"}
    return Row(point, tuple(records) or (failed,))


def claim(rule: str, figure: str = "total_s", published: str = "", **settings: Any) -> Claim:
    """Make a claim."""
    return Claim("made-up", "Made up.", rule, figure, settings, published)
