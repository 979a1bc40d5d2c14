"""What if libhdf5 itself crashes on a file?  A child process works on it, and may crash alone."""

from __future__ import annotations

import faulthandler
import os
import pickle
import select
import signal
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, NoReturn, TypeVar, cast

import h5py

from chunkwise import system
from chunkwise.errors import CrashedError
from chunkwise.names import printable

Result = TypeVar("Result")

# A crash proves a fault of the library, and no more.
_CRASHED = (
    "that is a fault of the library, which a damaged file may bring about, or a sound one; read "
    "it with another version of HDF5"
)
# A child gets up to this many bytes; a larger file has a child alone.
_TOGETHER_NBYTES: Final = 4 << 20
# And this many files; of many files more, as long as no processor waits at the end.
_LEAST_TOGETHER: Final = 16
_MOST_TOGETHER: Final = 64
_CHILDREN_EACH: Final = 4
# Results that wait for an earlier one, for each child at work: memory is bounded by it.
_AHEAD = 4


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Result]):
    """What became of some work: a result, or the exception that it raised."""

    result: Result | None  # What it returned; None if it did not
    # What it raised, or `CrashedError` where its process was ended; None otherwise.
    error: BaseException | None = None

    def get(self) -> Result:
        """Return the result, or raise the error."""
        if self.error is not None:
            raise self.error
        return cast("Result", self.result)


def contained(work: Callable[[], Result], what: str) -> Result:
    """Do some work in a child process, and return what it returns."""
    (outcome,) = contained_each([(work, what)], 1)
    return outcome.get()


def contained_each(
    works: Iterable[tuple[Callable[[], Result], str]],
    at_once: int,
    limit_s: float | None = None,
) -> Iterator[Outcome[Result]]:
    """Do work after work in children of their own, several at a time."""
    if not system.FORKS:
        # Without a copy of this process, work is done here, and a crash ends all.
        for work, _ in works:
            yield _outcome(work)
        return
    left = iter(works)
    begun: deque[_Child] = deque()  # in order, until handed out
    more = True
    try:
        while more or begun:
            while (
                more
                and sum(not one.answered for one in begun) < at_once
                and len(begun) < _AHEAD * at_once
            ):
                try:
                    work, what = next(left)
                except StopIteration:
                    more = False
                else:
                    # Known before it begins: Ctrl-C may come at any moment.
                    begun.append(_Child(what, limit_s))
                    begun[-1].begin(work)
            if begun and begun[0].answered:
                outcome = begun[0].outcome()
                begun.popleft()
                yield outcome
            elif begun:
                _listen([child for child in begun if not child.answered])
    finally:
        for child in begun:
            child.end()


def contained_files(
    work: Callable[[str], Result], paths: Sequence[str], at_once: int, limit_s: float | None = None
) -> Iterator[Outcome[Result]]:
    """Work on file after file in children; small files share one, if none of them crashes."""
    sizes = [(path, size_of(path)) for path in paths]
    together = [[path for path, _ in batch] for batch in batches(sizes, at_once)]
    works = ((partial(_each, work, batch), printable(batch[0])) for batch in together)
    outcomes = contained_each(works, at_once, limit_s)
    for batch, outcome in zip(together, outcomes, strict=True):
        if outcome.error is None:
            yield from outcome.get()
        elif len(batch) == 1:
            yield Outcome(None, outcome.error)
        else:
            # One of them has ended the child.
            alone = ((partial(work, path), printable(path)) for path in batch)
            yield from contained_each(alone, at_once, limit_s)


def batches(files: Sequence[tuple[str, int]], at_once: int) -> Iterator[list[tuple[str, int]]]:
    """Put small files that follow each other together: a child takes longer to begin than they."""
    # A file is a path and its size.
    share = len(files) // (_CHILDREN_EACH * at_once)
    most = min(max(share, _LEAST_TOGETHER), _MOST_TOGETHER)
    batch: list[tuple[str, int]] = []
    nbytes = 0
    for file in files:
        if batch and (len(batch) == most or nbytes + file[1] > _TOGETHER_NBYTES):
            yield batch
            batch, nbytes = [], 0
        batch.append(file)
        nbytes += file[1]
    if batch:
        yield batch


def _each(work: Callable[[str], Result], paths: Iterable[str]) -> list[Outcome[Result]]:
    return [_outcome(partial(work, path)) for path in paths]


def _outcome(work: Callable[[], Result]) -> Outcome[Result]:
    try:
        return Outcome(work())
    except BaseException as error:
        return Outcome(None, error)


def size_of(path: str) -> int:
    """Give the size of a file; 0 if it has none, or is not there."""
    try:
        return Path(path).stat().st_size
    except (OSError, ValueError):
        return 0


def _listen(children: list[_Child]) -> None:
    """Wait until one of some children says something, or has had its time."""
    poll = select.poll()
    for child in children:
        poll.register(child.stream, select.POLLIN)
    ends = [child.ends_at for child in children if child.ends_at is not None]
    wait_s = max(0.0, min(ends) - time.monotonic()) if ends else None
    ready = {stream for stream, _ in poll.poll(None if wait_s is None else 1000 * wait_s + 1)}
    for child in children:
        if child.stream in ready:
            child.listen()
        elif child.ends_at is not None and time.monotonic() >= child.ends_at:
            child.give_up()


class _Child:
    """One child at work, and what it has answered so far."""

    def __init__(self, what: str, limit_s: float | None) -> None:
        self.answered = False
        self.ends_at = None if limit_s is None else time.monotonic() + limit_s
        # -1 and 0: neither a descriptor nor a process to be let go of.
        self.stream, self._process, self._status = -1, 0, 0
        self._what, self._limit_s, self._late = what, limit_s, False
        self._answer = bytearray()

    def begin(self, work: Callable[[], object]) -> None:
        """Start the process."""
        for output in (sys.stdout, sys.stderr):
            output.flush()
        # Ctrl-C reaches both; it must not find the child before that ignores it.
        signals = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.stream, writing = os.pipe()
            with warnings.catch_warnings():
                # NumPy's idle threads are no concern: the child calls nothing that needs them.
                warnings.simplefilter("ignore", DeprecationWarning)
                self._process = os.fork()
            if self._process == 0:
                os.close(self.stream)
                _work_and_leave(work, writing)
            os.close(writing)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, signals)

    def listen(self) -> None:
        """Take what it has said; nothing more means that it has ended."""
        piece = os.read(self.stream, 1 << 20)
        self._answer += piece
        self.answered = not piece

    def give_up(self) -> None:
        """End it, as it has had its time."""
        os.kill(self._process, signal.SIGKILL)
        self.answered = self._late = True

    def end(self) -> None:
        """End it, even in the middle of its work."""
        if self._process:
            os.kill(self._process, signal.SIGKILL)  # harmless to one that has ended
        self._reap()

    def _reap(self) -> None:
        """Let go of its pipe and process, once."""
        if self.stream >= 0:
            stream, self.stream = self.stream, -1
            os.close(stream)
        if self._process:
            # Ctrl-C may come right after the wait, when the number is nobody's, or another's.
            process, self._process = self._process, 0
            _, self._status = os.waitpid(process, 0)

    def outcome(self) -> Outcome[Any]:
        """Return the result, once it has answered."""
        self._reap()
        version = h5py.version.hdf5_version
        if self._late:
            wrong = (
                f"did not come to an end with it in {self._limit_s:,.0f} s: the file is very "
                "large, or damaged; look at it alone"
            )
        elif os.WIFSIGNALED(self._status) or not self._answer:
            signaled = os.WIFSIGNALED(self._status)
            name = signal.Signals(os.WTERMSIG(self._status)).name if signaled else "no answer"
            wrong = f"crashed on it ({name}): {_CRASHED}"
            if name == signal.SIGALRM.name:
                # The work had set itself an alarm.
                wrong = "stood still with it: storage does not answer, or the file is damaged"
        else:
            return cast("Outcome[Any]", pickle.loads(self._answer))
        return Outcome(None, CrashedError(f"{self._what}: HDF5 {version} {wrong}"))


def _work_and_leave(work: Callable[[], object], writing: int) -> NoReturn:
    """Work in the child, send the outcome, and end without any of the parent's clean-up."""
    # The parent decides what Ctrl-C means, and ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A crash is reported in one line, by the parent.
    faulthandler.disable()
    system.end_with_parent(signal.SIGKILL)
    try:
        outcome = _outcome(work)
        with os.fdopen(writing, "wb") as stream:
            pickle.dump(outcome, stream, pickle.HIGHEST_PROTOCOL)
    finally:
        os._exit(0)
