"""Write the tables of docs/architecture.md that say which room uses which.

    python scripts/rooms.py

The arrows are those that `tests/whole/test_rooms.py` finds in the imports.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.whole.test_rooms import FACE, LABORATORY, arrows  # noqa: E402

PAGE = ROOT / "docs" / "architecture.md"


def table(rooms: list[str]) -> str:
    """Return the rows of some rooms."""
    found, files = arrows(), ", ".join(f"`{name}`" for name in ("file", "group", "dataset"))
    rows = []
    for room in sorted(rooms):
        title = f"`{room}` ({files})" if room == "face" else f"`{room}`"
        uses = ", ".join(f"`{one}`" for one in sorted(found[room]))
        rows.append(f"| {title} | {uses} |" if uses else f"| {title} | |")
    return "\n".join(rows)


def main() -> None:
    """Write both tables."""
    assert {"file", "group", "dataset"} == FACE
    lab = {path.stem for path in LABORATORY.iterdir()}
    text = PAGE.read_text("utf-8")
    for head, rooms in (
        ("room of Python", [room for room in arrows() if room not in lab]),
        ("room of the laboratory", [room for room in arrows() if room in lab]),
    ):
        begin, title, rest = text.partition(f"| {head} | uses |\n| --- | --- |\n")
        text = begin + title + table(rooms) + "\n\n" + rest.partition("\n\n")[2]
    PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
