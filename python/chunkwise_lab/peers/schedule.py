"""In which order do the readers of a comparison read?

Each in a process of its own, all of them waiting while one reads; in turns (A B C, B C A,
...), so that a machine that slows down slows all.  One that takes long is asked less often,
but three times at least.
"""

from __future__ import annotations

import contextlib
import json
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from chunkwise_lab.checkout import ROOT
from chunkwise_lab.peers.busy import Share
from chunkwise_lab.peers.spec import SUBJECT, Comparison, Reader

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
    told: list[dict[str, Any]] = field(default_factory=list)  # What it said besides
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
            if answer.get("told"):
                self.told.append(answer["told"])


class Worker:
    """A reader's process."""

    def __init__(self, samples: Samples, log: IO[str], patience_s: float) -> None:
        self.samples = samples
        self.patience_s = patience_s
        self.process: subprocess.Popen[str] | None = None
        reader = samples.reader
        if reader.task == "limits":
            if not LIMITS.exists():
                samples.skipped = f"there is no {LIMITS.name}: make bench builds it"
                return
            command = [str(LIMITS), *map(str, reader.arguments["argv"])]
        else:
            arguments = json.dumps(reader.arguments)
            command = [sys.executable, "-m", "chunkwise_lab.peers.worker", reader.task, arguments]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )

    def prepare(self) -> None:
        """Wait until it can be asked."""
        if self.process is not None:
            self.samples.take(self._answer())

    @property
    def wants_more(self) -> bool:
        """Whether it can be asked for another sample."""
        return self.samples.skipped is None and self.samples.failed is None

    def measure(self) -> None:
        """Ask for one sample, and wait for it."""
        assert self.process is not None
        assert self.process.stdin is not None
        with self.samples.busy.watched(self.process.pid):
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.write("\n")
                self.process.stdin.flush()
            answer = self._answer()
        self.samples.take(answer)

    def end(self) -> None:
        """End the process, whatever it does."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self.process is not None
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(self.patience_s):
                return {"failed": f"no answer for {self.patience_s:.0f} s"}
        line = self.process.stdout.readline()
        if not line:
            return {"failed": f"ended with code {self.process.wait()}"}
        answer: dict[str, Any] = json.loads(line)
        return answer


def measure(
    comparison: Comparison,
    repeat: int | None = None,
    budget_s: float = 15.0,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Samples]:
    """Let all readers of a comparison read in turns."""
    rounds = repeat or comparison.repeat
    with _workers(comparison, progress) as workers:
        spent = [0.0] * len(workers)
        for number in range(rounds):
            order = range(len(workers))
            for at in (*order[number % len(workers) :], *order[: number % len(workers)]):
                worker = workers[at]
                most = worker.samples.reader.most
                enough = spent[at] > budget_s and number >= FEWEST
                enough = enough or (most is not None and number >= most)
                if not worker.wants_more or enough:
                    continue
                progress(f"{number + 1} of {rounds}: {worker.samples.reader.name}")
                begun = time.perf_counter()
                worker.measure()
                took = time.perf_counter() - begun
                if number == 0 and rounds > 1 and took < WARM_UP_S and worker.wants_more:
                    # The first of all loads and starts what later ones find: not counted.
                    worker.samples.values.clear()
                    worker.samples.told.clear()
                    worker.measure()
                spent[at] += took
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
                worker.end()
            if any(w.samples.failed and w.samples.reader.name == SUBJECT for w in started):
                log.seek(0)
                sys.stderr.write(log.read())
