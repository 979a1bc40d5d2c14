"""Who computes: a cluster's client, or this process's threads?

As Dask itself decides: by the call, then by the program's settings, otherwise threads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from chunkwise.errors import UsageError
from chunkwise.words import installing

if TYPE_CHECKING:
    from typing import TypeAlias

    from distributed import Client

    Scheduler: TypeAlias = Client | Literal["threads", "sync"]

_THREADS = ("threads", "threading")
_SYNC = ("sync", "synchronous", "single-threaded")


def require_dask() -> None:
    """Raise UsageError if Dask is missing."""
    try:
        import dask.array  # noqa: F401
    except ImportError as wrong:
        raise UsageError(f"dask is needed for this ({wrong}): {installing('dask')}") from None


def scheduler_of(client: Any = None) -> Scheduler:
    """Find out who computes."""
    import dask.local
    import dask.threaded

    if client is None:
        client = dask.config.get("scheduler", None)
    if client is None:
        return "threads"
    if isinstance(client, str):
        name = client.lower()
        if name in _THREADS:
            return "threads"
        if name in _SYNC:
            return "sync"
        if name in ("dask.distributed", "distributed"):
            return _default_client()
    elif client is dask.local.get_sync:
        return "sync"
    elif client is dask.threaded.get:
        return "threads"
    elif (known := sys.modules.get("distributed")) and isinstance(client, known.Client):
        if client.asynchronous:
            raise UsageError(
                "client: is asynchronous; give a Client that was made without asynchronous=True"
            )
        return client  # type: ignore[no-any-return]
    said = client if isinstance(client, str) else type(client).__name__
    raise UsageError(
        f"Dask's scheduler {said!r} cannot write one file with this process: use a Client of "
        "dask.distributed, or scheduler='threads'"
    )


def _default_client() -> Client:
    from distributed import default_client

    try:
        return scheduler_of(default_client())  # type: ignore[return-value]
    except ValueError as wrong:
        raise UsageError(f"no client of dask.distributed: {wrong}") from None


def getter(scheduler: Literal["threads", "sync"]) -> Callable[..., Any]:
    """Return what computes keys of a graph in this process."""
    import dask.local
    import dask.threaded

    found: Callable[..., Any]
    found = dask.threaded.get if scheduler == "threads" else dask.local.get_sync
    return found
