"""Which rates explain the measurements?

The sum of `seconds` is linear in the rates: least squares find them, none negative.  Rates that
few measurements do not determine stay near their nominal values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from chunkwise.model.readers import CHUNKWISE
from chunkwise.model.seconds import RATES, Rates

# Of the order of this decade's processors, for what was not measured.
NOMINAL: Final[Mapping[tuple[str, bool], Rates]] = {
    ("libhdf5", False): Rates(
        walk_s=1e-4, call_s=1e-6, touch_s=1e-6, crowd_s=5e-7, load_s=3e-6, piece_s=5e-7,
        run_s=2e-8, copy_s=2e-10, fetch_s=1e-10, index_s=1e-6, fresh_s=2e-10, irregular_s=2e-8,
        page_s=5e-7, far_s=1e-7, strip_s=1.8e-8,
    ),
    ("libhdf5", True): Rates(
        walk_s=5e-4, call_s=1e-6, touch_s=1e-6, crowd_s=5e-7, load_s=5e-6, piece_s=5e-7,
        run_s=2e-8, copy_s=2e-10, fetch_s=3e-10, index_s=1e-5, fresh_s=2e-10, irregular_s=2e-8,
        page_s=5e-7, far_s=1e-7, strip_s=1.8e-8,
    ),
    (CHUNKWISE, False): Rates(
        walk_s=3e-4, call_s=1e-6, touch_s=5e-7, crowd_s=1e-8, load_s=3e-6, piece_s=4e-9,
        run_s=5e-9, copy_s=1e-10, fetch_s=5e-11, index_s=1e-6, fresh_s=2e-10, irregular_s=1e-10,
        page_s=5e-7, far_s=1e-7, strip_s=1.8e-8,
    ),
    (CHUNKWISE, True): Rates(
        walk_s=5e-4, call_s=1e-6, touch_s=5e-7, crowd_s=1e-8, load_s=3e-6, piece_s=5e-7,
        run_s=5e-9, copy_s=1e-10, fetch_s=3e-10, index_s=5e-6, fresh_s=2e-10, irregular_s=1e-10,
        page_s=5e-7, far_s=1e-7, strip_s=1.8e-8,
    ),
}  # fmt: skip
# The logarithm of a ratio from which on a measurement counts less and less.
_FAR_OFF: Final = 0.6
# How much a nominal rate counts beside one measurement.
_BELIEF: Final = 0.3
# Of normalized columns, what counts as nothing.
_EXACT: Final = 1e-10
_ROUNDS: Final = 20


def fitted(
    counts: npt.NDArray[np.float64],  # A row of `seconds.terms` for each measurement
    measured_s: npt.NDArray[np.float64],  # Its seconds, more than 0
    reader: str,
    *,
    writing: bool = False,
) -> Rates:
    """Find the rates that explain measurements of one reader, none of them negative."""
    nominal = NOMINAL.get((reader, writing), NOMINAL["libhdf5", writing])
    believed = np.array([getattr(nominal, name) for name in RATES])
    return Rates(*map(float, fitted_columns(counts, measured_s, believed)))


def fitted_columns(
    counts: npt.NDArray[np.float64],
    measured_s: npt.NDArray[np.float64],  # Its seconds, more than 0
    nominal: npt.NDArray[np.float64] | None = None,
) -> npt.NDArray[np.float64]:
    """Find the cost of each column of counts; no cost is negative."""
    # Errors count as ratios: half as long is as wrong as twice as long.  Outliers weigh less.
    trust = np.ones(len(measured_s))
    if nominal is not None:
        counts = np.vstack([counts, np.eye(len(nominal))])
        measured_s = np.concatenate([measured_s, nominal])
        trust = np.concatenate([trust, np.full(len(nominal), _BELIEF)])
    weights = trust / measured_s
    found: npt.NDArray[np.float64] = np.zeros(counts.shape[1])
    for _ in range(_ROUNDS):
        found = non_negative(counts * weights[:, None], measured_s * weights)
        predicted = np.maximum(counts @ found, 1e-3 * measured_s)
        off = np.abs(np.log(predicted / measured_s))
        weights = trust / np.sqrt(predicted * measured_s * (1 + off / _FAR_OFF))
    return found


def non_negative(
    rows: npt.NDArray[np.float64], wanted: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Solve least squares with no negative unknown (Lawson and Hanson's active sets)."""
    # Columns of one length, so that bytes and calls are as exact as each other.
    lengths = np.sqrt((rows**2).sum(axis=0))
    used = lengths > 0
    rows = rows[:, used] / lengths[used]
    found: npt.NDArray[np.float64] = np.zeros(rows.shape[1])
    free: npt.NDArray[np.bool_] = np.zeros(rows.shape[1], np.bool_)
    for _ in range(3 * rows.shape[1]):
        slope = np.where(free, -np.inf, rows.T @ (wanted - rows @ found))
        if slope.max() <= _EXACT:
            break
        free[slope.argmax()] = True
        found = _towards(rows, wanted, found, free)
    whole = np.zeros(len(lengths))
    whole[used] = found / lengths[used]
    return whole


def _towards(
    rows: npt.NDArray[np.float64],
    wanted: npt.NDArray[np.float64],
    found: npt.NDArray[np.float64],
    free: npt.NDArray[np.bool_],
) -> npt.NDArray[np.float64]:
    """Solve for the free unknowns; those that would become negative become 0 and fixed."""
    while free.any():
        best = np.zeros(len(found))
        best[free] = np.linalg.lstsq(rows[:, free], wanted, rcond=None)[0]
        falling = free & (best <= 0)
        if not falling.any():
            return best
        gaps = found[falling] - best[falling]
        step = float((found[falling] / gaps).min()) if gaps.min() > 0 else 0.0
        found = found + step * (best - found)
        free &= found > _EXACT
        found[~free] = 0.0
    return np.zeros(len(found))
