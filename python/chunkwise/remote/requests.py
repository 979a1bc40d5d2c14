"""How are requests made, many at a time on fsspec's loop, watched, and repeated?

Which chunks one request brings, the engine decides (`engine/src/storage/joining.rs`).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import gc
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeVar, cast

from h5py._objects import phil

from chunkwise import system
from chunkwise.errors import RemoteError
from chunkwise.remote.faults import PassingError, Patience, final, judged
from chunkwise.remote.stores import Store, Version

_Answer = TypeVar("_Answer")
Begin = Callable[[], Coroutine[Any, Any, _Answer]]
Range = tuple[int, int]

# One call has this many requests under way at a time.
TOGETHER: Final = 64


class _Traffic:
    """Bytes of all files together: requested and not received yet, and received."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.under_way = self.come = 0

    def begin(self, nbytes: int) -> None:
        with self._lock:
            self.under_way += nbytes

    def end(self, nbytes: int, *, came: bool) -> None:
        with self._lock:
            self.under_way -= nbytes
            self.come += nbytes if came else 0


_traffic = _Traffic()


class Interrupts:
    """What threads wait for; it is given up when they have to stop."""

    def __init__(self) -> None:
        self.count = 0
        self.waited_for: set[concurrent.futures.Future[Any]] = set()

    def stop(self) -> None:
        """Make all waiting callers give up."""
        self.count += 1
        for future in list(self.waited_for):
            future.cancel()


def first_bytes(
    store: Store, nbytes: int, patience: Patience, interrupts: Interrupts
) -> tuple[bytes, Version]:
    """The first bytes of an object and its version; raises as `fetch`."""
    if store.loop is None:
        return _repeated_here(lambda: store.first(nbytes), patience)
    begin = partial(_repeated, lambda: store.first(nbytes), nbytes, patience)
    return _wait(store, begin, interrupts)


def fetch(
    store: Store,
    ranges: Sequence[Range],
    version: Version,
    patience: Patience,
    interrupts: Interrupts,
) -> list[bytes]:
    """The bytes of ranges (first byte, one past the last), all of one version."""
    if store.loop is None:
        return _one_by_one(store, ranges, version, patience)
    return _wait(store, partial(_all, store, ranges, version, patience), interrupts)


async def _all(
    store: Store, ranges: Sequence[Range], version: Version, patience: Patience
) -> list[bytes]:
    def get(start: int, stop: int) -> Begin[bytes]:
        return lambda: _repeated(lambda: store.get(start, stop, version), stop - start, patience)

    found = await _together([get(start, stop) for start, stop in ranges])
    await _repeated(lambda: store.settle(version), 0, patience)
    return found


def _one_by_one(
    store: Store, ranges: Sequence[Range], version: Version, patience: Patience
) -> list[bytes]:
    """Do as `_all`, for a store whose methods wait themselves."""
    found = []
    for start, stop in ranges:
        ask = partial(store.get, start, stop, version)
        found.append(_repeated_here(ask, patience))
    _repeated_here(lambda: store.settle(version), patience)
    return found


async def _together(work: Sequence[Begin[bytes]]) -> list[bytes]:
    """Do work side by side; when some fails, the rest is given up."""
    room = asyncio.Semaphore(TOGETHER)

    async def one(begin: Begin[bytes]) -> bytes:
        async with room:
            return await begin()

    tasks = [asyncio.ensure_future(one(begin)) for begin in work]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def _repeated(ask: Begin[_Answer], nbytes: int, patience: Patience) -> _Answer:
    """Make a request, and make it again if that can help."""
    for attempt in range(1, patience.attempts + 1):
        try:
            return await _watched(ask, nbytes, patience)
        except Exception as error:
            pause_s = _pause_after(error, attempt, patience)
        await asyncio.sleep(pause_s)
    raise AssertionError("a request is made at least once")


def _pause_after(error: Exception, attempt: int, patience: Patience) -> float:
    """Return the seconds to wait for the next attempt; raise the error if there is none."""
    reason = judged(error, patience)
    if not isinstance(reason, PassingError) or attempt == patience.attempts:
        raise final(reason, attempt) from None
    return patience.pause_s * (1 << (attempt - 1))


async def _watched(ask: Begin[_Answer], nbytes: int, patience: Patience) -> _Answer:
    """Ask, and wait as long as the bytes of all requests meanwhile may take."""
    # A slow line is shared by those that are under way: each of them alone would be too slow.
    begun, before = time.monotonic(), _traffic.come
    _traffic.begin(nbytes)
    task = asyncio.ensure_future(ask())
    try:
        while not task.done():
            shared = _traffic.under_way + _traffic.come - before
            left_s = begun + patience.of(shared) - time.monotonic()
            if left_s <= 0:
                raise asyncio.TimeoutError
            await asyncio.wait({task}, timeout=left_s)
        return task.result()
    finally:
        _traffic.end(nbytes, came=task.done() and not task.cancelled() and not task.exception())
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _repeated_here(ask: Begin[_Answer], patience: Patience) -> _Answer:
    """As `_repeated`, of what waits itself, and so never gives way to a loop."""
    for attempt in range(1, patience.attempts + 1):
        pause_s = 0.0
        try:
            ask().send(None)
        except StopIteration as answer:
            return cast("_Answer", answer.value)
        except Exception as error:
            pause_s = _pause_after(error, attempt, patience)
        time.sleep(pause_s)
    raise AssertionError("a request is made at least once")


def _wait(store: Store, work: Begin[_Answer], interrupts: Interrupts) -> _Answer:
    loop = store.loop
    with contextlib.suppress(RuntimeError):
        if asyncio.get_running_loop() is loop:
            raise RemoteError("is read within fsspec's own loop; read it in another thread")
    begun = interrupts.count
    with _no_collection():
        future = asyncio.run_coroutine_threadsafe(work(), loop)
        interrupts.waited_for.add(future)
        try:
            if interrupts.count == begun:
                return future.result()
        except concurrent.futures.CancelledError:
            if interrupts.count == begun:
                raise RemoteError("the request was cancelled; read it again") from None
        finally:
            interrupts.waited_for.discard(future)
            future.cancel()
    raise RemoteError("the read was interrupted; read it again")


_pauses = threading.Lock()
_paused = 0
_was_enabled = False


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the garbage collector out of fsspec's thread while somebody holds h5py's lock."""
    # It may free h5py's objects there, which need that lock: a deadlock.
    global _paused, _was_enabled
    if not phil._is_owned() and phil.acquire(blocking=False):
        phil.release()
        yield
        return
    with _pauses:
        if not _paused:
            _was_enabled = gc.isenabled()
            gc.disable()
        _paused += 1
    try:
        yield
    finally:
        with _pauses:
            _paused -= 1
            if not _paused and _was_enabled:
                gc.enable()


def _after_fork() -> None:
    global _pauses, _paused, _traffic
    _pauses = threading.Lock()
    if _paused and _was_enabled:
        gc.enable()
    _paused = 0
    # Nothing is under way here.
    _traffic = _Traffic()


system.after_fork_in_child(_after_fork)
