"""In which order do the readers of a comparison read?

Each in a process of its own, in turns (A B C, B C A, ...); a slow one less often, at least thrice.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any

from chunkwise.measure.process import Share, Waiting
from chunkwise_lab.checkout import ROOT
from chunkwise_lab.peers.spec import SUBJECT, Comparison, Reader
from chunkwise_lab.turns import in_turns

LIMITS = ROOT / "target/release/examples/limits"
FEWEST = 3
# A first sample that took less is repeated.
WARM_UP_S = 0.5


@dataclass
class Samples:
    """What one reader gave."""

    reader: Reader
    values: list[float] = field(default_factory=list)  # Seconds or bytes, in the order measured
    # Of what was read, and of beginnings of it; more than one value means that something is wrong.
    checksums: dict[str, set[int]] = field(default_factory=dict)
    details: list[dict[str, Any]] = field(default_factory=list)  # What it said besides
    busy: Share = field(default_factory=Share)  # What other programs did meanwhile
    skipped: str | None = None  # Why there are no values
    failed: str | None = None

    def take(self, answer: dict[str, Any]) -> None:
        """Keep what a worker answered."""
        self.skipped, self.failed = answer.get("skipped"), answer.get("failed")
        if "value" in answer:
            self.values.append(float(answer["value"]))
            for what, crc in answer["checksums"].items():
                self.checksums.setdefault(what, set()).add(crc)
            if answer.get("details"):
                self.details.append(answer["details"])


class Worker:
    """A reader's process."""

    def __init__(self, samples: Samples, log: IO[str], patience_s: float) -> None:
        self.samples = samples
        self.process: Waiting | None = None
        self._turns, self._spent_s = 0, 0.0
        reader = samples.reader
        if reader.task == "limits":
            if not LIMITS.exists():
                samples.skipped = f"there is no {LIMITS.name}: make bench builds it"
                return
            command = [str(LIMITS), *map(str, reader.arguments["argv"])]
        else:
            arguments = json.dumps(reader.arguments)
            command = [sys.executable, "-m", "chunkwise_lab.peers.worker", reader.task, arguments]
        self.process = Waiting(command, log, patience_s)
        samples.busy = self.process.busy

    def prepare(self) -> None:
        """Wait until it is ready."""
        if self.process is not None:
            self.samples.take(self.process.answer())

    @property
    def wants_more(self) -> bool:
        """Whether it can take another sample."""
        return self.samples.skipped is None and self.samples.failed is None

    def turn(self, rounds: int, budget_s: float, progress: Callable[[str], None]) -> None:
        """Ask for one sample, unless there are enough."""
        number, most = self._turns, self.samples.reader.most
        self._turns += 1
        enough = self._spent_s > budget_s and number >= FEWEST
        enough = enough or (most is not None and number >= most)
        if self.process is None or not self.wants_more or enough:
            return
        progress(f"{number + 1} of {rounds}, {self.samples.reader.name}")
        begun = time.perf_counter()
        self.samples.take(self.process.ask())
        took = time.perf_counter() - begun
        if number == 0 and rounds > 1 and took < WARM_UP_S and self.wants_more:
            # The first of all loads and starts what later ones find: not counted.
            self.samples.values.clear()
            self.samples.details.clear()
            self.samples.take(self.process.ask())
        self._spent_s += took


def measure(
    comparison: Comparison,
    repeat: int | None = None,
    budget_s: float = 15.0,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Samples]:
    """Let all readers of a comparison read in turns."""
    rounds = repeat or comparison.repeat

    def say(text: str) -> None:
        progress(f"{comparison.name}: {text}")

    with _workers(comparison, say) as workers:
        works = {
            worker.samples.reader.name: partial(worker.turn, rounds, budget_s, say)
            for worker in workers
        }
        in_turns(works, rounds)
        return [worker.samples for worker in workers]


@contextlib.contextmanager
def _workers(comparison: Comparison, progress: Callable[[str], None]) -> Iterator[list[Worker]]:
    started: list[Worker] = []
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        try:
            for reader in comparison.readers:
                progress(f"starting {reader.name}")
                started.append(Worker(Samples(reader), log, comparison.patience_s))
                started[-1].prepare()
            yield started
        finally:
            for worker in started:
                if worker.process is not None:
                    worker.process.end()
            if any(w.samples.failed and w.samples.reader.name == SUBJECT for w in started):
                log.seek(0)
                sys.stderr.write(log.read())
