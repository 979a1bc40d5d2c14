"""Is every element that was read the expected one?

The expected elements lie in a file, in C order, from libhdf5 or a formula.  NumPy says by a mask
which of them a selection takes.  Nothing here uses chunkwise's own selections.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from chunkwise.errors import UsageError, WrongValueError
from chunkwise.trials.in_rust import elements
from chunkwise.words import counted

if TYPE_CHECKING:
    from chunkwise import _native
    from chunkwise.trials.trial import Trial

# Rows are compared in pieces of this many elements of the array.
_PIECE: Final = 1 << 22


class Checker:
    """Compares what a trial reads, selection by selection."""

    def __init__(self, trial: Trial, walk: _native.Walk) -> None:
        if not trial.comparable:
            raise UsageError(
                f"'{trial.dataset}' in {trial.file}: its elements hold padding, which is no value "
                "that could be checked; name another dataset"
            )
        self._trial, self._walk = trial, walk
        # Bit for bit: a NaN is a value like another.
        self._dtype = np.dtype(f"u{trial.itemsize}" if trial.itemsize in (1, 2, 4, 8) else "u1")
        known = elements(trial).view(self._dtype)
        self._known = known.reshape(*trial.shape, -1)
        self.checked = 0  # Elements compared so far

    def __call__(self, number: int, read: bytes | npt.NDArray[np.uint8]) -> None:
        """Check one operation."""
        selected = self._walk[number]
        hyperslabs = [selected] if isinstance(selected, tuple) else selected
        found = np.frombuffer(read, self._dtype).reshape(-1, self._known.shape[-1])
        first = min(start[0] for start, _, _, _ in hyperslabs)
        last = max(s[0] + (n[0] - 1) * t[0] + b[0] for s, t, n, b in hyperslabs)
        rows = max(1, _PIECE // math.prod(self._trial.shape[1:]))
        done = 0
        for top in range(first, last, rows):
            bottom = min(top + rows, last)
            mask = np.zeros((bottom - top, *self._trial.shape[1:]), bool)
            for hyperslab in hyperslabs:
                _mark(mask, hyperslab, top)
            known = self._known[top:bottom][mask]
            got = found[done : done + len(known)]
            if len(got) < len(known):
                break
            wrong = (got != known).any(axis=1)
            if wrong.any():
                at = int(wrong.argmax())
                place = [int(c[at]) for c in mask.nonzero()]
                place[0] += top
                raise WrongValueError(self._words(number, place, got[at], known[at]))
            done += len(known)
        else:
            if done == len(found):
                self.checked += done
                return
        raise WrongValueError(
            f"{self._where(number)}: {counted(len(found), 'element')} came, and another number "
            "was asked for"
        )

    def _where(self, number: int) -> str:
        trial = self._trial
        seed = "" if trial.seed is None else f" of seed {trial.seed}"
        return (
            f"'{trial.dataset}' in {trial.file}: {trial.reader}, selection {number} of "
            f"'{trial.access}'{seed}"
        )

    def _words(
        self, number: int, place: list[int], got: npt.NDArray[Any], known: npt.NDArray[Any]
    ) -> str:
        index = ", ".join(map(str, place))
        return (
            f"{self._where(number)}: element [{index}] was read as {self._value(got)}, and is "
            f"{self._value(known)}"
        )

    def _value(self, one: npt.NDArray[Any]) -> str:
        """Write an element as a value, or as bytes where NumPy has no name for its type."""
        stored = one.tobytes()
        try:
            dtype = np.dtype(self._trial.dtype)
        except TypeError:
            return f"0x{stored.hex()}"
        return str(np.frombuffer(stored, dtype)[0])


def _mark(mask: npt.NDArray[np.bool_], hyperslab: _native.Hyperslab, top: int) -> None:
    """Set the elements of a hyperslab, in rows of an array from `top` on."""
    axes = list(zip(*hyperslab, strict=True))
    if all(count == 1 for _, _, count, _ in axes):
        box = [slice(start, start + block) for start, _, _, block in axes]
        box[0] = slice(max(0, box[0].start - top), max(0, box[0].stop - top))
        mask[tuple(box)] = True
        return
    places: list[npt.NDArray[Any]] = [
        (start + stride * np.arange(count)[:, None] + np.arange(block)).ravel()
        for start, stride, count, block in axes
    ]
    inside = places[0] - top
    inside = inside[(inside >= 0) & (inside < len(mask))]
    mask[np.ix_(inside, *places[1:])] = True
