"""How far may the values of a new file be from those of its source?

Not at all, or as far as a rounding filter promises (`grammar.parameters`).  A number never becomes
NaN or infinite; NaN and infinite values stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chunkwise.grammar import Pipeline
from chunkwise.grammar.numbered import Loss
from chunkwise.grammar.parameters import loss_of

Array = npt.NDArray[Any]

# Beside the promise: arithmetic of the filter itself, and of the comparison.
_SPARE: Final = 1 + 2**-4
_ULPS: Final = 4


@dataclass(frozen=True)
class Bound:
    """How far values may be from those of the source."""

    # What the filter that rounds promises; None if all bytes are to be equal.
    loss: Loss | None = None
    fill: float | None = None  # The dataset's fill value; None if it has none

    @property
    def exact(self) -> bool:
        """Whether all bytes are to be equal."""
        return self.loss is None

    def violations(self, source: Array, result: Array) -> int | None:
        """Return the flat index of the first value beyond the bound; None if there is none."""
        if self.loss is None:
            wrong = _unequal_bytes(source, result)
        else:
            wrong = _beyond(self.loss, self.fill, _native(source), _native(result))
        return int(np.argmax(wrong)) if wrong.any() else None

    def __str__(self) -> str:
        loss = self.loss
        if loss is None:
            return "exact"
        if loss.absolute is not None:
            return f"rounds each value by up to {loss.absolute:g}"
        if loss.relative is not None:
            return f"rounds each value by up to {loss.relative:g} of itself"
        if loss.of_range is not None:
            return f"rounds each value by up to {loss.of_range:g} of the range of a chunk's values"
        return "rounds values, not bounded by the filter"


EXACT: Final = Bound()


def bound_of(pipeline: Pipeline, dtype: np.dtype[Any], fill: float | None = None) -> Bound:
    """Return how far values may be from the source's after passing filters."""
    if dtype.kind not in "iuf":
        return EXACT
    losses = [loss_of(one, dtype.itemsize) for one in pipeline.filters]
    found = [one for one in losses if one is not None]
    if not found:
        return EXACT
    # What two such filters promise together is not known.
    return Bound(found[0] if len(found) == 1 else Loss(), fill)


def _native(values: Array) -> Array:
    return values.reshape(-1).astype(values.dtype.newbyteorder("="), copy=False)


def _unequal_bytes(source: Array, result: Array) -> npt.NDArray[np.bool_]:
    """Compare each element's bytes."""
    if source.size == 0 or source.dtype.itemsize == 0:
        return np.zeros(0, bool)
    pairs = (np.ascontiguousarray(one).reshape(-1) for one in (source, result))
    first, second = (one.view(np.uint8).reshape(one.size, -1) for one in pairs)
    wrong: npt.NDArray[np.bool_] = (first != second).any(axis=1)
    return wrong


def _beyond(loss: Loss, fill: float | None, source: Array, result: Array) -> npt.NDArray[np.bool_]:
    """Mark the values that are beyond what a filter promises."""
    finite = np.isfinite(source)
    both_nan = np.isnan(source) & np.isnan(result)
    if not loss.is_bounded:
        return np.where(finite, ~np.isfinite(result), (source != result) & ~both_nan)
    changed = finite & (source != result)
    wrong: npt.NDArray[np.bool_] = ~finite & (source != result) & ~both_nan
    if not changed.any():
        return wrong
    before, after = source[changed], result[changed]
    # NaN and infinity are no rounding, and beyond any limit.
    beyond = ~np.isfinite(after) | (
        _distance(before, after) > _limit(loss, fill, before, after, source[finite])
    )
    wrong[changed] = beyond
    return wrong


def _distance(before: Array, after: Array) -> npt.NDArray[np.float64]:
    """Return how far values are from each other, integers without overflow."""
    if before.dtype.kind != "f":
        wide = before.dtype.str.replace("i", "u")
        apart = np.where(before > after, before - after, after - before).astype(wide)
        return apart.astype(np.float64)
    with np.errstate(all="ignore"):
        return np.abs(before.astype(np.float64) - after.astype(np.float64))


def _limit(
    loss: Loss, fill: float | None, before: Array, after: Array, finite: Array
) -> npt.NDArray[np.float64]:
    """Return by how much each changed value may differ from the old one."""
    size = np.abs(before.astype(np.float64))
    spare: npt.NDArray[np.float64] = np.zeros(len(before))
    if before.dtype.kind == "f":
        about = np.finfo(before.dtype)
        # Steps are counted from another value, which may be unchanged: its rounding counts, too.
        most = np.abs(finite.astype(np.float64)).max(initial=0.0)
        largest = np.full(len(before), most) if loss.by_steps else size
        spare = _ULPS * float(about.eps) * largest + float(about.smallest_normal)
    limit: npt.NDArray[np.float64] = np.zeros(len(before))
    if loss.absolute is not None:
        limit = limit + loss.absolute
    if loss.relative is not None:
        limit = limit + loss.relative * size
    if loss.of_range is not None:
        values = finite.astype(np.float64)
        limit = limit + loss.of_range * (values.max() - values.min())
    if loss.by_steps:
        limit = limit * _SPARE
        if fill is not None:
            limit = np.where(after == np.asarray(fill, after.dtype), 2 * limit, limit)
    return limit + spare
