"""How is a program run patched, and otherwise as Python itself would run it?

Its arguments, `__main__`, first entry of `sys.path`, exit code and traceback are those of
``python script.py`` and ``python -m module``.
"""

from __future__ import annotations

import builtins
import io
import os
import runpy
import sys
from collections.abc import Callable
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, TracebackType

from chunkwise.errors import UsageError
from chunkwise.patching.ending import say_at_exit, timed
from chunkwise.patching.installed import patch_h5py

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
