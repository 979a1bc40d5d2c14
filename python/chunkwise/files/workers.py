"""How do several processes work on many files, and end cleanly?

These write, unlike `contained`'s children: before a signal ends them, each removes its
half-written file.  They are started afresh, not forked, because each has its own threads.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, Generic, TypeVar

from chunkwise import system
from chunkwise.errors import CrashedError
from chunkwise.files.contained import Outcome

Key = TypeVar("Key")
Result = TypeVar("Result")

# How often the caller may end the work.
_TICK_S: Final = 0.2
# Seconds for a worker to remove its half-written file.
_PATIENCE_S: Final = 30.0

# The signal that ended this process's work; 0 for none.  In workers alone.
_end_signal: int = 0


def check_ended(*_: object) -> None:
    """Raise SystemExit in a worker that is to end."""
    # A signal that became an exception wherever it came would meet work that makes a file and has
    # not noted it yet, or removes one.  So it is remembered, and work of several steps asks
    # between two steps.
    if _end_signal:
        raise SystemExit(128 + _end_signal)


@dataclass
class _Worker(Generic[Key]):
    process: BaseProcess
    connection: Connection
    key: Key | None = None
    busy: bool = False


def by_workers(
    works: Iterable[tuple[Key, str, Callable[[], Result]]],
    at_once: int,
    *,
    setup: Callable[[], object] | None = None,
    check: Callable[[], object] = lambda: None,
) -> Iterator[tuple[Key, Outcome[Result]]]:
    """Do work after work in processes that stay, several at a time."""
    left = iter(works)
    names: dict[Any, str] = {}
    workers: list[_Worker[Key]] = []
    more = True
    try:
        while more or any(worker.busy for worker in workers):
            check()
            while more and sum(worker.busy for worker in workers) < at_once:
                try:
                    key, name, work = next(left)
                except StopIteration:
                    more = False
                    break
                worker = next((one for one in workers if not one.busy), None)
                if worker is None:
                    worker = _started(setup)
                    workers.append(worker)
                worker.connection.send(work)
                worker.key, worker.busy = key, True
                names[id(worker)] = name
            busy = {worker.connection: worker for worker in workers if worker.busy}
            for ready in wait(list(busy), _TICK_S):
                worker = busy[ready]  # type: ignore[index]
                outcome, lives = _answer(worker, names[id(worker)])
                worker.busy = False
                if not lives:
                    workers.remove(worker)
                yield worker.key, outcome  # type: ignore[misc]
    finally:
        _end(workers)


def _started(setup: Callable[[], object] | None) -> _Worker[Any]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, setup), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _answer(worker: _Worker[Any], name: str) -> tuple[Outcome[Any], bool]:
    """Take a worker's answer, and return whether it lives on."""
    try:
        return worker.connection.recv(), True
    except (EOFError, OSError):
        worker.process.join(_PATIENCE_S)
        code = worker.process.exitcode or 0
        said = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        why = "it ran out of memory, or a library crashed"
        wrong = f"{name}: its process ended ({said}): {why}"
        return Outcome(None, CrashedError(wrong)), False


def _end(workers: list[_Worker[Any]]) -> None:
    """End all, and wait until they have cleaned up."""
    for worker in workers:
        with contextlib.suppress(OSError, ValueError):
            if worker.busy:
                worker.process.terminate()
            else:
                worker.connection.send(None)
    deadline = time.monotonic() + _PATIENCE_S
    for worker in workers:
        worker.process.join(max(0.1, deadline - time.monotonic()))
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.connection.close()


def _serve(connection: Connection, setup: Callable[[], object] | None) -> None:
    """Work until there is no more, or the signal to end comes."""

    def leave(number: int, _: object) -> None:
        global _end_signal
        _end_signal = number

    for number in system.ENDING:
        signal.signal(number, leave)
    # Ctrl-C reaches all of them; the process that started them ends them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    system.end_with_parent(signal.SIGTERM)
    if setup is not None:
        setup()
    while True:
        check_ended()
        try:
            work = connection.recv()
        except EOFError:
            return
        if work is None:
            return
        try:
            outcome: Outcome[Any] = Outcome(work())
        except Exception as error:
            outcome = Outcome(None, error)
        connection.send(outcome)
