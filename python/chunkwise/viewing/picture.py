"""How do the values of a plane look, from far enough away that few bytes are decoded?"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import chunkwise
from chunkwise.errors import UsageError
from chunkwise.grammar import format_size

# Points along each side.
SIDE: Final = 160
# Bytes that are decoded for it.
_MOST_NBYTES: Final = 128 << 20
# Of a point: from 0 (least) to LEVELS - 1 (most), or what has no place between.
LEVELS: Final = 253
FILL, NAN, INFINITE = 253, 254, 255


def picture(
    _: Callable[..., object],
    path: str,
    dataset: str,
    vertical: int,  # -1 for one row
    horizontal: int,
    at: Sequence[int],  # The element along each of the other dimensions
) -> dict[str, Any]:
    """Read every nth element of a plane, and give each a level."""
    with chunkwise.open(path) as file:
        found = file[dataset]
        dtype = found.dtype
        if dtype.kind not in "biuf" or dtype.names or dtype.subdtype:
            raise UsageError("its elements are no numbers: there is no picture of them")
        steps = _steps(found.shape, found.chunks, dtype.itemsize, (vertical, horizontal))
        index = tuple(
            slice(None, None, steps[axis]) if axis in steps else int(at[axis])
            for axis in range(found.ndim)
        )
        values = np.asarray(found[index], np.float64)
        # Only what was stated distinguishes elements that nobody wrote.
        states = found.id.get_create_plist().fill_value_defined() == 2
        fills = [found.fillvalue] if states else []
        fills += [found.attrs[name] for name in ("_FillValue",) if name in found.attrs]
    if vertical > horizontal:
        values = values.T
    values = np.atleast_2d(values)
    levels, ends = _levels(values, fills)
    return {
        "rows": values.shape[0],
        "columns": values.shape[1],
        "steps": [steps.get(vertical, 1), steps[horizontal]],
        "range": ends,
        "levels": base64.b64encode(levels.tobytes()).decode(),
        "special": [int(one) for one in np.unique(levels) if one >= LEVELS],
    }


def _steps(
    shape: Sequence[int],
    chunks: Sequence[int] | None,
    itemsize: int,
    shown: Sequence[int],
) -> dict[int, int]:
    """Choose how many elements lie between two points, so that not too much is decoded."""
    axes = [axis for axis in shown if axis >= 0]
    found = {axis: max(1, -(-shape[axis] // SIDE)) for axis in axes}
    chunk = chunks or [1] * len(shape)
    chunk_nbytes = math.prod(chunk) * itemsize
    if chunk_nbytes > _MOST_NBYTES:
        raise UsageError(
            f"one chunk has {format_size(chunk_nbytes)}: too much to decode for a picture"
        )

    def touched(axis: int) -> int:
        return min(-(-shape[axis] // chunk[axis]), -(-shape[axis] // found[axis]))

    while math.prod(map(touched, axes)) * chunk_nbytes > _MOST_NBYTES:
        longest = max(axes, key=touched)
        found[longest] *= 2
    return found


def _levels(
    values: npt.NDArray[np.float64], fills: Sequence[Any]
) -> tuple[npt.NDArray[np.uint8], list[float] | None]:
    usual = np.isfinite(values)
    levels = np.zeros(values.shape, np.uint8)
    levels[np.isnan(values)] = NAN
    levels[np.isinf(values)] = INFINITE
    for fill in fills:
        one = np.asarray(fill).ravel()
        if one.size == 1 and one.dtype.kind in "biuf":
            is_fill = values == float(one[0])
            levels[is_fill] = FILL
            usual &= ~is_fill
    if not usual.any():
        return levels, None
    low, high = float(values[usual].min()), float(values[usual].max())
    # Halved, as the difference of two numbers may be infinite.
    span = high / 2 - low / 2
    part = (values[usual] / 2 - low / 2) / span if span else np.full(usual.sum(), 0.5)
    levels[usual] = np.rint(part * (LEVELS - 1)).astype(np.uint8)
    return levels, [low, high]
