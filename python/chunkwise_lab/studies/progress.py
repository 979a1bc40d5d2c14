"""How far is a study, and when will it end?

The length that a study states is divided among its runs by their trials and budgets, and
corrected by the time of those that are done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from chunkwise.measure.axes import DEFAULT
from chunkwise.measure.schedule import Step
from chunkwise_lab.studies.study import Experiment, Run, Scale, Study

# A probe does not say its length: about this many trials.
_OF_A_PROBE = 5
# However the first run went, the others are not so much slower or faster than expected.
_MOST = 10.0


class Pace:
    """The experiments of a run, done and left."""

    def __init__(
        self, study: Study, experiments: Sequence[Experiment], scale: Scale, repeat: int
    ) -> None:
        everything = [r for one in study.experiments for r in one.runs if scale in r.scales]
        usual = study.repeat[scale]
        whole = sum(_seconds(run, scale, usual) for run in everything)
        unit = study.minutes[scale] * 60 / whole if whole else 1.0
        self._expected: Mapping[int, float] = {
            id(run): _seconds(run, scale, repeat) * unit for run in everything
        }
        self._left = [r for one in experiments for r in one.runs if scale in r.scales]
        self._trials = {id(run): _trials(run, scale, repeat) for run in self._left}
        self._total = sum(self._trials.values())
        self._done = 0
        self._took_s = self._expected_s = 0.0

    def finished(self, run: Run, took_s: float) -> None:
        """Count a run as done."""
        self._left.remove(run)
        self._done += self._trials[id(run)]
        expected_s = self._expected[id(run)]
        # Measurements from before a stop take no time, and say nothing about the rest.
        if took_s > expected_s / (2 * _MOST):
            self._took_s += took_s
            self._expected_s += expected_s

    def step(self, run: Run, step: Step) -> Step:
        """Say where a step of one run stands in all runs."""
        if step.warning:
            return step
        ratio = self._took_s / self._expected_s if self._expected_s else 1.0
        ratio = min(_MOST, max(1 / _MOST, ratio))
        later = sum(self._expected[id(other)] for other in self._left if other is not run)
        own = self._expected[id(run)] * ratio if step.left_s is None else step.left_s
        part = step.done / step.total if step.total else 0.0
        done = self._done + round(part * self._trials[id(run)])
        return replace(step, done=done, total=self._total, left_s=own + later * ratio)


def _trials(run: Run, scale: Scale, repeat: int) -> int:
    """Return about how many trials a run has."""
    if scale not in run.scales:
        return 0
    repeat = run.repeat or repeat
    if run.probe is not None:
        return _OF_A_PROBE * repeat
    datasets = len(run.data) * len(run.labels_at(scale))
    return len(run.spaces[scale].points((DEFAULT,))) * datasets * repeat


def _seconds(run: Run, scale: Scale, repeat: int) -> float:
    """Return a run's share of the study's time, in any unit."""
    budget = run.seconds[scale]
    trials = float(_trials(run, scale, repeat))
    return trials if budget is None else min(trials, budget * max(1, len(run.data)))
