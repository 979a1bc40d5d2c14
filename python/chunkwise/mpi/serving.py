"""How do ranks request something of rank 0 while all of them work?

A thread of rank 0 answers.  After a failure, every later question gets it as its answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from chunkwise.errors import ChunkwiseError, UsageError
from chunkwise.mpi.ranks import (
    Alone,
    Failure,
    OtherRankFailedError,
    failure_of,
    pauses,
    together,
    wait,
)

if TYPE_CHECKING:
    from chunkwise.mpi.ranks import Comm


# Asks rank 0, and gives the answer; for one thread at a time.
Ask = Callable[[Any], Any]
Answer = Callable[[int, Any], Any]

_QUESTION: Final = 1
_REPLY: Final = 2


@dataclass(frozen=True)
class _Leaving:
    """A rank asks no more questions; `failure` says why if it has failed."""

    failure: Failure | None


@contextmanager
def serving(comm: Comm, answer: Answer | None) -> Iterator[Ask]:
    """Let ranks ask rank 0 within a block (collective)."""
    # It ends on each rank when it has on all; an error of one is raised on all (`together`).
    if isinstance(comm, Alone) or comm.size == 1:
        lock = threading.Lock()

        def alone(question: Any) -> Any:
            with lock:
                return answer(0, question) if answer is not None else None

        yield alone
        return
    from mpi4py import MPI

    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise UsageError(
            "MPI was initialised without MPI_THREAD_MULTIPLE, which is needed: import mpi4py with "
            "mpi4py.rc.thread_level = 'multiple' (its default), before anything else initialises "
            "MPI"
        )
    apart, request = comm.Idup()
    wait(request)
    with together(comm):
        if comm.rank:
            with _asking(apart) as ask:
                yield ask
        else:
            assert answer is not None
            server = _Server(apart, answer)
            with server.running():
                yield server.ask
    apart.Free()


class Questions:
    """Asks rank 0 in the place of `_native`, which keeps only the words of an error."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._error: BaseException | None = None

    def _answer(self, *question: object) -> Any:
        try:
            return self._ask(question)
        except BaseException as wrong:
            self._error = wrong
            raise

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Raise the error of a question as it was."""
        try:
            yield
        except Exception:
            error, self._error = self._error, None
            if error is not None:
                raise error from None
            raise


class _Server:
    """Answers questions on a thread of this rank."""

    def __init__(self, comm: Any, answer: Answer) -> None:
        self._comm, self._answer = comm, answer
        self._lock = threading.Lock()
        self._failed: Failure | None = None
        self._left = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._serve, name="chunkwise-serving", daemon=True)
        thread.start()
        try:
            yield
        except BaseException as wrong:
            self._note(failure_of(self._comm, wrong))
            raise
        finally:
            # Signals are checked during this time.
            while thread.is_alive():
                thread.join(0.05)

    def ask(self, question: Any) -> Any:
        if self._failed is not None:
            raise OtherRankFailedError(*self._failed)
        with self._lock:
            return self._answer(self._comm.rank, question)

    def _note(self, failure: Failure) -> None:
        with self._lock:
            if self._failed is None:
                self._failed = failure

    def _serve(self) -> None:
        from mpi4py import MPI

        looks = pauses()
        status = MPI.Status()
        while self._left < self._comm.size - 1:
            message = self._comm.improbe(MPI.ANY_SOURCE, _QUESTION, status)
            if message is None:
                time.sleep(next(looks))
                continue
            looks = pauses()
            rank, question = status.Get_source(), message.recv()
            if isinstance(question, _Leaving):
                self._left += 1
                if question.failure is not None:
                    self._note(question.failure)
                continue
            wait(self._comm.isend(self._reply(rank, question), rank, _REPLY))

    def _reply(self, rank: int, question: Any) -> tuple[Any, BaseException | None]:
        """Give an answer, or the error that the question has led to."""
        if self._failed is not None:
            return None, OtherRankFailedError(*self._failed)
        try:
            with self._lock:
                return self._answer(rank, question), None
        except ChunkwiseError as wrong:
            return None, wrong
        except Exception as wrong:
            # Pickle may not take it: its text.
            return None, ChunkwiseError(failure_of(self._comm, wrong).reason)


@contextmanager
def _asking(comm: Any) -> Iterator[Ask]:
    """Return the function that sends questions to rank 0; end the serving afterwards."""

    def ask(question: Any) -> Any:
        wait(comm.isend(question, 0, _QUESTION))
        for pause in pauses():
            message = comm.improbe(0, _REPLY)
            if message is not None:
                break
            time.sleep(pause)
        value, error = message.recv()
        if error is not None:
            raise error
        return value

    failure: Failure | None = None
    try:
        yield ask
    except BaseException as wrong:
        failure = failure_of(comm, wrong)
        raise
    finally:
        wait(comm.isend(_Leaving(failure), 0, _QUESTION))
