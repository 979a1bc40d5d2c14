"""How is a program started, timed, watched and ended?"""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from chunkwise.trials.environment import usable_cpus

# Without the folder of `-c` and `-m`: a `statistics.py` beside the data is not ours.
_WITHOUT_FOLDER: Final = "import sys; sys.path[:] = filter(None, sys.path)\n"
# Memory is looked at this often: what is taken for less is missed.
_INTERVAL_S: Final = 0.01
_MEMORY: Final = re.compile(r"Rss(?:Anon|Shmem):\s+(\d+) kB")
# Figures of processes come in hundredths of a second.
_LEAST_WATCHED_S: Final = 0.2


@dataclass(frozen=True)
class Ended:
    """How a program ended."""

    returncode: int
    out: bytes
    err: bytes
    elapsed_s: float  # From its start to its end
    memory_nbytes: int = 0  # The most that it was seen to have, if that was watched
    # What other programs had of the processors meanwhile; None where the system does not say.
    others_share: float | None = None

    @property
    def last_words(self) -> str:
        """The last line that it wrote on standard error; empty without."""
        lines = self.err.decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""

    @property
    def how(self) -> str:
        """How it ended, in words: ``was ended by SIGKILL``, ``ended with code 1: ...``."""
        if self.returncode < 0:
            try:
                name = signal.Signals(-self.returncode).name
            except ValueError:
                name = f"signal {-self.returncode}"
            return f"was ended by {name}{' (out of memory?)' if name == 'SIGKILL' else ''}"
        return f"ended with code {self.returncode}: {self.last_words or 'no message'}"


def python(code: str) -> tuple[str, ...]:
    """Return the command that runs lines of Python in this environment."""
    return sys.executable, "-c", _WITHOUT_FOLDER + code


def finished(
    command: Sequence[str | os.PathLike[str]],
    *,
    given: bytes | None = None,  # What it reads from standard input
    environment: Mapping[str, str] | None = None,  # Variables besides those of this process
    folder: str | os.PathLike[str] | None = None,  # Where it works
    timeout_s: float | None = None,
    watches_memory: bool = False,
    patience_s: float = 0.0,  # What it gets to end by itself before it is killed
) -> Ended:
    """Run a program to its end, or raise TimeoutError; it never outlives this call."""
    begun, busy, looked = time.perf_counter(), Share(), look(None)
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env={**os.environ, **(environment or {})},
    )
    memory = 0
    try:
        while True:
            left = None if timeout_s is None else begun + timeout_s - time.perf_counter()
            step = _INTERVAL_S if watches_memory else left
            try:
                out, err = process.communicate(given, step)
                break
            except subprocess.TimeoutExpired:
                given = None
                if left is not None and left <= (step or 0.0):
                    raise TimeoutError(f"no end within {timeout_s:g} s") from None
                memory = max(memory, _memory_nbytes(process.pid))
        elapsed_s = time.perf_counter() - begun
    finally:
        if process.poll() is None:
            _end(process, patience_s)
    busy.add(looked, look(None), elapsed_s)
    return Ended(process.returncode, out, err, elapsed_s, memory, busy.of_others)


def _end(process: subprocess.Popen[bytes], patience_s: float) -> None:
    # Its pipes are closed, and it is waited for, however often Ctrl-C comes.
    with contextlib.suppress(BrokenPipeError), process:
        try:
            if patience_s:
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(patience_s)
        finally:
            process.kill()


def _memory_nbytes(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return 1024 * sum(map(int, _MEMORY.findall(status)))


@dataclass
class Share:
    """Processor seconds of other programs, among those that there were."""

    others_s: float = 0.0  # Sums over the times that were watched
    all_s: float = 0.0

    @property
    def of_others(self) -> float | None:
        """From 0 to 1; None where the system does not say, or it was watched too briefly."""
        return min(self.others_s / self.all_s, 1.0) if self.all_s > _LEAST_WATCHED_S else None

    def add(
        self, begun: tuple[float, float] | None, ended: tuple[float, float] | None, seconds: float
    ) -> None:
        """Add what happened between two looks."""
        if begun is not None and ended is not None:
            own = ended[1] - begun[1]
            self.others_s += max(ended[0] - begun[0] - own, 0.0)
            self.all_s += seconds * usable_cpus()


def look(pid: int | None) -> tuple[float, float] | None:
    """Give busy seconds of all processors, and of a process or this one; None if unknown."""
    busy = busy_s()
    if busy is None or pid is None:
        return None if busy is None else (busy, sum(os.times()[:4]))
    try:
        process = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2]
        # Its own, and those of programs that it ran to their end: user and system of each.
        return busy, sum(map(int, process.split()[11:15])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return None


def busy_s() -> float | None:
    """Return the seconds that all processors were busy until now; None if unknown."""
    try:
        machine = Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:]
        # user, nice, system, idle, iowait, irq, softirq, steal: what the host takes is not ours.
        user, nice, system, _idle, _wait, *rest = map(int, machine[:8])
        return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")
    except (AttributeError, OSError, ValueError):  # Wine shows Linux's /proc, and has no sysconf
        return None


class Waiting:
    """A process that waits for its turn, and answers each line with one of JSON."""

    def __init__(self, command: Sequence[str], log: IO[str], patience_s: float) -> None:
        self.busy = Share()  # What other programs did while it answered
        self._patience_s = patience_s
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )

    def answer(self) -> dict[str, Any]:
        """Wait for the next answer; ``{"failed": why}`` if none comes."""
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(self._patience_s):
                return {"failed": f"no answer for {self._patience_s:.0f} s"}
        line = self._process.stdout.readline()
        if not line:
            return {"failed": f"ended with code {self._process.wait()}"}
        found: dict[str, Any] = json.loads(line)
        return found

    def ask(self) -> dict[str, Any]:
        """Ask once, and wait for the answer."""
        assert self._process.stdin is not None
        begun, clock = look(self._process.pid), time.perf_counter()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        answer = self.answer()
        self.busy.add(begun, look(self._process.pid), time.perf_counter() - clock)
        return answer

    def end(self) -> None:
        """End the process, whatever it does."""
        with contextlib.suppress(BrokenPipeError), self._process:
            self._process.kill()
