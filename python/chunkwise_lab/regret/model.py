"""How far are the model's seconds from what was measured in the studies?

Rates are fitted to some trials of the saved studies, and other trials are predicted: to one half
of all, drawn by their parameters; and to all studies but one, in turn, which shows walks that are
unlike those they were fitted to.  libhdf5's rates are the same for all programs that use it.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from chunkwise.model.fitting import NOMINAL, fitted_columns
from chunkwise.model.readers import CHUNKWISE
from chunkwise.model.seconds import RATES, Speed
from chunkwise_lab.regret.trials import Trial

# Fewer measurements fit nothing.
_FEWEST: Final = 8
CLAIMED: Final = {"read": (0.15, 0.45), "write": (0.20, 0.50)}
# What programs and storage add to a library's rates, with nominal values.
_ADDED: Final[Mapping[str, float]] = {
    "h5py, once": 1e-4,
    "h5py, a call": 1e-5,
    "netCDF-C, once": 5e-4,
    "netCDF-C, a call": 5e-6,
    "storage, once": 5e-4,
    "storage, a seek": 1e-4,
    "storage, a byte": 1e-9,
    "filters, a chunk at a time": 1.0,
    "filters, several": 0.6,
}
# Of groups and of trials, this many are shown.
_GROUPS: Final = 12
_TRIALS: Final = 8
_FEWEST_SHOWN: Final = 4
# A count that is so near is right: of random places it is an expected value.
_RIGHT: Final = 0.01


@dataclass(frozen=True)
class Predicted:
    """One trial, and what was predicted of it."""

    trial: Trial  # What was measured
    predicted_s: float  # Seconds
    parts: dict[str, float]  # Which share of them each term has

    @property
    def off(self) -> float:
        """How far the prediction is from the measurement, 0.1 for a tenth."""
        return abs(self.predicted_s / self.trial.measured_s - 1)


@dataclass(frozen=True)
class Error:
    """How far predictions of a group are off."""

    name: str  # What is predicted
    predicted: int  # How many trials
    median: float  # Of the errors, and below which 9 of 10 are
    high: float
    # How far repeats of one trial are from each other, in the median; None without repeats.
    spread: float | None


def is_fitted(trial: Trial) -> bool:
    """Return whether a trial belongs to the half that rates are fitted to."""
    return zlib.crc32(trial.key.encode()) % 2 == 0


def other_half(found: Sequence[Trial]) -> list[Predicted]:
    """Fit to one half of the trials, and predict the other."""
    half, other = ([one for one in found if is_fitted(one) is side] for side in (True, False))
    return predicted(half, other, half)


def other_studies(found: Sequence[Trial]) -> list[Predicted]:
    """Predict each study by rates fitted to all others, and filter speeds of its own."""
    all_of_them: list[Predicted] = []
    for study in sorted({one.study for one in found}):
        others, mine = ([t for t in found if (t.study == study) is side] for side in (False, True))
        half = [one for one in mine if is_fitted(one)]
        all_of_them += predicted(others, [t for t in mine if not is_fitted(t)], others + half)
    return all_of_them


def predicted(
    fitted_to: Sequence[Trial], wanted: Sequence[Trial], samples: Sequence[Trial]
) -> list[Predicted]:
    """Predict trials."""
    speeds = _speeds(samples)
    found = []
    for family in ("libhdf5", CHUNKWISE):
        for operation in ("read", "write"):
            known, held_out = (
                [
                    (one, columns)
                    for one in trials
                    if (one.family, one.operation) == (family, operation)
                    and (columns := _columns(one, speeds)) is not None
                ]
                for trials in (fitted_to, wanted)
            )
            if len(known) < _FEWEST:
                continue
            nominal = [getattr(NOMINAL[family, operation == "write"], name) for name in RATES]
            rates = fitted_columns(
                np.array([columns for _, columns in known]),
                np.array([one.measured_s for one, _ in known]),
                np.array([*nominal, *_ADDED.values()]),
            )
            found += [_predicted(one, np.array(columns) * rates) for one, columns in held_out]
    return found


def _predicted(trial: Trial, seconds: Any) -> Predicted:
    total = float(seconds.sum())
    names = (*RATES, *_ADDED)
    shares = {n: float(s / total) for n, s in zip(names, seconds, strict=True) if s > 0.05 * total}
    return Predicted(trial, total, dict(sorted(shares.items(), key=lambda one: -one[1])))


def _columns(one: Trial, speeds: Mapping[tuple[str, ...], Speed]) -> list[float] | None:
    """List what each rate is multiplied by; None where the speed of the filters is not known."""
    filters_s = 0.0
    if one.filtered is not None:
        speed = speeds.get(one.filtered.codec)
        if speed is None:
            return None
        filters_s = one.filtered.chunks * speed.chunk_s(one.filtered.nbytes)
    calls = one.counts[RATES.index("call_s")]
    added = {
        "h5py, once": float(one.reader == "h5py"),
        "h5py, a call": calls * (one.reader == "h5py"),
        "netCDF-C, once": float(one.reader == "netcdf4"),
        "netCDF-C, a call": calls * (one.reader == "netcdf4"),
        "storage, once": float(one.cold),
        "storage, a seek": one.seeks * one.cold,
        "storage, a byte": one.fetched_nbytes * one.cold,
        "filters, a chunk at a time": filters_s if one.abreast < 2 else 0.0,
        "filters, several": filters_s if one.abreast >= 2 else 0.0,
    }
    return [*one.counts, *(added[name] for name in _ADDED)]


def _speeds(samples: Sequence[Trial]) -> dict[tuple[str, ...], Speed]:
    """Fit the speed of each pipeline on each data to what was measured around the filters."""
    measured: dict[tuple[str, ...], list[tuple[float, int, float]]] = {}
    for one in samples:
        passed = one.filtered
        if passed is not None and passed.measured_s and passed.measured_chunks:
            row = (passed.measured_chunks, passed.nbytes, passed.measured_s)
            measured.setdefault(passed.codec, []).append(row)
    found = {}
    for codec, rows in measured.items():
        if len({nbytes for _, nbytes, _ in rows}) > 1:
            counts = np.array([[chunks, chunks * nbytes] for chunks, nbytes, _ in rows])
            rates = fitted_columns(counts, np.array([seconds for *_, seconds in rows]))
            found[codec] = Speed(*map(float, rates))
        else:
            each = [seconds / chunks / nbytes for chunks, nbytes, seconds in rows]
            found[codec] = Speed(0.0, float(np.median(each)))
    return found


def errors(found: Sequence[Predicted]) -> list[Error]:
    """Sum up by operation and study."""
    by_name = _summed(found, lambda one: (f"{one.operation}s", f"{one.study}, {one.operation}s"))
    return sorted(by_name, key=lambda error: ("," in error.name, error.name))


def groups(found: Sequence[Predicted]) -> list[Error]:
    """Sum up by reader, layout, filter, walk and page cache; the worst first."""
    by_kind = _summed(
        found, lambda one: [f"{one.operation}s, {kind}: {v}" for kind, v in one.kinds.items()]
    )
    shown = [error for error in by_kind if error.predicted >= _FEWEST_SHOWN]
    return sorted(shown, key=lambda error: -error.median)


def _summed(found: Sequence[Predicted], names: Callable[[Trial], Iterable[str]]) -> list[Error]:
    """Sum up the predictions that have a name in common."""
    mine: dict[str, list[Predicted]] = {}
    for one in found:
        for name in names(one.trial):
            mine.setdefault(name, []).append(one)
    errors = []
    for name, group in mine.items():
        off = [one.off for one in group]
        spreads = [one.trial.spread for one in group if one.trial.repeats > 1]
        spread = float(np.median(spreads)) if spreads else None
        median, high = float(np.median(off)), float(np.quantile(off, 0.9))
        errors.append(Error(name, len(off), median, high, spread))
    return errors


def counted(found: Sequence[Trial]) -> list[float]:
    """Return how far the model's chunks are from those that filters saw, 0.1 for a tenth."""
    # Of a walk that was stopped, the last chunk was decoded whole.
    pairs = [(seen, math.ceil(mine - 1e-6)) for one in found for seen, mine in one.chunks]
    return [abs(mine - seen) / max(1.0, seen) for seen, mine in pairs if seen or mine]


def lines(
    found: Sequence[Trial], halves: Sequence[Predicted], studies: Sequence[Predicted]
) -> Iterator[str]:
    """Write tables: what is claimed, and where to look for what is wrong."""
    off = counted(found)
    if off:
        right = sum(one < _RIGHT for one in off)
        yield (
            f"Chunks that pass libhdf5's filters: {right} of {len(off)} counts are right to 1%, "
            f"all to {max(off):.0%}"
        )
        yield ""
    yield "Rates fitted to one half of the trials, the other half predicted"
    yield from _table(errors(halves), claims=True)
    yield ""
    yield "Rates fitted to all studies but the one that is predicted"
    yield from _table(errors(studies), claims=False)
    yield ""
    yield "By kind, the worst first (of the other half)"
    yield from _table(groups(halves)[:_GROUPS], claims=False)
    yield ""
    yield "Single trials, the worst first: predicted and measured seconds, and of what"
    worst = sorted(halves, key=lambda one: -abs(np.log(one.predicted_s / one.trial.measured_s)))
    for one in worst[:_TRIALS]:
        largest = ", ".join(f"{name} {share:.0%}" for name, share in [*one.parts.items()][:3])
        yield f"{one.predicted_s:9.4g} {one.trial.measured_s:9.4g}  {one.trial.title}"
        yield f"{'':21}{largest}"


def _table(found: Sequence[Error], *, claims: bool) -> Iterator[str]:
    head = f"{'trials':48} {'number':>6} {'median':>7} {'9 of 10':>8}"
    yield f"{head}  claimed" if claims else f"{head} {'repeats':>8}"
    for one in found:
        row = f"{one.name:48} {one.predicted:6,} {one.median:7.0%} {one.high:8.0%}"
        if claims:
            claimed = CLAIMED.get(one.name.removesuffix("s"))
            yield row if claimed is None else f"{row}  {claimed[0]:.0%} and {claimed[1]:.0%}"
        else:
            yield row if one.spread is None else f"{row} {one.spread:8.0%}"
