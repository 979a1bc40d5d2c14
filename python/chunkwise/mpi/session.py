"""How do ranks that write one file stay together, and fail together?

Each collective call begins with one exchange: what a rank does, and whether it failed before.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import h5py
import numpy as np
from h5py import h5t

from chunkwise.errors import ChunkwiseError, UsageError
from chunkwise.mpi.ranks import (
    PATIENCE_S,
    Alone,
    Failure,
    OtherRankFailedError,
    WaitedTooLongError,
    exchange,
    failure_of,
    wait,
)
from chunkwise.mpi.ranks import on_first as on_first_of
from chunkwise.mpi.serving import Answer, Ask, serving
from chunkwise.names import printable
from chunkwise.verdicts import Exit

if TYPE_CHECKING:
    from chunkwise.mpi.ranks import Comm

T = TypeVar("T")

# This much of what ranks said is shown if they differ.
_SHOWN = 160


class _Word(NamedTuple):
    """What a rank says as a call begins."""

    what: str
    same: str
    own: Any
    failure: Failure | None
    # Whether the file is lost by it.
    fatal: bool


class Session:
    """Ranks that write one file, from its opening to its close."""

    def __init__(self, comm: Comm, label: str) -> None:
        self.comm, self.label = comm, label
        # What each rank releases when the file is closed or abandoned.
        self.held = ExitStack()
        self._serving = ExitStack()
        self._ask: Ask | None = None
        # Why this rank cannot go on, which the others do not know yet.
        self._lost: BaseException | None = None
        # Whether a signal stopped this rank within a call: it must send no more.
        self._torn = False
        self.is_over = False
        self.process = os.getpid()
        _open.add(self)

    def serve(self, answer: Answer | None) -> None:
        """Let ranks ask rank 0 until the file is closed (collective)."""
        self._ask = self._serving.enter_context(serving(self.comm, answer))

    def ask(self, question: Any) -> Any:
        """Ask rank 0, at any time."""
        assert self._ask is not None
        return self._ask(question)

    def meet(
        self, what: str, own: T, same: str = "", error: BaseException | None = None
    ) -> list[T]:
        """Begin a collective call."""
        if self.is_over:
            raise UsageError(f"{self.label}: the file is closed")
        if self._torn:
            self._end_all(Exit.INTERRUPTED)
        words = self._exchange(what, own, same, error)
        lost = [word.failure for word in words if word.fatal and word.failure is not None]
        if lost:
            reason = self._lost or OtherRankFailedError(*min(lost))
            self.give_up(reason)
            raise reason
        failed = [word.failure for word in words if word.failure is not None]
        if failed:
            raise error or OtherRankFailedError(*min(failed))
        self._require_equal(words)
        return [word.own for word in words]

    def _exchange(
        self,
        what: str,
        own: Any,
        same: str = "",
        error: BaseException | None = None,
        limit_s: float | None = None,
    ) -> list[_Word]:
        wrong = self._lost or error
        failure = None if wrong is None else failure_of(self.comm, wrong)
        word = _Word(what, same, own, failure, self._lost is not None)
        try:
            return exchange(self.comm, word, limit_s)
        except BaseException as stopped:
            # Ended by a signal, or nobody came: messages under way must not be received again.
            self.lose(stopped)
            raise

    def _require_equal(self, words: list[_Word]) -> None:
        first = words[0]
        for rank, word in enumerate(words):
            if word.what != first.what:
                raise UsageError(
                    f"{self.label}: all ranks must make the same calls in the same order: rank 0 "
                    f"is at {first.what}, rank {rank} at {word.what}"
                )
            if word.same != first.same:
                pairs = enumerate(zip(first.same, word.same, strict=False))
                at = next((number for number, (a, b) in pairs if a != b), 0)
                begin = max(0, first.same.rfind(", ", 0, at) + 2) if at > _SHOWN // 2 else 0
                one, other = (text[begin : begin + _SHOWN] for text in (first.same, word.same))
                raise UsageError(
                    f"{self.label}: {first.what}: the arguments must be equal on all ranks: "
                    f"rank 0 gives {one}; rank {rank} gives {other}"
                )

    def on_first(self, work: Callable[[], T]) -> T:
        """Do something on rank 0 within a call, and give all ranks what it returned."""
        try:
            return on_first_of(self.comm, work)
        except UsageError:
            raise
        except OtherRankFailedError:
            # Rank 0 knows whether it can go on.
            raise
        except BaseException as wrong:
            self.lose(wrong)
            raise

    def lose(self, wrong: BaseException) -> None:
        """Note that the file is lost; the others learn it at the next call."""
        if self._lost is None:
            self._lost = wrong
        if not isinstance(wrong, Exception):
            self._torn = True

    def complete(self) -> None:
        """End the answers of rank 0 (collective)."""
        self._serving.close()

    def end(self) -> None:
        """Let go of everything: the file is in place."""
        self.is_over = True
        _open.discard(self)
        self.held.close()
        self._free()

    def fail(self, wrong: BaseException) -> None:
        """Let the others know that this rank fails, and give the file up (collective)."""
        # Others learn it at their next call; if they wait elsewhere, all ranks are ended.
        if self.is_over:
            return
        self._lost = self._lost or wrong
        try:
            if not self._torn:
                self._exchange("leaving after an error", None, limit_s=PATIENCE_S)
        except WaitedTooLongError:
            self._end_all(1)
        if self._torn:
            self._end_all(Exit.INTERRUPTED)
        self.give_up(wrong)

    def give_up(self, wrong: BaseException) -> None:
        """Leave nothing of the file; all ranks are here."""
        if self.is_over:
            return
        self.is_over = True
        _open.discard(self)
        try:
            self._serving.__exit__(type(wrong), wrong, wrong.__traceback__)
        except BaseException as same:
            if same is not wrong and not isinstance(same, ChunkwiseError):
                raise
        finally:
            self.held.__exit__(type(wrong), wrong, wrong.__traceback__)
            self._free()

    def _free(self) -> None:
        if not isinstance(self.comm, Alone):
            self.comm.Free()

    def _end_all(self, code: int) -> None:
        """End all ranks at once; of the partial file rank 0 leaves nothing, if it is this one."""
        wrong = self._lost or UsageError(f"{self.label}: interrupted")
        if isinstance(self.comm, Alone):
            self.give_up(wrong)
            raise wrong
        kind = "" if isinstance(wrong, ChunkwiseError) else f"{type(wrong).__name__}: "
        print(f"chunkwise: {printable(f'{kind}{wrong}')}", file=sys.stderr, flush=True)
        with contextlib.suppress(Exception):
            self.held.close()
        sys.stdout.flush()
        self.comm.Abort(code)


# Sessions that have not ended; a program that ends leaves none, and no rank waits for it.
_open: set[Session] = set()


def _leave_all() -> None:
    for session in list(_open):
        if session.process != os.getpid():
            # A forked child is no rank.
            continue
        wrong = UsageError(
            f"{session.label}: the program ended without closing it; nothing was written"
        )
        print(f"chunkwise: {wrong}", file=sys.stderr, flush=True)
        session.fail(wrong)


atexit.register(_leave_all)


def own_communicator(comm: Comm) -> Comm:
    """Give a communicator of the same ranks, on which nobody else sends (collective)."""
    if isinstance(comm, Alone) or comm.size == 1:
        return Alone()
    if comm.Is_inter():
        raise UsageError("comm: an intercommunicator joins two groups; give one of a single group")
    apart, request = comm.Idup()
    wait(request)
    return apart


def described(value: Any) -> str:
    """Put an argument into words by which ranks compare it; of much data, its digest."""
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        digest = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=8).hexdigest()
        return f"array({value.shape}, {value.dtype.str}, {digest})"
    if isinstance(value, np.ndarray):
        return f"array({value.shape}, {described(value.tolist())})"
    if isinstance(value, np.dtype):
        special = value.metadata
        return str(value) if not special else f"{value} {sorted(map(str, special.items()))}"
    if isinstance(value, h5py.Datatype | h5t.TypeID):
        number = value.id if isinstance(value, h5py.Datatype) else value
        return f"type({number.encode().hex()})"
    if isinstance(value, h5py.Empty):
        return f"Empty({described(value.dtype)})"
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={described(value[name])}" for name in sorted(value))
    if isinstance(value, str | bytes):
        return repr(value)
    if isinstance(value, list | tuple):
        text = f"({', '.join(map(described, value))})"
        if len(text) > 10 * _SHOWN:
            digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
            return f"{len(value)} values ({digest})"
        return text
    return str(value)
