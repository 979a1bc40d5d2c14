"""What do other programs have of the processors while ranks measure?"""

from __future__ import annotations

import os
from time import perf_counter, process_time
from typing import Final

from chunkwise.measure.process import Share, busy_s
from chunkwise_lab.studies.iotest.world import World

# Processor seconds, in hundredths of which the system counts: fewer say little.
_LEAST_S: Final = 1.0


class Watch:
    """The machine of rank 0, since it was last read."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._since = self._look()

    def others_share(self) -> float | None:
        """Return the share of others, on rank 0; None if it is too early to say (collective)."""
        now = self._look()
        if now is None or self._since is None:
            return None
        share, (began, *before), (clock, *after) = Share(), self._since, now
        share.add((before[0], before[1]), (after[0], after[1]), clock - began)
        if share.all_s < _LEAST_S:
            return None
        self._since = now
        return share.of_others

    @property
    def notices(self) -> bool:
        """Whether this process will ever get an answer."""
        return self._since is not None

    def _look(self) -> tuple[float, float, float] | None:
        """Return the time, busy seconds of the machine and, of these, those of ranks."""
        here = os.uname().nodename
        ranks = self._world.gather((here, process_time()))
        busy = None if self._world.rank else busy_s()
        own = sum(seconds for name, seconds in ranks if name == here)
        return None if busy is None else (perf_counter(), busy, own)
