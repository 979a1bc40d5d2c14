"""How many threads, and how much memory, may this process use, and how long does it wait?"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, SupportsIndex

from chunkwise import _native
from chunkwise.errors import UsageError

# What `chunkwise --help` says about them.
HELP: Final = """\
\b
Environment (sizes as in 256MiB; see docs/memory.md):
  CHUNKWISE_THREADS              most threads of a read or write
  CHUNKWISE_CACHE_NBYTES         decoded chunks kept for later reads
  CHUNKWISE_WRITE_BUFFER_NBYTES  chunks written in part, until complete
  CHUNKWISE_PREFETCH_NBYTES      stored bytes read before they are wanted
  CHUNKWISE_REQUEST_TIMEOUT_S    seconds without an answer from a server
"""


class _Values(NamedTuple):
    threads: int
    cache_nbytes: int
    write_buffer_nbytes: int
    prefetch_nbytes: int
    request_timeout_s: float


class Settings(_Values):
    """The settings of this process, as `settings` found or made them.

    In a ``with`` statement what the call has changed holds, and at its end is as it was before.

    Attributes
    ----------
    threads : int
        Threads that one read or write uses, the calling one included; at least 1.
    cache_nbytes : int
        Bytes of decoded chunks that are kept for later reads, for all files together.
    write_buffer_nbytes : int
        Bytes of partly written chunks that wait to be complete.
    prefetch_nbytes : int
        Stored bytes that are read before they are wanted.
    request_timeout_s : float
        Seconds without an answer after which a request to a server has failed.
    """

    # What the call has changed, None for the default; and what that was before.
    _changed: dict[str, float | None]
    _former: dict[str, float | None]

    def __enter__(self) -> Settings:
        now = _change(self._changed)
        if now != self._changed:
            # Somebody has changed them since the call, or since the last ``with``.
            self._former = now
        return self

    def __exit__(self, *_: object) -> None:
        _change(self._former)


VARIABLES: Final = {name: f"CHUNKWISE_{name.upper()}" for name in _Values._fields}

# What the engine does not ask for: None for the default.
_TIMEOUT: Final = "request_timeout_s"
_chosen_timeout_s: float | None = None
_default_timeout_s = 30.0

# What is wrong with a variable, until it can be reported.
_wrong: list[str] = []


def settings(
    *,
    threads: SupportsIndex | Literal["default"] | None = None,
    cache_nbytes: SupportsIndex | str | None = None,
    write_buffer_nbytes: SupportsIndex | str | None = None,
    prefetch_nbytes: SupportsIndex | str | None = None,
    request_timeout_s: float | Literal["default"] | None = None,
) -> Settings:
    """Set how much this process uses, and how long it waits; give what is in force.

    Without arguments nothing changes.

    Parameters
    ----------
    threads : int or "default", optional
        Threads that one read or write uses, from 1 to 4096, from the next one on.  1 keeps all
        work on the thread that asks.  By default as many processors as the process may use, by its
        affinity and its control group, at most ``SLURM_CPUS_PER_TASK`` and ``CHUNKWISE_THREADS``;
        in a worker of Dask at most as many as that has threads.
    cache_nbytes : int or str, optional
        Bytes, or ``"256MiB"``, of decoded chunks that are kept for later reads, of all files
        together.  What is too much goes at once.  A single larger chunk is kept, but none at 0.
        By default 256 MiB, or a quarter of the control group's memory if that is less.
    write_buffer_nbytes : int or str, optional
        Bytes of chunks that were written in part and wait to be complete, of all datasets that
        are being written; from the next write on.  By default as for `cache_nbytes`.
    prefetch_nbytes : int or str, optional
        Stored bytes that a read fetches before they are wanted; from the next read on.  At 0 none
        are, and no chunk is decoded ahead of the next read.  By default 64 MiB, or a sixteenth
        of the control group's memory if that is less.
    request_timeout_s : float or "default", optional
        Seconds, from 0.001 to 86,400: a request to a server that brings nothing for so long has
        failed, and is made again, up to five times in all; from the next request on.  By default
        30 (see `docs/remote.md`).

    Returns
    -------
    Settings
        The values in force now, all of them.  As a context manager it takes back at the end what
        this call has changed.

    Raises
    ------
    chunkwise.errors.UsageError
        For a value that is none, or a variable ``CHUNKWISE_...`` that is (a ValueError); nothing
        has changed.

    Notes
    -----
    The settings are those of the process, for all of its threads; where ``with`` statements of two
    threads overlap, the one that ends last decides.  A forked child begins with
    them.  A process that is started anew, as by ``spawn``, begins with the defaults and the
    environment's variables: ``CHUNKWISE_THREADS`` and so on.

    Examples
    --------
    >>> import chunkwise
    >>> with chunkwise.settings(threads=1, cache_nbytes="64MiB") as chosen:
    ...     chosen.threads, chosen.cache_nbytes
    (1, 67108864)
    """
    check_environment()
    given: dict[str, Any] = {
        "threads": threads,
        "cache_nbytes": cache_nbytes,
        "write_buffer_nbytes": write_buffer_nbytes,
        "prefetch_nbytes": prefetch_nbytes,
        "request_timeout_s": request_timeout_s,
    }
    changed = {
        name: None if value == "default" else _valid(name, value, f"settings: {name}={value!r}")
        for name, value in given.items()
        if value is not None
    }
    former = _change(changed)
    found = Settings(*map(_in_force, _Values._fields))
    found._changed, found._former = changed, former
    return found


def check_environment() -> None:
    """Say what is wrong with a variable that was set when chunkwise was imported.

    Raises
    ------
    chunkwise.errors.UsageError
        When a value cannot be understood.
    """
    if _wrong:
        raise UsageError(_wrong[0])


def read_environment() -> None:
    """Take over what variables say, when chunkwise is imported."""
    global _default_timeout_s
    found: dict[str, float] = {}
    for name, variable in VARIABLES.items():
        text = os.environ.get(variable, "").strip()
        if not text:
            continue
        try:
            found[name] = _valid(name, text, f"{variable}={text}")
        except UsageError as wrong:
            # Importing a package should not fail: the first opening of a file reports it.
            _wrong.append(str(wrong))
    # The engine looks at this one itself, as long as there are no threads.
    found.pop("threads", None)
    _default_timeout_s = found.pop(_TIMEOUT, _default_timeout_s)
    threads = _dask_threads()
    if threads:
        found["threads"] = threads
    if found:
        _native.set_default_settings({name: int(value) for name, value in found.items()})


def request_timeout_s() -> float:
    """Seconds without an answer after which a request has failed."""
    return _default_timeout_s if _chosen_timeout_s is None else _chosen_timeout_s


def _in_force(name: str) -> Any:
    return request_timeout_s() if name == _TIMEOUT else _native.setting(name)


def _change(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Change some, None for the default; gives what was chosen before."""
    global _chosen_timeout_s
    of_engine = {
        name: None if value is None else int(value)
        for name, value in values.items()
        if name != _TIMEOUT
    }
    former: dict[str, float | None] = {**_native.change_settings(of_engine)}
    if _TIMEOUT in values:
        former[_TIMEOUT], _chosen_timeout_s = _chosen_timeout_s, values[_TIMEOUT]
    return former


def _valid(name: str, value: Any, label: str) -> float:
    """Give the number, or say what is wrong with it."""
    if name == _TIMEOUT:
        return _valid_seconds(value, label)
    try:
        if name == "threads":
            number = int(value) if isinstance(value, str) else operator.index(value)
            least, most = 1, _native.MOST_THREADS
        else:
            number = _nbytes(value)
            least, most = 0, sys.maxsize
    except UsageError as wrong:
        raise UsageError(f"{label}: {wrong}") from None
    except (TypeError, ValueError):
        raise UsageError(f"{label}: it is no whole number") from None
    if not least <= number <= most:
        raise UsageError(f"{label}: give a number from {least} to {most}")
    return number


def _valid_seconds(value: Any, label: str) -> float:
    least, most = 0.001, 86_400
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        raise UsageError(f"{label}: it is no number of seconds") from None
    if not least <= seconds <= most:
        raise UsageError(f"{label}: give seconds from {least} to {most:,}")
    return seconds


def _nbytes(value: Any) -> int:
    if not isinstance(value, str):
        return operator.index(value)
    from chunkwise.grammar.sizes import parse_size

    return parse_size(value)


def _dask_threads() -> int | None:
    """How many threads Dask's workers in this process have, if there are any."""
    # A machine has several workers, which share its processors.
    worker = getattr(sys.modules.get("distributed.worker"), "Worker", None)
    try:
        return sum(one.state.nthreads for one in list(worker._instances)) if worker else None
    except (AttributeError, TypeError):
        # A version that keeps them elsewhere.
        return None
