"""How tests compare programs on h5py as it is with the same on h5py patched."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.routing import eligibility
from chunkwise.writing import at_once


@pytest.fixture
def bound_always(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Bind datasets, and write by the engine, however small; tests need no large ones then."""
    monkeypatch.setattr(eligibility, "SMALLEST_NBYTES", 0)
    monkeypatch.setattr(at_once, "SMALLEST_NBYTES", 0)
    monkeypatch.setattr(at_once, "SMALLEST_FAST_NBYTES", 0)
    yield
    chunkwise.unpatch_h5py()


def engine_reads() -> int:
    served: int = chunkwise.patch_stats()["engine"]
    return served


def engine_writes() -> int:
    served: int = chunkwise.patch_stats()["writes"]["engine"]
    return served


def left_to_h5py() -> dict[str, int]:
    reasons: dict[str, int] = chunkwise.patch_stats()["h5py"]
    return reasons


def traits(value: Any) -> Any:
    """Everything that a program could tell two results apart by, but their identity."""
    if isinstance(value, tuple | list):
        return type(value), [traits(item) for item in value]
    if isinstance(value, h5py.Empty):
        return h5py.Empty, _dtype(value.dtype)
    if not isinstance(value, np.ndarray | np.generic):
        return type(value), repr(value)
    kind = type(value)
    flags = [value.flags[name] for name in ("C", "F", "O", "W", "A")]
    content = repr(value.tolist()) if value.dtype.hasobject else value.tobytes()
    return kind, _dtype(value.dtype), value.shape, value.strides, flags, content


def _dtype(dtype: np.dtype[Any]) -> Any:
    fields = [(name, _dtype(field[0])) for name, field in (dtype.fields or {}).items()]
    base = _dtype(dtype.base) if dtype.subdtype else None
    return repr(dtype), dtype.metadata, fields, base


def outcome(work: Callable[[], Any]) -> Any:
    """What comes of it: a result's traits, or the exception's class and message."""
    try:
        return traits(work())
    except Exception as error:
        return type(error), str(error)


def assert_same_outcome(path: Path, work: Callable[[h5py.File], Any], label: Any = "") -> None:
    """Run `work` on the file, opened anew for each, plain and patched."""
    outcomes = []
    for patched in (False, True):
        if patched:
            chunkwise.patch_h5py()
        else:
            chunkwise.unpatch_h5py()
        with h5py.File(path) as f:
            outcomes.append(outcome(lambda f=f: work(f)))  # type: ignore[misc]
    chunkwise.unpatch_h5py()
    assert outcomes[0] == outcomes[1], label
