"""Programs that tests run, with what they print."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]


def ran(
    words: Sequence[str | Path], *, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, and keep what it prints as text."""
    return subprocess.run(words, capture_output=True, text=True, check=check, **options)


def interrupted(words: Sequence[object], scratch: Path, number: signal.Signals) -> int:
    """Send a signal to a command of chunkwise once it has made a file in a folder.

    It says how it ended by its exit code, without a traceback, and leaves nothing there.
    """
    scratch.mkdir()
    command = [str(Path(sys.executable).with_name("chunkwise")), *map(str, words)]
    env = {**os.environ, "TMPDIR": str(scratch)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=env)
    while not list(scratch.rglob("*.h5")):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert b"Traceback" not in said
    assert not list(scratch.iterdir())
    return process.returncode


class Program:
    """Python code that runs beside a test, which speaks with it line by line."""

    def __init__(self, code: str, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._told, self._said = self.process.stdin, self.process.stdout

    def tell(self, *words: object) -> None:
        print(*words, file=self._told, flush=True)

    def hear(self) -> str:
        return self._said.readline().strip()

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        """Let it end as its input ends."""
        self.process.communicate(timeout=120)


def descriptors(path: Path | None = None) -> int:
    """How many descriptors this process has: of a file, or all."""
    links = [os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()]
    return len(links) if path is None else links.count(str(path.resolve()))


def python(code: str, *arguments: object, limit_s: float = 120, **variables: str) -> str:
    """Run Python code that must not fail, by this Python; give what it prints.

    The code may import from `tests`; `variables` are set in its environment.
    """
    words = [sys.executable, "-X", "faulthandler", "-c", code, *map(str, arguments)]
    done = ran(words, timeout=limit_s, env=os.environ | variables, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
