"""Which access patterns does a saved trace hold for a dataset?"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chunkwise.errors import UsageError
from chunkwise.names import printable
from chunkwise.running.trace import VERSION, Trace, TracedDataset
from chunkwise.words import joined


def recorded(path: str, file: str, dataset: str | None) -> tuple[str, tuple[str, ...]]:
    """Find what a program has read of a dataset."""
    found = _datasets(path)
    wanted = None if dataset is None else "/" + dataset.strip("/")
    same = [one for one in found if _is_same(one["file"], file)]
    if dataset is None and not same:
        raise UsageError(f"{printable(path)} has no read of {printable(file)}: name a dataset")
    for one in [*same, *(found if dataset is not None else [])]:
        if wanted in (None, one["dataset"]) and one["access"]:
            return one["dataset"], tuple(one["access"])
    names = sorted({one["dataset"] for one in found if one["access"]})
    what = f"of {printable(wanted)}" if wanted else f"of {printable(file)}"
    others = f"; it has walks over {joined([printable(name) for name in names])}" if names else ""
    raise UsageError(f"{printable(path)} has no walk {what} in it{others}")


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)  # noqa: PTH121
    except OSError:
        return False


def read_trace(path: str) -> list[TracedDataset]:
    """Read the whole of a saved trace."""
    with _reading(path):
        return Trace.of(_record(path)).datasets


def _datasets(path: str) -> list[dict[str, Any]]:
    with _reading(path):
        record = _record(path)
        datasets: list[dict[str, Any]] = record["datasets"]
        for one in datasets:
            if not {"file", "dataset", "access"} <= set(one):
                raise KeyError("access")
        datasets = [one for one in datasets if one.get("operation", "read") == "read"]
    if record.get("version", VERSION) != VERSION:
        raise UsageError(f"{printable(path)} is of another version of chunkwise; trace again")
    return datasets


def _record(path: str) -> dict[str, Any]:
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        found: dict[str, Any] = json.load(file)
        return found


@contextmanager
def _reading(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{printable(path)}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(
            f"{printable(path)} is no trace: write one by 'chunkwise trace -o FILE -- PROGRAM'"
        ) from None
