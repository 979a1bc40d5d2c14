"""How is a program run patched, otherwise as Python itself would run it, and what does it say?

With ``--stats``, h5py repeats the first, second, fourth, eighth ... read, to compare the time.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import io
import os
import runpy
import sys
import time
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

import h5py

from chunkwise.errors import UsageError
from chunkwise.patching.installed import patch_h5py, patch_stats
from chunkwise.routing.reading import counts
from chunkwise.words import counted

# Repeated reads take no more of a program's time than this part, or than this many seconds.
_SHARE = 0.1
_LEAST_S = 1.0
# A larger array is not read twice.
_MOST_NBYTES = 256 << 20


@dataclass
class Timing:
    """The reads that both did, and what they took."""

    reads: int = 0
    engine_s: float = 0.0
    h5py_s: float = 0.0
    begun: float = 0.0

    def wants(self, found: Any) -> bool:
        """Whether the read that gave this is repeated."""
        number = counts.engine
        if number & (number - 1) or getattr(found, "nbytes", 0) > _MOST_NBYTES:
            return False
        return self.h5py_s < max(_LEAST_S, _SHARE * (time.perf_counter() - self.begun))


def timed() -> Timing:
    """Time the reads of h5py's datasets from now on; h5py is patched."""
    timing = Timing(begun=time.perf_counter())
    patched = h5py.Dataset.__getitem__
    original = patched.__wrapped__

    @wraps(patched)
    def __getitem__(self: h5py.Dataset, args: Any, new_dtype: Any = None) -> Any:  # noqa: N807
        before, begun = counts.engine, time.perf_counter()
        found = patched(self, args, new_dtype)
        ended = time.perf_counter()
        if counts.engine > before and timing.wants(found):
            original(self, args, new_dtype)
            timing.h5py_s += time.perf_counter() - ended
            timing.engine_s += ended - begun
            timing.reads += 1
        return found

    h5py.Dataset.__getitem__ = __getitem__
    return timing


# Modules that read through a libhdf5 of their own, and what each is called.
_OTHERS = {"netCDF4": "netCDF4", "tables": "PyTables"}


def say_at_exit(timing: Timing | None = None) -> None:
    """Say one line on stderr when this process ends, if there is something to say."""
    process = os.getpid()

    def say() -> None:
        if os.getpid() != process:
            return
        stats = patch_stats()
        line = line_about(stats, sys.modules)
        if line is None and timing is not None:
            line = line_of(stats, timing)
        if line is not None and sys.stderr is not None:
            # A program may have closed it, or its reader is gone.
            with contextlib.suppress(OSError, ValueError):
                print(f"chunkwise: {line}", file=sys.stderr, flush=True)

    # The first registered function is called last: after all reads.
    atexit.register(say)


# Workers of a program read, say, for a DataLoader: each ends by itself.
_NOTHING = (
    "nothing was read or written through h5py by the program's own process; those that it starts "
    "are not counted"
)


def line_of(stats: Mapping[str, Any], timing: Timing) -> str:
    """Say what went through the engine, and how much faster that was."""
    said = []
    for work, one in (("read", stats), ("write", stats["writes"])):
        left: dict[str, int] = one["h5py"]
        if not one["engine"] and not left:
            continue
        line = f"{counted(one['engine'], work)} went through the engine"
        if left:
            most = max(left, key=lambda reason: left[reason])
            line += f", {sum(left.values()):,} through h5py (mostly because {most})"
        said.append(line)
    if timing.reads and timing.engine_s:
        times = timing.h5py_s / timing.engine_s
        said.append(
            f"{counted(timing.reads, 'read')} that h5py repeated took it {times:.2g} times as long"
        )
    return "; ".join(said) or _NOTHING


def line_about(stats: Mapping[str, Any], modules: Container[str]) -> str | None:
    """What there is to say."""
    writes: dict[str, Any] = stats["writes"]
    if stats["engine"] or writes["engine"]:
        return None
    reasons: dict[str, int]
    for work, reasons in (("read", stats["h5py"]), ("write", writes["h5py"])):
        if reasons:
            reason = max(reasons, key=lambda one: reasons[one])
            return (
                f"no {work} went through the engine (by h5py: {sum(reasons.values()):,}); most "
                f"frequent reason: {reason}"
            )
    if "netCDF4" in modules and "xarray" in modules:
        return (
            "read nothing: netCDF4 has a libhdf5 of its own; give xarray's open functions "
            'engine="h5netcdf", which reads through h5py'
        )
    for module, name in _OTHERS.items():
        if module in modules:
            return (
                f"read nothing: {name} has a libhdf5 of its own; only what is read through h5py "
                "is read by the engine"
            )
    return None


# Says at the end what went through the engine.
STATS = "--stats"
_OURS = (__file__, str(Path(__file__).parent.parent / "__main__.py"))


def prepared(arguments: list[str]) -> Callable[[], object]:
    """Patch h5py for good, and find a program."""
    stats = arguments[0] == STATS
    arguments = arguments[stats:]
    if not arguments:
        raise UsageError(f"{STATS} needs a script, or -m and a module")
    run: Callable[[], object]
    if arguments[0] == "-m":
        if len(arguments) == 1:
            raise UsageError("-m needs the name of a module")
        sys.argv[:] = arguments[1:]
        # The working directory is the first in sys.path already.
        run = partial(runpy.run_module, arguments[1], run_name="__main__", alter_sys=True)
    else:
        run = partial(_run_script, str(Path(arguments[0]).absolute()), _source(arguments[0]))
        sys.argv[:] = arguments
        if not getattr(sys.flags, "safe_path", False):
            sys.path[0] = str(Path(arguments[0]).resolve().parent)
    patch_h5py()
    # Processes that the program starts are patched as they start: see `chunkwise._startup`.
    os.environ["CHUNKWISE_PATCH"] = "1"
    say_at_exit(timed() if stats else None)
    _hide_our_frames()
    return run


def _source(script: str) -> bytes:
    try:
        with io.open_code(str(Path(script).absolute())) as source:
            return source.read()
    except OSError as error:
        raise UsageError(
            f"cannot run {script}: {error.strerror}; give a subcommand, a script, or -m and a "
            "module"
        ) from None


def _run_script(script: str, source: bytes) -> None:
    main = ModuleType("__main__")
    main.__file__ = script
    main.__loader__ = SourceFileLoader("__main__", script)
    main.__dict__["__builtins__"] = builtins
    # For good: pickling, and threads that outlive the script, look for it.
    sys.modules["__main__"] = main
    exec(compile(source, script, "exec", dont_inherit=True), main.__dict__)


def _hide_our_frames() -> None:
    """Begin tracebacks where the program begins."""
    former = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        while trace is not None and _is_before_the_program(trace):
            trace = trace.tb_next
        former(kind, error.with_traceback(trace), trace)

    sys.excepthook = show


def _is_before_the_program(trace: TracebackType) -> bool:
    frame = trace.tb_frame
    return frame.f_code.co_filename in _OURS or frame.f_globals.get("__name__") == "runpy"
