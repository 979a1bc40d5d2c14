"""What does reading cost from far away, where each request waits?"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    """The way to a server."""

    latency_s: float  # From a request to the first byte of its answer
    nbytes_per_s: float
    in_flight: int  # Requests that chunkwise has under way at a time

    def seconds(self, reads: float, requests: float, nbytes: float, *, at_once: bool) -> float:
        """Add up waiting and sending; `at_once`: each read asks for its chunks together.

        libhdf5 asks for one after another.
        """
        waits = requests
        if at_once and requests > reads:
            waits = reads * math.ceil(requests / reads / self.in_flight)
        return waits * self.latency_s + nbytes / self.nbytes_per_s
