"""In which order are trials run, for how long, and what if one does not come back?

Trials that will be compared alternate (A B A B), so that a machine that slows down slows both.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from chunkwise.measure.libraries import WORKER, LibHDF5, plugins
from chunkwise.measure.planning import OVERHEAD_S, Planned, patterns_of, share_s
from chunkwise.measure.process import finished
from chunkwise.measure.results import Cell
from chunkwise.measure.store import Store
from chunkwise.trials.trial import Measurement, Trial, from_worker
from chunkwise.trials.zlibs import preloading

SHORTEST_TIMEOUT_S = 3.0
# Seconds for the trial before the first one.
_TOUCH_S = 2.0


@dataclass(frozen=True)
class Step:
    """What the run is about to do."""

    text: str  # In words
    done: int = 0  # Trials that are done, and that there will be; 0 before the first
    total: int = 0
    left_s: float | None = None  # Seconds until the end, about; None if nobody knows yet
    warning: bool = False  # Whether it is something that the user should know before the end


@dataclass
class Schedule:
    """The rounds of one run, within its deadline."""

    plan: Sequence[tuple[Planned, Trial]]
    repeat: int
    deadline: float
    libraries: Mapping[str | None, LibHDF5]
    pages: Mapping[str, str]
    progress: Callable[[Step], None]
    store: Store | None = None
    shares: bool = True
    # Whether a dropped trial comes first: first times (memory, libraries) would slow one reader.
    touch: bool = False

    def __post_init__(self) -> None:
        store = self.store
        self.done: list[list[Measurement]] = [
            store.done(trial)[: self.repeat] if store else [] for _, trial in self.plan
        ]
        # What is known about measurements before a stop.
        self.took_s = [_took_s(done) for done in self.done]

    def execute(self) -> tuple[Cell, ...]:
        """Run all rounds and return the cells in the order of the plan."""
        new = [place for place, done in enumerate(self.done) if not done]
        wanted = [place for place, done in enumerate(self.done) if self._wants_more(done)]
        if self.touch and wanted:
            self._touch(wanted[0])
        for number, place in enumerate(new):
            left = len(new) - number
            spare = self.deadline - time.monotonic() - (left - 1) * (OVERHEAD_S + 0.4)
            # Half of what is left, but for the last: one slow read must not starve the others.
            self._measure(place, max(SHORTEST_TIMEOUT_S, spare if left == 1 else spare / 2))
        for repeats in range(1, self.repeat):
            for group in patterns_of([one for one, _ in self.plan]).values():
                # Work from before a stop is not repeated; what failed fails again.
                places = [
                    place
                    for place in group
                    if len(self.done[place]) <= repeats and self.done[place][-1].status == "ok"
                ]
                expected = 1.2 * sum(self.took_s[place] for place in places)
                if time.monotonic() + expected < self.deadline:
                    for place in places:
                        patience = 3 * self.took_s[place]
                        if place not in new:
                            # That it took so long is an estimate.
                            patience = max(patience, self.deadline - time.monotonic())
                        self._measure(place, max(SHORTEST_TIMEOUT_S, patience))
        return tuple(
            Cell(one.access, trial, tuple(measurements), one.point)
            for (one, trial), measurements in zip(self.plan, self.done, strict=True)
        )

    def _measure(self, place: int, timeout_s: float) -> None:
        one, trial = self.plan[place]
        repeat = len(self.done[place])
        if self.shares:
            # Time that short trials do not use goes to the others.
            left_s = max(0.0, self.deadline - time.monotonic())
            trials = sum(self.repeat - len(done) for done in self.done if self._wants_more(done))
            share = share_s(left_s, trials, trial.check)
            trial = replace(trial, max_seconds=max(trial.max_seconds, share))
        trial = replace(trial, timeout_s=round(timeout_s, 1))
        self._say(one, repeat)
        begun = time.monotonic()
        library = self.libraries[trial.libhdf5]
        measurement = measure_in_worker(trial, library.command, library.environment)
        self.took_s[place] = time.monotonic() - begun
        if trial.operation == "read" and trial.page_cache == "warm":
            measurement = replace(measurement, page_cache=self.pages[trial.file])
        measurement = replace(measurement, repeat=repeat)
        if self.store is not None:
            self.store.add(measurement)
        self.done[place].append(measurement)

    def _touch(self, place: int) -> None:
        """Make a short trial, and forget it."""
        trial = self.plan[place][1]
        most = min(trial.max_seconds, _TOUCH_S)
        trial = replace(trial, max_seconds=most, timeout_s=SHORTEST_TIMEOUT_S + most)
        library = self.libraries[trial.libhdf5]
        measure_in_worker(trial, library.command, library.environment)

    def _wants_more(self, done: Sequence[Measurement]) -> bool:
        """Whether a trial is to be made again: what failed fails again."""
        return len(done) < self.repeat and (not done or done[-1].status == "ok")

    def _say(self, one: Planned, repeat: int) -> None:
        """Report the next step, and how long all of it may take."""
        done = sum(map(len, self.done))
        known = [took for took in self.took_s if took]
        total = self.repeat * len(self.plan)
        left = self.deadline - time.monotonic()
        if known:
            each = sum(known) / len(known)
            # What was never measured is measured, even beyond the budget.
            first = sum(not measured for measured in self.done)
            left = max(first * each, min(left, (total - done) * each))
        text = f"{one.access.name}: {one.point['reader']}, {repeat + 1} of {self.repeat}"
        self.progress(Step(text, done, total, max(0.0, left)))


def _took_s(done: Sequence[Measurement]) -> float:
    """Estimate what a trial took, from start to end, by its last figures; 0 without any."""
    if not done or done[-1].elapsed_s is None:
        return 0.0
    last = done[-1]
    phases = (last.create_s, last.flush_s, last.close_s, last.sync_s)
    return OVERHEAD_S + done[-1].elapsed_s + sum(phase or 0.0 for phase in phases)


def measure_in_worker(
    trial: Trial, worker: Sequence[str] = WORKER, environment: Mapping[str, str] | None = None
) -> Measurement:
    """Measure one trial in its own process; even its crash is a result."""
    try:
        ended = finished(
            worker,
            given=json.dumps(trial.to_json()).encode(),
            environment={
                **(plugins() if environment is None else environment),
                **preloading(trial.zlib_path),
            },
            timeout_s=trial.timeout_s,
        )
    except TimeoutError:
        return Measurement(
            trial, "timeout", f"no figures within {trial.timeout_s:g} s; stopped there"
        )
    finally:
        _clear(trial)
    if ended.returncode != 0:
        return Measurement(trial, "failed", f"the worker {ended.how}")
    try:
        found = from_worker(trial, json.loads(ended.out))
        return replace(found, others_share=ended.others_share)
    except (ValueError, TypeError, AttributeError) as wrong:
        return Measurement(trial, "failed", f"the worker's answer makes no sense: {wrong}")


def _clear(trial: Trial) -> None:
    """Remove what a worker that was ended had written."""
    if trial.scratch is not None:
        for left in Path(trial.scratch).glob("written-*"):
            with contextlib.suppress(OSError):
                left.unlink()
