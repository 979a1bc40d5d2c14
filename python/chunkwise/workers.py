"""Which share of processors and cache has a worker of PyTorch's DataLoader?"""

from __future__ import annotations

import os
import sys
import warnings
from functools import wraps
from typing import Any, Final

from chunkwise import _native, system
from chunkwise.settings import VARIABLES

_MODULE: Final = "torch.utils.data._utils.worker"
_SHARED: Final = ("threads", "cache_nbytes", "write_buffer_nbytes", "prefetch_nbytes")
# The WorkerInfo of PyTorch that is followed, in this process or the one that it is a copy of.
_followed: Any = None


def watch() -> None:
    """Divide what a process may use when PyTorch makes it one of several workers."""
    # Forked workers may have it from their parent, whichever was imported first.
    system.after_fork_in_child(look)
    look()


def look() -> None:
    """Follow the WorkerInfo that PyTorch has given this process, or will give it."""
    # Spawned processes import chunkwise before PyTorch: called again at the first read.
    module = sys.modules.get(_MODULE)
    if module is None:
        return
    _watch(getattr(module, "WorkerInfo", None))
    worker_info = getattr(module, "_worker_info", None)
    if worker_info is not None and worker_info is not _followed:
        _follow(worker_info)


def _watch(info: Any) -> None:
    if info is None or hasattr(info.__init__, "_is_watched"):
        return
    original = info.__init__

    @wraps(original)
    def __init__(self: Any, **given: Any) -> None:  # noqa: N807
        original(self, **given)
        _follow(self)

    __init__._is_watched = True  # type: ignore[attr-defined]
    info.__init__ = __init__


def _follow(worker_info: Any) -> None:
    global _followed
    _followed = worker_info
    share(getattr(worker_info, "num_workers", 1), speaks=getattr(worker_info, "id", None) == 0)


def share(number: int, *, speaks: bool = True) -> None:
    """Give this process its part of what one of `number` has; what somebody has set stays."""
    _native.set_default_settings(
        {
            name: max(1, _native.setting(name) // number)
            for name in _SHARED
            if VARIABLES[name] not in os.environ
        }
    )
    if not speaks:
        return
    from chunkwise.memory import total_nbytes

    cache_nbytes, memory_nbytes = _native.setting("cache_nbytes"), total_nbytes()
    if memory_nbytes is not None and number * cache_nbytes > memory_nbytes:
        from chunkwise.grammar.sizes import format_size

        warnings.warn(
            f"{number} workers keep up to {format_size(cache_nbytes)} of chunks each, and there "
            f"are {format_size(memory_nbytes)} of memory: give settings(cache_nbytes=...), or "
            f"{VARIABLES['cache_nbytes']}, what a worker may keep",
            RuntimeWarning,
            stacklevel=3,
        )
