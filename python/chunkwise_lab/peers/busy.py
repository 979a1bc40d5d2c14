"""How much of the processors did other programs have, while a reader read?"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from chunkwise.trials.environment import usable_cpus


@dataclass
class Share:
    """Processor seconds of others, among those that there were."""

    others_s: float = 0.0  # Sums over the readings that were watched
    all_s: float = 0.0

    @property
    def of_others(self) -> float | None:
        """From 0 to 1; None where the system does not tell, or too little was watched."""
        # Figures of processes come in hundredths of a second.
        return min(self.others_s / self.all_s, 1.0) if self.all_s > 0.2 else None

    @contextmanager
    def watched(self, pid: int) -> Iterator[None]:
        """Count what happens meanwhile; `pid` is the reader's process."""
        begun, clock = _look(pid), time.perf_counter()
        yield
        seconds, ended = time.perf_counter() - clock, _look(pid)
        if begun is not None and ended is not None:
            own = ended[1] - begun[1]
            self.others_s += max(ended[0] - begun[0] - own, 0.0)
            self.all_s += seconds * usable_cpus()


def _look(pid: int) -> tuple[float, float] | None:
    """Return busy seconds of all processors, and those of one process; None if nobody tells."""
    try:
        machine = Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:]
        process = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        tick = os.sysconf("SC_CLK_TCK")
        # user, nice, system, idle, iowait, irq, softirq, steal: what the host takes is not ours.
        user, nice, system, _idle, _wait, *rest = map(int, machine[:8])
        return (user + nice + system + sum(rest)) / tick, sum(map(int, process[11:13])) / tick
    except (OSError, ValueError):
        return None
