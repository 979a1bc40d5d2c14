"""Files that many tests begin with: made once, and copied for each test."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path


def once(make: Callable[[Path], object]) -> Callable[[Path], Path]:
    """Have a file made the first time, and the same bytes written each other time."""
    content: list[bytes] = []

    @wraps(make)
    def made(path: Path) -> Path:
        if content:
            path.write_bytes(content[0])
        else:
            make(path)
            content.append(path.read_bytes())
        return path

    return made
