"""Programs that tests run, with what they print."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def ran(
    words: Sequence[str | Path], *, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, and keep what it prints as text."""
    return subprocess.run(words, capture_output=True, text=True, check=check, **options)
