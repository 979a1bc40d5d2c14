"""How does a text become Markdown without markup, and a file one that is only written if new?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_MARKUP: Final = re.compile(r"([\\`*_\[\]<>|#~{}$])")


def escaped(text: str) -> str:
    """Return a text on one line, with no markup in it."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def put(path: Path, text: str) -> None:
    """Write a file, unless it has this text: Sphinx reads again what is new."""
    if not path.is_file() or path.read_text("utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
