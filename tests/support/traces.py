"""Made-up traces."""

from collections.abc import Sequence
from typing import Any

from chunkwise.running.trace import Run, TracedDataset


def walk(
    start: tuple[int, ...],
    span: tuple[int, ...],
    times: int = 1,
    *,
    by: tuple[int, ...] | None = None,
    ordered: bool = False,
    gaps: tuple[int, int] | None = None,
    began: float = 0.0,
    ended: float = 1.0,
    process: int = 1,
) -> Run:
    """Make a walk; `gaps` are stride and count of blocks of `span` in each dimension."""
    stride, count = gaps or (1, 1)
    first = tuple((a, stride, count, n) for a, n in zip(start, span, strict=True))
    moved = by if by is not None else (0,) * len(start)
    last = tuple(a + (times - 1) * d for a, d in zip(start, moved, strict=True))
    in_order = ordered and times > 1
    return Run(first, last, times, by, in_order, began, ended, ended - began, process)


def dataset(
    shape: tuple[int, ...], chunk: tuple[int, ...], runs: Sequence[Run], **more: Any
) -> TracedDataset:
    """Make what was read of one dataset of doubles."""
    reads = sum(run.times for run in runs)
    values: dict[str, Any] = {
        "operation": "read", "file": "x.h5", "dataset": "/x", "nbytes": 8 * reads, "seconds": 1.0,
        "by_chunkwise": 0, "reason": "", "unlisted": 0,
    }  # fmt: skip
    values |= more
    return TracedDataset(
        shape=shape, item_nbytes=8, calls=reads, runs=tuple(runs), chunk=chunk, **values
    )
