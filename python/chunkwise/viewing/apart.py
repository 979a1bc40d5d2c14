"""How does work run in a process of its own: bounded, watched, and ended when nobody wants it?"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from chunkwise import system
from chunkwise.errors import ChunkwiseError, CrashedError
from chunkwise.inspection.records import plain
from chunkwise.memory import free_nbytes
from chunkwise.names import HDF5_ERRORS, printable

if TYPE_CHECKING:
    from chunkwise.measure.schedule import Step

# Not even a machine with less memory free can do with less.
_LEAST_NBYTES: Final = 2 << 30
# A process that is to end removes what it was writing; then it is killed.
_PATIENCE_S: Final = 20.0
_CODE: Final = "from chunkwise.viewing.apart import main\nmain()"


@dataclass
class Running:
    """One work, which goes on while the page asks how far it is."""

    what: str
    is_running: bool = True
    step: Step | None = None
    result: Any = None
    error: str = ""
    is_cancelled: bool = False
    _process: subprocess.Popen[bytes] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, *given: Any) -> None:
        """Start, and return."""
        threading.Thread(target=self.run, args=given, daemon=True).start()

    def run(self, *given: Any) -> Any:
        """Work to the end, and return what comes of it, or None for an error."""
        try:
            self.result = self._followed(given)
        except ChunkwiseError as error:
            ended = "ended: it wrote no file" if self.what == "write" else "ended"
            self.error = ended if self.is_cancelled else str(error)
        finally:
            self.is_running = False
        return self.result

    def _followed(self, given: tuple[Any, ...]) -> Any:
        # Not needed before the first drawing, and large.
        from chunkwise.measure.process import python

        limit_s = _limit_s(self.what)
        # The thread that starts it outlives it: the end of that thread would end it on Linux.
        with self._lock:
            if self.is_cancelled:
                raise ChunkwiseError("it was ended before it began")
            self._process = subprocess.Popen(
                python(_CODE),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        timer = threading.Timer(limit_s or 1.0, self._end)
        if limit_s is not None:
            timer.start()
        try:
            return self._heard(self._process, given)
        finally:
            timer.cancel()
            self._kill()
            self._process.wait()

    def _heard(self, process: subprocess.Popen[bytes], given: tuple[Any, ...]) -> Any:
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdout as stream:
            try:
                with process.stdin as sent:
                    pickle.dump((self.what, given), sent)
                while True:
                    kind, found = pickle.load(stream)
                    if kind == "step":
                        self.step = found
                    elif kind == "error":
                        raise ChunkwiseError(found)
                    else:
                        return found
            except (EOFError, OSError, pickle.UnpicklingError):
                limit_s = _limit_s(self.what)
                raise CrashedError(
                    "the work came to no end: it crashed, or needed more memory than this machine "
                    f"has free{f', or more than {limit_s:g} s' if limit_s else ''}"
                ) from None

    def cancel(self) -> None:
        """Ask it to end."""
        with self._lock:
            self.is_cancelled = True
        self._end()

    def _end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            late = threading.Timer(_PATIENCE_S, self._kill)
            late.daemon = True
            late.start()

    def _kill(self) -> None:
        """End what is left of it, and what it has started."""
        if self._process is not None:
            with contextlib.suppress(OSError, AttributeError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                self._process.kill()

    def state(self) -> dict[str, Any]:
        """Say how far it is, and what was found."""
        return {
            "what": self.what,
            "running": self.is_running,
            "step": plain(self.step),
            "error": self.error,
            "result": None if self.is_running else plain(self.result),
        }


def _limit_s(what: str) -> float | None:
    from chunkwise.viewing.work import WORKS

    return WORKS[what][1]


def main() -> None:
    """Do one work as the process that it has for itself."""
    from chunkwise.viewing.work import WORKS

    _bound()
    # Libraries must not print into the answers.  Without its server, this ends, too.
    with contextlib.suppress(BrokenPipeError), os.fdopen(os.dup(1), "wb") as stream:
        os.dup2(2, 1)

        def say(kind: str, found: Any) -> None:
            pickle.dump((kind, found), stream)
            stream.flush()

        follow: Callable[[Step], None] = lambda step: say("step", step)  # noqa: E731
        what, given = pickle.load(sys.stdin.buffer)
        try:
            say("done", WORKS[what][0](follow, *given))
        except (ChunkwiseError, *HDF5_ERRORS, ArithmeticError) as error:
            say("error", printable(str(error)))
        except MemoryError:
            say("error", "it needs more memory than this machine has free")
        except KeyboardInterrupt:
            # Its server has ended it, and says so.
            sys.exit(1)


def _bound() -> None:
    """End with the server, in order, and take no more memory than there is."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    system.end_with_parent(signal.SIGTERM)
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        most = max(_LEAST_NBYTES, free_nbytes())
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if hard == resource.RLIM_INFINITY or most < hard:
            resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
