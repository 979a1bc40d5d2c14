"""Programs that tests run, with what they print."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]


def ran(
    words: Sequence[str | Path], *, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, and keep what it prints as text."""
    return subprocess.run(words, capture_output=True, text=True, check=check, **options)


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
