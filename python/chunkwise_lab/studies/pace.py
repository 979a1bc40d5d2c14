"""In which rounds is a study measured, and how long does the rest of it take?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from chunkwise.measure.axes import DEFAULT
from chunkwise.measure.schedule import Step
from chunkwise.measure.verdict import FEWEST
from chunkwise_lab.studies.study import Experiment, Run, Scale, Study

# A probe does not say its length: about this many trials.
_OF_A_PROBE: Final = 5
# However the first run went, the others are not so much slower or faster than expected.
_MOST: Final = 10.0


@dataclass(frozen=True)
class Round:
    """A part of the repeats of one run."""

    before: int  # So often everything was measured before it
    until: int  # and after it
    whole: int  # and after the last

    @property
    def of_all(self) -> float:
        """Which part of all repeats this round measures."""
        return (self.until - self.before) / self.whole

    def share(self, done: float) -> float:
        """Which part of this round is done, by the part of all repeats until its end."""
        return max(0.0, (done * self.until - self.before) / (self.until - self.before))


def rounds(repeat: int) -> tuple[Round, ...]:
    """Divide repeats: half of them, then the others; two have no half that says something."""
    if repeat < FEWEST:
        return (Round(0, repeat, repeat),)
    half = -(-repeat // 2)
    return Round(0, half, repeat), Round(half, repeat, repeat)


class Pace:
    """The runs of a study, done and left."""

    def __init__(
        self, study: Study, experiments: Sequence[Experiment], scale: Scale, repeat: int
    ) -> None:
        everything = [r for one in study.experiments for r in one.runs if scale in r.scales]
        usual = study.repeat[scale]
        whole = sum(_seconds(run, scale, usual) for run in everything)
        unit = study.minutes[scale] * 60 / whole if whole else 1.0
        # By run: trials, and seconds as the study's file says.
        self._all = {
            id(run): (_trials(run, scale, repeat), _seconds(run, scale, repeat) * unit)
            for one in experiments
            for run in one.runs
            if scale in run.scales
        }
        self._total = sum(trials for trials, _ in self._all.values())
        self._left_s = sum(seconds for _, seconds in self._all.values())
        self._done = 0
        self._took_s = self._expected_s = 0.0

    def finished(self, run: Run, took_s: float, one: Round) -> None:
        """Count a round of a run as done."""
        trials, expected_s = self._all[id(run)]
        done_s = expected_s * one.of_all
        self._done += round(trials * one.of_all)
        self._left_s -= done_s
        # Measurements from before a stop take no time, and say nothing about the rest.
        if took_s > done_s / (2 * _MOST):
            self._took_s += took_s
            self._expected_s += done_s

    def step(self, run: Run, step: Step, one: Round) -> Step:
        """Say where a step of a round of one run stands in all runs."""
        if step.warning:
            return step
        ratio = self._took_s / self._expected_s if self._expected_s else 1.0
        ratio = min(_MOST, max(1 / _MOST, ratio))
        trials, expected_s = self._all[id(run)]
        own_s = expected_s * one.of_all
        own = own_s * ratio if step.left_s is None else step.left_s
        share = one.share(step.done / step.total) if step.total else 0.0
        done = self._done + round(share * one.of_all * trials)
        left_s = own + (self._left_s - own_s) * ratio
        return replace(step, done=done, total=self._total, left_s=left_s)


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
