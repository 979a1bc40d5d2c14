"""Pages that commands print, each kept whole in tests/golden: their words are pinned there alone.

After a change of words, write them anew and look at what differs:

    GOLDEN=write pytest tests/whole/test_golden.py tests/inspect/test_render.py ...
    git diff tests/golden
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "golden"


def assert_golden(name: str, *parts: str) -> None:
    """Require that the parts, one below the other, are the page of this name."""
    page = FOLDER / f"{name}.txt"
    text = "\n--------\n".join(part.rstrip("\n") + "\n" for part in parts)
    if os.environ.get("GOLDEN") == "write":
        page.write_text(text, encoding="utf-8")
    assert text == page.read_text(encoding="utf-8"), f"GOLDEN=write writes {page} anew"
