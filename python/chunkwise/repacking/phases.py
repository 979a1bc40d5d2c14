"""How long did each phase of a repack take, on its slowest rank?

The phases are those of `chunkwise mpi-model`, so that measured repacks calibrate it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from chunkwise import _native
from chunkwise.mpi.ranks import filesystem_of, host

if TYPE_CHECKING:
    from chunkwise.repacking.records import DatasetResult


@dataclass(frozen=True)
class Figures:
    """What one rank has measured."""

    host: str = ""  # Where it runs, which cores it may use there, and by how many threads it works
    cores: frozenset[int] = frozenset()
    threads: int = 1
    copying_s: float = 0.0  # Seconds of copying datasets, by the clock
    # Of these, the time in which threads waited for stored bytes of the source; of all threads.
    storage_s: float = 0.0
    commit_s: float = 0.0  # Time in which a thread handed chunks over: got places, and wrote
    # Of this, the time from question to answer; and of that, the time in which the answer was
    # made.
    asked_s: float = 0.0
    answered_s: float = 0.0
    waited_s: float = 0.0  # Time in which this rank waited for pieces of work, and for other ranks
    questions: int = 0  # How often it requested places
    # Time in which it gave others and itself places, as one that keeps an index.
    kept_s: float = 0.0
    verifying_s: float = 0.0  # Seconds of reading again, by the clock; of rank 0

    @property
    def read_s(self) -> float:
        """Seconds for reading, as if nothing else were done at the same time."""
        return min(self.storage_s / self.threads, self.copying_s)

    @property
    def exchange_s(self) -> float:
        """Seconds in which questions and answers were on their way, or waited for their turn."""
        return max(0.0, self.asked_s - self.answered_s)

    @property
    def write_s(self) -> float:
        """Seconds of writing; with giving places, if libhdf5 does both."""
        return max(0.0, self.commit_s - self.asked_s)

    @property
    def encode_s(self) -> float:
        """Seconds of all else: decoding, gathering, encoding."""
        others = self.read_s + self.commit_s / self.threads + self.waited_s
        return max(0.0, self.copying_s - others)


class Meter:
    """Measures one rank."""

    def __init__(self) -> None:
        self._found = Figures()

    @contextmanager
    def copying(self) -> Iterator[None]:
        """Measure copying within the block."""
        before, begun = _native.profile(), time.monotonic()
        _native.set_profiling(True)
        try:
            yield
        finally:
            _native.set_profiling(False)
            after = _native.profile()
            spent = {name: sum(after[name]) - sum(before[name]) for name in ("storage", "commit")}
            self._add(
                copying_s=time.monotonic() - begun,
                storage_s=spent["storage"],
                commit_s=spent["commit"],
            )

    def verifying(self) -> AbstractContextManager[None]:
        """Measure reading again within the block."""
        return self._measuring("verifying_s")

    def keeping(self) -> AbstractContextManager[None]:
        """Measure giving places within the block."""
        return self._measuring("kept_s")

    def waiting(self) -> AbstractContextManager[None]:
        """Measure waiting for other ranks within the block."""
        return self._measuring("waited_s")

    @contextmanager
    def _measuring(self, name: str) -> Iterator[None]:
        begun = time.monotonic()
        yield
        self._add(**{name: time.monotonic() - begun})

    def question(self, asked_s: float, answered_s: float) -> None:
        """Count a question for places."""
        self._add(asked_s=asked_s, answered_s=answered_s, questions=1)

    def figures(self) -> Figures:
        """What was measured so far."""
        cores = frozenset(os.sched_getaffinity(0))
        return replace(self._found, host=host(), cores=cores, threads=_native.thread_count())

    def _add(self, **more: float) -> None:
        sums = {name: getattr(self._found, name) + value for name, value in more.items()}
        self._found = replace(self._found, **sums)


def run_record(
    figures: Sequence[Figures],
    datasets: Sequence[DatasetResult],
    target: str,
    elapsed_s: float,
    verified: bool,
) -> dict[str, Any] | None:
    """Give a run as `chunkwise mpi-model` takes it; see docs/mpi.md."""
    copied = [one for one in datasets if one.action in ("copied", "rechunked") and one.chunks]
    nbytes = sum(one.nbytes for one in copied)
    n_chunks = sum(one.chunks for one in copied)
    if not nbytes:
        return None
    hosts = {one.host for one in figures}
    cores = {where: [one.cores for one in figures if one.host == where] for where in hosts}
    phases = {
        "read": max(one.read_s for one in figures),
        "encode": max(one.encode_s for one in figures),
        "write": max(one.write_s for one in figures),
    }
    questions = sum(one.questions for one in figures)
    if questions:
        phases["exchange"] = max(one.exchange_s for one in figures)
        phases["allocate"] = max(one.kept_s for one in figures)
    if verified:
        phases["verify"] = figures[0].verifying_s
    first = figures[0]
    phases["other"] = max(0.0, elapsed_s - first.copying_s - first.verifying_s)
    mount = filesystem_of(target)
    return {
        "nbytes": nbytes,
        "stored_nbytes": sum(one.stored_nbytes for one in copied),
        "source_nbytes": sum(one.stored_nbytes_before for one in copied),
        "n_chunks": n_chunks,
        "n_ranks": len(figures),
        "threads": max(one.threads for one in figures),
        "n_cores": sum(len(frozenset().union(*each)) for each in cores.values()),
        "ranks_per_node": max(map(len, cores.values())),
        "batch": max(1, round(n_chunks / questions)) if questions else 64,
        "storage": "" if mount is None else f"{mount.kind} {mount.mount_point}",
        "elapsed_s": elapsed_s,
        "phases": phases,
    }
