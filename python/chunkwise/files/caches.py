"""Where is kept what can be found out, or fetched, again?"""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return chunkwise's folder in ``XDG_CACHE_HOME``, or ``~/.cache``.

    As the XDG base directory specification has it.
    """
    root = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(root) if Path(root).is_absolute() else Path.home() / ".cache"
    return base / "chunkwise"
