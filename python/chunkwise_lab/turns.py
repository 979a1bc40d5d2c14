"""How do works take turns, each in a process that waits for its own, and who disturbed them?"""

from __future__ import annotations

import contextlib
import json
import selectors
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any, Final, TypeVar

from chunkwise.measure.process import Share, look
from chunkwise.words import counted

T = TypeVar("T")

# What others may have of the processors without being said: daemons have a percent or two.
_DISTURBS: Final = 0.1


class Waiting:
    """A process that waits for its turn, and answers each line with one of JSON."""

    def __init__(self, command: Sequence[str], log: IO[str], patience_s: float) -> None:
        self.busy = Share()  # What other programs did while it answered
        self._patience_s = patience_s
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )

    def answer(self) -> dict[str, Any]:
        """Wait for the next answer; ``{"failed": why}`` if none comes."""
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(self._patience_s):
                return {"failed": f"no answer for {self._patience_s:.0f} s"}
        line = self._process.stdout.readline()
        if not line:
            return {"failed": f"ended with code {self._process.wait()}"}
        found: dict[str, Any] = json.loads(line)
        return found

    def ask(self) -> dict[str, Any]:
        """Ask once, and wait for the answer."""
        assert self._process.stdin is not None
        begun, clock = look(self._process.pid), time.perf_counter()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        answer = self.answer()
        self.busy.add(begun, look(self._process.pid), time.perf_counter() - clock)
        return answer

    def end(self) -> None:
        """End the process, whatever it does."""
        with contextlib.suppress(BrokenPipeError), self._process:
            self._process.kill()


def busy_text(shares: Iterable[float | None]) -> str:
    """Say during how many measurements other programs were at work; empty if during none."""
    known = [share for share in shares if share is not None]
    disturbed = sum(share > _DISTURBS for share in known)
    if not disturbed:
        return ""
    return (
        f"Other programs had more than {_DISTURBS:.0%} of the processors during {disturbed:,} of "
        f"{counted(len(known), 'measurement')}: those figures may be too slow; measure again on a "
        "quiet machine."
    )


def in_turns(
    works: Mapping[str, Callable[[], T | None]],
    rounds: int,
    enough: Callable[[Mapping[str, list[T]]], bool] = lambda _: False,
) -> dict[str, list[T]]:
    """Let works take turns (A B C, B C A, ...), so that a machine that slows down slows all.

    A work that returns None gives no sample; `enough` is asked after each round.
    """
    taken: dict[str, list[T]] = {name: [] for name in works}
    names = list(works)
    for number in range(rounds):
        first = number % len(names)
        for name in (*names[first:], *names[:first]):
            sample = works[name]()
            if sample is not None:
                taken[name].append(sample)
        if enough(taken):
            break
    return taken
