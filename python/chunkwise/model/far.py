"""What does reading cost from far away, where each request waits?"""

from __future__ import annotations

import math
from dataclasses import dataclass

from chunkwise.grammar import format_size
from chunkwise.words import counted, format_seconds


@dataclass(frozen=True, slots=True)
class Link:
    """The way to a server."""

    latency_s: float  # From a request to the first byte of its answer
    nbytes_per_s: float
    in_flight: int  # Requests that chunkwise has under way at a time

    def seconds(self, reads: float, requests: float, nbytes: float, *, at_once: bool) -> float:
        """Add up waiting and sending; `at_once`: each read asks for its chunks together."""
        # libhdf5 asks for one after another.
        waits = requests
        if at_once and requests > reads:
            waits = reads * math.ceil(requests / reads / self.in_flight)
        return waits * self.latency_s + nbytes / self.nbytes_per_s


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was fetched of a file far away, and how long that takes over a given way."""

    requests: int
    # Requests that each began after the one before was answered.
    rounds: int
    nbytes: int
    latency_s: float  # From a request to the first byte of its answer
    nbytes_per_s: float  # Of the network
    seconds: float  # How long it takes with these two, without decoding

    @property
    def words(self) -> str:
        """Say it in a line.

        >>> Fetched(38, 5, 2 << 20, 0.05, 100e6, 0.271).words
        'fetched: 38 requests in 5 rounds, 2.0 MiB: 271 ms at 50.0 ms a request and 100 MB/s'
        """
        way = f"{format_seconds(self.latency_s)} a request and {self.nbytes_per_s / 1e6:,.0f} MB/s"
        return (
            f"fetched: {counted(self.requests, 'request')} in {counted(self.rounds, 'round')}, "
            f"{format_size(self.nbytes)}: {format_seconds(self.seconds)} at {way}"
        )
