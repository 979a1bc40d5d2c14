"""What is done again and again while calls that change files go wrong; see test_sabotage.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import chunkwise
from chunkwise.errors import ChunkwiseError

RULES: dict[str, Any] = {
    "chunk": {"z": (3000,)},
    "filters": {"z": "shuffle+deflate:1"},
}


def _ended(work: Callable[[], object]) -> int:
    try:
        work()
    except ChunkwiseError as error:
        print(error)
        return int(error.exit_code)
    return 0


def repack(folder: Path) -> int:
    """Write a new file."""
    return _ended(lambda: chunkwise.repack(folder / "a.h5", folder / "b.h5", threads=1, **RULES))


def in_place(folder: Path) -> int:
    """Replace the file."""
    return _ended(lambda: chunkwise.repack(folder / "a.h5", in_place=True, threads=1, **RULES))


def fix(folder: Path) -> int:
    """Fix the file in place."""
    return _ended(lambda: chunkwise.fix(folder / "a.h5", in_place=True, seconds=0))
