"""What do measured runs say about a machine, and how sure is that?

Each number is fitted to the phase that shows it, by relative errors.  Its interval says how much
runs varied, not that ten thousand ranks behave as four did.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median
from typing import Final

import numpy as np

from chunkwise.errors import UsageError
from chunkwise.model.fitting import non_negative
from chunkwise.names import shown
from chunkwise.words import offered
from chunkwise_lab.mpi_model.model import (
    PHASES,
    RATES,
    Job,
    Machine,
    Prediction,
    predict,
    together,
)

# Seconds that are in no phase.
OTHER: Final = "other"


@dataclass(frozen=True)
class Run:
    """A job that was measured."""

    job: Job  # What was done
    # Seconds of each measured phase on the slowest rank; `OTHER` belongs to none.
    phases: Mapping[str, float]
    elapsed_s: float | None = None  # Seconds of all
    storage: str = ""  # Names the file system: those of different ones are not compared


@dataclass(frozen=True)
class Estimate:
    """A number that was measured."""

    value: float  # In the unit of the `Machine`'s field
    # Nine of ten further runs are expected between ``value / factor`` and ``value * factor``.
    factor: float
    n_runs: int  # How many runs it rests on
    at_least: bool = False  # Whether the true value may be any larger one: it was never the limit


@dataclass(frozen=True)
class Calibration:
    """A machine as it was measured."""

    machine: Machine  # With what was measured; the rest as it was assumed
    # Of the fields that were measured.
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    most_ranks: int = 0  # The most ranks of a run

    def predict(self, job: Job) -> tuple[Prediction, float, float]:
        """Predict a job, and between which times nine of ten runs are expected."""
        found = predict(self.machine, job)
        low = predict(self._shifted(-1), job).elapsed_s
        high = predict(self._shifted(1), job).elapsed_s
        return found, min(low, found.elapsed_s), max(high, found.elapsed_s)

    def _shifted(self, slower: int) -> Machine:
        """The machine with all that was measured at its slow (1) or fast (-1) end."""
        changed = {}
        for name, one in self.estimates.items():
            if name == "overlap":
                continue
            power = -slower if name in RATES else slower
            changed[name] = one.value * one.factor**power
            if one.at_least and slower < 0:
                # It was never reached: the ranks alone may be the limit.
                changed[name] = 1e18
        return replace(self.machine, **changed)


def calibrate(
    runs: Sequence[Run], assumed: Machine | None = None, storage: str | None = None
) -> Calibration:
    """Fit a machine to measured runs."""
    if not runs:
        raise UsageError("no runs to calibrate with")
    _check(runs)
    wanted = runs[0].storage if storage is None else storage
    if all(run.storage != wanted for run in runs):
        raise UsageError(f"no run was on {shown(wanted)}{offered(wanted, _storages(runs))}")
    found: dict[str, Estimate] = {}

    def samples(phase: str, value: Callable[[Job, float], float]) -> list[float]:
        timed = ((run.job, run.phases.get(phase, 0.0)) for run in runs)
        return [value(job, seconds) for job, seconds in timed if seconds > 0]

    for name, rates in (
        ("encode_rate", samples("encode", lambda job, s: job.nbytes / (job.busy_cores * s))),
        ("index_s", samples("allocate", lambda job, s: s / job.n_chunks)),
    ):
        found |= {name: _estimate(rates)} if rates else {}
    here = [run for run in runs if run.storage == wanted]
    found |= _storage(here)
    storage_rates = {name: one.value for name, one in found.items()}
    found |= _verifying(here, replace(assumed or Machine(), **storage_rates))
    found |= _exchange(runs)
    found |= _whole(runs)
    machine = replace(assumed or Machine(), **{name: one.value for name, one in found.items()})
    return Calibration(machine, found, max(run.job.n_ranks for run in runs))


def left_out(
    runs: Sequence[Run], assumed: Machine | None = None, storage: str | None = None
) -> list[tuple[int, float]]:
    """Predict the runs of the most ranks from the others: how good is the model?"""
    most = max((run.job.n_ranks for run in runs), default=0)
    wanted = runs[0].storage if storage is None and runs else storage
    fewer = [run for run in runs if run.job.n_ranks < most]
    if all(run.storage != wanted for run in fewer):
        return []
    fitted = calibrate(fewer, assumed, wanted)
    return [
        (run.job.n_ranks, predict(fitted.machine, run.job).elapsed_s / run.elapsed_s)
        for run in runs
        if run.job.n_ranks == most and run.elapsed_s and run.storage == wanted
    ]


def _storages(runs: Iterable[Run]) -> list[str]:
    return sorted({run.storage or "''" for run in runs})


def _check(runs: Iterable[Run]) -> None:
    for run in runs:
        for name, seconds in run.phases.items():
            if name not in (*PHASES, OTHER):
                known = ", ".join((*PHASES, OTHER))
                raise UsageError(f"phase {name!r} is not known: there are {known}")
            if not math.isfinite(seconds) or seconds < 0:
                raise UsageError(f"phase {name!r} took {seconds!r} s: that is no time")
        if run.elapsed_s is not None and not (0 < run.elapsed_s < math.inf):
            raise UsageError(f"a run took {run.elapsed_s!r} s: that is no time")


# Student's t of 95% by degrees of freedom, so that 90% lie between both ends.
_T: Final = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83, 1.81)


def _estimates(*groups: Sequence[float]) -> list[Estimate]:
    """Each group's geometric mean, and the interval of a further value; all scatter alike."""
    logs = [[math.log(value) for value in group] for group in groups]
    freedom = sum(map(len, logs)) - len(logs)
    squares = sum((value - fmean(group)) ** 2 for group in logs for value in group)
    found = []
    for group in logs:
        factor = 2.0
        if freedom:
            t = _T[freedom - 1] if freedom <= len(_T) else 1.7
            spread = t * math.sqrt(squares / freedom * (1 + 1 / len(group)))
            factor = math.exp(min(spread, 20.0))
        found.append(Estimate(math.exp(fmean(group)), factor, len(group)))
    return found


def _estimate(values: Sequence[float]) -> Estimate:
    """As `_estimates`; of one value half to twice."""
    return _estimates(values)[0]


# Below 0.1% nobody measures; without a floor, a perfect fit would beat a simpler one.
_FLOOR: Final = 1e-6


def _storage(runs: Sequence[Run]) -> dict[str, Estimate]:
    """Fit a rank's rate of writing, and the limit of a node beyond some number of ranks."""
    rates = [
        (min(run.job.n_ranks, run.job.n_chunks) / run.job.nodes, bytes_ / seconds / run.job.nodes)
        for run in runs
        for bytes_, seconds in (
            (run.job.stored_nbytes, run.phases.get("write", 0.0)),
            (float(run.job.source_nbytes), run.phases.get("read", 0.0)),
        )
        if seconds > 0 and bytes_ > 0
    ]
    if not rates:
        return {}
    best, badness = ([rate / n for n, rate in rates], list[float]()), math.inf
    for last in sorted({n for n, _ in rates}):
        alone = [rate / n for n, rate in rates if n <= last]
        shared = [rate for n, rate in rates if n > last]
        # A second rate must explain more than one more number does by chance (BIC).
        error = (_scatter(alone) + _scatter(shared)) / len(rates) + _FLOOR
        bad = len(rates) * math.log(error) + (1 + bool(shared)) * math.log(len(rates))
        if bad < badness:
            best, badness = (alone, shared), bad
    alone, shared = best
    if shared:
        return dict(zip(("rank_rate", "node_rate"), _estimates(alone, shared), strict=True))
    fastest = max(rate for _, rate in rates)
    return {
        "rank_rate": _estimate(alone),
        "node_rate": Estimate(fastest, 1.0, len(rates), at_least=True),
    }


def _verifying(runs: Sequence[Run], machine: Machine) -> dict[str, Estimate]:
    """Fit the rate of a core, from the runs in which the storage was not the limit."""
    rates = [
        (
            run.job.nbytes / (run.job.busy_cores * seconds),
            seconds > 1.1 * predict(machine, run.job).phases["write"],
        )
        for run in runs
        if (seconds := run.phases.get("verify", 0.0)) > 0
    ]
    of_cores = [rate for rate, by_cores in rates if by_cores]
    if of_cores:
        return {"verify_rate": _estimate(of_cores)}
    if rates:
        return {"verify_rate": Estimate(max(rate for rate, _ in rates), 1.0, len(rates), True)}
    return {}


def _scatter(values: Sequence[float]) -> float:
    """The sum of squares of the logarithms' differences."""
    if not values:
        return 0.0
    mean = fmean(map(math.log, values))
    return sum((math.log(value) - mean) ** 2 for value in values)


def _exchange(runs: Sequence[Run]) -> dict[str, Estimate]:
    """Fit the times of an answer and of a question, by least squares of relative errors."""
    exchanges = [
        (run.job.answers, run.job.questions, run.phases["exchange"])
        for run in runs
        if run.phases.get("exchange", 0.0) > 0 and run.job.answers > 0
    ]
    if not exchanges:
        return {}
    counts = np.array(
        [(answers / seconds, questions / seconds) for answers, questions, seconds in exchanges]
    )
    answer, question = map(float, non_negative(counts, np.ones(len(exchanges))))
    ratios = [1 / max(answer * x + question * z, 1e-9) for x, z in counts.tolist()]
    factor = _estimate(ratios).factor
    return {
        "exchange_s": Estimate(answer, factor, len(exchanges)),
        "request_s": Estimate(question, factor, len(exchanges)),
    }


def _whole(runs: Sequence[Run]) -> dict[str, Estimate]:
    """Fit what is not in any phase, and how far phases run at the same time."""
    fixed, shares = [], []
    for run in runs:
        if run.elapsed_s is None or not run.phases:
            continue
        apart, longest = together(run.phases, 0.0), together(run.phases, 1.0)
        rest = run.phases.get(OTHER, max(0.0, run.elapsed_s - apart))
        fixed.append(rest)
        if apart > longest:
            share = (apart + rest - run.elapsed_s) / (apart - longest)
            shares.append(min(1.0, max(0.0, share)))
    found = {}
    if fixed:
        found["fixed_s"] = Estimate(median(fixed), 1.0, len(fixed))
    if shares:
        found["overlap"] = Estimate(median(shares), 1.0, len(shares))
    return found
